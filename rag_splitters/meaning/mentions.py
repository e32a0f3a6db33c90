"""Mentions of entities: what an answer must be, and the windows to ask in."""

from __future__ import annotations

import operator
from bisect import bisect_left
from collections.abc import Iterable
from typing import Any, NamedTuple

from rag_splitters.text.boundaries import positions, words
from rag_splitters.text.packing import Packer, sentence_overlap, word_overlap
from rag_splitters.text.sentences import sentence_cuts
from rag_splitters.text.sizing import sizer

__all__ = ["Mention", "checked_mention", "mention_windows", "mentions_apart"]


class Mention(NamedTuple):
    """Where an entity is mentioned, in code points, and what it is: "PERSON", "ORG" ..."""

    start: int
    end: int
    label: str


def checked_mention(mention: Any, text: str) -> Mention:
    """The mention as one, or ValueError."""
    try:
        start, end, label = mention
        known = Mention(operator.index(start), operator.index(end), str(label))
    except (TypeError, ValueError):
        known = Mention(-1, -1, "")
    if not 0 <= known.start < known.end <= len(text):
        raise ValueError(
            f"the recogniser answered {mention!r} for a text of {len(text)} characters "
            f"({text[:40]!r}...): a mention is (start, end, label) with "
            f"0 <= start < end <= {len(text)}"
        )
    return known


def mentions_apart(text: str, mentions: Iterable[Mention]) -> list[Mention]:
    """Without white space at the edges, and without overlaps: the longest first, then the first."""
    trimmed = {Mention(*_trimmed(text, start, end), label) for start, end, label in mentions}
    kept: list[Mention] = []
    for each in sorted(trimmed, key=lambda m: (m.start - m.end, m)):
        place = bisect_left(kept, each)
        is_free = place == len(kept) or each.end <= kept[place].start
        if each.start < each.end and is_free and (not place or kept[place - 1].end <= each.start):
            kept.insert(place, each)
    return kept


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    part = text[start:end]
    kept = part.strip()
    start += len(part) - len(part.lstrip())
    return start, start + len(kept)


def mention_windows(text: str, size: int) -> list[tuple[int, int]]:
    """(start, end) of windows of whole sentences, each of which repeats the last one's last.

    A sentence that is too long is cut between words, and repeated by 200 characters at most.

    >>> mention_windows("One. Two. Three.", 11)
    [(0, 9), (5, 16)]
    """
    measure = sizer("characters")(text)
    if len(text) <= size:
        return [(0, len(text))]
    cuts = sentence_cuts(text)
    by_sentence = sentence_overlap(text, cuts, measure, size, 1)
    by_word = word_overlap(text, measure, min(200, size // 4), size)

    def overlap(start: int, end: int, after: int) -> int:
        found = by_sentence(start, end, after)
        return found if found >= 0 else by_word(start, end, after)

    levels = (positions(cuts), words(text))
    return Packer(text, measure, size, levels, overlap=overlap).pack()
