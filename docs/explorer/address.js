// The casts that there are, and the state of the page in the fragment of its address: all that a link carries.

const rulesOf = (family) => tables.rules[family];
const ruleOf = (family, src, dst) => rulesOf(family)[`${src}-${dst}`];
const sourcesOf = (family) => [...new Set(Object.keys(rulesOf(family)).map((pair) => pair.split("-")[0]))];
const targetsOf = (family, src) =>
  Object.keys(rulesOf(family)).filter((pair) => pair.split("-")[0] === src).map((pair) => pair.split("-")[1]);

function stepsOf(rule, mode, satmode) {
  const chains = satmode === "OFF" && rule.off ? rule.off : rule.on;
  return chains[rule.modes.length ? mode || rule.default : ""];
}

// --- State ----------------------------------------------------------------------------------------

const START = { family: tables.families[0], from: "FP16", value: "2.5", casts: "INT8", numbers: "" };
const MOST_CASTS = 16;

// The state that a fragment asks for, the numbers it carries, and the names in it that the page does not
// have: the first choice stands for these.
function linkOf(hash) {
  const asked = Object.fromEntries(new URLSearchParams(hash.replace(/^#/, "")));
  const given = { ...START, ...asked };
  const unknown = Object.keys(asked).filter((name) => !Object.hasOwn(START, name));
  const among = (names, name, first, isAsked) => {
    if (names.includes(name)) return name;
    if (isAsked && name) unknown.push(name);
    return first;
  };
  const family = among(tables.families, given.family, START.family, true);
  const from = among(sourcesOf(family), given.from, sourcesOf(family)[0], "from" in asked);
  const state = { family, from, value: given.value, casts: [] };
  const chain = given.casts.split(",", MOST_CASTS + 1);
  if (chain.length > MOST_CASTS) unknown.push(say("casts_beyond", { most: MOST_CASTS }));
  for (const text of chain.slice(0, MOST_CASTS)) {
    const [dst, mode, satmode] = text.split(":");
    const src = state.casts.at(-1)?.dst ?? from;
    const targets = targetsOf(family, src);
    if (!targets.length) {
      if ("casts" in asked) unknown.push(text);
      continue;
    }
    const made = cast(family, src, among(targets, dst, targets[0], "casts" in asked), mode, satmode);
    const got = [[mode, made.mode], [satmode, made.satmode]];
    if (made.dst === dst) unknown.push(...got.filter(([asked, found]) => asked && asked !== found).map(([asked]) => asked));
    state.casts.push(made);
  }
  return { state, unknown, numbers: given.numbers };
}

const stateOf = (hash) => linkOf(hash).state;

function cast(family, src, dst, mode, satmode) {
  const rule = ruleOf(family, src, dst);
  return { src, dst, mode: rule.modes.includes(mode) ? mode : "", satmode: satmode === "OFF" && rule.off ? "OFF" : "ON" };
}

// Whatever is long or ends in a sign comes before the casts: programs leave such an end out of a link.
function addressOf({ family, from, value, casts }, numbers) {
  const chain = casts.map((each) => [each.dst, each.mode, each.satmode].join(":").replace(/:?:ON$/, ""));
  const carried = numbers ? { numbers } : {};
  return `#${new URLSearchParams({ family, from, value, ...carried, casts: chain.join(",") })}`;
}
