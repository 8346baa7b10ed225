// Elements of the page, and what is shown of one number: its casts, and the same as Python.
function make(tag, named = {}, ...children) {
  const svg = ["svg", "line", "circle", "text", "rect", "title"].includes(tag);
  const found = svg
    ? document.createElementNS("http://www.w3.org/2000/svg", tag)
    : document.createElement(tag);
  for (const [name, value] of Object.entries(named)) {
    if (name.startsWith("on")) found.addEventListener(name.slice(2), value);
    else if (value === true) found.setAttribute(name, "");
    else if (value !== false && value !== undefined) found.setAttribute(name, value);
  }
  found.append(...children);
  return found;
}

function table(caption, heads, rows) {
  const head = make("tr", {}, ...heads.map((text) => make("th", { scope: "col" }, text)));
  const body = rows.map((row) => make("tr", row.named ?? {}, ...row.cells.map((x) => make("td", {}, x))));
  const found = make("table", { class: "facts" }, make("caption", {}, caption), make("thead", {}, head));
  found.append(make("tbody", {}, ...body));
  return make("div", { class: "wide", tabindex: 0, role: "region", "aria-label": caption }, found);
}

function bitsOf(code, format) {
  if (format.texts) return format.texts[Number(code)].split("|");
  const text = code.toString(2).padStart(format.bits, "0");
  let at = 0;
  return format.fields.map((width) => text.slice(at, (at += width))).filter(Boolean);
}

const hexOf = (code, format) => `0x${code.toString(16).padStart(Math.ceil(format.bits / 4), "0")}`;

const KINDS = ["sign", "exponent", "fraction"];

function bits(code, format) {
  const fields = bitsOf(code, format);
  const kind = (place) => (format.texts ? ["sign", "dot", "exponent", "fraction"] : KINDS)[place] ?? "";
  const spans = fields.map((text, place) =>
    make("span", { class: format.is_float && fields.length > 1 ? kind(place) : "" }, text));
  return make("code", { class: "bits" }, ...spans.flatMap((span, place) => (place ? [" ", span] : [span])));
}

// The exponent of the last place, of the number unpacked last: 1's of FP32 to itself.
const quantum = (src, dst, exponent) =>
  src === dst ? Math.max(exponent, 0) : engine.quantum(dst.number);

function cut(code, src, dst) {
  const value = number(code, src);
  if (value.nan || value.inf) return null;
  const places = quantum(src, dst, value.exponent) - value.exponent;
  const text = value.significand.toString(2);
  if (places <= 0) return { kept: text + "0".repeat(Math.min(-places, 64)), dropped: "" };
  if (text === "0") return { kept: text, dropped: "" };
  const padded = text.padStart(places + 1, "0");
  return { kept: padded.slice(0, -places), dropped: padded.slice(-places) };
}

function neighbours(code, src, dst) {
  const mode = (name) => tables.modes.indexOf(name);
  const around = ["FLOOR", "CEIL"].map((name) =>
    converted([code], [[src.number, dst.number, mode(name), tables.infinities_and_nan]])[0]);
  const [value, low, high] = [number(code, src), number(around[0], dst), number(around[1], dst)];
  const finite = [value, low, high].every((each) => !each.nan && !each.inf);
  return finite && around[0] !== around[1] ? { value, low, high } : null;
}

function numberLine(code, src, dst, results) {
  const found = neighbours(code, src, dst);
  if (found === null) return [];
  const { value, low, high } = found;
  const least = Math.min(value.exponent, low.exponent, high.exponent);
  const gap = distance(high, low, least);
  const share = distance(value, low, least) / gap;
  if (!(share >= 0 && share <= 1)) return []; // beyond the destination's range
  const [left, right, y] = [70, 570, 40];
  const at = (part) => left + part * (right - left);
  const title = say("line", { format: dst.name });
  const drawn = make("svg", { viewBox: "0 0 640 104", role: "img", "aria-label": title, class: "line" },
    make("title", {}, title), make("line", { x1: at(0), x2: at(1), y1: y, y2: y, class: "axis" }));
  for (const [part, size] of [[0, 12], [0.5, 6], [1, 12]])
    drawn.append(make("line", { x1: at(part), x2: at(part), y1: y - size, y2: y + size, class: "axis" }));
  drawn.append(make("circle", { cx: at(share), cy: y, r: 6, class: "value" }));
  for (const [part, end, side] of [[0, low, "low"], [1, high, "high"]]) {
    const modes = results.filter((each) => exactText(each.value) === exactText(end)).map((each) => each.mode);
    const lines = [[y - 20, shortText(end)], [y + 34, modes.slice(0, 3).join(" ")], [y + 54, modes.slice(3).join(" ")]];
    for (const [at, text] of lines) drawn.append(make("text", { x: part ? 636 : 4, y: at, class: side }, text));
  }
  return [make("figure", {}, make("figcaption", {}, title), drawn)];
}

function errorText(result, source, src, dst, code) {
  if (result.nan || result.inf || source.nan || source.inf) return "";
  number(code, dst); // which the quantum is asked of
  const ulps = distance(result, source, quantum(src, dst, result.exponent));
  return `${ulps > 0 ? "+" : ""}${Number(ulps.toPrecision(4))}\u00a0ulp`;
}

function castPart(state, place, code) {
  const { src: from, dst: to, mode, satmode } = state.casts[place];
  const [src, dst] = [byName[from], byName[to]];
  const rule = ruleOf(state.family, from, to);
  const [pair, source] = [`${from} → ${to}`, number(code, src)];
  const modes = rule.modes.length ? rule.modes : [""];
  const results = modes.map((each) => {
    const made = converted([code], stepsOf(rule, each, satmode))[0];
    return { mode: each, code: made, value: number(made, dst) };
  });
  const chosen = results.find((each) => each.mode === (rule.modes.length ? mode || rule.default : ""));
  const parts = cut(code, src, dst);
  const facts = [[say("result"), make("strong", {}, shortText(chosen.value)), " ",
    make("code", {}, hexOf(chosen.code, dst)), " ", bits(chosen.code, dst)]];
  if (parts) {
    const guard = parts.dropped[0] === "1" ? 1 : 0;
    const sticky = parts.dropped.slice(1).includes("1") ? 1 : 0;
    facts.push([say("kept"), make("code", {}, parts.kept)]);
    facts.push([say("dropped"), ...(parts.dropped
      ? [make("code", {}, parts.dropped), " ", say("cut", { guard, sticky })] : [say("nothing")])]);
  }
  facts.push([say("rule"), say("standing", { source: rule.source, standing: say(rule.standing) })]);
  const list = make("dl", {}, ...facts.flatMap(([name, ...text]) => [make("dt", {}, name), make("dd", {}, ...text)]));
  const rows = results.map((each) => ({
    named: each === chosen ? { class: "chosen", "aria-current": "true" } : {},
    cells: [each.mode || say("none"), shortText(each.value), hexOf(each.code, dst), bits(each.code, dst),
      errorText(each.value, source, src, dst, each.code)],
  }));
  const heads = [say("mode"), say("value"), say("code"), say("bits"), say("error")];
  const shown = [make("h3", {}, pair), list, ...numberLine(code, src, dst, results),
    table(say("modes", { pair }), heads, rows), others(pair, from, to, code)];
  return { code: chosen.code, shown };
}

// Words with code between backticks.
const worded = (text) => make("span", {}, ...text.split("`").map((part, place) => (place % 2 ? make("code", {}, part) : part)));

function others(pair, from, to, code) {
  const rows = tables.dialects[`${from}-${to}`].map((each) => {
    const rule = `${each.text} (${each.source})`;
    if (each.steps === null) return { cells: [each.name, worded(say("elsewhere")), "", rule] };
    const made = converted([code], each.steps)[0];
    return { cells: [each.name, shortText(number(made, byName[to])), hexOf(made, byName[to]), rule] };
  });
  if (!rows.length) return "";
  const heads = [say("system"), say("value"), say("code"), say("rule")];
  return make("details", {}, make("summary", {}, say("others", { pair })), table(say("others", { pair }), heads, rows));
}

// A kernel that upstream's package compiles too, and below it the call that is this project's.
function python(state, code) {
  const [src, dst] = [byName[state.from], byName[state.casts.at(-1).dst]];
  const formats = [src, ...state.casts.map((each) => byName[each.dst])];
  const length = formats.some((each) => each.bits === 4) ? 2 : 1; // two share a byte
  const tensor = (format) => `pypto.Tensor[[${length}], pypto.${format.dtype}]`;
  const lines = ["import pypto_cast as pypto  # on an NPU: import pypto", "", "", "@pypto.frontend.jit",
    `def casts(x: ${tensor(src)}, y: ${tensor(dst)}):`, "    pypto.set_vec_tile_shapes(64)"];
  state.casts.forEach((each, place) => {
    const rule = ruleOf(state.family, each.src, each.dst);
    const named = each.mode || rule.default;
    const asked = named ? `, mode=pypto.CastMode.CAST_${named}` : "";
    const bound = rule.off ? `, satmode=pypto.SaturationMode.${each.satmode}` : "";
    const made = place === state.casts.length - 1 ? "y[:]" : "z";
    lines.push(`    ${made} = pypto.cast(${place ? "z" : "x"}, pypto.${byName[each.dst].dtype}${asked}${bound})`);
  });
  const made = (name, format, number) =>
    `    ${name} = pypto.tensor([${length}], pypto.${format.dtype}, data=[${Array(length).fill(number).join(", ")}])`;
  return [...lines, "", "", `with pypto.options(chip="${tables.chips[state.family]}"):`,
    "    # on an NPU: x and y are torch tensors of the device", made("x", src, pythonNumber(state.value, code, src)),
    made("y", dst, "0"), "    casts(x, y)", "    print(y)"].join("\n");
}

// As typed where Python reads the same number from it, else the number itself.
function pythonNumber(text, code, format) {
  const value = number(code, format);
  if (value.nan || value.inf) return `float("${exactText(value)}")`;
  if (!format.is_float) return exactText(value);
  if (/^[+-]?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(text) && /[.e]/i.test(text)) {
    const once = codeOf(exactText(doubleOf(Number(text))), format).code;
    if (once === code) return text;
  }
  const exact = exactText(value);
  return exact.includes(".") ? exact : `${exact}.0`;
}

function doubleOf(value) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  return number(view.getBigUint64(0), byName.FP64);
}
