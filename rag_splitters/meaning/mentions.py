"""Mentions of entities: their checks, and the windows of text to search for them."""

from __future__ import annotations

import operator
from bisect import bisect_left
from collections.abc import Iterable
from typing import Any, NamedTuple

from rag_splitters.errors import InputError
from rag_splitters.text.boundaries import sentences, words
from rag_splitters.text.packing import pack
from rag_splitters.text.sizing import Sizes
from rag_splitters.text.structure import Structure


class Mention(NamedTuple):
    """The position of an entity in code points, and its label: "PERSON", "ORG" ..."""

    start: int
    end: int
    label: str


def read_mention(answer: Any, text: str) -> Mention:
    """Read a mention that a recogniser found in a text.

    Raises ValueError if it is not a tuple (start, end, label) with a position in the text.
    """
    try:
        start, end, label = answer
        mention = Mention(operator.index(start), operator.index(end), str(label))
    except (TypeError, ValueError):
        mention = Mention(-1, -1, "")
    if not 0 <= mention.start < mention.end <= len(text):
        raise InputError(
            f"the recogniser answered {answer!r} for a text of {len(text)} characters "
            f"({text[:40]!r}...): a mention is (start, end, label) with "
            f"0 <= start < end <= {len(text)}"
        )
    return mention


def remove_overlaps(text: str, mentions: Iterable[Mention]) -> list[Mention]:
    """Sort mentions, and remove white space at their edges and overlaps.

    Of mentions that overlap, the longest is kept; of equally long ones, the first.
    """
    trimmed = {Mention(*_trim(text, start, end), label) for start, end, label in mentions}
    apart: list[Mention] = []
    for each in sorted(trimmed, key=lambda m: (m.start - m.end, m)):
        place = bisect_left(apart, each)
        ends_in_time = place == len(apart) or each.end <= apart[place].start
        begins_in_time = not place or apart[place - 1].end <= each.start
        if each.start < each.end and ends_in_time and begins_in_time:
            apart.insert(place, each)
    return apart


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    part = text[start:end]
    start += len(part) - len(part.lstrip())
    return start, start + len(part.strip())


def mention_windows(text: str, size: int) -> list[tuple[int, int]]:
    """Return windows of at most `size` characters; each repeats up to 200 of the previous one.

    They hold whole sentences. One that is longer than a window is cut between words.

    >>> mention_windows("One. Two. Three.", 11)
    [(0, 9), (5, 16)]
    """
    if len(text) <= size:
        return [(0, len(text))]
    structure = Structure(text, (sentences(text), words(text)))
    spans = pack(structure, Sizes(size, min(200, size // 2)))
    return [(span.start, span.end) for span in spans]
