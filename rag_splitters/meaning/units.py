"""Units of text that are worth a vector: sentences, short ones joined, long ones in parts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from rag_splitters.fields import Function
from rag_splitters.text.boundaries import skip_space, trim_space, words
from rag_splitters.text.packing import pack
from rag_splitters.text.segmenters import segmenter_cuts
from rag_splitters.text.sizing import LengthFunction, sizer

Range: TypeAlias = tuple[int, int]
"""(start, end) of a part of a text."""

_SHORTEST, _LONGEST = 40, 2000  # characters of a unit


def unit_texts(text: str, units: Iterable[Range]) -> list[str]:
    """The texts of units with single spaces, which is how they are embedded."""
    return [" ".join(text[start:end].split()) for start, end in units]


def sentence_units(text: str, segmenter: str | Function) -> list[Range]:
    """The sentences of a text, as units that are worth a vector.

    What is shorter than 40 characters ("Yes.", a heading, an item) says too little by itself: what
    begins a line joins what follows, the rest what precedes. What is longer than 2,000 is cut
    between words, so that three of them are within what a model takes.

    >>> sentence_units("A heading\\n\\nThis is the first of two sentences here. Yes.", "rules")
    [(0, 56)]
    """
    units: list[Range] = []
    pending = -1
    previous = 0
    for start, end in _sentences(text, segmenter):
        begin = start if pending < 0 else pending
        if end - begin >= _SHORTEST:
            units.append((begin, end))
            pending = -1
        elif pending >= 0 or not units or _has_line_break(text, previous, start):
            pending = begin
        elif end - units[-1][0] < 4 * _SHORTEST:
            units[-1] = (units[-1][0], end)
        else:
            pending = begin
        previous = end
    if pending >= 0:
        units[-1:] = [(units[-1][0] if units else pending, previous)]
    return parts_of(text, units, _LONGEST, "characters")


def _sentences(text: str, segmenter: str | Function) -> Iterable[Range]:
    starts = [skip_space(text, 0), *segmenter_cuts(segmenter, text)]
    for start, stop in zip(starts, [*starts[1:], len(text)], strict=True):
        begin = skip_space(text, start) if text[start : start + 1].isspace() else start
        if begin < (end := trim_space(text, begin, stop)):
            yield begin, end


def _has_line_break(text: str, start: int, end: int) -> bool:
    return text.find("\n", start, end) >= 0 or text.find("\r", start, end) >= 0


def parts_of(
    text: str, units: Iterable[Range], size: int, length_function: LengthFunction
) -> list[Range]:
    """The units, those above `size` cut between words into parts of much the same length."""
    measure = sizer(length_function)(text)
    parts: list[Range] = []
    for start, end in units:
        length = measure.length(start, end)
        if length <= size:
            parts.append((start, end))
            continue
        part = text[start:end]
        even = min(size, length // -(-length // size) * 9 // 8 + 1)
        spans = pack(part, [words(part)], size=even, overlap=0, length_function=length_function)
        parts += [(start + span.start, start + span.end) for span in spans]
    return parts
