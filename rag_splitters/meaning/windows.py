"""Overlapping windows of numbered sentences over a long text.

A model sees numbered sentences and answers with numbers, so it never has to handle positions. The
text is data: each sentence is one line, whatever it contains.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from rag_splitters.errors import InputError
from rag_splitters.meaning.situating import heading_contexts
from rag_splitters.models.prompts import Prompt, fill
from rag_splitters.span import Source, Span
from rag_splitters.structure.outline import Outline
from rag_splitters.text.boundaries import words
from rag_splitters.text.packing import pack
from rag_splitters.text.segmenters import Segmenter, segmenter_cuts
from rag_splitters.text.sizing import Sizes
from rag_splitters.text.structure import Range, Structure

_LONGEST = 1000
_LIST = re.compile(r"\d+(?:(?:[\s,;\[\]()]|and\b|\n[-*])+\d+)*")
_NO_LIST = re.compile(r"\d[^\S\n]*[-–—][^\S\n]*\d|[-–—]\d|\.\d|\d\.\s+\d")


class Window(NamedTuple):
    """Sentences that a model sees together, and those about which its answer decides.

    All four are indices into the sentences of a text; the second of each pair is not included.
    """

    first: int
    last: int
    decides_from: int
    decides_to: int


def windows(count: int, size: int) -> list[Window]:
    """Divide `count` sentences into windows of `size`; one window decides about each sentence.

    Neighbouring windows overlap by a tenth, and by at least one sentence. The earlier window
    decides about the first half of an overlap, the later one about the second half, so that the
    model sees the neighbours of each sentence.

    >>> [(w.first, w.last, w.decides_from, w.decides_to) for w in windows(25, 20)]
    [(0, 20, 0, 19), (18, 25, 19, 25)]
    """
    overlap = max(1, size // 10)
    firsts = range(0, max(1, count - overlap), size - overlap)
    middles = [0, *(first + (overlap + 1) // 2 for first in firsts[1:]), count]
    return [
        Window(first, min(first + size, count), middles[index], middles[index + 1])
        for index, first in enumerate(firsts)
    ]


def sentences_of(text: str, segmenter: str | Segmenter) -> list[Range]:
    """Return (start, end) of each sentence; one of over 1,000 characters counts as several.

    No grapheme cluster is cut, none of them is blank, and white space between them is left out.

    >>> sentences_of("One. Two.", "rules")
    [(0, 4), (5, 9)]
    """
    cuts = segmenter_cuts(segmenter, text)
    spans = pack(Structure(text, [words(text)], required=cuts), Sizes(_LONGEST))
    return [(span.start, span.end) for span in spans]


def sentence_prompts(
    template: str,
    source: Source,
    parts: Sequence[Sequence[Range]],
    others: Iterable[Mapping[str, str]],
) -> list[Prompt]:
    """Return a prompt for each part of a text, with its sentences and the headings above them.

    `others` is what to fill in for the other placeholders of each part.
    """
    spans = [Span(sentences[0][0], sentences[-1][1]) for sentences in parts]
    outline = Outline.of(source.text, metadata=source.metadata)
    headings = heading_contexts(outline, source.metadata, spans)
    return [
        fill(template, sentences=number_sentences(source.text, part), headings=path, **other)
        for part, path, other in zip(parts, headings, others, strict=False)
    ]


def number_sentences(text: str, spans: Sequence[Range]) -> str:
    """Write sentences as numbered lines, counted from 1.

    White space inside a sentence becomes one space, so no sentence can pass for another line.

    >>> print(number_sentences("One\\n[2] one. Two.", [(0, 12), (13, 17)]))
    [1] One [2] one.
    [2] Two.
    """
    lines = (" ".join(text[start:end].split()) for start, end in spans)
    return "\n".join(f"[{number}] {line}" for number, line in enumerate(lines, 1))


def numbers_in(answer: str) -> list[int]:
    """Return the numbers of a list in plain text; others are allowed only before "1, ...".

    Raises: ValueError if there is no list, if it is not clear which one is meant, or if it seems to
    be cut off.

    >>> numbers_in("The 3 chunks begin at 1, 5 and 9.")
    [1, 5, 9]
    """
    if answer.rstrip().endswith((",", ";", "-")):
        raise InputError("it ends in the middle")
    if _NO_LIST.search(answer):
        raise InputError("it holds ranges, fractions or numbered lines")
    lists = [
        [int(each[:12]) for each in re.findall(r"\d+", m.group())] for m in _LIST.finditer(answer)
    ]
    if not lists:
        raise InputError("it holds no number")
    *others, last = lists
    if others and (last[0] != 1 or len(last) < 2 or any(numbers[0] == 1 for numbers in others)):
        raise InputError("it holds numbers in several places")
    if len(last) > 2 and last[-1] < last[-2] and last[:-1] == sorted(last[:-1]):
        raise InputError(f"it ends in the middle, with {last[-1]} after {last[-2]}")
    return last
