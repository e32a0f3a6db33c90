// The page: what is set, what the server answers, and the two sides.

import { asksModel, drawForm, element, prose } from "./form.js";
import * as link from "./link.js";
import { Source, windowEnd } from "./text.js";
import { bars, View } from "./view.js";

const MOST = { characters: 40_000, pieces: 1_500 }; // drawn at once, so that the page stays quick
const PAUSE = 60; // milliseconds without a change before the server is asked
const OWN = "your own text";
const find = (id) => document.getElementById(id);
const count = (number) => number.toLocaleString("en");

const world = { strategies: new Map(), models: {}, isFree: true };
const state = { name: null, question: "", k: 3, from: 0 };
const sides = {};
let source = new Source("");

async function ask(path, body, signal) {
  const isFile = body instanceof Blob;
  const kind = isFile ? "application/octet-stream" : "application/json";
  const options = body && { method: "POST", headers: { "Content-Type": kind } };
  if (body) options.body = isFile ? body : JSON.stringify(body);
  let response;
  try {
    response = await fetch(path, { ...options, signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("the playground does not answer: is it still running?");
  }
  const answer = await response.json().catch(() => ({ error: `the server said ${response.status}` }));
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

// Sides

class Side {
  constructor(letter) {
    this.letter = letter;
    const part = find("side-template").content.cloneNode(true);
    this.settings = part.querySelector(".settings");
    this.root = part.querySelector(".view");
    for (const each of [this.settings, this.root]) each.dataset.side = letter;
    this.find = (selector) => this.settings.querySelector(selector);
    this.find(".letter").textContent = letter.toUpperCase();
    this.view = new View(this.root, letter, (place) => move(place - 200));
    this.stamp = 0;
    this.busy = null;
    this.next = false;
    const select = this.find(".strategy");
    select.setAttribute("aria-label", `Strategy ${letter.toUpperCase()}`);
    select.append(...[...world.strategies.keys()].map((name) => new Option(name, name)));
    select.addEventListener("change", () => {
      state[letter] = { strategy: select.value, values: kept(state[letter].values, select.value) };
      this.reset();
    });
    this.find(".reset").addEventListener("click", () => {
      state[letter].values = {};
      this.reset();
    });
    this.find(".run").addEventListener("click", () => this.send());
    this.find(".compare").addEventListener("click", () => compare(letter === "a"));
  }

  get kind() {
    return world.strategies.get(state[this.letter].strategy);
  }

  // Draw the form anew, for another strategy.
  reset() {
    const { strategy, values } = state[this.letter];
    const [first, ...rest] = (this.kind?.about ?? "").split("\n\n");
    this.find(".strategy").value = strategy;
    this.find(".about").replaceChildren(...prose(first.replace(/\s+/g, " ")));
    this.find(".more").hidden = !rest.length;
    const lines = rest.map((each) => each.replace(/\n(?! )/g, " ")).join("\n\n");
    this.find(".more p").replaceChildren(...prose(lines));
    if (this.kind) drawForm(this.find(".form"), this.kind, values, world, () => this.changed());
    else this.find(".form").replaceChildren();
    if (this.busy) this.busy.abort();
    this.busy = null;
    this.changed();
  }

  changed() {
    saveLink();
    clearTimeout(this.timer);
    this.stamp += 1; // an answer that is under way is out of date
    const model = asksModel(state[this.letter], world);
    this.find(".ask-model").hidden = !model || Boolean(this.kind?.missing.length);
    this.find(".ask-model span").textContent = `asks ${world.models.llm} when you press it`;
    const waits = model && !this.kind?.missing.length;
    this.working(!waits);
    if (waits) return this.stale("");
    this.timer = setTimeout(() => (this.busy ? (this.next = true) : this.send()), PAUSE);
  }

  async send() {
    clearTimeout(this.timer);
    const stamp = ++this.stamp;
    const { strategy, values } = state[this.letter];
    const asked = { text: source.text, strategy, parameters: values };
    const of = source;
    const busy = (this.busy = new AbortController());
    this.next = false;
    this.working(true);
    try {
      const answer = await ask("api/chunks", asked, busy.signal);
      if (stamp !== this.stamp || of !== source) return;
      this.stale(null);
      this.view.take(answer);
      redraw();
      if (world.isFree || !state.question.trim()) this.search();
      else this.view.results([], "press Ask to search these chunks");
    } catch (error) {
      if (error.name !== "AbortError" && stamp === this.stamp) this.stale(error.message);
    } finally {
      if (this.busy === busy) {
        this.busy = null;
        if (this.next) this.send();
        else if (stamp === this.stamp) this.working(false);
      }
    }
  }

  // Until the answer to what is set is there.
  working(isSo) {
    if (isSo) this.root.setAttribute("aria-busy", "true");
    else this.root.removeAttribute("aria-busy");
  }

  // The last chunks stay, and are marked as not being those of the settings.
  stale(error) {
    const place = this.find(".error");
    if (place.textContent !== (error ?? "")) place.textContent = error ?? "";
    const isShown = Boolean(this.view.answer);
    this.root.classList.toggle("stale", error !== null && isShown);
    if (error !== null && !isShown) this.view.clear();
  }

  async search(goes = false) {
    const { question, k } = state;
    const answer = this.view.answer;
    if (!question.trim() || !answer) return this.view.results(null);
    const stamp = this.stamp;
    const chunks = answer.chunks.map(({ start, end, content }) => content ?? [start, end]);
    this.root.querySelector(".results").setAttribute("aria-busy", "true");
    try {
      const body = { text: source.text, question, chunks, k };
      const { results, model } = await ask("api/search", body);
      if (stamp !== this.stamp || question !== state.question || k !== state.k) return;
      this.view.results(results, model);
      if (goes && results.length) this.view.go(results[0].chunk);
    } catch (error) {
      if (stamp === this.stamp) this.view.results([], error.message);
    }
  }
}

// What another strategy also has keeps its value.
function kept(values, strategy) {
  const names = world.strategies.get(strategy).parameters.map((each) => each.name);
  const shared = ["chunk_size", "chunk_overlap", "length_function"].filter((each) => names.includes(each));
  return Object.fromEntries(shared.filter((each) => each in values).map((each) => [each, values[each]]));
}

function compare(wanted) {
  if (wanted && !state.b) {
    const other = state.a.strategy === "sentence" ? "recursive" : "sentence";
    state.b = { strategy: other, values: kept(state.a.values, other) };
  } else if (!wanted) {
    delete state.b;
  }
  showSides();
  saveLink();
  find("desk").querySelector(wanted ? ".settings[data-side=b] .strategy" : ".compare").focus();
}

function showSides() {
  for (const letter of ["a", "b"]) {
    const side = sides[letter];
    if (state[letter] && !side.settings.isConnected) {
      find("desk").append(side.settings, side.root);
      side.reset();
    } else if (!state[letter]) {
      side.settings.remove();
      side.root.remove();
      side.view.answer = null;
    }
  }
  find("desk").classList.toggle("two", Boolean(state.b));
  const button = sides.a.find(".compare");
  button.textContent = "Compare with another";
  button.hidden = Boolean(state.b);
  sides.b.find(".compare").textContent = "Close";
}

const shown = () => Object.values(sides).filter((side) => state[side.letter]);

// The text

function redraw() {
  const views = shown().map((side) => side.view);
  const answers = views.map((view) => view.answer).filter(Boolean);
  const to = windowEnd(source, state.from, answers.map((answer) => answer.chunks), MOST);
  const edges = bars(answers);
  for (const view of views) {
    if (view.answer) view.histogram(edges);
    view.draw(source, state.from, to);
  }
  const isAll = state.from === 0 && to === source.count;
  find("pager").hidden = isAll;
  const place = find("place");
  place.max = source.count;
  if (document.activeElement !== place) place.value = state.from;
  const told = `Characters ${count(state.from)} to ${count(to)} of ${count(source.count)} are drawn`;
  find("pager-told").textContent = told;
  find("earlier").disabled = state.from === 0;
  find("later").disabled = to === source.count;
  state.to = to;
  const cut = answers.find((answer) => answer.chunks.length < answer.figures.chunks);
  const note = cut ? `; the first ${count(cut.chunks.length)} chunks are drawn` : "";
  tell(`${count(source.count)} characters${note}`);
}

function move(place, isBorder = false) {
  state.from = isBorder ? place : source.aligned(Math.max(0, place));
  redraw();
  for (const side of shown()) side.view.text.scrollTop = 0;
}

function take(name, text, isOwn) {
  source = new Source(text);
  state.name = isOwn ? null : name;
  state.from = 0;
  const select = find("text-name");
  let option = [...select.options].find((each) => each.value === "");
  if (isOwn) {
    try {
      sessionStorage.setItem("text", JSON.stringify({ name, text }));
    } catch {
      // too large to be there after a reload
    }
    if (!option) select.prepend((option = new Option(name, "")));
    option.textContent = name;
  }
  select.value = isOwn ? "" : name;
  tell(`${count(source.count)} characters`);
  for (const side of shown()) {
    Object.assign(side.view, { answer: null, current: 0, pinned: false });
    side.view.text.scrollTop = 0;
    side.changed();
  }
  redraw();
}

async function choose(name) {
  try {
    const own = name ? null : JSON.parse(sessionStorage.getItem("text") ?? "null");
    if (!name && own) return take(own.name, own.text, true);
    const { text } = await ask(`api/text?name=${encodeURIComponent(name || world.texts[0].name)}`);
    take(name || world.texts[0].name, text, false);
  } catch (error) {
    tell(error.message, true);
    if (name && world.texts.every((each) => each.name !== name)) await choose(world.texts[0].name);
  }
}

async function readFile(file) {
  tell(`Reading ${file.name}`);
  try {
    const { text } = await ask(`api/read?name=${encodeURIComponent(file.name)}`, file.slice());
    take(file.name, text, true);
  } catch (error) {
    tell(error.message, true);
  }
}

function tell(message, isError = false) {
  const place = find("told");
  if (place.textContent !== message) place.textContent = message;
  place.classList.toggle("error", isError);
}

// What is set

let saving;
function saveLink() {
  clearTimeout(saving);
  saving = setTimeout(() => history.replaceState(null, "", `#${link.written(state)}`), 150);
}

async function load() {
  const wanted = link.read(location.hash);
  const isKnown = (side) => side && world.strategies.has(side.strategy);
  state.a = isKnown(wanted.a) ? wanted.a : { strategy: "recursive", values: { chunk_size: 300 } };
  if (isKnown(wanted.b)) state.b = wanted.b;
  else delete state.b;
  Object.assign(state, { question: wanted.question, k: wanted.k });
  find("question").value = state.question;
  find("k").value = state.k;
  for (const side of Object.values(sides)) {
    side.settings.remove();
    side.root.remove();
    side.view.answer = null;
  }
  const isReload = location.hash && !wanted.name && sessionStorage.getItem("text");
  await choose(isReload ? "" : wanted.name || world.texts[0].name);
  showSides();
}

function listen() {
  find("text-name").addEventListener("change", (event) => {
    choose(event.target.value);
    saveLink();
  });
  find("open").addEventListener("click", () => find("file").click());
  find("file").addEventListener("change", (event) => {
    if (event.target.files[0]) readFile(event.target.files[0]);
    event.target.value = "";
  });
  find("edit").addEventListener("click", () => {
    find("own").value = source.text;
    find("editor").returnValue = "";
    find("editor").showModal();
  });
  find("editor").addEventListener("close", () => {
    const text = find("own").value;
    const before = source.text.replace(/\r\n?/g, "\n"); // as a text field holds it
    if (find("editor").returnValue === "use" && text !== before) take(OWN, text, true);
  });
  const asked = (event) => {
    event.preventDefault();
    Object.assign(state, { question: find("question").value, k: Number(find("k").value) || 3 });
    saveLink();
    const isAsked = event.type === "submit" || world.isFree || !state.question.trim();
    if (isAsked) for (const side of shown()) side.search(event.type === "submit");
  };
  let pause;
  find("ask").addEventListener("submit", asked);
  find("ask").addEventListener("input", (event) => {
    clearTimeout(pause);
    pause = setTimeout(() => asked(event), 200);
  });
  find("earlier").addEventListener("click", () => move(state.from - MOST.characters));
  find("later").addEventListener("click", () => move(state.to, true));
  find("place").addEventListener("input", (event) => move(Number(event.target.value)));
  document.addEventListener("paste", (event) => {
    if (event.target.closest("input, textarea, dialog")) return;
    const text = event.clipboardData.getData("text/plain");
    if (text) take(OWN, text, true);
  });
  const body = document.body;
  document.addEventListener("dragover", (event) => {
    event.preventDefault();
    body.classList.add("dropping");
  });
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) body.classList.remove("dropping");
  });
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    body.classList.remove("dropping");
    const [file] = event.dataTransfer.files;
    const text = event.dataTransfer.getData("text/plain");
    if (file) readFile(file);
    else if (text) take(OWN, text, true);
  });
  addEventListener("hashchange", load);
  // Both sides show the same text in the same lines: they scroll together.
  let leading = null;
  for (const side of Object.values(sides)) {
    const text = side.view.text;
    for (const kind of ["pointerenter", "focusin"]) text.addEventListener(kind, () => (leading = text));
    text.addEventListener("scroll", () => {
      if (leading !== text) return;
      for (const other of shown()) if (other !== side) other.view.text.scrollTop = text.scrollTop;
    });
  }
}

async function start() {
  try {
    const found = await ask("api/strategies");
    for (const each of found.strategies) world.strategies.set(each.name, each);
    Object.assign(world, { models: found.models, texts: found.texts, isFree: found.is_free });
    const option = ({ name }) => new Option(name, name);
    find("text-name").append(...found.texts.map(option));
    find("questions").append(...found.questions.map((each) => element("option", { value: each })));
    for (const letter of ["a", "b"]) sides[letter] = new Side(letter);
    listen();
    await load();
  } catch (error) {
    tell(error.message, true);
  }
}

start();
