"""Units of text that are long enough for a vector: sentences, list items and so on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rag_splitters.span import Span
from rag_splitters.text.boundaries import positions, sentences, skip_space, trim_space, words
from rag_splitters.text.leads import lead_start
from rag_splitters.text.lines import LINE_BREAK
from rag_splitters.text.packing import pack
from rag_splitters.text.sizing import Sizes
from rag_splitters.text.structure import Range, Structure

_SHORTEST, _LONGEST = 40, 2000  # characters of a unit


def unit_texts(text: str, units: Iterable[Range]) -> list[str]:
    """Return the texts of units to embed: 2,000 characters at most, with single spaces."""
    return [" ".join(text[start : min(end, start + _LONGEST)].split()) for start, end in units]


def unit_cuts(structure: Structure, sizes: Sizes) -> list[int]:
    """Return where sentences begin, except inside what is unbreakable and after lead-ins.

    >>> text = "It is late. You need:\\n\\n- A pot. A big one."
    >>> structure = Structure(text, unbreakable=lambda: [(23, 40)], sentences=[12, 23, 32])
    >>> unit_cuts(structure, Sizes(100))
    [12]
    """
    cuts = structure.fit(sizes).unbreakable.outside(structure.sentences or ())
    return [cut for cut in cuts if lead_start(structure.text, 0, cut) == cut]


def sentence_units(structure: Structure, sizes: Sizes, *, join_short: bool = True) -> list[Range]:
    """Return the sentences of a structure as units for vectors. An unbreakable range is one unit.

    A unit of less than 40 characters ("Yes.", a heading, an item) says too little by itself: if it
    begins a line, it joins the next unit, else the previous one. A unit of more than 2,000 is cut
    between words, so that three units are within the limit of a model. Without `join_short`, each
    sentence is a unit.

    >>> text = "A heading\\n\\nThis is the first of two sentences here. Yes."
    >>> sentence_units(Structure(text, sentences=[11, 52]), Sizes(100))
    [(0, 56)]
    """
    text = structure.text
    units: list[Range] = []
    pending = -1
    previous = 0
    for start, end in _sentences(text, unit_cuts(structure, sizes)):
        begin = start if pending < 0 else pending
        if _length(text, begin, end) >= _SHORTEST or not join_short:
            units.append((begin, end))
            pending = -1
        elif pending >= 0 or not units or LINE_BREAK.search(text, previous, start):
            pending = begin
        elif _length(text, units[-1][0], end) < 4 * _SHORTEST:
            units[-1] = (units[-1][0], end)
        else:
            pending = begin
        previous = end
    if pending >= 0:
        units[-1:] = [(units[-1][0] if units else pending, previous)]
    return parts_of(structure, units, sizes, Sizes(_LONGEST))


def _sentences(text: str, cuts: Iterable[int]) -> Iterable[Range]:
    starts = [skip_space(text, 0), *cuts]
    for start, stop in zip(starts, [*starts[1:], len(text)], strict=True):
        begin = skip_space(text, start)
        if begin < (end := trim_space(text, begin, stop)):
            yield begin, end


def _length(text: str, start: int, end: int) -> int:
    """Return the length of a part in characters, in which every line break counts as one."""
    return end - start - text.count("\r\n", start, end)


def pack_units(
    structure: Structure, starts: Sequence[int], required: Sequence[int], sizes: Sizes
) -> list[Span]:
    """Pack units, which begin at `starts`, and cut a unit that is too big between words.

    A chunk begins at each of the `required` cuts.
    """
    structure.levels = (positions(starts), words(structure.text))
    structure.required = required
    return pack(structure, sizes)


def parts_of(
    structure: Structure,
    units: Iterable[Range],
    sizes: Sizes,
    limit: Sizes,
) -> list[Range]:
    """Cut units above the size of `limit` into similar parts, between sentences or else words.

    Units with an unbreakable range inside are not cut.
    """
    unbreakable, measure = structure.fit(sizes).unbreakable, limit.measure(structure.text)
    size = limit.size
    parts: list[Range] = []
    for start, end in units:
        length = measure.length(start, end)
        if length <= size or unbreakable.is_in(start, end):
            parts.append((start, end))
            continue
        part = structure.text[start:end]
        even = min(size, length // -(-length // size) * 9 // 8 + 1)
        spans = pack(Structure(part, [sentences(part), words(part)]), limit._replace(size=even))
        parts += [(start + span.start, start + span.end) for span in spans]
    return parts
