// What the server cannot do: texts from the clipboard and from files, the chunk under the pointer,
// sliders, scrolling. Everything else is rendered by the server, and swapped in by htmx.

const OWN = "your own text";
const LONG = 200_000; // characters; a longer text would freeze the editor
const LETTERS = ["a", "b"];
const find = (id) => document.getElementById(id);
const form = find("page");
const desk = find("desk");
const pinned = new Set();
let going = null; // the side whose chosen chunk is to be scrolled into view

const field = (name) => form.querySelector(`[name="${name}"]`);
const value = (name) => form.querySelector(`[name="${name}"]:checked`)?.value ?? field(name)?.value;
const refresh = () => htmx.trigger(form, "refresh");

// Texts

async function send(name, body, kind) {
  const before = find("status").textContent;
  blank(`Reading ${name} …`);
  try {
    const options = { method: "POST", body, headers: { "Content-Type": kind } };
    const response = await fetch(`text?name=${encodeURIComponent(name)}`, options);
    if (!response.ok) throw new Error(await response.text());
    const text = await response.json();
    const select = find("text");
    const option = [...select.options].find((each) => each.value === text.key);
    if (!option) select.prepend(new Option(text.name, text.key));
    select.value = text.key;
    choose();
  } catch (error) {
    find("status").textContent = before;
    notify(error instanceof TypeError ? "the playground does not answer: is it still running?" : error.message);
    choose();
  }
}

// Show nothing of the text before, while another one is read and cut.
function blank(message) {
  changed();
  for (const part of desk.querySelectorAll(".source, .panel, .results, .figures > *")) part.replaceChildren();
  for (const id of ["difference", "pager", "notice"]) find(id).replaceChildren();
  for (const name of ["answer", "a-chunk", "b-chunk"]) field(name).value = "";
  pinned.clear();
  find("status").textContent = message;
}

function choose() {
  const select = find("text");
  const notice = find("notice").textContent;
  blank(`Cutting ${select.selectedOptions[0].text} …`);
  find("notice").textContent = notice;
  refresh();
}

function paste(text) {
  send(OWN, text, "text/plain");
}

function notify(message) {
  find("notice").textContent = message;
}

// Every change makes the answers that are under way old; they are not drawn.
function changed() {
  field("stamp").value = Number(field("stamp").value) + 1;
  desk.setAttribute("aria-busy", "true");
}

// Chunks

function go(letter, number, isFar) {
  field(`${letter}-chunk`).value = number;
  going = isFar ? letter : null;
  const values = isFar ? { side: letter, go: "1" } : { side: letter };
  htmx.ajax("POST", "chunk", { source: `#source-${letter}`, values, swap: "none" });
}

function highlight(letter) {
  const extent = find(`panel-${letter}`).querySelector(".extent");
  const [from, to] = [Number(extent?.dataset.from ?? -1), Number(extent?.dataset.to ?? -1)];
  const source = find(`source-${letter}`);
  for (const piece of source.children) {
    const at = Number(piece.dataset.at);
    piece.classList.toggle("on", at >= from && at < to && Boolean(piece.dataset.chunk));
  }
  source.classList.toggle("searched", Boolean(find(`results-${letter}`).querySelector("li")));
  find(`view-${letter}`).classList.toggle("pinned", pinned.has(letter));
}

function scrollTo(source, target) {
  const [box, place] = [source.getBoundingClientRect(), target?.getClientRects()[0]];
  if (place && (place.top < box.top + 24 || place.bottom > box.bottom - 24)) {
    source.scrollTop += place.top - box.top - box.height / 3;
  }
}

const showChosen = (letter) => {
  const source = find(`source-${letter}`);
  scrollTo(source, source.querySelector(".answer") ?? source.querySelector(".on"));
};

function listenToSource(letter) {
  const source = find(`source-${letter}`);
  const numberAt = (event) => event.target.closest(".piece[data-chunk]")?.dataset.chunk;
  source.addEventListener("pointerover", (event) => {
    const number = numberAt(event);
    if (number && !pinned.has(letter) && number !== value(`${letter}-chunk`)) go(letter, number, false);
  });
  source.addEventListener("click", (event) => {
    const number = numberAt(event);
    if (!number || String(getSelection())) return;
    const isPinned = pinned.has(letter) && number === value(`${letter}-chunk`);
    pinned[isPinned ? "delete" : "add"](letter);
    go(letter, number, false);
  });
  source.addEventListener("keydown", (event) => {
    const last = Number(find(`panel-${letter}`).querySelector(".extent")?.dataset.last ?? -1);
    const at = Number(value(`${letter}-chunk`) || -1);
    const steps = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: last };
    if (event.key === "Escape") {
      pinned.delete(letter);
      highlight(letter);
    }
    if (!(event.key in steps) || last < 0) return;
    event.preventDefault();
    go(letter, Math.min(last, Math.max(0, steps[event.key])), true);
  });
  // Both sides show the same text, so they scroll together.
  source.addEventListener("scroll", () => {
    if (!source.matches(":hover, :focus-within")) return;
    for (const other of LETTERS) if (other !== letter) find(`source-${other}`).scrollTop = source.scrollTop;
  });
}

// The range of the selected text in code points, if it is in one of the texts.
function selectedRange() {
  const selection = getSelection();
  if (selection.isCollapsed || !selection.rangeCount) return null;
  const { startContainer, startOffset, endContainer, endOffset } = selection.getRangeAt(0);
  const position = (node, offset) => {
    const piece = node.parentElement?.closest(".piece");
    if (!piece || node.nodeType !== Node.TEXT_NODE) return null;
    const before = document.createRange();
    before.setStart(piece, 0);
    before.setEnd(node, offset);
    return Number(piece.dataset.at) + [...before.toString()].length;
  };
  const range = [position(startContainer, startOffset), position(endContainer, endOffset)];
  return range.includes(null) ? null : range;
}

// Sliders

const positionOf = ({ low, high, log, size }, number) => {
  const place = size && number > 1 ? number / size : number;
  const inside = Math.min(high, Math.max(low, place || low));
  return log ? Math.log(inside / low) / log : (inside - low) / (high - low);
};

const numberAt = ({ low, high, log, digits }, share) => {
  if (!log) return Number((low + share * (high - low)).toFixed(digits));
  const number = low * Math.exp(log * share);
  const step = 10 ** Math.max(0, Math.floor(Math.log10(number)) - 1);
  return Math.round(number / step) * step;
};

const rangeOf = (slider) => Object.fromEntries(Object.entries(slider.dataset).map(([k, v]) => [k, Number(v)]));

function showSliders() {
  for (const slider of desk.querySelectorAll("input[type=range]")) {
    const number = slider.nextElementSibling;
    const text = number.value || number.placeholder;
    if (slider !== document.activeElement) slider.value = Math.round(200 * positionOf(rangeOf(slider), Number(text)));
  }
}

// What happens

form.addEventListener("input", (event) => {
  const { target } = event;
  if (target.name === "shown") showChosen(target.value); // it could not scroll while it was hidden
  if (target.matches("#place, [name=shown], [name$='-open']")) return event.stopPropagation();
  if (target.type === "range") target.nextElementSibling.value = numberAt(rangeOf(target), target.value / 200);
  showSliders();
  find("notice").textContent = "";
  const letter = target.closest(".settings")?.dataset.side;
  if (letter) field(`${letter}-linked`).value = "";
  if (target.id === "question") field("answer").value = "";
  if (target.id === "text") {
    event.stopPropagation();
    choose();
  } else if (!target.name.endsWith("-tab")) changed();
}, true);

form.addEventListener("click", async (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  const letter = button.closest("[data-side]")?.dataset.side;
  if (button.name === "ask") going = value("shown") ?? "a";
  if (button.matches("[hx-post], [name=ask]")) changed();
  if (button.matches(".results [data-chunk]")) {
    pinned.add(letter);
    form.querySelector(`[name=${letter}-tab][value=chunk]`).checked = true;
    go(letter, button.dataset.chunk, true);
  }
  if (button.matches(".mark-answer")) {
    field("answer").value = (selectedRange() ?? []).join("-");
    getSelection().removeAllRanges();
    changed();
    refresh();
  }
  if (button.matches(".copy")) {
    const code = find(`panel-${letter}`).querySelector(".code");
    if (!code) return;
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code); // the browser forbids it: select the text instead
      button.textContent = "Selected";
    }
    setTimeout(() => (button.textContent = "Copy"), 1500);
  }
}, true);

document.addEventListener("selectionchange", () => {
  const range = selectedRange();
  for (const button of desk.querySelectorAll(".mark-answer")) button.hidden = !range;
});

// An answer to earlier settings, or about an earlier text, is not drawn.
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  const { stamp } = detail.requestConfig.parameters;
  const isFragment = detail.xhr.getResponseHeader("Content-Type")?.startsWith("text/html");
  if (stamp !== value("stamp")) detail.shouldSwap = false;
  else if (!isFragment) {
    detail.shouldSwap = false;
    notify(detail.xhr.responseText);
    desk.removeAttribute("aria-busy");
  } else detail.isError = false; // an error of the settings, which the fragment says
});

document.addEventListener("htmx:sendError", () => {
  notify("the playground does not answer: is it still running?");
  desk.removeAttribute("aria-busy");
});

document.addEventListener("htmx:afterRequest", ({ detail }) => {
  const { parameters, path } = detail.requestConfig;
  if (parameters.stamp !== value("stamp") || !detail.xhr.status) return; // old, or aborted
  showSliders();
  for (const letter of LETTERS) {
    const extent = find(`panel-${letter}`).querySelector(".extent");
    if (extent && path === "views") field(`${letter}-chunk`).value = extent.dataset.number;
    highlight(letter);
  }
  if (path === "views") desk.removeAttribute("aria-busy");
  if (path === "views" && parameters.from !== value("from")) {
    for (const source of desk.querySelectorAll(".source")) source.scrollTop = 0;
  }
  if (going && (path === "chunk" || parameters.ask)) arrive(path === "chunk");
});

// Scroll to the chosen chunk, or to the results and the answer.
function arrive(isChunk) {
  const results = find(`results-${going}`);
  if (!isChunk && !results.querySelector("li")) return;
  const source = find(`source-${going}`);
  if (isChunk) scrollTo(source, source.querySelector(".on"));
  else for (const letter of LETTERS) showChosen(letter);
  if (!isChunk) results.scrollIntoView({ block: "nearest" });
  going = null;
}

find("open").addEventListener("click", () => find("file").click());
find("file").addEventListener("input", (event) => event.stopPropagation());
find("file").addEventListener("change", (event) => {
  const [file] = event.target.files;
  if (file) send(file.name, file.slice(), "application/octet-stream");
  event.target.value = "";
});

// The editor holds the text that is drawn, unless it is too long to be drawn at once.
const editor = find("editor");
let edited = "";
find("edit").addEventListener("click", () => {
  const isLong = Boolean(find("place"));
  edited = isLong ? "" : find("source-a").textContent;
  find("own").value = edited;
  find("own").placeholder = isLong ? "This text is too long to be edited here. Paste another one." : "";
  editor.returnValue = "";
  editor.showModal();
  find("own").select(); // so that pasting replaces it
});
editor.addEventListener("close", () => {
  const text = find("own").value;
  if (editor.returnValue === "use" && text !== edited) paste(text);
});

document.addEventListener("paste", (event) => {
  const text = event.clipboardData.getData("text/plain");
  const isOwn = event.target.id === "own";
  if (!text || (isOwn ? text.length <= LONG : event.target.closest("input, textarea"))) return;
  event.preventDefault(); // a long text would freeze the text field
  if (isOwn) editor.close("");
  paste(text);
});

const { body } = document;
document.addEventListener("dragover", (event) => {
  event.preventDefault();
  body.classList.add("dropping");
});
document.addEventListener("dragleave", (event) => event.relatedTarget || body.classList.remove("dropping"));
document.addEventListener("drop", (event) => {
  event.preventDefault();
  body.classList.remove("dropping");
  const [file] = event.dataTransfer.files;
  const text = event.dataTransfer.getData("text/plain");
  if (file) send(file.name, file.slice(), "application/octet-stream");
  else if (text) paste(text);
});

for (const letter of LETTERS) listenToSource(letter);
showSliders();
