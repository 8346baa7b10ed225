(() => {
  const tabs = [...document.querySelectorAll("[role=tab]")];
  const panels = tabs.map((tab) => document.getElementById(tab.getAttribute("aria-controls")));

  function show(index, focus) {
    tabs.forEach((tab, number) => {
      const chosen = number === index;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
      panels[number].hidden = !chosen;
    });
    if (focus) tabs[index].focus();
  }

  const steps = { ArrowRight: 1, ArrowLeft: -1 };
  tabs.forEach((tab, index) => {
    tab.addEventListener("click", () => show(index, false));
    tab.addEventListener("keydown", (event) => {
      let next = null;
      if (event.key in steps) next = (index + steps[event.key] + tabs.length) % tabs.length;
      if (event.key === "Home") next = 0;
      if (event.key === "End") next = tabs.length - 1;
      if (next === null) return;
      event.preventDefault();
      show(next, true);
    });
  });

  document.documentElement.classList.add("scripted");
  show(0, false);
})();
