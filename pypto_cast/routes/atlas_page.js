(() => {
  const { routes, kinds, ends, full } = JSON.parse(document.getElementById("data").textContent);
  const mode = document.getElementById("mode");
  const pair = document.getElementById("pair");
  const buttons = [...document.querySelectorAll("#atlas button")];
  let chosen = buttons.find((button) => "opened" in button.dataset);

  const key = (button) => `${button.dataset.pair} ${mode.value}`;

  function element(name, text, parent, kind) {
    const made = document.createElement(name);
    made.textContent = text;
    if (kind) made.className = kind;
    parent.append(made);
    return made;
  }

  function strip(shares, labels, parent) {
    const space = "http://www.w3.org/2000/svg";
    const picture = document.createElementNS(space, "svg");
    picture.setAttribute("class", "strip");
    picture.setAttribute("viewBox", `0 0 ${shares.length} 100`);
    picture.setAttribute("preserveAspectRatio", "none");
    picture.setAttribute("role", "img");
    picture.setAttribute("aria-label", "Share of differing codes along the values of the source");
    shares.forEach((share, at) => {
      if (!share) return;
      const bar = document.createElementNS(space, "rect");
      const height = Math.max(6, (100 * share) / full);
      for (const [name, value] of Object.entries({ x: at, y: 100 - height, width: 1, height })) {
        bar.setAttribute(name, value);
      }
      picture.append(bar);
    });
    parent.append(picture);
    const line = element("div", "", parent, "ends");
    labels.forEach((label) => element("span", label, line));
  }

  function show() {
    buttons.forEach((button) => {
      button.className = kinds[key(button)];
      button.setAttribute("aria-pressed", button === chosen);
    });
    pair.replaceChildren();
    const [src, dst] = chosen.dataset.pair.split(" ");
    element("h2", `${src} to ${dst}, CAST_${mode.value}`, pair);
    const found = routes[key(chosen)] ?? [];
    if (!found.length) element("p", "No chain of three casts leads there.", pair);
    found.forEach((route) => {
      const box = element("div", "", pair, "route");
      element("p", route.route, box).style.fontWeight = 600;
      route.lines.forEach((line) => element("p", line, box));
      if (route.shares) strip(route.shares, ends[src], box);
    });
  }

  buttons.forEach((button) =>
    button.addEventListener("click", () => {
      chosen = button;
      show();
    }),
  );
  mode.addEventListener("change", show);
  show();
})();
