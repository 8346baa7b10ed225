// What is shown of many numbers: what became of them, by outcome and by exponent, and the file.
function throughAll(state, codes) {
  return state.casts.reduce((made, { src, dst, mode, satmode }) =>
    converted(made, stepsOf(ruleOf(state.family, src, dst), mode, satmode)), codes);
}

function summary(state, { codes, shape, order }) {
  const [src, dst] = [byName[state.from], byName[state.casts.at(-1).dst]];
  const results = throughAll(state, codes);
  const counts = { exact: 0, rounded: 0, to_limit: 0, to_inf: 0, to_nan: 0 };
  const bins = [new Map(), new Map()];
  results.forEach((made, place) => {
    const [one, other] = [number(codes[place], src), number(made, dst)];
    counts[became(one, other, src, dst, made)] += 1;
    [one, other].forEach((each, side) => {
      const bin = binOf(each);
      bins[side].set(bin, (bins[side].get(bin) ?? 0) + 1);
    });
  });
  const rows = Object.entries(counts).map(([key, count]) => ({ cells: [say(key), String(count)] }));
  const url = URL.createObjectURL(npyOf(results, dst, shape, order));
  const link = make("a", { href: url, download: `${dst.name.toLowerCase()}.npy`, class: "button" }, say("download"));
  const outcomes = table(say("count", { count: codes.length }), [say("outcome"), say("numbers")], rows);
  return [outcomes, ...(codes.length ? [histogram(bins)] : []), make("p", {}, link)];
}

function became(one, other, src, dst, made) {
  if (other.nan || other.inf) {
    const kept = other.nan ? one.nan : one.inf;
    return kept ? "exact" : other.nan ? "to_nan" : "to_inf";
  }
  if (one.nan || one.inf) return "to_limit";
  if (exactText(one) === exactText(other) || (!one.significand && !other.significand)) return "exact";
  number(made, dst);
  return Math.abs(distance(other, one, quantum(src, dst, other.exponent))) > 1 ? "to_limit" : "rounded";
}

function binOf(value) {
  if (value.nan) return "nan";
  if (value.inf) return "inf";
  return value.significand ? value.exponent + value.significand.toString(2).length - 1 : "0";
}

function histogram(bins) {
  const keys = [...new Set([...bins[0].keys(), ...bins[1].keys()])];
  const numbers = keys.filter((key) => typeof key === "number").sort((a, b) => a - b);
  const order = [...["0"].filter((key) => keys.includes(key)), ...numbers, ...["inf", "nan"].filter((key) => keys.includes(key))];
  const most = Math.max(...bins.flatMap((each) => [...each.values()]));
  const width = Math.max(10, Math.min(40, 600 / order.length));
  const drawn = make("svg", { viewBox: `-24 0 ${Math.max(120, width * order.length) + 48} 180`, role: "img", class: "bars",
    "aria-label": say("histogram") }, make("title", {}, say("histogram")));
  order.forEach((key, place) => bins.forEach((each, side) => {
    const height = (70 * (each.get(key) ?? 0)) / most;
    drawn.append(make("rect", { x: place * width + 1, width: width - 2, height, y: side ? 100 : 80 - height,
      class: side ? "after" : "before" }, make("title", {}, `${key}: ${each.get(key) ?? 0}`)));
    if (!side && (width >= 20 || place % 4 === 0))
      drawn.append(make("text", { x: place * width + width / 2, y: 94, class: "end" }, String(key)));
  }));
  return make("figure", {}, make("figcaption", {}, say("histogram")), drawn);
}
