"use strict";
/* Says something beside a box of the window; null hides it. The box is asked for again on scrolling. */
const tell = (() => {
  const tip = document.getElementById("tip");
  let box = null;
  function place() {
    if (tip.hidden) return;
    const { left, right, top, bottom } = box();
    const low = bottom + 8 + tip.offsetHeight > window.innerHeight;
    const across = Math.min(right + 8, window.innerWidth - tip.offsetWidth - 8);
    tip.style.left = `${Math.max(8, across)}px`;
    tip.style.top = `${Math.max(8, low ? top - 8 - tip.offsetHeight : bottom + 8)}px`;
  }
  window.addEventListener("scroll", place, { passive: true });
  return (text, where) => {
    tip.hidden = text === null;
    tip.textContent = text ?? "";
    box = where;
    place();
  };
})();

/* Steps through what can be told of an element: by pointer, by touch, by the keys that `ends` has. */
function explore(element, { last, chosen, choose, under }) {
  const steps = {
    ArrowRight: () => Math.min(chosen() + 1, last),
    ArrowLeft: () => Math.max(chosen() - 1, Math.min(0, last)),
    Home: () => Math.min(0, last),
    End: () => last,
    Escape: () => -1,
  };
  const point = (event) => choose(under(event));
  element.addEventListener("pointermove", point);
  element.addEventListener("pointerdown", point);
  element.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && choose(-1));
  element.addEventListener("blur", () => choose(-1));
  element.addEventListener("keydown", (event) => {
    if (!(event.key in steps)) return;
    event.preventDefault();
    choose(steps[event.key]());
  });
}

document.querySelectorAll(".figure").forEach((figure) => {
  const marks = [...figure.querySelectorAll("[data-tip]")];
  let at = -1;
  function choose(number) {
    if (number === at) return;
    marks[at]?.classList.remove("chosen");
    at = number;
    marks[at]?.classList.add("chosen");
    tell(marks[at]?.dataset.tip ?? null, () => marks[at].getBoundingClientRect());
  }
  explore(figure, {
    last: marks.length - 1,
    chosen: () => at,
    choose,
    under: (event) => marks.indexOf(event.target.closest("[data-tip]")),
  });
});
