// The settings, stored in the URL after the #, so that you can share them and a reload keeps them.
// A text of the user's own is never stored there.

const encode = (value) => {
  if (typeof value !== "string") return JSON.stringify(value);
  try {
    JSON.parse(value);
    return JSON.stringify(value); // else it would be read as something other than a string
  } catch {
    return value;
  }
};

const decode = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};

export function write(state) {
  const link = new URLSearchParams();
  if (state.name) link.set("text", state.name);
  for (const side of ["a", "b"]) {
    if (!state[side]) continue;
    link.set(side, state[side].strategy);
    for (const [name, value] of Object.entries(state[side].values)) {
      link.set(`${side}.${name}`, encode(value));
    }
  }
  if (state.question) link.set("q", state.question);
  if (state.k !== 3) link.set("k", state.k);
  return link.toString();
}

export function read(fragment) {
  const link = new URLSearchParams(fragment.replace(/^#/, ""));
  const state = {
    name: link.get("text"),
    question: link.get("q") ?? "",
    k: Math.min(50, Math.max(1, parseInt(link.get("k"), 10) || 3)),
  };
  for (const side of ["a", "b"]) {
    if (!link.get(side)) continue;
    const values = {};
    for (const [key, text] of link) {
      if (key.startsWith(`${side}.`)) values[key.slice(2)] = decode(text);
    }
    state[side] = { strategy: link.get(side), values };
  }
  return state;
}
