// The form, and what is drawn anew when it changes.
const root = document.getElementById("explorer");
let { state, unknown } = linkOf("");
let numbers = () => null; // those pasted, of a file or of the link; may refuse them
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
  unknown = [];
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
    oninput: (event) => { state.value = event.target.value; unknown = []; show(); } });
  const { dst: last } = state.casts.at(-1);
  const further = targetsOf(state.family, last);
  const focused = document.activeElement?.closest("label")?.textContent;
  form.replaceChildren(
    make("fieldset", {},
      select(say("family"), same(tables.families), state.family, (family) => change({ family })),
      make("label", {}, say("number"), typed),
      select(say("source"), same(sourcesOf(state.family)), state.from, (from) => change({ from }))),
    ...state.casts.map(castFields),
    ...(further.length && state.casts.length < MOST_CASTS ? [make("button", { type: "button",
      onclick: () => change({ casts: [...state.casts, cast(state.family, last, further[0])] }) }, say("add"))] : []));
  [...form.querySelectorAll("label")].find((each) => each.textContent === focused)?.querySelector("select, input").focus();
}

function copyable(kind, title, text, ...below) {
  const code = make("div", { class: "code", tabindex: 0, role: "region", "aria-label": title }, text);
  const button = make("button", { type: "button", onclick: async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = say("copied");
    } catch {
      getSelection().selectAllChildren(code); // where a page may not write there: for the reader's keys
    }
  } }, say("copy"));
  return make("section", { class: kind }, make("h3", {}, title), code, button, ...below);
}

const wrong = (error) => make("p", { class: "wrong", role: "alert" }, error.message);

// What the link says of the numbers below: it carries them, or why it does not.
function carriedPart(given, refused) {
  const most = counted(MOST_CARRIED);
  if (refused) return say("carries_refused");
  if (!given) return say("carries_none", { most });
  const named = { count: counted(given.codes.length), bytes: counted(carriedBytes(given)), most };
  return say(carriedText(given) === null ? "carries_not" : "carries", named);
}

function show() {
  let [given, refused] = [null, null];
  try {
    given = numbers();
  } catch (error) {
    refused = error;
  }
  const address = addressOf(state, given && carriedText(given));
  history.replaceState(null, "", address);
  const link = copyable("link", say("link"), `${location.href.split("#")[0]}${address}`,
    make("p", { class: "note" }, carriedPart(given, refused)));
  const parts = unknown.length
    ? [make("p", { class: "note", role: "alert" }, say("unknown", { names: brief(unknown.join(", ")) }))] : [];
  try {
    parts.push(...oneNumber(), link);
  } catch (error) {
    parts.push(wrong(error), ...(given || refused ? [link] : []));
  }
  shown.replaceChildren(...parts);
  outcome.replaceChildren(...(refused ? [wrong(refused)] : given ? [...whence(given), ...summary(state, given)] : []));
}

function oneNumber() {
  const src = byName[state.from];
  const { code: given, holds } = codeOf(state.value.trim(), src);
  const value = number(given, src);
  const parts = [make("p", { class: "given" }, `${state.from} `, make("strong", {}, shortText(value)), " ",
    make("code", {}, hexOf(given, src)), " ", bits(given, src))];
  if (!holds) parts.unshift(make("p", { class: "note" }, say("held", { format: state.from, text: brief(state.value) })));
  let code = given;
  state.casts.forEach((_, place) => {
    const part = castPart(state, place, code);
    code = part.code;
    parts.push(make("section", { class: "cast" }, ...part.shown.filter(Boolean)));
  });
  return [...parts, copyable("python", say("python"), python(state, given))];
}

// --- Many numbers, and the link that the page was opened by -----------------------------------------

const outcome = make("div", { "aria-live": "polite" });

// Numbers that the reader does not see typed: whose they are, and how to be rid of them.
function whence({ name, format, shape }) {
  if (!name) return [];
  const remove = make("button", { type: "button", onclick: () => {
    picked.value = "";
    numbers = () => null;
    show();
  } }, say("remove"));
  return [make("p", {}, say("whence", { name, format: format.name, shape }), " ", remove)];
}

function typedNumbers() {
  const texts = area.value.split(/[\s,;]+/).filter(Boolean);
  if (!texts.length) return null;
  if (texts.length > MOST_TYPED) throw new Error(say("too_many", { count: texts.length, most: MOST_TYPED }));
  const format = byName[state.from];
  const codes = texts.map((text) => codeOf(text, format).code);
  return { codes, format, shape: `${codes.length},`, order: "False" };
}

async function dropped(file) {
  if (!file) return;
  const buffer = await file.arrayBuffer();
  area.value = "";
  numbers = () => npyCodes(buffer, file.name, byName[state.from]);
  show();
}

// The numbers of a link: typed where that says all of them, else as those of a file.
function carried(text) {
  try {
    const given = carriedOf(text, byName[state.from]);
    area.value = typedText(given) ?? "";
    if (area.value) return typedNumbers;
    return () => {
      const { name, format: { name: found } } = given;
      if (found === state.from) return given;
      throw new Error(say("no_dtype", { name, found, format: state.from, wanted: state.from }));
    };
  } catch (error) {
    return () => { throw error; };
  }
}

function follow(hash) {
  const link = linkOf(hash);
  ({ state, unknown } = link);
  area.value = picked.value = "";
  numbers = link.numbers ? carried(link.numbers) : () => null;
  draw();
  show();
  root.dataset.ready = "yes";
}

const area = make("textarea", { rows: 3, spellcheck: "false", oninput: () => {
  picked.value = "";
  numbers = typedNumbers;
  show();
} });
const picked = make("input", { type: "file", accept: ".npy", onchange: (event) => dropped(event.target.files[0]) });
many.append(make("h3", { id: "explorer-many" }, say("many")), make("label", {}, say("paste", { most: counted(MOST_TYPED) }), area),
  make("label", {}, say("drop"), picked), outcome);
many.addEventListener("dragover", (event) => event.preventDefault());
many.addEventListener("drop", (event) => { event.preventDefault(); dropped(event.dataTransfer.files[0]); });
addEventListener("hashchange", () => {
  if (location.hash.includes("=")) follow(location.hash); // else it is a heading's
});
follow(location.hash);
