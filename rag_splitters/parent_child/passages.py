"""Passages: the best children, each with the surrounding text that matches as well."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rag_splitters.parent_child.records import PLACE_KEYS, SOURCE_KEY, Entry
from rag_splitters.parent_child.stores import Match
from rag_splitters.text.sentences import sentence_spans


@dataclass(frozen=True, slots=True)
class LocatedChild:
    """A child that was found, and where it stands."""

    match: Match
    rank: int
    parent: str
    space: tuple[str, str]
    """What its positions count in: a document or, if that is rewritten, a parent."""
    offset: int
    """Where its parent begins there."""
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Passage:
    """A slice of a parent's text, and the children that were found in it, the best first."""

    children: list[LocatedChild]
    start: int
    end: int

    def with_children(self, children: Mapping[str, Entry]) -> Passage:
        """Return the passage with these children, by their ids, in place of the same ones."""

        def exchange(located: LocatedChild) -> LocatedChild:
            child = children.get(located.match.child.id or "")
            match = located.match if child is None else Match(child, located.match.score)
            return replace(located, match=match)

        return replace(self, children=[exchange(each) for each in self.children])

    def holds(self, child: LocatedChild) -> bool:
        """Does a part of the child stand in it?"""
        is_same = child.space == self.children[0].space
        return is_same and child.start < self.end and self.start < child.end


def find_passages(
    matches: Sequence[Match],
    parents: Mapping[str, Entry],
    id_key: str,
    k: int,
    worst: float | None,
    size: int,
    threshold: float,
) -> list[Passage]:
    """Return the first k passages around the best children.

    A passage begins as the best child that is in none yet. The better of its two neighbours joins
    it, as long as the passage then has at most `size` characters or the neighbour scores nearly as
    well as the first child. A passage stays within its parent. No two of them share text, and no
    text that was found before begins a second one: the child is one more match of the first.

    Parameters:
        matches: the children, the best first.
        parents: their parents, by id.
        id_key: key in a child's metadata that holds its parent's id.
        k: how many passages.
        worst: the score of the worst child of the search. Scores count from there, because the
            similarities of some models are all between 0.7 and 0.9, and distances fall.
        size: up to how many characters a passage grows in any case.
        threshold: from which share of the first child's score a neighbour joins a longer one.
    """
    growing = _Growing(parents, worst, size, threshold)
    children = [_locate(match, rank, parents, id_key) for rank, match in enumerate(matches)]
    rows: dict[str, list[LocatedChild]] = defaultdict(list)
    for child in sorted(children, key=lambda child: (child.start, child.end, child.rank)):
        rows[child.parent].append(child)
    for child in children:
        if len(growing.passages) == k:
            break
        if not growing.add_match(child):
            growing.begin(child, rows[child.parent])
    return growing.passages


def _locate(match: Match, rank: int, parents: Mapping[str, Entry], id_key: str) -> LocatedChild:
    """Find out where a child stands; if that is not known, it is taken for its whole parent."""
    child = match.child
    name = child.metadata[id_key]
    parent = parents[name]
    space, offset, place = (id_key, name), 0, None
    if parent.span is not None and child.span is not None:
        space = (SOURCE_KEY, child.metadata.get(SOURCE_KEY, name))
        offset, place = parent.span[0], child.span
    elif SOURCE_KEY in child.metadata:  # the keys are ours
        start, end = (child.metadata.get(key) for key in PLACE_KEYS)
        place = (start, end) if isinstance(start, int) and isinstance(end, int) else None
    last = offset + len(parent.text)
    if place is None or not offset <= place[0] < place[1] <= last:
        place = (offset, last)
    return LocatedChild(match, rank, name, space, offset, *place)


class _Growing:
    """The passages so far, and what may join another."""

    def __init__(
        self, parents: Mapping[str, Entry], worst: float | None, size: int, threshold: float
    ) -> None:
        self.passages: list[Passage] = []
        self._parents, self._worst = parents, worst
        self._size, self._threshold = size, threshold
        self._by_text: dict[str, Passage] = {}

    def add_match(self, child: LocatedChild) -> bool:
        """Add a child to the passage that has its text already, if there is one."""
        passage = self._by_text.get(child.match.child.text)
        if passage is None:
            if not any(each.holds(child) for each in self.passages):
                return False
            start, end = self._part_left(child)
            if start < end:
                return False
            passage = next(each for each in self.passages if each.holds(child))
        if child not in passage.children:
            passage.children.append(child)
        return True

    def begin(self, child: LocatedChild, row: Sequence[LocatedChild]) -> None:
        """Begin a passage with a child, and let it grow; `row` is its parent's, in order."""
        children, (start, end) = [child], self._part_left(child)
        before = after = row.index(child)
        while True:
            sides = [row[n] for n in (before - 1, after + 1) if 0 <= n < len(row)]
            joining = [each for each in sides if self._joins(each, child, start, end)]
            if not joining:
                break
            best = max(joining, key=lambda each: (self._worth(each), -each.rank))
            if before > 0 and best is row[before - 1]:
                before -= 1
            else:
                after += 1
            start, end = min(start, best.start), max(end, best.end)
            children.append(best)
        low = row[before - 1].end if before > 0 else child.offset
        high = row[after + 1].start if after + 1 < len(row) else sys.maxsize
        start, end = self._add_sentences(child, start, end, low, high)
        passage = Passage(sorted(children, key=lambda each: each.rank), start, end)
        self.passages.append(passage)
        for each in children:
            self._by_text[each.match.child.text] = passage

    def _add_sentences(
        self, child: LocatedChild, start: int, end: int, low: int, high: int
    ) -> tuple[int, int]:
        """Add what was not found on either side, in whole sentences, while there is room.

        Parameters:
            low: where the next text before the passage that was found ends.
            high: where the next text behind it that was found begins.
        """
        if end - start >= self._size:
            return start, end
        near, offset, reach = self._near(child), child.offset, 2 * self._size
        low = max([low, offset, start - reach, *(p.end for p in near if p.end <= start)])
        high = min([high, end + reach, *(p.start for p in near if p.start >= end)])
        text = self._parents[child.parent].text[low - offset : max(high, low) - offset]
        spans = [(low + first, low + last) for first, last in sentence_spans(text)]
        behind = [last for first, last in spans if first >= end]
        before = [first for first, last in spans if last <= start]
        while behind or before:
            if behind:
                new_end = behind.pop(0)
                end = new_end if new_end - start <= self._size else end
            if before:
                new_start = before.pop()
                start = new_start if end - new_start <= self._size else start
        return start, end

    def _joins(self, other: LocatedChild, child: LocatedChild, start: int, end: int) -> bool:
        """May a neighbour join the passage from `start` to `end` around a child?"""
        text = self._parents[child.parent].text
        gap = text[end - child.offset : max(end, other.start) - child.offset]
        gap += text[min(start, other.end) - child.offset : start - child.offset]
        grown = Passage([child], min(start, other.start), max(end, other.end))
        if (
            other.space != child.space
            or gap.strip()
            or other.match.child.text in self._by_text
            or any(grown.start < each.end and each.start < grown.end for each in self._near(child))
        ):
            return False
        first = self._worth(child)
        is_good = first > 0 and self._worth(other) >= self._threshold * first
        return is_good or grown.end - grown.start <= max(self._size, end - start)

    def _near(self, child: LocatedChild) -> list[Passage]:
        return [each for each in self.passages if each.children[0].space == child.space]

    def _part_left(self, child: LocatedChild) -> tuple[int, int]:
        """Return the longest part of a child that no passage has; it may be empty."""
        start, end = child.start, child.end
        for passage in self._near(child):
            if passage.start < end and start < passage.end:
                if passage.start - start >= end - passage.end:
                    end = passage.start
                else:
                    start = passage.end
        end = max(start, end)
        text = self._parents[child.parent].text[
            start - child.offset : max(start, end) - child.offset
        ]
        start += len(text) - len(text.lstrip())
        return start, start + len(text.strip())

    def _worth(self, child: LocatedChild) -> float:
        """How much better than the worst child it is; stores may return distances."""
        score = child.match.score
        return 0.0 if score is None or self._worst is None else abs(score - self._worst)
