"""Units of text that are long enough for a vector: sentences, list items and so on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rag_splitters.parameters.fields import Function
from rag_splitters.span import Span
from rag_splitters.text.boundaries import positions, sentences, skip_space, trim_space, words
from rag_splitters.text.leads import lead_start
from rag_splitters.text.packing import pack
from rag_splitters.text.segmenters import own_cuts, segmenter_cuts
from rag_splitters.text.sizing import LengthFunction, Sizes, sizer
from rag_splitters.text.structure import Range, Structure, Unbreakable

_SHORTEST, _LONGEST = 40, 2000  # characters of a unit


def unit_texts(text: str, units: Iterable[Range]) -> list[str]:
    """Return the texts of units to embed: 2,000 characters at most, with single spaces."""
    return [" ".join(text[start : min(end, start + _LONGEST)].split()) for start, end in units]


def unit_cuts(text: str, segmenter: str | Function, unbreakable: Unbreakable) -> list[int]:
    """Return where sentences begin, except inside what is unbreakable and after lead-ins.

    >>> text = "It is late. You need:\\n\\n- A pot. A big one."
    >>> unit_cuts(text, "rules", Unbreakable([(23, 40)]))
    [12]
    """
    cuts = unbreakable.outside(segmenter_cuts(segmenter, text))
    return [cut for cut in cuts if lead_start(text, 0, cut) == cut]


def sentence_units(
    text: str, segmenter: str | Function, unbreakable: Unbreakable, *, join_short: bool = True
) -> list[Range]:
    """Return the sentences of a text as units for vectors. An unbreakable range counts as one.

    A unit of less than 40 characters ("Yes.", a heading, an item) says too little by itself: if it
    begins a line, it joins the next unit, else the previous one. A unit of more than 2,000 is cut
    between words, so that three units are within the limit of a model.

    Parameters:
        text: the text.
        segmenter: how to find sentences.
        unbreakable: the ranges that are not cut.
        join_short: whether short units join others; if not, each sentence is a unit.

    >>> text = "A heading\\n\\nThis is the first of two sentences here. Yes."
    >>> sentence_units(text, "rules", Unbreakable())
    [(0, 56)]
    """
    units: list[Range] = []
    pending = -1
    previous = 0
    for start, end in _sentences(text, unit_cuts(text, segmenter, unbreakable)):
        begin = start if pending < 0 else pending
        if _length(text, begin, end) >= _SHORTEST or not join_short:
            units.append((begin, end))
            pending = -1
        elif pending >= 0 or not units or _has_line_break(text, previous, start):
            pending = begin
        elif _length(text, units[-1][0], end) < 4 * _SHORTEST:
            units[-1] = (units[-1][0], end)
        else:
            pending = begin
        previous = end
    if pending >= 0:
        units[-1:] = [(units[-1][0] if units else pending, previous)]
    return parts_of(text, units, _LONGEST, "characters", unbreakable)


def _sentences(text: str, cuts: Iterable[int]) -> Iterable[Range]:
    starts = [skip_space(text, 0), *cuts]
    for start, stop in zip(starts, [*starts[1:], len(text)], strict=True):
        begin = skip_space(text, start) if text[start : start + 1].isspace() else start
        if begin < (end := trim_space(text, begin, stop)):
            yield begin, end


def _length(text: str, start: int, end: int) -> int:
    """Return the length of a part in characters, in which every line break counts as one."""
    return end - start - text.count("\r\n", start, end)


def _has_line_break(text: str, start: int, end: int) -> bool:
    return text.find("\n", start, end) >= 0 or text.find("\r", start, end) >= 0


def pack_units(
    structure: Structure,
    starts: Sequence[int],
    required: Sequence[int],
    segmenter: str | Function,
    sizes: Sizes,
) -> list[Span]:
    """Pack units into chunks, and cut a unit that is too big between words.

    Parameters:
        structure: the structure of the text; its levels and required cuts are set.
        starts: where units begin.
        required: where chunks must begin.
        segmenter: how to find the sentences of an overlap.
        sizes: the sizes of chunks.
    """
    structure.levels = (positions(starts), words(structure.text))
    structure.required = required
    if sizes.overlap:
        structure.sentences = own_cuts(segmenter, structure.text)
    return pack(structure, sizes)


def parts_of(
    text: str,
    units: Iterable[Range],
    size: int,
    length_function: LengthFunction,
    unbreakable: Unbreakable,
) -> list[Range]:
    """Cut units above `size` into parts of similar length, between sentences or else words.

    Units with an unbreakable range inside are not cut.
    """
    measure = sizer(length_function)(text)
    parts: list[Range] = []
    for start, end in units:
        length = measure.length(start, end)
        if length <= size or unbreakable.is_in(start, end):
            parts.append((start, end))
            continue
        part = text[start:end]
        even = min(size, length // -(-length // size) * 9 // 8 + 1)
        structure = Structure(part, [sentences(part), words(part)])
        spans = pack(structure, Sizes(even, 0, length_function))
        parts += [(start + span.start, start + span.end) for span in spans]
    return parts
