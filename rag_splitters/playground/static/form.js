// The form of a strategy, made from its parameters. `values` holds the parameters that differ from
// their defaults; it is changed in place, and then `changed` is called.

import { escaped, unescaped } from "./text.js";

export function element(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in node) node[name] = value;
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

// Text with `code` in backticks.
export const prose = (text) =>
  text.split("`").map((part, at) => (at % 2 ? element("code", {}, part) : part));

const NONE = "none";
let ids = 0;

export function drawForm(place, kind, values, world, changed) {
  place.replaceChildren(...kind.parameters.map((each) => row(each, kind, values, world, changed)));
}

// Whether a setting calls a chat model, itself or in a chunker inside it.
export function asksModel(setting, world) {
  const kind = world.strategies.get(setting.strategy);
  if (!kind) return false;
  if (kind.needs.includes("llm")) return true;
  return kind.parameters.some(({ name, control, default: usual }) => {
    const value = setting[name] ?? setting.values?.[name] ?? usual;
    if (control === "model") return value === true;
    const inner = control === "chunkers" ? value : [value];
    return (
      control.startsWith("chunker") &&
      Array.isArray(inner) &&
      inner.some((each) => each && typeof each === "object" && asksModel(each, world))
    );
  });
}

function row(parameter, kind, values, world, changed) {
  const { name, control, default: usual } = parameter;
  const id = `p${++ids}`;
  const set = (value) => {
    if (JSON.stringify(value) === JSON.stringify(usual) || value === undefined) delete values[name];
    else values[name] = value;
    changed();
  };
  const value = name in values ? values[name] : usual;
  const sizeOf = () => {
    const size = kind.parameters.find((each) => each.name === "chunk_size");
    return values.chunk_size ?? size?.default ?? 1000;
  };
  const nodes = CONTROLS[control]({ parameter, id, value, set, sizeOf, world });
  const meaning = element("p", { className: "meaning", id: `${id}-meaning` }, ...prose(parameter.meaning));
  const label = element("label", { htmlFor: id }, name);
  const nested = control.startsWith("chunker");
  const kinds = nested ? "row nested" : `row is-${control}`;
  for (const each of nodes) each.setAttribute?.("aria-describedby", meaning.id);
  return element("div", { className: kinds }, label, ...nodes, meaning);
}

const choice = (id, options, value, set) => {
  const select = element("select", { id }, ...options.map((each) => new Option(each, each)));
  select.value = value;
  select.addEventListener("change", () => set(select.value));
  return select;
};

const entry = (id, value, read, set, tag = "input") => {
  const input = element(tag, { id, value, spellcheck: false, autocomplete: "off" });
  input.addEventListener("input", () => set(read(input.value)));
  return input;
};

const number = (text, otherwise = undefined) => {
  const trimmed = text.trim();
  if (trimmed === "") return otherwise;
  return Number.isNaN(Number(trimmed)) ? trimmed : Number(trimmed);
};

// A slider next to a number field; `place` and `value` convert between them.
function slider(input, low, high, place, value, label) {
  const range = element("input", { type: "range", min: 0, max: 200, step: 1 });
  range.setAttribute("aria-label", label);
  const show = () => (range.value = Math.round(200 * place(Number(input.value) || low)));
  range.addEventListener("input", () => {
    input.value = value(range.value / 200);
    input.dispatchEvent(new Event("input"));
  });
  input.addEventListener("input", () => document.activeElement !== range && show());
  show();
  return range;
}

const round = (size) => {
  const step = 10 ** Math.max(0, Math.floor(Math.log10(size)) - 1);
  return Math.round(size / step) * step;
};

function logarithmic(input, low, high, label) {
  const span = Math.log(high / low);
  const place = (size) => Math.log(Math.min(high, Math.max(low, size)) / low) / span;
  return slider(input, low, high, place, (share) => round(low * Math.exp(span * share)), label);
}

function linear(input, low, high, digits, label, scale = () => 1) {
  const place = (value) => (Math.min(high, value / scale(value)) - low) / (high - low);
  return slider(input, low, high, place, (s) => +(low + s * (high - low)).toFixed(digits), label);
}

const CONTROLS = {
  choice: ({ parameter, id, value, set }) => [choice(id, parameter.choices, value, set)],

  flag: ({ id, value, set }) => {
    const box = element("input", { type: "checkbox", id, checked: Boolean(value) });
    box.addEventListener("change", () => set(box.checked));
    return [box];
  },

  model: ({ id, value, set, world }) => {
    const box = element("input", { type: "checkbox", id, checked: value === true });
    box.disabled = !world.models.llm;
    box.addEventListener("change", () => set(box.checked || undefined));
    const hint = world.models.llm ?? "no chat model: start the playground with --llm";
    return [box, element("span", { className: "hint" }, hint)];
  },

  number: ({ parameter, id, value, set, sizeOf }) => {
    const { name, least, most, words, default: usual } = parameter;
    if (words.length) {
      const list = element("datalist", { id: `${id}-list` }, ...words.map((each) => new Option(each)));
      const input = entry(id, value ?? "", (text) => number(text), set);
      input.setAttribute("list", list.id);
      return [input, list];
    }
    const input = entry(id, value ?? "", (text) => number(text), set);
    Object.assign(input, { type: "number", step: parameter.step, placeholder: usual ?? "none" });
    if (least !== undefined) input.min = least;
    if (most !== undefined) input.max = most;
    if (least !== undefined && most !== undefined) {
      return [linear(input, least, most, 2, name), input];
    }
    if (name.endsWith("_size") && usual > 0) {
      return [logarithmic(input, Math.max(1, Math.round(usual / 50)), usual * 8, name), input];
    }
    if (name.endsWith("_size") && usual === 0) return [linear(input, 0, sizeOf(), 0, name), input];
    return [input];
  },

  // A number of units, or a share of the size; the slider sets a share.
  share: ({ parameter, id, value, set, sizeOf }) => {
    const input = entry(id, value ?? "", (text) => number(text), set);
    Object.assign(input, { type: "number", min: 0, step: "any" });
    const scale = (each) => (Number.isInteger(each) && each > 0 ? sizeOf() : 1);
    return [linear(input, 0, 0.9, 2, parameter.name, scale), input];
  },

  text: ({ parameter, id, value, set }) => {
    if ((parameter.default ?? "").includes("\n")) {
      return [entry(id, value, (text) => text, set, "textarea")];
    }
    const read = (text) => (text === "" && parameter.default === null ? undefined : unescaped(text));
    return [entry(id, escaped(String(value ?? "")), read, set)];
  },

  texts: ({ parameter, id, value, set }) => {
    const lines = (Array.isArray(value) ? value : []).map((each) => escaped(String(each)));
    const none = parameter.default?.length ? [] : undefined;
    const read = (text) => (text === "" ? none : text.split("\n").map(unescaped));
    const input = entry(id, lines.join("\n"), read, set, "textarea");
    input.rows = Math.max(2, lines.length);
    input.placeholder = "one per line; \\n is a line break";
    return [input];
  },

  numbers: ({ parameter, id, value, set }) => {
    const read = (text) => (text.trim() ? text.split(",").map((each) => number(each)) : undefined);
    const input = entry(id, (Array.isArray(value) ? value : []).join(", "), read, set);
    input.placeholder = parameter.default === null ? "2000, 500, 100" : "";
    return [input];
  },

  chunker: ({ parameter, id, value, set, world }) => {
    const words = parameter.optional ? [NONE, ...parameter.words] : parameter.words;
    return inner(id, words, value ?? NONE, (each) => set(each === NONE ? null : each), world);
  },

  chunkers: ({ id, value, set, world }) => {
    const list = element("div", { className: "stages" });
    const stages = (Array.isArray(value) ? value : []).map((each) => ({ ...each }));
    const draw = () => {
      list.replaceChildren(
        ...stages.map((stage, at) => {
          const put = (next) => {
            stages[at] = next;
            set([...stages]);
          };
          const drop = element("button", { type: "button" }, "Remove");
          drop.addEventListener("click", () => {
            stages.splice(at, 1);
            set([...stages]);
            draw();
          });
          const stageId = at ? `${id}-${at}` : id;
          const parts = inner(stageId, [], stage, put, world);
          parts[0].setAttribute("aria-label", `stage ${at + 1}`);
          return element("div", { className: "stage" }, ...parts, drop);
        }),
      );
      const add = element("button", { type: "button" }, "Add a stage");
      add.addEventListener("click", () => {
        stages.push({ strategy: "recursive" });
        set([...stages]);
        draw();
      });
      list.append(add);
    };
    draw();
    return [list];
  },
};

// A chunker inside another one: its strategy or a fixed word, and its own form.
function inner(id, words, value, set, world) {
  const usable = [...world.strategies.values()].filter((kind) => !kind.missing.length);
  const names = [...words, ...usable.map((kind) => kind.name)];
  const place = element("div", { className: "inner" });
  let sizes = {};
  let current = value;
  const select = choice(id, names, value?.strategy ?? value, (name) => {
    const before = world.strategies.get(current?.strategy);
    if (before) sizes = { ...sizes, ...sizesOf(before, current, world) };
    const kind = world.strategies.get(name);
    const values = kind ? keepSizes(kind, sizes, world) : {};
    put(kind ? { strategy: name, ...values } : name);
    draw(name, values);
  });
  const put = (next) => {
    current = next;
    set(next);
  };
  const draw = (name, values) => {
    if (!world.strategies.has(name)) return place.replaceChildren();
    drawForm(place, world.strategies.get(name), values, world, () =>
      put({ strategy: name, ...values }),
    );
  };
  const { strategy, ...values } = typeof value === "object" && value ? value : {};
  if (strategy) draw(strategy, values);
  return [select, place];
}

const SIZES = ["chunk_size", "chunk_overlap", "length_function"];

// The sizes of a strategy, or of the last chunker inside it, to keep them when it changes. An
// overlap is kept only if it was set, because a window strategy needs its own.
export function sizesOf(kind, values, world) {
  const own = kind.parameters.filter(({ name }) => SIZES.includes(name));
  if (!own.length) {
    const last = innerChunkers(kind, values)?.chunkers.at(-1);
    return last ? sizesOf(world.strategies.get(last.strategy), last, world) : {};
  }
  const sizes = {};
  for (const { name, default: usual } of own) {
    const value = values[name] ?? usual;
    if (value !== null && (name in values || name !== "chunk_overlap")) sizes[name] = value;
  }
  return sizes;
}

// The values that give these sizes to a strategy, or to the chunkers inside it.
export function keepSizes(kind, sizes, world) {
  const own = kind.parameters.filter(({ name }) => SIZES.includes(name));
  if (own.length) {
    const changed = own.filter(({ name, default: usual }) => name in sizes && sizes[name] !== usual);
    return Object.fromEntries(changed.map(({ name }) => [name, sizes[name]]));
  }
  const inner = innerChunkers(kind, {});
  if (!inner) return {};
  const chunkers = inner.chunkers.map((each) => ({
    ...each,
    ...keepSizes(world.strategies.get(each.strategy), sizes, world),
  }));
  if (JSON.stringify(chunkers) === JSON.stringify(inner.chunkers)) return {};
  return { [inner.name]: inner.isList ? chunkers : chunkers[0] };
}

// The parameter that holds the chunkers inside a strategy, and these chunkers.
function innerChunkers(kind, values) {
  for (const { name, control, default: usual } of kind.parameters) {
    const value = values[name] ?? usual;
    const isList = control === "chunkers" && Array.isArray(value);
    if (isList || (control === "chunker" && value?.strategy)) {
      return { name, isList, chunkers: isList ? value : [value] };
    }
  }
  return null;
}
