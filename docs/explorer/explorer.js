// The explorer: state in the address, conversion in the module, everything else from the tables.
(async () => {
  const { tables, words, module } = JSON.parse(document.getElementById("explorer-data").textContent);
  const binary = Uint8Array.from(atob(module), (char) => char.charCodeAt(0));
  const engine = (await WebAssembly.instantiate(binary)).instance.exports;
  const CAPACITY = engine.capacity();
  const MOST_TYPED = 1000;
  const MOST_ELEMS = 1 << 20;
  const FORMATS = tables.formats.map((format, number) => ({ ...format, number }));
  const byName = Object.fromEntries(FORMATS.map((format) => [format.name, format]));

  // --- Text and elements --------------------------------------------------------------------------

  const say = (key, named = {}) => words[key].replace(/\{(\w+)\}/g, (_, name) => named[name]);

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

  // --- Numbers: exact, as a significand and a power of two ---------------------------------------

  function number(code, format) {
    const bits = engine.unpack(code, format.number);
    const nan = (bits & 4) !== 0;
    const inf = !nan && (bits & 2) !== 0;
    const significand = BigInt.asUintN(64, engine.significand());
    return { negative: (bits & 1) !== 0, inf, nan, significand, exponent: engine.exponent() };
  }

  function exactText(value) {
    if (value.nan) return "nan";
    const sign = value.negative ? "-" : "";
    if (value.inf) return `${sign}inf`;
    const { significand, exponent } = value;
    if (exponent >= 0) return `${sign}${significand << BigInt(exponent)}`;
    const places = -exponent;
    const digits = String(significand * 5n ** BigInt(places)).padStart(places + 1, "0");
    const fraction = digits.slice(-places).replace(/0+$/, "");
    return `${sign}${digits.slice(0, -places)}${fraction && "."}${fraction}`;
  }

  function shortText(value) {
    const exact = exactText(value);
    if (exact.length <= 24) return exact;
    return `${Number(exact).toPrecision(9)}…`;
  }

  const signed = (value) => (value.negative ? -value.significand : value.significand);

  // (a - b) / 2^quantum as a double; only its text is shown.
  function distance(a, b, quantum) {
    const least = Math.min(a.exponent, b.exponent, quantum);
    const scaled = (value) => signed(value) << BigInt(value.exponent - least);
    return Number(scaled(a) - scaled(b)) / Number(1n << BigInt(quantum - least));
  }

  // A written number as digits and powers, or null.
  function parsed(text) {
    const special = /^([+-]?)(inf|infinity|nan)$/i.exec(text);
    if (special) {
      const nan = special[2].toLowerCase() === "nan";
      return { special: nan ? "nan" : "inf", negative: special[1] === "-" };
    }
    const hex = /^([+-]?)0x([0-9a-f]*)\.?([0-9a-f]*)(?:p([+-]?\d{1,4}))?$/i.exec(text);
    if (hex && hex[2] + hex[3]) {
      const power = Number(hex[4] ?? 0) - 4 * hex[3].length;
      const top = BigInt(`0x${hex[2]}${hex[3]}`);
      return ratio(hex[1] === "-", top << BigInt(Math.max(power, 0)), 1n << BigInt(Math.max(-power, 0)));
    }
    const decimal = /^([+-]?)(\d*)\.?(\d*)(?:e([+-]?\d{1,4}))?$/i.exec(text);
    if (!decimal || !(decimal[2] + decimal[3])) return null;
    const power = Number(decimal[4] ?? 0) - decimal[3].length;
    const top = BigInt(decimal[2] + decimal[3]) * 10n ** BigInt(Math.max(power, 0));
    return ratio(decimal[1] === "-", top, 10n ** BigInt(Math.max(-power, 0)));
  }

  const ratio = (negative, top, bottom) => ({ negative, top, bottom });

  // The code of a format nearest to what is written, and whether the format holds it.
  function codeOf(text, format) {
    const mask = (1n << BigInt(format.bits)) - 1n;
    const named = /^code:(0x[0-9a-f]+|\d+)$/i.exec(text);
    if (named && BigInt(named[1]) <= mask) return { code: BigInt(named[1]), holds: true };
    const given = named ? null : parsed(text);
    if (given === null) throw new Error(say("no_number", { text }));
    if (!format.is_float) return integerCode(given, text, format, mask);
    if (given.special) {
      const double = given.special === "nan" ? 0x7ffn << 52n | 1n << 51n : 0x7ffn << 52n;
      const exact = [byName.FP64.number, format.number, 0, tables.infinities_and_nan];
      const code = converted([double | (BigInt(given.negative) << 63n)], [exact])[0];
      if (!number(code, format)[given.special]) throw outside(text, format);
      return { code, holds: true };
    }
    // At most 62 bits of it, the last of which also stands for all below: rounded once from there.
    const length = given.top.toString(2).length - given.bottom.toString(2).length;
    const exponent = length - 61;
    const top = given.top << BigInt(Math.max(-exponent, 0));
    const bottom = given.bottom << BigInt(Math.max(exponent, 0));
    let significand = top / bottom;
    if (significand * bottom !== top) significand |= 1n;
    const nearest = engine.nearest(given.negative, significand, exponent, format.number);
    const code = BigInt.asUintN(64, nearest);
    const value = number(code, format);
    if (value.nan || (!value.inf && engine.beyond(significand, exponent, format.number))) throw outside(text, format);
    const power = BigInt(Math.abs(value.exponent));
    const [one, other] = value.exponent < 0 ? [0n, power] : [power, 0n];
    const same = (value.significand << one) * given.bottom === given.top << other;
    return { code, holds: !value.inf && !value.nan && same };
  }

  const outside = (text, { name: format, range }) => new Error(say("outside", { text, format, range }));

  // The nearest integer, ties to even, as `explain` takes it; none of what lies out of range.
  function integerCode(given, text, format, mask) {
    const [min, max] = [BigInt(format.min), BigInt(format.max)];
    if (given.special) throw outside(text, format);
    const cut = given.top / given.bottom;
    const rest = 2n * (given.top % given.bottom);
    const up = rest > given.bottom || (rest === given.bottom && cut % 2n === 1n);
    const whole = (cut + BigInt(up)) * (given.negative ? -1n : 1n);
    if (whole < min || whole > max) throw outside(text, format);
    return { code: whole & mask, holds: rest === 0n };
  }

  // --- Conversion -----------------------------------------------------------------------------------

  function converted(codes, steps) {
    new Uint32Array(engine.memory.buffer, engine.steps_at(), 4 * steps.length).set(steps.flat());
    const buffer = new BigUint64Array(engine.memory.buffer, engine.codes_at(), CAPACITY);
    const found = new BigUint64Array(codes.length);
    for (let start = 0; start < codes.length; start += CAPACITY) {
      const part = codes.slice(start, start + CAPACITY);
      buffer.set(part);
      engine.convert(steps.length, part.length);
      found.set(buffer.subarray(0, part.length), start);
    }
    return found;
  }

  const rulesOf = (family) => tables.rules[family];
  const ruleOf = (family, src, dst) => rulesOf(family)[`${src}-${dst}`];
  const sourcesOf = (family) => [...new Set(Object.keys(rulesOf(family)).map((pair) => pair.split("-")[0]))];
  const targetsOf = (family, src) =>
    Object.keys(rulesOf(family)).filter((pair) => pair.split("-")[0] === src).map((pair) => pair.split("-")[1]);

  function stepsOf(rule, mode, satmode) {
    const chains = satmode === "OFF" && rule.off ? rule.off : rule.on;
    return chains[rule.modes.length ? mode || rule.default : ""];
  }

  // --- State, in the address ------------------------------------------------------------------------

  const START = { family: tables.families[0], from: "FP16", value: "2.5", casts: "INT8" };

  function stateOf(hash) {
    const given = { ...START, ...Object.fromEntries(new URLSearchParams(hash.replace(/^#/, ""))) };
    const family = tables.families.includes(given.family) ? given.family : START.family;
    const from = sourcesOf(family).includes(given.from) ? given.from : sourcesOf(family)[0];
    const state = { family, from, value: given.value, casts: [] };
    for (const text of given.casts.split(",")) {
      const [dst, mode, satmode] = text.split(":");
      const src = state.casts.at(-1)?.dst ?? from;
      const targets = targetsOf(family, src);
      if (targets.length) state.casts.push(cast(family, src, targets.includes(dst) ? dst : targets[0], mode, satmode));
    }
    return state;
  }

  function cast(family, src, dst, mode, satmode) {
    const rule = ruleOf(family, src, dst);
    return { src, dst, mode: rule.modes.includes(mode) ? mode : "", satmode: satmode === "OFF" && rule.off ? "OFF" : "ON" };
  }

  function addressOf({ family, from, value, casts }) {
    const chain = casts.map((each) => [each.dst, each.mode, each.satmode].join(":").replace(/:?:ON$/, ""));
    return `#${new URLSearchParams({ family, from, value, casts: chain.join(",") })}`;
  }

  // --- What is shown --------------------------------------------------------------------------------

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
    facts.push([say("rule"), `${rule.source} (${say("standing")}: ${say(rule.standing)})`]);
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

  function others(pair, from, to, code) {
    const rows = tables.dialects[`${from}-${to}`].map((each) => {
      if (each.steps === null) return { cells: [each.name, say("elsewhere"), "", each.text] };
      const made = converted([code], each.steps)[0];
      return { cells: [each.name, shortText(number(made, byName[to])), hexOf(made, byName[to]), each.text] };
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

  // --- Many numbers ---------------------------------------------------------------------------------

  function npyCodes(buffer, name, format) {
    const head = new Uint8Array(buffer, 0, Math.min(12, buffer.byteLength));
    const version = head[6];
    if (head.length < 12 || String.fromCharCode(...head.slice(0, 6)) !== "\x93NUMPY" || version < 1 || version > 3)
      throw new Error(say("no_npy", { name }));
    const view = new DataView(buffer);
    const [start, length] = version === 1 ? [10, view.getUint16(8, true)] : [12, view.getUint32(8, true)];
    const text = new TextDecoder().decode(new Uint8Array(buffer, start, Math.min(length, buffer.byteLength - start)));
    const found = /'descr': *('[^']*'|\[.*?\](?=, *'))/.exec(text)?.[1].replace(/^'|'$/g, "");
    const shape = /'shape': *\(((?:\d+, *)*\d*)\)/.exec(text)?.[1];
    const order = /'fortran_order': *(True|False)/.exec(text)?.[1];
    if (found === undefined || shape === undefined || !order) throw new Error(say("no_npy", { name }));
    if (found !== format.npy) throw new Error(say("no_dtype", { name, found, format: format.name, wanted: format.npy }));
    const elems = shape.split(",").filter((each) => each.trim()).reduce((all, each) => all * Number(each), 1);
    if (elems > MOST_ELEMS) throw new Error(say("too_many", { count: elems, most: MOST_ELEMS }));
    const [at, wanted] = [start + length, elems * format.bytes];
    if (at + wanted > buffer.byteLength)
      throw new Error(say("cut_short", { name, found: Math.max(buffer.byteLength - at, 0), wanted }));
    const mask = (1n << BigInt(format.bits)) - 1n;
    const codes = BigUint64Array.from({ length: elems }, (_, place) => word(view, at + place * format.bytes, format.bytes) & mask);
    return { codes, shape, order };
  }

  function word(view, at, bytes) {
    if (bytes === 8) return view.getBigUint64(at, true);
    if (bytes === 4) return BigInt(view.getUint32(at, true));
    return BigInt(bytes === 2 ? view.getUint16(at, true) : view.getUint8(at));
  }

  function npyOf(codes, format, shape, order) {
    const head = `{'descr': '${format.npy}', 'fortran_order': ${order}, 'shape': (${shape}), }`;
    const padded = `${head.padEnd(Math.ceil((head.length + 11) / 64) * 64 - 11)}\n`;
    const found = new DataView(new ArrayBuffer(10 + padded.length + codes.length * format.bytes));
    [0x93, ..."NUMPY"].forEach((each, at) => found.setUint8(at, typeof each === "number" ? each : each.charCodeAt(0)));
    found.setUint8(6, 1);
    found.setUint16(8, padded.length, true);
    [...padded].forEach((each, at) => found.setUint8(10 + at, each.charCodeAt(0)));
    let at = 10 + padded.length;
    const fill = format.is_float || !format.min?.startsWith("-") ? 0n : (1n << BigInt(8 * format.bytes)) - (1n << BigInt(format.bits));
    for (const code of codes) {
      const negative = fill && (code >> BigInt(format.bits - 1)) & 1n;
      const whole = negative ? code | fill : code;
      for (let byte = 0; byte < format.bytes; byte += 1) found.setUint8(at++, Number((whole >> BigInt(8 * byte)) & 255n));
    }
    return new Blob([found.buffer], { type: "application/octet-stream" });
  }

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
    const counted = table(say("count", { count: codes.length }), [say("outcome"), say("numbers")], rows);
    return [counted, ...(codes.length ? [histogram(bins)] : []), make("p", {}, link)];
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

  // --- The page -------------------------------------------------------------------------------------

  const root = document.getElementById("explorer");
  let state = stateOf(location.hash);
  const form = make("form", { class: "asked", onsubmit: (event) => event.preventDefault() });
  const shown = make("div", { class: "shown", "aria-live": "polite" });
  const many = make("section", { class: "many", "aria-labelledby": "explorer-many" });
  root.append(form, shown, many);

  function select(label, options, value, change) {
    const found = make("select", { onchange: (event) => change(event.target.value) },
      ...options.map(([name, text]) => make("option", { value: name, selected: name === value }, text)));
    return make("label", {}, label, found);
  }

  const same = (names) => names.map((name) => [name, name]);

  function change(changed) {
    state = stateOf(addressOf({ ...state, ...changed }));
    draw();
    show();
  }

  function changeCast(place, changed) {
    change({ casts: state.casts.map((each, at) => (at === place ? { ...each, ...changed } : each)) });
  }

  function castFields(each, place) {
    const rule = ruleOf(state.family, each.src, each.dst);
    const chosen = rule.modes.length
      ? [["", say("default", { mode: rule.default })], ...same(rule.modes)] : [["", say("none")]];
    const fields = [
      select(say("destination"), same(targetsOf(state.family, each.src)), each.dst, (dst) => changeCast(place, { dst })),
      select(say("mode"), chosen, each.mode, (mode) => changeCast(place, { mode })),
    ];
    if (rule.off)
      fields.push(select(say("saturation"), same(["ON", "OFF"]), each.satmode, (satmode) => changeCast(place, { satmode })));
    if (place > 0 && place === state.casts.length - 1)
      fields.push(make("button", { type: "button", onclick: () => change({ casts: state.casts.slice(0, -1) }) }, say("remove")));
    return make("fieldset", {}, make("legend", {}, `${each.src} → ${each.dst}`), ...fields);
  }

  function draw() {
    const typed = make("input", { value: state.value, spellcheck: "false", autocomplete: "off",
      oninput: (event) => { state.value = event.target.value; show(); } });
    const { dst: last } = state.casts.at(-1);
    const further = targetsOf(state.family, last);
    const focused = document.activeElement?.closest("label")?.textContent;
    form.replaceChildren(
      make("fieldset", {},
        select(say("family"), same(tables.families), state.family, (family) => change({ family })),
        make("label", {}, say("number"), typed),
        select(say("source"), same(sourcesOf(state.family)), state.from, (from) => change({ from }))),
      ...state.casts.map(castFields),
      ...(further.length ? [make("button", { type: "button",
        onclick: () => change({ casts: [...state.casts, cast(state.family, last, further[0])] }) }, say("add"))] : []));
    [...form.querySelectorAll("label")].find((each) => each.textContent === focused)?.querySelector("select, input").focus();
  }

  function copyable(title, text) {
    const button = make("button", { type: "button", onclick: async () => {
      await navigator.clipboard.writeText(text);
      button.textContent = say("copied");
    } }, say("copy"));
    return make("section", {}, make("h3", {}, title), make("div", { class: "code" }, text), button);
  }

  function show() {
    const address = addressOf(state);
    history.replaceState(null, "", address);
    const src = byName[state.from];
    try {
      const { code: given, holds } = codeOf(state.value.trim(), src);
      const value = number(given, src);
      const parts = [make("p", { class: "given" }, `${state.from} `, make("strong", {}, shortText(value)), " ",
        make("code", {}, hexOf(given, src)), " ", bits(given, src))];
      if (!holds) parts.unshift(make("p", { class: "note" }, say("held", { format: state.from, text: state.value })));
      let code = given;
      state.casts.forEach((_, place) => {
        const part = castPart(state, place, code);
        code = part.code;
        parts.push(make("section", { class: "cast" }, ...part.shown.filter(Boolean)));
      });
      const link = `${location.href.split("#")[0]}${address}`;
      parts.push(copyable(say("python"), python(state, given)), copyable(say("link"), link));
      shown.replaceChildren(...parts);
    } catch (error) {
      shown.replaceChildren(make("p", { class: "wrong", role: "alert" }, error.message));
    }
    told();
  }

  let numbers = () => null;
  const outcome = make("div", { "aria-live": "polite" });

  function told() {
    try {
      const given = numbers();
      outcome.replaceChildren(...(given ? summary(state, given) : []));
    } catch (error) {
      outcome.replaceChildren(make("p", { class: "wrong", role: "alert" }, error.message));
    }
  }

  async function dropped(file) {
    if (!file) return;
    const buffer = await file.arrayBuffer();
    numbers = () => npyCodes(buffer, file.name, byName[state.from]);
    told();
  }

  const area = make("textarea", { rows: 3, spellcheck: "false", oninput: (event) => {
    const texts = event.target.value.split(/[\s,;]+/).filter(Boolean);
    numbers = () => {
      if (!texts.length) return null;
      if (texts.length > MOST_TYPED) throw new Error(say("too_many", { count: texts.length, most: MOST_TYPED }));
      const codes = texts.map((text) => codeOf(text, byName[state.from]).code);
      return { codes, shape: `${codes.length},`, order: "False" };
    };
    told();
  } });
  const picked = make("input", { type: "file", accept: ".npy", onchange: (event) => dropped(event.target.files[0]) });
  many.append(make("h3", { id: "explorer-many" }, say("many")), make("label", {}, say("paste"), area),
    make("label", {}, say("drop"), picked), outcome);
  many.addEventListener("dragover", (event) => event.preventDefault());
  many.addEventListener("drop", (event) => { event.preventDefault(); dropped(event.dataTransfer.files[0]); });
  addEventListener("hashchange", () => { state = stateOf(location.hash); draw(); show(); });
  draw();
  show();
  root.dataset.ready = "yes";
})();
