// One side's view: the chunks drawn on the text, statistics, and details of one chunk.

import { element } from "./form.js";
import { innermost, pieces } from "./text.js";

const COLOURS = 4;
const MAX_SHOWN = 4000; // characters of a chunk's source next to its details
const count = (number) => Number(number).toLocaleString("en");
const times = (number, one) => `${count(number)} ${one}${number === 1 ? "" : "s"}`;
const percent = (part, whole) => (whole ? `${((100 * part) / whole).toFixed(1)}%` : "0%");
const share = (value) => (value === null ? "none" : percent(value, 1));

export class View {
  constructor(root, side, moved) {
    this.root = root;
    this.side = side;
    this.moved = moved; // called to show a chunk outside of the window
    this.find = (selector) => root.querySelector(selector);
    this.text = this.find(".source");
    this.answer = null;
    this.hits = new Map();
    this.current = 0;
    this.pinned = false;
    this.tab = "chunk";
    this.listen();
  }

  listen() {
    this.text.addEventListener("pointerover", (event) => {
      const number = this.numberAt(event.target);
      if (number !== null && !this.pinned) this.choose(number);
    });
    this.text.addEventListener("click", (event) => {
      const number = this.numberAt(event.target);
      if (number === null || String(getSelection())) return;
      this.pinned = !(this.pinned && number === this.current);
      this.choose(number);
    });
    this.text.addEventListener("keydown", (event) => {
      const last = (this.answer?.chunks.length ?? 0) - 1;
      const steps = { ArrowRight: this.current + 1, ArrowLeft: this.current - 1, Home: 0, End: last };
      if (event.key === "Escape") {
        this.pinned = false;
        this.choose(this.current);
      }
      if (!(event.key in steps) || last < 0) return;
      event.preventDefault();
      this.go(Math.min(last, Math.max(0, steps[event.key])));
    });
    const tabs = [...this.root.querySelectorAll("[role=tab]")];
    for (const tab of tabs) {
      tab.addEventListener("click", () => this.show(tab.dataset.tab));
      tab.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!step) return;
        const next = tabs[(tabs.indexOf(tab) + step + tabs.length) % tabs.length];
        next.focus();
        this.show(next.dataset.tab);
      });
    }
    const copy = this.find(".copy");
    copy.addEventListener("click", async () => {
      const panel = this.find(".panel");
      try {
        await navigator.clipboard.writeText(this.answer.code[this.tab]);
        copy.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(panel); // the browser forbids it: select the text instead
        copy.textContent = "Selected";
      }
      setTimeout(() => (copy.textContent = "Copy"), 1500);
    });
  }

  numberAt(target) {
    const piece = target.closest?.(".piece[data-chunk]");
    return piece ? Number(piece.dataset.chunk) : null;
  }

  // Take a new answer of the server.
  take(answer) {
    this.answer = answer;
    this.hits = new Map();
    this.current = Math.min(this.current, Math.max(0, answer.chunks.length - 1));
    this.figures();
  }

  // Without chunks, remove what was shown about others.
  clear() {
    this.find(".figures dl").replaceChildren();
    this.find(".figures svg").replaceChildren();
    this.results(null);
  }

  draw(source, from, to) {
    Object.assign(this, { source, from, to });
    const chunks = this.answer?.chunks ?? [];
    const started = new Set();
    const nodes = pieces(chunks, from, to).map(({ start, end, chunks: numbers }) => {
      const text = source.slice(start, end);
      const inner = innermost(chunks, numbers);
      const piece = element("span", { className: "piece" });
      piece.textContent = text;
      if (!inner.length) {
        const isDropped = this.answer && text.trim();
        piece.classList.add(isDropped ? "dropped" : "gap");
        if (isDropped) piece.title = "in no chunk";
        return piece;
      }
      const [first, last] = [inner[0], inner[inner.length - 1]];
      piece.dataset.chunk = last;
      piece.dataset.chunks = numbers.join(" ");
      piece.classList.add(`c${first % COLOURS}`);
      if (inner.length > 1) piece.classList.add("shared", `d${last % COLOURS}`);
      const starting = inner.filter((each) => chunks[each].start === start && !started.has(each));
      if (starting.length) {
        starting.forEach((each) => started.add(each));
        piece.classList.add("begins", `e${starting[0] % COLOURS}`);
        piece.dataset.label = starting.map((each) => this.label(each)).join(" ");
      }
      return piece;
    });
    this.text.replaceChildren(...nodes);
    const name = `Text with ${times(chunks.length, "chunk")}; use the left and right arrow keys to move between them`;
    this.text.setAttribute("aria-label", `${this.side.toUpperCase()}: ${name}`);
    this.mark();
    this.show(this.tab);
  }

  label(number) {
    return String(number + 1);
  }

  // Show the chunk under the pointer, or the one chosen by a key.
  choose(number) {
    this.current = number;
    this.mark();
    if (this.tab === "chunk") this.show("chunk");
  }

  go(number) {
    const chunk = this.answer?.chunks[number];
    if (!chunk) return;
    if (chunk.start < this.from || chunk.start >= this.to) this.moved(chunk.start);
    this.choose(number);
    if (this.tab !== "chunk") this.show("chunk");
    const piece = this.text.querySelector(".on");
    if (piece) {
      const box = this.text.getBoundingClientRect();
      const { top, bottom } = piece.getClientRects()[0] ?? piece.getBoundingClientRect();
      if (top < box.top + 24 || bottom > box.bottom - 24) {
        this.text.scrollTop += top - box.top - box.height / 3;
      }
    }
    const { start, end } = chunk;
    const text = this.source.slice(start, Math.min(end, start + 200));
    this.find(".aloud").textContent = `${this.title()}: ${chunk.content?.slice(0, 200) ?? text}`;
  }

  mark() {
    for (const piece of this.text.children) {
      const numbers = piece.dataset.chunks?.split(" ").map(Number) ?? [];
      piece.classList.toggle("on", numbers.includes(this.current));
      const ranks = numbers.filter((each) => this.hits.has(each)).map((each) => this.hits.get(each));
      piece.classList.toggle("hit", ranks.length > 0);
      if (piece.classList.contains("begins")) {
        const rank = this.hits.get(Number(piece.dataset.chunk));
        const label = piece.dataset.label;
        piece.dataset.shown = rank && label.endsWith(this.label(Number(piece.dataset.chunk)))
          ? `${label} ★${rank}`
          : label;
      }
    }
    this.text.classList.toggle("searched", this.hits.size > 0);
    this.text.classList.toggle("pinned", this.pinned);
  }

  title() {
    const chunks = this.answer?.chunks ?? [];
    if (!chunks.length) return "No chunks";
    const rank = this.hits.get(this.current);
    const title = `Chunk ${count(this.current + 1)} of ${count(chunks.length)}`;
    return rank ? `${title}, result ${rank}` : title;
  }

  show(tab) {
    this.tab = tab;
    for (const each of this.root.querySelectorAll("[role=tab]")) {
      each.setAttribute("aria-selected", each.dataset.tab === tab);
      each.tabIndex = each.dataset.tab === tab ? 0 : -1;
    }
    const panel = this.find(".panel");
    const isCode = tab !== "chunk";
    this.find(".copy").hidden = !isCode || !this.answer;
    panel.setAttribute("aria-label", isCode ? "Code" : "Chunk");
    if (!this.answer) return panel.replaceChildren(element("p", { className: "hint" }, "No chunks yet."));
    if (isCode) {
      panel.replaceChildren(element("pre", { className: "code" }, this.answer.code[tab]));
      return;
    }
    panel.replaceChildren(...this.facts());
  }

  facts() {
    const chunk = this.answer.chunks[this.current];
    if (!chunk) return [element("p", { className: "hint" }, "This text gives no chunks.")];
    const rows = [
      ["size", `${count(chunk.size)} ${this.answer.unit.replace(/^tokens:.*/, "tokens")}`],
      ["position", `${count(chunk.start)} to ${count(chunk.end)}`],
    ];
    const cut = [chunk.begins_inside && "starts", chunk.ends_inside && "ends"].filter(Boolean);
    if (cut.length) rows.push(["cut", `${cut.join(" and ")} mid-sentence`]);
    for (const [key, value] of Object.entries(chunk.metadata)) {
      const isList = Array.isArray(value) && value.every((each) => typeof each !== "object");
      const text = typeof value === "string" ? value : JSON.stringify(value);
      rows.push([key, isList ? value.join(key === "headings" ? " › " : ", ") : text]);
    }
    const list = element("dl");
    for (const [key, value] of rows) list.append(element("dt", {}, key), element("dd", {}, value));
    const hint = this.pinned ? "pinned: press Esc to unpin" : "click to pin";
    const title = element("h3", {}, this.title(), element("span", { className: "hint" }, hint));
    const source = this.source.slice(chunk.start, Math.min(chunk.end, chunk.start + MAX_SHOWN));
    const more = chunk.end - chunk.start > MAX_SHOWN ? " …" : "";
    const texts = element("div", { className: "texts" });
    if (chunk.content !== undefined) texts.append(...passage("chunk", chunk.content));
    texts.append(...passage(chunk.content === undefined ? "text" : "source", source + more));
    return [element("div", { className: "facts" }, title, list), texts];
  }

  figures() {
    const { figures, unit } = this.answer;
    const units = unit.replace(/^tokens:.*/, "tokens");
    const rows = [
      ["chunks", count(figures.chunks)],
      [
        `${units}: min, median, max`,
        `${count(figures.least)}, ${count(figures.median)}, ${count(figures.most)}`,
      ],
      ["time", `${figures.milliseconds.toFixed(1)} ms`],
      ["repeated", percent(figures.repeated, figures.characters), `${times(figures.repeated, "character")} are in more than one chunk`],
      ["dropped", percent(figures.dropped, figures.characters), `${times(figures.dropped, "visible character")} are in no chunk`],
      [
        "start, end mid-sentence",
        `${count(figures.begins_inside)}, ${count(figures.ends_inside)}`,
        `${times(figures.begins_inside, "chunk")} start and ${count(figures.ends_inside)} end inside a sentence`,
      ],
      ["end with a heading", share(figures.orphan_headings), "chunks that end with a heading, which belongs to the next one"],
      ["end with a lead-in", share(figures.lead_ins), "chunks that end with a heading, a colon or the like"],
      ["tiny", share(figures.tiny), "chunks smaller than a tenth of the largest one"],
      ["blocks kept whole", share(figures.block_integrity), "headings, paragraphs, list items, tables and code that are whole in a chunk"],
      ["references kept", share(figures.reference_completeness), "English sentences such as “It is green.” that are in a chunk with the sentence before them"],
    ];
    this.find(".figures dl").replaceChildren(
      ...rows.map(([name, value, title]) => {
        const row = element("div", title ? { title } : {});
        row.append(element("dt", {}, name), element("dd", {}, value));
        return row;
      }),
    );
  }

  // The distribution of the sizes; the highest bar fills the chart.
  histogram(edges) {
    const svg = this.find(".figures svg");
    this.find(".largest").textContent = count(edges[edges.length - 1]);
    const counts = binned(this.answer?.chunks ?? [], edges);
    const width = 240 / (edges.length - 1);
    const highest = Math.max(1, ...counts);
    svg.replaceChildren(
      ...counts.map((each, at) => {
        const bar = document.createElementNS("http://www.w3.org/2000/svg", "rect");
        const height = each ? Math.max(2, (60 * each) / highest) : 0;
        const place = { x: at * width, y: 64 - height, width: width - 1, height };
        for (const [name, value] of Object.entries(place)) bar.setAttribute(name, value.toFixed(2));
        const title = document.createElementNS("http://www.w3.org/2000/svg", "title");
        title.textContent = `${count(edges[at])} to ${count(edges[at + 1])}: ${times(each, "chunk")}`;
        bar.append(title);
        return bar;
      }),
    );
  }

  // Show the results of a search; null if there is no question.
  results(results, note = "") {
    const place = this.find(".results");
    place.removeAttribute("aria-busy");
    place.hidden = results === null;
    this.hits = new Map((results ?? []).map(({ chunk }, rank) => [chunk, rank + 1]));
    Object.assign(place.querySelector("span"), { textContent: note, title: note });
    place.querySelector("ol").replaceChildren(
      ...(results ?? []).map(({ chunk, score }, rank) => {
        const button = element("button", { type: "button" });
        button.append(element("b", {}, `★${rank + 1}`), ` chunk ${chunk + 1} `);
        button.append(element("span", { className: "hint" }, score.toFixed(2)));
        button.addEventListener("click", () => {
          this.pinned = true;
          this.go(chunk);
        });
        return element("li", {}, button);
      }),
    );
    if (this.source) {
      this.mark();
      this.show(this.tab);
    }
  }
}

const passage = (title, text) => [
  element("h4", {}, title),
  element("pre", { dir: "auto" }, text),
];

// The edges of the bars, the same for all histograms, so that they can be compared.
export function bars(answers) {
  const largest = Math.max(1, ...answers.map((answer) => answer.figures.most));
  const number = Math.min(24, largest);
  const step = Math.ceil((largest + 1) / number);
  return Array.from({ length: number + 1 }, (_, at) => at * step);
}

function binned(chunks, edges) {
  const counts = new Array(edges.length - 1).fill(0);
  const step = edges[1] - edges[0];
  for (const { size } of chunks) counts[Math.min(counts.length - 1, Math.floor(size / step))] += 1;
  return counts;
}
