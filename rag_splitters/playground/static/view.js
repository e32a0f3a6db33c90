// One side's view: the chunks drawn on the text, statistics, and details of one chunk.

import { element } from "./form.js";
import { innermost, pieces } from "./text.js";

const COLOURS = 4;
const MAX_SHOWN = 4000; // characters of a chunk's source next to its details
const count = (number) => Number(number).toLocaleString("en");
export const times = (number, one) => `${count(number)} ${one}${number === 1 ? "" : "s"}`;
const percent = (part, whole) => (whole ? `${((100 * part) / whole).toFixed(1)}%` : "0%");

export class View {
  constructor(root, side, moved) {
    this.root = root;
    this.side = side;
    this.moved = moved; // called to show a chunk outside of the window
    this.find = (selector) => root.querySelector(selector);
    this.text = this.find(".source");
    this.answer = null;
    this.hits = new Map();
    this.twins = null; // for each chunk, its number on the other side, or null
    this.current = null; // the number of the selected chunk
    this.pinned = false;
    this.tab = "chunk";
    this.state = {}; // the page's: its question, k and answer
    this.marked = () => {}; // called with the range that the user marks as the answer
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
      const at = this.current ?? -1;
      const steps = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: last };
      if (event.key === "Escape" && this.current !== null) {
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
    const all = this.find(".all");
    all.addEventListener("click", () => {
      const list = this.find(".figures dl");
      list.hidden = !list.hidden;
      all.setAttribute("aria-expanded", !list.hidden);
    });
    document.addEventListener("selectionchange", () => {
      this.find(".mark-answer").hidden = !this.state.question?.trim() || !this.selected();
    });
    this.find(".mark-answer").addEventListener("click", () => {
      const range = this.selected();
      getSelection().removeAllRanges();
      if (range) this.marked(range);
    });
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

  // The range of the selected text in code points; null if nothing is selected here.
  selected() {
    const selection = getSelection();
    if (!selection.rangeCount || selection.isCollapsed || !this.source) return null;
    const range = selection.getRangeAt(0);
    if (!this.text.contains(range.startContainer) || !this.text.contains(range.endContainer)) return null;
    const before = document.createRange();
    before.selectNodeContents(this.text);
    before.setEnd(range.startContainer, range.startOffset);
    const start = this.source.unit(this.from) + before.toString().length;
    return [this.source.point(start), this.source.point(start + range.toString().length)];
  }

  // Take a new answer of the server.
  take(answer) {
    this.answer = answer;
    this.hits = new Map();
    if (this.current >= answer.chunks.length) this.current = null;
    this.figures();
  }

  // Without chunks, remove what was shown about others.
  clear() {
    this.find(".counts").replaceChildren();
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
      this.fill(piece, start, end);
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
      if (inner.every((each) => this.isShared(each))) piece.classList.add("same");
      const starting = inner.filter((each) => chunks[each].start === start && !started.has(each));
      if (starting.length) {
        starting.forEach((each) => started.add(each));
        const mark = markStart(piece, isRightToLeft(source.text, source.unit(start)));
        mark.classList.add(`e${starting[0] % COLOURS}`);
        mark.classList.toggle("is-same", starting.every((each) => this.isShared(each)));
        mark.dataset.chunk = last;
        mark.dataset.at = start;
        mark.dataset.label = starting.map((each) => each + 1).join(" ");
      }
      return piece;
    });
    this.text.replaceChildren(...nodes);
    const name = `Text with ${times(chunks.length, "chunk")}; use the left and right arrow keys to move between them`;
    this.text.setAttribute("aria-label", `${this.side.toUpperCase()}: ${name}`);
    this.mark();
    this.show(this.tab);
    this.showAnswer();
  }

  // Put the text of a range into a piece, with its tables and code in monospace.
  fill(piece, start, end) {
    const { source, answer } = this;
    let at = start;
    for (const [first, after] of answer?.monospace ?? []) {
      if (after <= at || first >= end) continue;
      if (first > at) piece.append(source.slice(at, first));
      const [low, high] = [Math.max(first, at), Math.min(after, end)];
      piece.append(element("span", { className: "mono" }, source.slice(low, high)));
      at = high;
    }
    if (at < end) piece.append(source.slice(at, end));
  }

  // Whether the other side has the same chunk.
  isShared(number) {
    return (this.twins?.[number] ?? null) !== null;
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
      piece.classList.toggle("hit", numbers.some((each) => this.hits.has(each)));
    }
    let free = -Infinity; // where there is room for a number again
    for (const mark of this.text.querySelectorAll(".mark")) {
      const rank = this.hits.get(Number(mark.dataset.chunk));
      const label = mark.dataset.label + (rank ? ` ★${rank}` : "");
      const at = Number(mark.dataset.at);
      const hasRoom = at >= free;
      mark.dataset.shown = hasRoom ? label : "";
      if (hasRoom) free = at + 2 * label.length + 1; // letters are narrower than digits
    }
    this.text.classList.toggle("searched", this.hits.size > 0);
    this.text.classList.toggle("pinned", this.pinned);
  }

  title() {
    const chunks = this.answer?.chunks ?? [];
    if (!chunks.length) return "No chunks";
    if (this.current === null) return "";
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
    const hintOf = (text) => [element("p", { className: "hint" }, text)];
    if (!this.answer.chunks.length) return hintOf("This text gives no chunks.");
    if (this.current === null) {
      return hintOf("Point at a chunk, or use the arrow keys in the text, to see its size, position and metadata.");
    }
    const chunk = this.answer.chunks[this.current];
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
    if (this.twins) {
      const twin = this.twins[this.current];
      const other = this.side === "a" ? "B" : "A";
      rows.push([`in ${other}`, twin === null ? "no such chunk" : `the same, chunk ${count(twin + 1)}`]);
    }
    const list = element("dl");
    for (const [key, value] of rows) list.append(element("dt", {}, key), element("dd", {}, value));
    const hint = this.pinned ? "pinned: press Esc to unpin" : "click to pin";
    const title = element("h3", {}, this.title(), element("span", { className: "hint" }, hint));
    const source = this.source.slice(chunk.start, Math.min(chunk.end, chunk.start + MAX_SHOWN));
    const more = chunk.end - chunk.start > MAX_SHOWN ? " …" : "";
    const texts = element("div", { className: "texts" });
    const isMono = this.answer.monospace.some(([start, end]) => start < chunk.end && end > chunk.start);
    if (chunk.content !== undefined) texts.append(...passage("chunk", chunk.content, isMono));
    const name = chunk.content === undefined ? "text" : "source";
    texts.append(...passage(name, source + more, isMono));
    return [element("div", { className: "facts" }, title, list), texts];
  }

  figures() {
    const { figures, unit } = this.answer;
    const units = unit.replace(/^tokens:.*/, "tokens");
    const remarks = [
      [figures.begins_inside, "begin mid-sentence"],
      [figures.dropped, `${figures.dropped === 1 ? "character" : "characters"} dropped`],
    ].filter(([number]) => number).map(([number, text]) => `${count(number)} ${text}`);
    const [least, most] = [figures.least, figures.most].map(count);
    const sizes = !figures.chunks ? "" : least === most ? `${least} ${units} each` : `${least} to ${most} ${units}`;
    this.find(".counts").replaceChildren(
      element("b", {}, times(figures.chunks, "chunk")),
      ...[sizes, ...remarks].filter(Boolean).map((text) => ` · ${text}`),
    );
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
      ["end with a heading", count(figures.faults.orphan_headings), "chunks that end with a heading, which belongs to the next one"],
      ["rows without header", count(figures.faults.tables_without_header), "chunks with rows of a table but without its header"],
      ["tags or scripts", count(figures.faults.leaked_markup), "chunks of HTML with tags, scripts or styles in their text"],
      ["tiny", count(figures.faults.tiny), "chunks smaller than a tenth of the largest one"],
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

  // Say which chunk holds the answer, and mark the answer in the text.
  showAnswer() {
    const { answer: range, question, k } = this.state;
    const place = this.find(".answer");
    const isAsked = question?.trim() && this.answer;
    let text = isAsked ? "To see which chunk holds the answer, select it in the text." : "";
    if (isAsked && range) text = answerSentence(this.answer.chunks, range, this.hits, k);
    if (place.textContent !== text) place.textContent = text;
    place.classList.toggle("hint", !range);
    const name = `answer-${this.side}`;
    globalThis.CSS?.highlights?.delete(name);
    if (isAsked && range && globalThis.Highlight) {
      const drawn = this.rangeOf(...range);
      if (drawn) CSS.highlights.set(name, new Highlight(drawn));
    }
  }

  scrollToAnswer() {
    const { answer } = this.state;
    const drawn = answer && this.rangeOf(...answer);
    if (!drawn) return;
    const [box, place] = [this.text.getBoundingClientRect(), drawn.getBoundingClientRect()];
    if (place.top < box.top + 24 || place.bottom > box.bottom - 24) {
      this.text.scrollTop += (place.top + place.bottom) / 2 - box.top - box.height / 2;
    }
  }

  // A range of the text as a range of the document; null if it is outside of the window.
  rangeOf(start, end) {
    if (start < this.from || end > this.to) return null;
    let at = this.source.unit(this.from);
    const [low, high] = [this.source.unit(start), this.source.unit(end)];
    const range = document.createRange();
    const texts = document.createTreeWalker(this.text, NodeFilter.SHOW_TEXT);
    for (let node = texts.nextNode(); node; node = texts.nextNode()) {
      const after = at + node.data.length;
      if (low >= at && low < after) range.setStart(node, low - at);
      if (high > at && high <= after) {
        range.setEnd(node, high - at);
        return range;
      }
      at = after;
    }
    return null;
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
      this.showAnswer();
    }
  }
}

const passage = (title, text, isMono) => [
  element("h4", {}, title),
  element("pre", { dir: "auto", className: isMono ? "mono" : "" }, text),
];

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });
const RIGHT_TO_LEFT = /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;

// Wrap the first visible character of a piece, so that its number and its bar stand beside it.
// It has no width of its own, so no line moves.
function markStart(piece, isRtl) {
  const mark = element("span", { className: isRtl ? "mark rtl" : "mark" });
  const texts = document.createTreeWalker(piece, NodeFilter.SHOW_TEXT);
  let node = texts.nextNode();
  while (node && !node.data.trim() && texts.nextNode()) node = texts.currentNode;
  const at = Math.max(0, node.data.search(/\S/));
  const rest = at ? node.splitText(at) : node;
  const [first] = graphemes.segment(rest.data.slice(0, 50));
  if (first.segment.length < rest.data.length) rest.splitText(first.segment.length);
  rest.replaceWith(mark);
  mark.append(rest);
  return mark;
}

// Whether the text at a place runs from right to left: by its first letter or digit, else by the
// first letter of its line.
function isRightToLeft(text, unit) {
  const first = text.slice(unit, unit + 200).match(/\S/u)?.[0] ?? "";
  if (/[\p{L}\p{N}]/u.test(first)) return RIGHT_TO_LEFT.test(first);
  const line = text.slice(text.lastIndexOf("\n", unit - 1) + 1, unit + 400).trimStart().split("\n")[0];
  return RIGHT_TO_LEFT.test(line.match(/\p{L}/u)?.[0] ?? "");
}

// Where the answer lies, in words.
function answerSentence(chunks, [start, end], hits, k) {
  const holds = [];
  const parts = [];
  chunks.forEach((chunk, number) => {
    if (chunk.start <= start && chunk.end >= end) holds.push(number);
    else if (chunk.start < end && chunk.end > start) parts.push(number);
  });
  const numbered = (numbers) => {
    const names = numbers.map((each) => {
      const rank = hits.get(each);
      return `${count(each + 1)}${rank ? ` (result ${rank})` : ""}`;
    });
    const list = names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names[0];
    return `chunk${names.length > 1 ? "s" : ""} ${list}`;
  };
  const missed = (numbers) =>
    numbers.some((each) => hits.has(each)) ? "." : `, not among the top ${k}.`;
  if (holds.length) return `The answer lies in ${numbered(holds)}${missed(holds)}`;
  if (!parts.length) return "The answer is in no chunk.";
  if (parts.length === 1) return `Only a part of the answer is in a chunk: ${numbered(parts)}${missed(parts)}`;
  return `The answer is cut into ${numbered(parts)}${missed(parts)}`;
}

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
