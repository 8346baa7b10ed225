"use strict";
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const tabs = [...document.querySelectorAll("[role=tab]")];
  const panels = tabs.map((tab) => document.getElementById(tab.getAttribute("aria-controls")));
  const narrow = window.matchMedia("(max-width: 640px)");
  const common = {
    font: { family: "system-ui, sans-serif", size: narrow.matches ? 11 : 13, color: "#1c1c1c" },
    paper_bgcolor: "#ffffff",
    plot_bgcolor: "#ffffff",
    // The buttons of a wide screen lie over what is drawn without a margin of their own.
    margin: { l: 10, r: 20, t: narrow.matches ? 20 : 44, b: 10 },
    hoverlabel: { bgcolor: "#ffffff", bordercolor: "#1c1c1c", font: { color: "#1c1c1c" } },
  };

  function draw(key) {
    const place = document.getElementById("plot-" + key);
    if (!place || place.dataset.drawn) return;
    place.dataset.drawn = "yes";
    const figure = figures[key];
    const layout = { ...common, ...figure.layout };
    layout.margin = { ...common.margin, ...figure.layout.margin };
    for (const axis of ["xaxis", "yaxis"]) {
      layout[axis] = { automargin: true, gridcolor: "#e3e3e3", zeroline: false, ...layout[axis] };
    }
    // A finger that scrolls the page shall not zoom the figure.
    layout.dragmode = narrow.matches ? false : "zoom";
    const config = {
      responsive: true,
      displaylogo: false,
      displayModeBar: !narrow.matches,
      modeBarButtons: [["toImage", "zoomIn2d", "zoomOut2d", "resetScale2d"]],
    };
    Plotly.newPlot(place, figure.data, layout, config);
  }

  function show(index, focus) {
    tabs.forEach((tab, number) => {
      const chosen = number === index;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
      panels[number].hidden = !chosen;
    });
    draw(tabs[index].dataset.key);
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
