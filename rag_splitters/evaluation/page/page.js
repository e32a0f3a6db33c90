"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const find = (id) => document.getElementById(id);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  document.body.classList.add("has-script");

  // Recall at the budget of the slider
  const budget = find("budget");
  const curves = find("curves");
  const rows = all(".legend tbody tr");
  const percent = (share) => (100 * share).toFixed(1);

  function showBudget() {
    const at = Number(budget.value);
    const units = data.budgets[at].toLocaleString("en");
    find("budget-shown").textContent = units;
    budget.setAttribute("aria-valuetext", units);
    for (const row of rows) {
      const [mean, low, high] = data.strategies[row.dataset.series].curve[at];
      row.querySelector(".mean").textContent = percent(mean);
      row.querySelector(".interval").textContent = `${percent(low)} to ${percent(high)}`;
    }
    for (const svg of all("svg", curves)) {
      const { left, right, first, last } = svg.dataset;
      const width = svg.viewBox.baseVal.width - left - right;
      const x = Number(left) + (width * (data.budgets[at] - first)) / (last - first);
      const cursor = svg.querySelector(".cursor");
      cursor.setAttribute("x1", x);
      cursor.setAttribute("x2", x);
    }
  }

  function nearest(numbers, target) {
    const distances = numbers.map((number) => Math.abs(number - target));
    return distances.indexOf(Math.min(...distances));
  }

  for (const svg of all("svg", curves)) {
    svg.addEventListener("pointermove", (event) => {
      const { left, right, first, last } = svg.dataset;
      const box = svg.getBoundingClientRect();
      const scale = svg.viewBox.baseVal.width / box.width;
      const width = svg.viewBox.baseVal.width - left - right;
      const x = (event.clientX - box.left) * scale - left;
      budget.value = nearest(data.budgets, Number(first) + (x / width) * (last - first));
      showBudget();
    });
  }
  budget.addEventListener("input", showBudget);

  for (const row of rows) {
    const series = all(`[data-series="${row.dataset.series}"]`, curves);
    const pick = (on) => () => {
      curves.classList.toggle("picked", on);
      series.forEach((each) => each.classList.toggle("on", on));
    };
    row.addEventListener("pointerenter", pick(true));
    row.addEventListener("pointerleave", pick(false));
    row.addEventListener("focusin", pick(true));
    row.addEventListener("focusout", pick(false));
    const box = row.querySelector("input");
    box.addEventListener("change", () => {
      series.forEach((each) => each.classList.toggle("off", !box.checked));
    });
  }
  showBudget();

  // The map of one strategy's chunks
  const choice = find("strategy");
  const chunk = find("chunk");
  const map = find("map");
  const SVG = "http://www.w3.org/2000/svg";
  let points = [];
  let circles = [];

  function drawMap() {
    points = data.strategies[choice.value].points;
    const width = Math.max(240, map.clientWidth);
    const height = Math.round(Math.min(460, width * 0.8));
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    circles = points.map(([x, y, name]) => {
      const circle = document.createElementNS(SVG, "circle");
      circle.setAttribute("cx", 14 + x * (width - 28));
      circle.setAttribute("cy", 14 + (1 - y) * (height - 28));
      circle.setAttribute("r", 5);
      circle.setAttribute("class", `s${name % 10}`);
      return circle;
    });
    svg.append(...circles);
    svg.addEventListener("pointermove", pointAt);
    svg.addEventListener("click", pointAt);
    map.replaceChildren(svg);
    chunk.max = points.length - 1;
    showChunk();
  }

  function pointAt(event) {
    const svg = event.currentTarget;
    const box = svg.getBoundingClientRect();
    const scale = svg.viewBox.baseVal.width / box.width;
    const x = (event.clientX - box.left) * scale;
    const y = (event.clientY - box.top) * scale;
    const away = circles.map((each) =>
      Math.hypot(each.cx.baseVal.value - x, each.cy.baseVal.value - y));
    const best = away.indexOf(Math.min(...away));
    if (away[best] < 24) {
      chunk.value = best;
      showChunk();
    }
  }

  function showChunk() {
    const at = Number(chunk.value);
    const [, , name, position, text] = points[at];
    circles.forEach((circle) => circle.classList.remove("on"));
    circles[at].classList.add("on");
    circles[at].parentNode.append(circles[at]);
    const place = position ? `${position[0]} to ${position[1]}` : "not located";
    const label = `${at + 1} of ${points.length}`;
    find("chunk-shown").textContent = label;
    chunk.setAttribute("aria-valuetext", label);
    const heading = document.createElement("b");
    heading.textContent = `${data.documents[name]}, ${place}`;
    find("chunk-text").replaceChildren(heading, text);
  }

  find("documents").append(...data.documents.map((name, number) => {
    const item = document.createElement("li");
    const dot = document.createElement("i");
    dot.className = `s${number % 10}`;
    item.append(dot, name);
    return item;
  }));
  choice.addEventListener("change", () => {
    chunk.value = 0;
    drawMap();
  });
  chunk.addEventListener("input", showChunk);
  let drawnWidth = 0;
  new ResizeObserver(() => {
    if (map.clientWidth !== drawnWidth) {
      drawnWidth = map.clientWidth;
      drawMap();
    }
  }).observe(map);
})();
