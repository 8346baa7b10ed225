// The faults of a page that a reader would see: sideways scroll, cut text, faint text.
() => {
  const faults = [];
  const root = document.documentElement;
  if (root.scrollWidth > innerWidth) faults.push(`scrolls sideways: ${root.scrollWidth} of ${innerWidth}`);
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const colors = new Map();
  const rgba = (color) => {
    if (!colors.has(color)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = color;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      colors.set(color, [r, g, b, a / 255]);
    }
    return colors.get(color);
  };
  const over = (top, below) => below.map((x, i) => (i < 3 ? top[i] * top[3] + x * (1 - top[3]) : 1));
  const light = ([r, g, b]) => {
    const part = (x) => (x / 255 <= 0.04045 ? x / 255 / 12.92 : ((x / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const papers = new Map([[null, [255, 255, 255, 1]]]);
  const behind = (element) => {
    if (!papers.has(element)) {
      const { backgroundImage, backgroundColor } = getComputedStyle(element);
      const below = behind(element.parentElement);
      const isPicture = backgroundImage !== "none" && backgroundImage !== "";
      papers.set(element, isPicture || below === null ? null : over(rgba(backgroundColor), below));
    }
    return papers.get(element);
  };
  for (const text of document.querySelectorAll("svg text")) {
    const [box, outer] = [text, text.closest("svg")].map((each) => each.getBoundingClientRect());
    const isIn = box.left > outer.left - 1 && box.right < outer.right + 1 && box.top > outer.top - 1 && box.bottom < outer.bottom + 1;
    if (box.width && !isIn) faults.push(`cut: text of a picture: ${text.textContent}`);
  }
  const seen = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    const text = node.data.trim();
    if (!text || seen.has(element) || !element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    if (element.closest("script, style, noscript, svg, .md-skip, .md-search, .headerlink, .md-top, [disabled], [aria-hidden=true]")) continue;
    seen.add(element);
    const style = getComputedStyle(element);
    const box = element.getBoundingClientRect();
    if (!box.width || !box.height) continue;
    const what = `${element.tagName.toLowerCase()}.${element.className}: ${text.slice(0, 40)}`;
    for (let each = element; each && each !== document.body; each = each.parentElement) {
      const { overflowX, textOverflow } = getComputedStyle(each);
      if (overflowX === "auto" || overflowX === "scroll") break;
      if (overflowX !== "hidden" && overflowX !== "clip") continue;
      const outer = each.getBoundingClientRect();
      const range = document.createRange();
      range.selectNodeContents(node);
      if (outer.width > 1 && textOverflow !== "ellipsis" && range.getBoundingClientRect().right > outer.right + 1)
        faults.push(`cut: ${what}`);
      break;
    }
    const paper = behind(element);
    if (paper === null) continue;
    const ink = over(rgba(style.color), paper);
    const [high, low] = [light(ink), light(paper)].sort((a, b) => b - a);
    const ratio = (high + 0.05) / (low + 0.05);
    if (ratio < 4.5) faults.push(`contrast ${ratio.toFixed(2)}: ${what}`);
  }
  return faults;
}
