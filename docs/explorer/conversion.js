// Numbers, codes and casts: the module's work, and none of the page's.
const { tables, words, module } = JSON.parse(document.getElementById("explorer-data").textContent);
const binary = Uint8Array.from(atob(module), (char) => char.charCodeAt(0));
const engine = (await WebAssembly.instantiate(binary)).instance.exports;
const CAPACITY = engine.capacity();
const MOST_TYPED = 1000;
const MOST_ELEMS = 1 << 20;
const MOST_CHARS = 2000; // of one number; FP64 needs 1,077
const FORMATS = tables.formats.map((format, number) => ({ ...format, number }));
const byName = Object.fromEntries(FORMATS.map((format) => [format.name, format]));

const say = (key, named = {}) => words[key].replace(/\{(\w+)\}/g, (_, name) => named[name]);
const counted = (count) => count.toLocaleString("en");
const brief = (text) => (text.length > 60 ? `${text.slice(0, 57)}…` : text);

// --- Numbers: exact, as a significand and a power of two ----------------------------------------

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
  if (text.length > MOST_CHARS)
    throw new Error(say("too_long", { count: counted(text.length), most: counted(MOST_CHARS) }));
  const mask = (1n << BigInt(format.bits)) - 1n;
  const named = /^code:(0x[0-9a-f]+|\d+)$/i.exec(text);
  if (named && BigInt(named[1]) <= mask) return { code: BigInt(named[1]), holds: true };
  const given = named ? null : parsed(text);
  if (given === null) throw new Error(say("no_number", { text: brief(text) }));
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

const outside = (text, { name: format, range }) => new Error(say("outside", { text: brief(text), format, range }));

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
