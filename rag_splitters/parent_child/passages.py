"""Passages: slices of documents, joined from the children that a query takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rag_splitters.parameters.checks import stored_number
from rag_splitters.parent_child.budget import Budget
from rag_splitters.parent_child.records import PLACE_KEYS, REPRESENTS_KEY, SOURCE_KEY, Entry
from rag_splitters.text.sentences import sentence_spans

if TYPE_CHECKING:
    from rag_splitters.parent_child.ranking import Ranking

_MAX_BORDER = 100  # characters of white space between two parents


@dataclass(slots=True, eq=False)
class Hit:
    """A child that a query takes, and where it stands."""

    child: Entry
    score: float | None
    rank: int | None
    """Its place in the ranking; None for a neighbour that the search did not find."""
    id_key: str
    """The key in its metadata that holds its parent's id."""
    parent: str
    parent_text: str
    space: tuple[str, str]
    """What its positions count in: a document or, if that is rewritten, a parent."""
    offset: int
    """Where its parent begins there."""
    start: int
    end: int
    header: str = ""
    """What its text repeats before its own part of the parent's: the header of a table."""
    copies: list[Hit] = field(default_factory=list)
    """Other children that the search found, with the same text."""

    @classmethod
    def of(cls, child: Entry, ranking: Ranking, parent: Entry, id_key: str) -> Hit:
        """Find out where a child stands; if that is not known, it is taken for its whole parent."""
        name, identity = child.metadata[id_key], child.id or ""
        space, offset, place = (id_key, name), 0, None
        parent_span, span = parent.span, child.span
        if parent_span is not None and span is not None:
            space = (SOURCE_KEY, child.metadata.get(SOURCE_KEY, name))
            offset, place = parent_span[0], span
        else:
            start, end = (stored_number(child.metadata.get(key)) for key in PLACE_KEYS)
            if start is not None and end is not None:
                place = start, end
        last = offset + len(parent.text)
        if place is None or not offset <= place[0] < place[1] <= last:
            place = (offset, last)
        if REPRESENTS_KEY in child.metadata:
            text = parent.text[place[0] - offset : place[1] - offset]
            child = replace(child, text=text)  # that of the piece
        header = child.text.removesuffix(parent.text[place[0] - offset : place[1] - offset])
        if header == child.text or header.strip() not in parent.text:
            header = ""
        score, rank = ranking.scores.get(identity), ranking.ranks.get(identity)
        return cls(child, score, rank, id_key, name, parent.text, space, offset, *place, header)

    @property
    def id(self) -> str:
        """The child's id."""
        return self.child.id or ""

    def slice_parent(self, start: int, end: int) -> str:
        """Return what stands between two positions, as far as it is in the parent."""
        return self.parent_text[max(0, start - self.offset) : max(0, end - self.offset)]


@dataclass(slots=True, eq=False)
class Passage:
    """A slice of a document, and the children that were taken for it."""

    children: list[Hit]
    start: int
    end: int
    text: str = ""

    @property
    def parents(self) -> list[str]:
        """The ids of its parents, in the order of the text."""
        in_order = sorted(self.children, key=lambda hit: (hit.offset, hit.start))
        return list(dict.fromkeys(hit.parent for hit in in_order))

    @property
    def header(self) -> str:
        """The header of the table in which it begins, if its first child repeats that."""
        return next((h.header for h in self.children if h.start <= self.start < h.end), "")

    @property
    def hits(self) -> list[Hit]:
        """Its children and their copies."""
        return [each for hit in self.children for each in (hit, *hit.copies)]

    @property
    def best(self) -> Hit:
        """The best of its children; a copy may be better, but stands elsewhere."""
        return min((h for h in self.children if h.rank is not None), key=lambda h: h.rank or 0)

    @property
    def matches(self) -> list[Hit]:
        """Those of them that the search found, best first."""
        ranked = [hit for hit in self.hits if hit.rank is not None]
        return sorted(ranked, key=lambda hit: hit.rank or 0)


class PassageBuilder:
    """Takes children until the budget is spent, and joins those that touch."""

    def __init__(self, budget: Budget) -> None:
        self.is_full = False
        self._passages: list[Passage] = []
        self._budget, self._max_header = budget, budget.room // 2
        self._hits: dict[str, Hit] = {}
        """The children that were taken, by their texts."""

    def passages(self) -> list[Passage]:
        """Return the passages, in the order of their best children."""
        return sorted(self._passages, key=lambda passage: passage.matches[0].rank or 0)

    def add(self, hit: Hit) -> None:
        """Take a child if it fits.

        The text of a child is taken once: its copies are further matches of the same passage. A
        child that the search did not find must touch a passage. The first child of all is always
        taken, with one sentence at least.
        """
        text = hit.child.text
        if self.is_full:
            return
        if text in self._hits:
            if hit.rank is not None:
                self._hits[text].copies.append(hit)
            return
        if self._budget.measure(hit.header) > self._max_header:
            hit = replace(hit, header="")
        touching = self._find_touching(hit)
        is_new = not touching
        if is_new and (hit.rank is None or len(self._passages) >= self._budget.max_results):
            return
        size = self._size(hit, touching)
        if size > self._budget.room:
            shortened = self._shorten(hit, touching, self._budget.room - size)
            if shortened is None:
                self.is_full = True
                return
            hit = shortened
            touching = self._find_touching(hit)
            size = self._size(hit, touching)
        self._budget.room -= size
        self.is_full = self._budget.room <= 0
        self._hits[text] = hit
        joined = Passage([hit], hit.start, hit.end)
        for each in touching:
            joined.children += each.children
            joined.start, joined.end = min(joined.start, each.start), max(joined.end, each.end)
            self._passages.remove(each)
        self._passages.append(joined)

    def _find_touching(self, hit: Hit) -> list[Passage]:
        """Return the passages that nothing but white space separates from a child.

        What stands between parents is not known yet; `Loader.read_texts` looks at it.
        """
        return [
            each
            for each in self._passages
            if each.children[0].space == hit.space and _touches(each, hit)
        ]

    def _size(self, hit: Hit, touching: Sequence[Passage]) -> int:
        """Return how much text a child adds to passages with which it is joined."""
        parts, measure = _parts_outside(hit, touching), self._budget.measure
        if not parts:
            return 0
        both: list[Hit | Passage] = [hit, *touching]
        first = min(both, key=lambda each: each.start)
        headers = measure(first.header) - sum(measure(each.header) for each in touching)
        gaps = max(each.end for each in both) - first.start
        gaps -= sum(each.end - each.start for each in touching)
        gaps -= sum(end - start for start, end in parts)
        gap_size = gaps if measure is len else min(gaps, 1)
        return headers + gap_size + sum(measure(hit.slice_parent(*part)) for part in parts)

    def _shorten(self, hit: Hit, touching: Sequence[Passage], room: int) -> Hit | None:
        """Return the sentences of a child that fit, beginning beside what it touches.

        Parameters:
            room: how much room there is beside the child; less than nothing.
        """
        parts, measure = _parts_outside(hit, touching), self._budget.measure
        if len(parts) != 1:
            return None
        ((start, end),) = parts
        text = hit.slice_parent(start, end)
        room += measure(text)
        spans = sentence_spans(text) or [(0, len(text))]
        if touching and touching[0].start >= end:
            fitting = [first for first, _ in spans if measure(text[first:]) <= room]
            return replace(hit, start=start + fitting[0], end=end) if fitting else None
        fitting = [last for _, last in spans if measure(text[:last]) <= room][-1:]
        if not fitting and not self._passages:
            fitting = [spans[0][1]]
        return replace(hit, start=start, end=start + fitting[0]) if fitting else None


def _touches(passage: Passage, hit: Hit) -> bool:
    if hit.start >= passage.end:
        last = max(passage.children, key=lambda each: each.end)
        return _is_blank(last, hit, passage.end, hit.start)
    if passage.start >= hit.end:
        first = min(passage.children, key=lambda each: each.start)
        return _is_blank(hit, first, hit.end, passage.start)
    return True


def _is_blank(left: Hit, right: Hit, start: int, end: int) -> bool:
    """Whether nothing but white space stands between two children, as far as their parents tell."""
    if right.offset > left.offset + len(left.parent_text) + _MAX_BORDER:
        return False
    return not any(hit.slice_parent(start, end).strip() for hit in (left, right))


def _parts_outside(hit: Hit, passages: Sequence[Passage]) -> list[tuple[int, int]]:
    """Return the parts of a child that no passage has."""
    parts, start = [], hit.start
    for passage in sorted(passages, key=lambda each: each.start):
        if start < min(passage.start, hit.end):
            parts.append((start, min(passage.start, hit.end)))
        start = max(start, passage.end)
    return [*parts, (start, hit.end)] if start < hit.end else parts


def split_at_parents(passage: Passage) -> list[Passage]:
    """Return the part of a passage in each parent, where something else stands between them.

    A part that has no match, only neighbours of matches in other parts, is left out.
    """
    parts = []
    for name in dict.fromkeys(hit.parent for hit in passage.children):
        children = [hit for hit in passage.children if hit.parent == name]
        start = max(passage.start, min(hit.start for hit in children))
        end = min(passage.end, max(hit.end for hit in children))
        parts.append(Passage(children, start, end))
    return [part for part in parts if any(hit.rank is not None for hit in part.children)]
