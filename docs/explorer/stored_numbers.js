// Numbers with a dtype and a shape: as a file of numpy holds them, and as a link carries them.

const MOST_CARRIED = 8192; // bytes; 1,000 numbers of 64 bits fit

// --- Files of numpy -------------------------------------------------------------------------------

const dimsOf = (shape) => shape.split(",").filter((each) => each.trim()).map(Number);

// The number of elements, or null where numpy has no such array.
function elemsOf(dims) {
  if (dims.length > 64 || !dims.every(Number.isSafeInteger)) return null;
  return dims.reduce((all, each) => all * each, 1);
}

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
  const elems = elemsOf(dimsOf(shape));
  if (elems === null) throw new Error(say("no_npy", { name }));
  if (elems > MOST_ELEMS) throw new Error(say("too_many", { count: elems, most: MOST_ELEMS }));
  const [at, wanted] = [start + length, elems * format.bytes];
  if (at + wanted > buffer.byteLength)
    throw new Error(say("cut_short", { name, found: Math.max(buffer.byteLength - at, 0), wanted }));
  const mask = (1n << BigInt(format.bits)) - 1n;
  const codes = BigUint64Array.from({ length: elems }, (_, place) => word(view, at + place * format.bytes, format.bytes) & mask);
  return { codes, format, shape, order, name };
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

// --- In a link: FORMAT.2x3.C.DATA, the codes without a gap in base64url -----------------------------

const carriedBytes = ({ codes, format }) => Math.ceil((codes.length * format.bits) / 8);

// The numbers as a link carries them, or null where they are too many.
function carriedText(given) {
  if (carriedBytes(given) > MOST_CARRIED) return null;
  const digits = Array.from(given.codes, (code) => code.toString(2).padStart(given.format.bits, "0")).join("");
  const bytes = (digits.match(/.{1,8}/g) ?? []).map((each) => String.fromCharCode(parseInt(each.padEnd(8, "0"), 2)));
  const data = btoa(bytes.join("")).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  return [given.format.name, dimsOf(given.shape).join("x"), given.order === "True" ? "F" : "C", data].join(".");
}

// The numbers that a link carries. It is a stranger's: all but the text that `carriedText` writes is refused.
function carriedOf(text, source) {
  const name = say("the_link");
  const broken = () => new Error(say("link_broken"));
  const [, dtype, sizes, order, data] = /^(\w+)\.([\dx]*)\.([CF])\.([\w-]*)$/.exec(text) ?? [];
  const format = FORMATS.find((each) => each.name === dtype);
  const dims = sizes ? sizes.split("x").map(Number) : [];
  const elems = elemsOf(dims);
  if (format === undefined || elems === null) throw broken();
  if (format !== source) throw new Error(say("no_dtype", { name, found: dtype, format: source.name, wanted: source.name }));
  const [found, wanted] = [Math.floor((data.length * 3) / 4), Math.ceil((elems * format.bits) / 8)];
  if (Math.max(found, wanted) > MOST_CARRIED)
    throw new Error(say("link_big", { bytes: counted(Math.max(found, wanted)), most: counted(MOST_CARRIED) }));
  if (found < wanted) throw new Error(say("cut_short", { name, found, wanted }));
  if (found > wanted || data.length % 4 === 1) throw broken();
  const bytes = atob(data.replaceAll("-", "+").replaceAll("_", "/"));
  const digits = Array.from(bytes, (each) => each.charCodeAt(0).toString(2).padStart(8, "0")).join("");
  const codes = BigUint64Array.from({ length: elems }, (_, place) =>
    BigInt(`0b${digits.slice(place * format.bits, (place + 1) * format.bits)}`));
  const shape = dims.length === 1 ? `${dims[0]},` : dims.join(", ");
  const given = { codes, format, shape, order: order === "F" ? "True" : "False", name };
  if (carriedText(given) !== text) throw broken();
  return given;
}

// Numbers as a reader may type them, which give the same codes; null where their shape would be lost.
function typedText({ codes, format, shape, order }) {
  if (dimsOf(shape).length !== 1 || order !== "False" || !codes.length || codes.length > MOST_TYPED) return null;
  return Array.from(codes, (code) => {
    const exact = exactText(number(code, format));
    const short = [exact, String(Number(exact))].find((text) => text.length <= 24 && gives(text, code, format));
    return short ?? `code:0x${code.toString(16)}`;
  }).join(" ");
}

function gives(text, code, format) {
  try {
    return codeOf(text, format).code === code;
  } catch {
    return false; // the format has no number for it
  }
}
