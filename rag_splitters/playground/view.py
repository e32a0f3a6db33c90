"""What the page draws of a cut text: pieces in colours, figures, and details of a chunk."""

from __future__ import annotations

import json
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple
from urllib.parse import urlencode

from rag_splitters.evaluation.measure.faults import FAULTS
from rag_splitters.playground.cutting import Cut, Hit, monospace_ranges
from rag_splitters.playground.texts import Text
from rag_splitters.text.boundaries import boundary_before, cluster_end, words
from rag_splitters.text.coloured import Piece, number_of, printable
from rag_splitters.text.structure import Range

MAX_CHARACTERS = 40_000
"""How many characters are drawn at once, so that the page stays fast."""

MAX_PIECES = 1_500
"""How many pieces are drawn at once."""

_MAX_SHOWN = 4_000  # characters of a chunk's source next to its details
_VISIBLE = re.compile(r"\S")


class Segment(NamedTuple):
    """A part of a piece: its text, its CSS classes, and the label of the chunk that begins here."""

    text: str
    classes: str
    label: str | None


class Drawn(NamedTuple):
    """A piece as the page draws it; `number` is that of the last chunk that begins in it."""

    start: int
    classes: str
    number: int | None
    segments: list[Segment]


def window(
    text: Text, start: int, cuts: Sequence[Cut], place: int | None = None
) -> tuple[int, int]:
    """Return the part of a long text that is drawn: not too much text, and not too many pieces.

    Parameters:
        place: a position that must be in it; if it is not, the part begins before this position.
    """
    if not any(_begins_piece(cut, start) for cut in cuts):
        start = _word_before(text.text, start)
    end = min(len(text.text), start + MAX_CHARACTERS)
    end = max(_word_before(text.text, end), min(end, start + 1))
    for cut in cuts:
        first = bisect_right(cut.pieces, start, key=lambda piece: piece.end)
        if len(cut.pieces) - first > MAX_PIECES:
            end = min(end, cut.pieces[first + MAX_PIECES].start)
    if place is not None and not start <= place < max(end, start + 1):
        return window(text, max(0, place - 200), cuts)
    return start, end


def _begins_piece(cut: Cut, position: int) -> bool:
    at = bisect_left(cut.pieces, position, key=lambda piece: piece.start)
    return at < len(cut.pieces) and cut.pieces[at].start == position


def _word_before(text: str, position: int) -> int:
    """Return where the word at a position begins, if it is short; else the position."""
    if not 0 < position < len(text):
        return position
    start = words(text)(max(0, position - 100), position)
    return boundary_before(text, position) if start < 0 else start


def draw(
    cut: Cut,
    shown: Range,
    hits: Sequence[Hit] = (),
    twins: Mapping[int, int] | None = None,
    answer: Range | None = None,
) -> list[Drawn]:
    """Return the pieces of a part of the text.

    Parameters:
        twins: the chunks that the other side has as well, each with its number there.
        answer: where the answer to the question is.
    """
    ranks = {hit.chunk: rank for rank, hit in enumerate(hits, 1)}
    mono = monospace_ranges(cut.text)
    ranges = [("mono", each) for each in mono if each[0] < shown[1] and each[1] > shown[0]]
    ranges += [("answer", answer)] if answer else []
    first = bisect_right(cut.pieces, shown[0], key=lambda piece: piece.end)
    last = bisect_left(cut.pieces, shown[1], key=lambda piece: piece.start)
    result, free = [], 0  # where there is room for a label again
    for piece in cut.pieces[first:last]:
        start, end = max(piece.start, shown[0]), min(piece.end, shown[1])
        begun = [
            number
            for numbers in piece.chunks
            for number in numbers
            if cut.chunks[number].start == piece.start == start
        ]
        label = ""
        if begun and start >= free:
            label = " ".join(f"{number + 1}" for number in begun[:3])
            label += "…" if len(begun) > 3 else ""
            label += "".join(f" ★{ranks[number]}" for number in begun if number in ranks)
            free = start + 2 * len(label)  # letters are narrower than digits
        same = twins is not None and all(n in twins for each in piece.chunks for n in each)
        mark = None
        if begun:
            colour = "is-same" if same else f"e{begun[0] % 4}"
            mark = (label, colour)
        segments = _segments(cut.text.text, (start, end), mark, ranges)
        number = piece.chunks[-1][-1] if piece.chunks else None
        classes = _classes(piece, cut.text.text[start:end], ranks, is_same=same)
        result.append(Drawn(start, classes, number, segments))
    return result


def draw_plain(text: Text, shown: Range) -> list[Drawn]:
    """Return a part of the text without chunks, while there are none."""
    mono = [("mono", each) for each in monospace_ranges(text)]
    return [Drawn(shown[0], "piece gap", None, _segments(text.text, shown, None, mono))]


def _classes(piece: Piece, text: str, ranks: Mapping[int, int], *, is_same: bool) -> str:
    """Return a piece's CSS classes: its colours, and what else is to be seen."""
    if not piece.chunks:
        return "piece dropped" if text.strip() else "piece gap"
    first, last = piece.chunks[0][0], piece.chunks[-1][-1]
    classes = f"piece c{first % 4}"
    classes += f" shared d{last % 4}" if piece.overlaps else ""
    classes += " same" if is_same else ""
    is_hit = any(number in ranks for numbers in piece.chunks for number in numbers)
    return classes + (" hit" if is_hit else "")


def _segments(
    text: str, place: Range, mark: tuple[str, str] | None, ranges: Sequence[tuple[str, Range]]
) -> list[Segment]:
    """Divide a piece where its classes change. The first visible character bears the mark."""
    start, end = place
    marked = (-1, -1)  # nowhere
    if mark and (visible := _VISIBLE.search(text, start, end)):
        marked = (visible.start(), min(end, cluster_end(text, visible.start())))
    edges = {start, end, *marked, *(edge for _, each in ranges for edge in each)}
    boundaries = sorted(edge for edge in edges if start <= edge <= end)
    segments = []
    for low, high in pairwise(boundaries):
        classes = [name for name, (first, last) in ranges if first <= low and high <= last]
        label, colour = mark if mark and low == marked[0] else (None, "")
        if colour:
            classes += ["mark", colour, *(["rtl"] if is_right_to_left(text, low) else [])]
        segments.append(Segment(printable(text[low:high]), " ".join(classes), label))
    return segments


def is_right_to_left(text: str, position: int) -> bool:
    """Whether the text runs from right to left: by the letter there, or by its line's first letter.

    >>> is_right_to_left("abc", 0), is_right_to_left("שלום", 0), is_right_to_left("- שלום", 0)
    (False, True, True)
    """
    line = text[position : position + 400].partition("\n")[0]
    if not text[position].isalnum():
        line = text[text.rfind("\n", 0, position) + 1 :][:400].partition("\n")[0]
    kinds = (unicodedata.bidirectional(letter) for letter in line if letter.isalnum())
    return next(kinds, "L") in ("R", "AL")


def summary(cut: Cut) -> tuple[str, list[str]]:
    """Return the number of chunks, and remarks about their sizes and faults."""
    least, most = min(cut.sizes, default=0), max(cut.sizes, default=0)
    each = " each" if len(cut.chunks) > 1 else ""
    sizes = f"{least:,} to {most:,} {cut.unit}" if least < most else f"{least:,} {cut.unit}{each}"
    begins, dropped = cut.faults["mid_sentence"], cut.coverage[1]
    remarks = [
        (len(cut.chunks), sizes),
        (begins, f"{begins:,} begin mid-sentence"),
        (dropped, f"{number_of(dropped, 'character')} dropped"),
    ]
    return number_of(len(cut.chunks), "chunk"), [text for count, text in remarks if count]


def figure_rows(cut: Cut) -> list[tuple[str, str, str]]:
    """Return all figures: name, value and meaning."""
    (repeated, dropped), length = cut.coverage, max(1, len(cut.text.text))
    sizes = sorted(cut.sizes) or [0]
    spread = (sizes[0], sizes[len(sizes) // 2], sizes[-1])
    repeats = f"{number_of(repeated, 'character')} are in more than one chunk"
    drops = f"{number_of(dropped, 'visible character')} are in no chunk"
    return [
        ("chunks", f"{len(cut.chunks):,}", ""),
        (f"{cut.unit}: min, median, max", ", ".join(f"{size:,}" for size in spread), ""),
        ("time", f"{1000 * cut.seconds:.1f} ms", "what the strategy took"),
        ("repeated", f"{repeated / length:.1%}", repeats),
        ("dropped", f"{dropped / length:.1%}", drops),
        *((title, f"{cut.faults[name]:,}", meaning) for name, (title, meaning) in FAULTS.items()),
    ]


def twins_of(one: Cut, other: Cut) -> dict[int, int]:
    """Return the chunks that the other side has as well, each with its number there."""
    return {n: other.numbers[key] for key, n in one.numbers.items() if key in other.numbers}


def difference(a: Cut, b: Cut) -> str:
    """Say how many chunks are the same on both sides."""
    shared = len(a.numbers.keys() & b.numbers.keys())
    only_a, only_b = len(a.numbers) - shared, len(b.numbers) - shared
    if not only_a and not only_b:
        return f"A and B give the same {number_of(shared, 'chunk')}."
    if not shared:
        return "A and B have no chunk in common."
    both = number_of(shared, "chunk")
    return f"{both} in both (grey), {only_a:,} only in A, {only_b:,} only in B."


def facts(cut: Cut, number: int, twins: Mapping[int, int] | None, other: str) -> dict[str, Any]:
    """Return what is to be said about one chunk."""
    chunk, text = cut.chunks[number], cut.text.text
    begins, ends = cut.sentence_cuts[number]
    faults = [name for name, is_so in (("starts", begins), ("ends", ends)) if is_so]
    details = [
        ("size", f"{cut.sizes[number]:,} {cut.unit}"),
        ("position", f"{chunk.start:,} to {chunk.end:,}"),
        *([("cut", f"{' and '.join(faults)} mid-sentence")] if faults else []),
        *((key, _metadata_text(key, value)) for key, value in chunk.metadata.items()),
    ]
    if twins is not None:
        twin = f"the same, chunk {twins[number] + 1:,}" if number in twins else "no such chunk"
        details.append((f"in {other}", twin))
    source = text[chunk.start : chunk.end]
    shown = source if len(source) <= _MAX_SHOWN else f"{source[:_MAX_SHOWN]} …"
    is_rewritten = chunk.text != source
    texts = [("chunk", chunk.text)] if is_rewritten else []
    mono = monospace_ranges(cut.text)
    return {
        "details": details,
        "texts": [*texts, ("source" if is_rewritten else "text", shown)],
        "mono": any(start < chunk.end and end > chunk.start for start, end in mono),
    }


def pages_of(cut: Cut, number: int) -> list[tuple[int, str]]:
    """Return the pages of a PDF on which a chunk stands, with the addresses of their pictures."""
    text, (start, end) = cut.text, cut.positions[number]
    if not text.pdf:
        return []
    place = {"text": text.key, "from": start, "to": end}
    first, last = (text.text.count("\f", 0, offset) + 1 for offset in (start, end))
    return [(n, f"page?{urlencode({**place, 'number': n})}") for n in range(first, last + 1)]


def answer_sentence(cut: Cut, answer: Range, hits: Sequence[Hit], k: int) -> str:
    """Say which chunks hold the answer to the question."""
    start, end = answer
    ranks = {hit.chunk: rank for rank, hit in enumerate(hits, 1)}
    whole = [n for n, (low, high) in enumerate(cut.positions) if low <= start and end <= high]
    parts = [n for n, (low, high) in enumerate(cut.positions) if low < end and start < high]
    numbers = whole or parts
    if not numbers:
        return "The answer is in no chunk."
    names = [f"{n + 1:,}" + (f" (result {ranks[n]})" if n in ranks else "") for n in numbers]
    listed = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    chunks = f"chunk{'s' if len(names) > 1 else ''} {listed}"
    rest = "." if any(n in ranks for n in numbers) else f", not among the top {k}."
    if whole:
        return f"The answer lies in {chunks}{rest}"
    if len(parts) == 1:
        return f"Only a part of the answer is in a chunk: {chunks}{rest}"
    return f"The answer is cut into {chunks}{rest}"


def _metadata_text(key: str, value: Any) -> str:
    is_list = isinstance(value, list | tuple)
    if is_list and not any(isinstance(each, dict | list | tuple) for each in value):
        return (" › " if key == "headings" else ", ").join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
