// One side: a strategy, its form, the server's answer, and the view that shows it.

import { asksModel, drawForm, element, keepSizes, prose, sizesOf } from "./form.js";
import { View } from "./view.js";

const PAUSE = 60; // milliseconds without a change before a request

export async function request(path, body, signal) {
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
  const answer = await response.json().catch(() => ({ error: `the server answered with status ${response.status}` }));
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

export class Side {
  // `desk` has the settings, the strategies, the text, and the page's functions for both sides.
  constructor(letter, desk) {
    this.desk = desk;
    this.letter = letter;
    const part = document.getElementById("side-template").content.cloneNode(true);
    this.settings = part.querySelector(".settings");
    this.root = part.querySelector(".view");
    for (const each of [this.settings, this.root]) each.dataset.side = letter;
    this.find = (selector) => this.settings.querySelector(selector);
    this.find(".letter").textContent = letter.toUpperCase();
    this.view = new View(this.root, letter, (place) => desk.move(place - 200));
    this.view.marked = desk.markAnswer;
    this.view.state = desk.state;
    this.sizes = {}; // of the strategies shown before, for those that come after
    this.stamp = 0;
    this.busy = null;
    this.next = false;
    this.isLinked = false; // it came with a link, and the user has changed nothing
    const select = this.find(".strategy");
    select.setAttribute("aria-label", `Strategy ${letter.toUpperCase()}`);
    const kinds = [...desk.world.strategies.values()];
    const option = ({ name, about }) =>
      element("option", { value: name, title: about.split("\n")[0] }, name);
    select.append(...kinds.filter((kind) => !kind.missing.length).map(option));
    const others = kinds.filter((kind) => kind.missing.length).map(option);
    const label = "Needs a model that is missing";
    if (others.length) select.append(element("optgroup", { label }, ...others));
    select.addEventListener("change", () => {
      Object.assign(this.sizes, sizesOf(this.kind, this.set.values, desk.world));
      const values = keepSizes(desk.world.strategies.get(select.value), this.sizes, desk.world);
      desk.state[letter] = { strategy: select.value, values };
      this.isLinked = false;
      desk.forgetNotice();
      this.reset();
    });
    this.find(".reset").addEventListener("click", () => {
      this.set.values = {};
      this.sizes = {};
      this.isLinked = false;
      this.reset();
    });
    this.find(".run").addEventListener("click", () => this.busy || this.send());
    const toggle = this.find(".toggle");
    toggle.addEventListener("click", () => {
      toggle.setAttribute("aria-expanded", this.settings.classList.toggle("open"));
    });
    this.find(".compare").addEventListener("click", () => desk.compare(letter === "a"));
  }

  // The strategy and the values that differ from its defaults.
  get set() {
    return this.desk.state[this.letter];
  }

  get kind() {
    return this.desk.world.strategies.get(this.set.strategy);
  }

  // Draw the form again, for another strategy.
  reset() {
    const { strategy, values } = this.set;
    const { world } = this.desk;
    const [first, ...rest] = this.kind.about.split("\n\n");
    this.find(".strategy").value = strategy;
    this.find(".about").replaceChildren(...prose(first.replace(/\s+/g, " ")));
    this.find(".more").hidden = !rest.length;
    const lines = rest.map((each) => each.replace(/\n(?! )/g, " ")).join("\n\n");
    this.find(".more p").replaceChildren(...prose(lines));
    drawForm(this.find(".form"), this.kind, values, world, () => {
      this.isLinked = false;
      this.changed();
    });
    if (this.busy) this.busy.abort();
    this.busy = null;
    this.changed();
  }

  changed() {
    this.desk.saveLink();
    clearTimeout(this.timer);
    this.stamp += 1; // any pending answer is out of date
    const waits = this.waits();
    this.find(".waiting").hidden = !waits;
    this.find(".waiting span").textContent = waits;
    this.working(!waits);
    if (waits) return this.stale("");
    this.timer = setTimeout(() => (this.busy ? (this.next = true) : this.send()), PAUSE);
  }

  // Why the server waits for the user to press Run; "" if it cuts the text at every change.
  waits() {
    const { world } = this.desk;
    if (this.kind.missing.length) return "";
    if (asksModel(this.set, world)) return `calls ${world.models.llm}`;
    // A regular expression can run for ever, and a link can come from anyone.
    const isRegex = /"(is_regex|patterns)":/.test(JSON.stringify(this.set.values));
    return this.isLinked && isRegex ? "uses regular expressions that came with a link" : "";
  }

  // Stop all requests.
  close() {
    clearTimeout(this.timer);
    this.busy?.abort();
    Object.assign(this, { busy: null, next: false });
    this.stamp += 1;
    this.view.answer = null;
    this.settings.remove();
    this.root.remove();
  }

  async send() {
    clearTimeout(this.timer);
    const stamp = ++this.stamp;
    const { strategy, values } = this.set;
    const { source, world, state } = this.desk;
    const body = { name: source.name, text: source.text, strategy, parameters: values };
    const busy = (this.busy = new AbortController());
    this.next = false;
    this.working(true);
    try {
      const answer = await request("api/chunks", body, busy.signal);
      if (stamp !== this.stamp || source !== this.desk.source) return;
      this.stale(null);
      this.view.take(answer);
      this.desk.redraw();
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

  // Until the answer to the current settings arrives.
  working(isSo) {
    if (isSo) this.root.setAttribute("aria-busy", "true");
    else this.root.removeAttribute("aria-busy");
  }

  // Keep the last chunks, and mark them as out of date.
  stale(error) {
    const place = this.find(".error");
    if (place.textContent !== (error ?? "")) place.textContent = error ?? "";
    const isShown = Boolean(this.view.answer);
    this.root.classList.toggle("stale", error !== null && isShown);
    if (error !== null) this.root.querySelector(".results").removeAttribute("aria-busy");
    if (error !== null && !isShown) this.view.clear();
  }

  async search(goes = false) {
    const { source, state } = this.desk;
    const { question, k } = state;
    const answer = this.view.answer;
    if (!question.trim() || !answer) return this.view.results(null);
    const stamp = this.stamp;
    const chunks = answer.chunks.map(({ start, end, content }) => content ?? [start, end]);
    this.root.querySelector(".results").setAttribute("aria-busy", "true");
    try {
      const body = { text: source.text, question, chunks, k };
      const { results, model } = await request("api/search", body);
      if (stamp !== this.stamp || question !== state.question || k !== state.k) return;
      this.view.results(results, model);
      if (goes && results.length) this.view.go(results[0].chunk);
      if (goes) this.view.scrollToAnswer();
    } catch (error) {
      if (stamp === this.stamp) this.view.results([], error.message);
    }
  }
}
