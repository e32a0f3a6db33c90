// The page: its settings, its text, and its two sides.

import { element, keepSizes, sizesOf } from "./form.js";
import * as link from "./link.js";
import { request, Side } from "./side.js";
import { Source, windowEnd } from "./text.js";
import { bars, times } from "./view.js";

const LIMITS = { characters: 40_000, pieces: 1_500 }; // drawn at once, so that the page stays fast
const OWN = "your own text";
const find = (id) => document.getElementById(id);
const count = (number) => number.toLocaleString("en");

const world = { strategies: new Map(), models: {}, isFree: true };
const state = { name: null, question: "", k: 3, from: 0, answer: null };
const sides = {};
let source = new Source("");
const desk = {
  ...{ world, state, move, redraw, compare, saveLink, markAnswer, forgetNotice },
  get source() {
    return source;
  },
};

// Sides

function compare(isOn) {
  if (isOn && !state.b) {
    const other = state.a.strategy === "sentence" ? "recursive" : "sentence";
    const sizes = sizesOf(world.strategies.get(state.a.strategy), state.a.values, world);
    state.b = { strategy: other, values: keepSizes(world.strategies.get(other), sizes, world) };
  } else if (!isOn) {
    delete state.b;
  }
  showSides();
  saveLink();
  find("desk").querySelector(isOn ? ".settings[data-side=b] .strategy" : ".compare").focus();
}

function showSides() {
  for (const letter of ["a", "b"]) {
    const side = sides[letter];
    if (state[letter] && !side.settings.isConnected) {
      find("desk").append(side.settings, side.root);
      side.reset();
    } else if (!state[letter]) {
      side.close();
    }
  }
  find("desk").classList.toggle("two", Boolean(state.b));
  const button = sides.a.find(".compare");
  button.textContent = "Compare";
  button.title = "Compare with another strategy";
  button.hidden = Boolean(state.b);
  sides.b.find(".compare").textContent = "Close";
  compareChunks();
}

const shown = () => Object.values(sides).filter((side) => state[side.letter]);

// Tell each view which of its chunks the other side has as well, and say how much they differ.
function compareChunks() {
  const place = find("difference");
  const [a, b] = [sides.a.view, sides.b.view];
  if (!state.b || !a.answer || !b.answer) {
    place.textContent = "";
    for (const view of [a, b]) view.twins = null;
    return;
  }
  const key = ({ start, end, content }) => JSON.stringify([start, end, content]);
  const numbers = (chunks) => new Map(chunks.map((chunk, number) => [key(chunk), number]));
  const twins = (chunks, others) => chunks.map((chunk) => others.get(key(chunk)) ?? null);
  a.twins = twins(a.answer.chunks, numbers(b.answer.chunks));
  b.twins = twins(b.answer.chunks, numbers(a.answer.chunks));
  const [onlyA, onlyB] = [a, b].map((view) => view.twins.filter((twin) => twin === null).length);
  const shared = a.twins.length - onlyA;
  const isSame = !onlyA && !onlyB;
  if (isSame) for (const view of [a, b]) view.twins = null;
  let text = `${times(shared, "chunk")} in both (grey), ${onlyA} only in A, ${onlyB} only in B.`;
  if (isSame) text = `A and B give the same ${times(shared, "chunk")}.`;
  else if (!shared) text = `A and B have no chunk in common.`;
  if (place.textContent !== text) place.textContent = text;
}

// The text

function redraw() {
  const views = shown().map((side) => side.view);
  const answers = views.map((view) => view.answer).filter(Boolean);
  compareChunks();
  const to = windowEnd(source, state.from, answers.map((answer) => answer.chunks), LIMITS);
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
  const range = `${count(state.from)} to ${count(to)} of ${count(source.count)}`;
  find("pager-status").textContent = `Showing characters ${range}`;
  find("earlier").disabled = state.from === 0;
  find("later").disabled = to === source.count;
  state.to = to;
  const limited = answers.find((answer) => answer.chunks.length < answer.figures.chunks);
  const note = limited ? `; showing the first ${count(limited.chunks.length)} chunks` : "";
  showStatus(`${source.name ?? ""}: ${count(source.count)} characters${note}`);
}

function move(place, isBorder = false) {
  state.from = isBorder ? place : source.aligned(Math.max(0, place));
  redraw();
  for (const side of shown()) side.view.text.scrollTop = 0;
}

function take(name, text, isOwn) {
  source = Object.assign(new Source(text), { name });
  state.name = isOwn ? null : name;
  state.from = 0;
  const select = find("text-name");
  let option = [...select.options].find((each) => each.value === "");
  if (isOwn) {
    storeText({ name, text });
    if (!option) select.prepend((option = new Option(name, "")));
    option.textContent = name;
  }
  select.value = isOwn ? "" : name;
  select.title = name;
  findAnswer();
  for (const side of shown()) {
    Object.assign(side.view, { answer: null, current: null, pinned: false });
    side.view.text.scrollTop = 0;
    side.changed();
  }
  redraw();
}

// The passage that answers the question: known for the sample questions, else marked by the user.
function findAnswer() {
  const known = world.questions?.find((each) => each.question === state.question)?.answer;
  const at = known ? source.text.indexOf(known) : -1;
  state.answer = at < 0 ? null : [source.point(at), source.point(at + known.length)];
}

function markAnswer(range) {
  state.answer = range;
  for (const side of shown()) side.view.showAnswer();
}

// Keeps a text of the user's own for a reload of this tab.
function storeText(own) {
  try {
    sessionStorage.removeItem("text");
    sessionStorage.setItem("text", JSON.stringify(own));
  } catch {
    // the text is too large, or the browser forbids it: a reload loses the text
  }
}

function storedText() {
  try {
    return JSON.parse(sessionStorage.getItem("text") ?? "null");
  } catch {
    return null;
  }
}

let choices = 0;
async function choose(name) {
  const choice = ++choices;
  try {
    const own = name ? null : storedText();
    if (own) return take(own.name, own.text, true);
    const { text } = await request(`api/text?name=${encodeURIComponent(name || world.texts[0].name)}`);
    if (choice === choices) take(name || world.texts[0].name, text, false);
  } catch (error) {
    showNotice(error.message);
    if (name && world.texts.every((each) => each.name !== name)) await choose(world.texts[0].name);
  }
}

async function readFile(file) {
  const before = find("status").textContent;
  forgetNotice();
  showStatus(`Reading ${file.name}`);
  try {
    const { text } = await request(`api/read?name=${encodeURIComponent(file.name)}`, file.slice());
    take(file.name, text, true);
    forgetNotice();
  } catch (error) {
    showStatus(before);
    showNotice(error.message);
  }
}

function showStatus(message) {
  const place = find("status");
  if (place.textContent !== message) place.textContent = message;
}

// What went wrong outside of a strategy. It stays until the user changes something.
function showNotice(message) {
  const place = find("notice");
  place.textContent = place.textContent ? `${place.textContent} ${message}` : message;
}

function forgetNotice() {
  find("notice").textContent = "";
}

// Settings

let saving;
function saveLink() {
  clearTimeout(saving);
  saving = setTimeout(() => history.replaceState(null, "", `#${link.write(state)}`), 150);
}

async function load() {
  const linked = link.read(location.hash);
  const isKnown = (side) => side && world.strategies.has(side.strategy);
  forgetNotice();
  const unknown = [linked.a, linked.b].filter((side) => side && !isKnown(side));
  for (const { strategy } of unknown) {
    showNotice(`The link asks for the strategy “${strategy}”, which does not exist.`);
  }
  state.a = isKnown(linked.a) ? linked.a : { strategy: "auto", values: { chunk_size: 300 } };
  if (isKnown(linked.b)) state.b = linked.b;
  else delete state.b;
  Object.assign(state, { question: linked.question, k: linked.k });
  find("question").value = state.question;
  find("k").value = state.k;
  for (const side of Object.values(sides)) {
    side.close();
    side.isLinked = true;
  }
  const isReload = location.hash && !linked.name && storedText();
  await choose(isReload ? "" : linked.name || world.texts[0].name);
  showSides();
}

function listen() {
  find("text-name").addEventListener("change", (event) => {
    forgetNotice();
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
    find("own").select(); // so that pasting replaces it
  });
  find("editor").addEventListener("close", () => {
    const text = find("own").value;
    const before = source.text.replace(/\r\n?/g, "\n"); // as in a text field
    if (find("editor").returnValue === "use" && text !== before) take(OWN, text, true);
  });
  const search = (event) => {
    event.preventDefault();
    const question = find("question").value;
    const isNew = question !== state.question;
    Object.assign(state, { question, k: Number(find("k").value) || 3 });
    if (isNew) findAnswer();
    saveLink();
    const isDue = event.type === "submit" || world.isFree || !state.question.trim();
    if (isDue) for (const side of shown()) side.search(event.type === "submit");
  };
  let pause;
  find("ask").addEventListener("submit", search);
  find("ask").addEventListener("input", (event) => {
    clearTimeout(pause);
    pause = setTimeout(() => search(event), 200);
  });
  find("earlier").addEventListener("click", () => move(state.from - LIMITS.characters));
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
  // Both sides show the same text, so they scroll together.
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
    const start = await request("api/strategies");
    for (const each of start.strategies) world.strategies.set(each.name, each);
    const { models, texts, questions, is_free: isFree } = start;
    Object.assign(world, { models, texts, questions, isFree });
    const labels = shortNames(texts.map((each) => each.name));
    find("text-name").append(...texts.map(({ name }, at) => new Option(labels[at], name)));
    find("questions").append(...questions.map((each) => element("option", { value: each.question })));
    for (const letter of ["a", "b"]) sides[letter] = new Side(letter, desk);
    listen();
    await load();
  } catch (error) {
    showNotice(error.message);
  }
}

// Paths without the folders that do not tell them apart; the status line shows the whole path.
function shortNames(names) {
  const tail = (name, parts) => name.split("/").slice(-parts).join("/");
  return names.map((name) => {
    for (let parts = 1; ; parts += 1) {
      const short = tail(name, parts);
      if (short === name || !names.some((other) => other !== name && tail(other, parts) === short)) {
        return short;
      }
    }
  });
}

start();
