// A text and positions in it. Python counts code points, JavaScript counts UTF-16 units.

export class Source {
  constructor(text) {
    this.text = text;
    this.units = null; // where each code point begins; null if both counts are equal
    if (/[\ud800-\udbff][\udc00-\udfff]/.test(text)) {
      this.units = new Uint32Array(text.length + 1);
      let count = 0;
      let at = 0;
      for (const point of text) {
        this.units[count++] = at;
        at += point.length;
      }
      this.units[count] = at;
      this.count = count;
    } else {
      this.count = text.length;
    }
  }

  // The UTF-16 unit at which a code point begins.
  unit(point) {
    return this.units ? this.units[point] : point;
  }

  // The code point at a UTF-16 unit.
  point(unit) {
    return this.units ? [...this.text.slice(0, unit)].length : unit;
  }

  slice(start, end) {
    return this.text.slice(this.unit(start), this.unit(end));
  }

  // The last code point at or before `point` that begins a line or a word, if one is near.
  aligned(point) {
    if (point <= 0) return 0;
    if (point >= this.count) return this.count;
    const low = Math.max(0, point - 2000);
    const before = this.slice(low, point);
    const at = Math.max(before.lastIndexOf("\n"), before.lastIndexOf(" "));
    return at < 0 ? point : point - [...before.slice(at + 1)].length;
  }
}

// The end of the window that begins at `from`: not too much text, and not too many pieces.
export function windowEnd(source, from, answers, limits) {
  let to = source.aligned(Math.min(source.count, from + limits.characters));
  if (to <= from) to = Math.min(source.count, from + limits.characters);
  for (const chunks of answers) {
    const places = [];
    for (const { start, end } of chunks) {
      if (start > from && start < to) places.push(start);
      if (end > from && end < to) places.push(end);
    }
    if (places.length > limits.pieces) {
      places.sort((a, b) => a - b);
      to = Math.max(places[limits.pieces], from + 1);
    }
  }
  return to;
}

// The pieces of a window, each with the numbers of its chunks, ascending.
export function pieces(chunks, from, to) {
  const events = [];
  chunks.forEach(({ start, end }, number) => {
    if (start >= end || end <= from || start >= to) return;
    events.push([Math.max(start, from), 1, number], [Math.min(end, to), 0, number]);
  });
  events.sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2]);
  const result = [];
  const active = new Set();
  let at = from;
  for (const [place, begins, number] of events) {
    if (place > at) result.push({ start: at, end: place, chunks: [...active].sort((a, b) => a - b) });
    at = Math.max(at, place);
    if (begins) active.add(number);
    else active.delete(number);
  }
  if (at < to) result.push({ start: at, end: to, chunks: [] });
  return result;
}

// Of the chunks of a piece, those that contain no smaller one of them: the leaves of a tree.
export function innermost(chunks, numbers) {
  if (numbers.length < 2) return numbers;
  const holds = (outer, inner) =>
    outer !== inner &&
    chunks[outer].start <= chunks[inner].start &&
    chunks[outer].end >= chunks[inner].end &&
    (chunks[outer].end - chunks[outer].start > chunks[inner].end - chunks[inner].start ||
      outer < inner);
  return numbers.filter((outer) => !numbers.some((inner) => holds(outer, inner)));
}

// Control characters as \n, \t, \f and \r, and back.
const NAMES = { "\n": "n", "\t": "t", "\f": "f", "\r": "r" };
const VALUES = { n: "\n", t: "\t", f: "\f", r: "\r", "\\": "\\" };

export const escaped = (string) =>
  string
    .replace(/\\(?=[ntfr\\]|$)/g, "\\\\")
    .replace(/[\n\t\f\r]/g, (each) => `\\${NAMES[each]}`);

export const unescaped = (string) =>
  string.replace(/\\([ntfr\\])/g, (_, each) => VALUES[each]);
