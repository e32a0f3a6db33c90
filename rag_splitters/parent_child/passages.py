"""Passages: slices of documents, joined from the children that a query takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rag_splitters.parent_child.options import Query
from rag_splitters.parent_child.records import PLACE_KEYS, SOURCE_KEY, Entry
from rag_splitters.parent_child.stores import Match
from rag_splitters.text.sentences import sentence_spans
from rag_splitters.text.sizing import sizer

_MAX_BORDER = 100  # characters of white space between two parents
RESULT_SIZE = 500
"""Characters of a passage on average, for queries that say how many results they want."""
_TOKEN_SIZE = 4  # characters; a guess


def count_tokens(text: str) -> int:
    """Return how many tokens a text has, as `length_function="tokens"` counts them."""
    return sizer("tokens")(text).length(0, len(text))


@dataclass(slots=True)
class Budget:
    """How much text the passages of a query may have together."""

    room: int
    """What is left, in units of `measure`."""
    max_results: int
    measure: Callable[[str], int]

    @classmethod
    def of(cls, query: Query) -> Budget:
        """Return the budget of a query: its tokens, or 500 characters for each result."""
        if query.max_tokens is not None:
            return cls(query.max_tokens, query.limit, count_tokens)
        return cls(RESULT_SIZE * query.limit, query.limit, len)

    @property
    def characters(self) -> int:
        """About how many characters there is room for."""
        return self.room if self.measure is len else self.room * _TOKEN_SIZE

    def hold(self, sizes: Iterable[int]) -> None:
        """Make room for children of these sizes in any case."""
        self.room = max(self.room, sum(sizes))


@dataclass(frozen=True, slots=True)
class LocatedChild:
    """A child, and where it stands."""

    match: Match
    rank: int | None
    """Its place in the ranking; None for a neighbour that the search did not find."""
    parent: str
    space: tuple[str, str]
    """What its positions count in: a document or, if that is rewritten, a parent."""
    offset: int
    """Where its parent begins there."""
    start: int
    end: int
    header: str = ""
    """What its text repeats before its own part of the parent's: the header of a table."""


@dataclass(slots=True)
class Passage:
    """A slice of a document, and the children that were taken for it."""

    children: list[LocatedChild]
    start: int
    end: int
    text: str = ""

    @property
    def space(self) -> tuple[str, str]:
        """What its positions count in."""
        return self.children[0].space

    @property
    def inner_children(self) -> list[LocatedChild]:
        """The children that stand in it; others have the text of one of these elsewhere."""
        return [each for each in self.children if self.holds(each)]

    @property
    def header(self) -> str:
        """The header of the table in which it begins, if its first child repeats that."""
        headers = (e.header for e in self.inner_children if e.start <= self.start < e.end)
        return next(headers, "")

    @property
    def matches(self) -> list[LocatedChild]:
        """The children that the search found, best first."""
        ranked = [each for each in self.children if each.rank is not None]
        return sorted(ranked, key=lambda each: each.rank or 0)

    def holds(self, child: LocatedChild) -> bool:
        """Return whether a part of the child stands in it."""
        return child.space == self.space and child.start < self.end and self.start < child.end

    def exchange_children(self, children: Mapping[str, Entry]) -> None:
        """Put loaded children in place of those with the same ids."""
        for number, each in enumerate(self.children):
            child = children.get(each.match.child.id or "")
            if child is not None:
                self.children[number] = replace(each, match=Match(child, each.match.score))


def locate_child(
    match: Match, rank: int | None, parents: Mapping[str, Entry], id_key: str
) -> LocatedChild:
    """Find out where a child stands; if that is not known, it is taken for its whole parent."""
    child = match.child
    name = child.metadata[id_key]
    parent = parents[name]
    space, offset, place = (id_key, name), 0, None
    if parent.span is not None and child.span is not None:
        space = (SOURCE_KEY, child.metadata.get(SOURCE_KEY, name))
        offset, place = parent.span[0], child.span
    else:
        start, end = (child.metadata.get(key) for key in PLACE_KEYS)
        if isinstance(start, int) and isinstance(end, int):
            place = start, end
    last = offset + len(parent.text)
    if place is None or not offset <= place[0] < place[1] <= last:
        place = (offset, last)
    header = child.text.removesuffix(parent.text[place[0] - offset : place[1] - offset])
    if header == child.text or header.strip() not in parent.text:
        header = ""
    return LocatedChild(match, rank, name, space, offset, *place, header)


class PassageBuilder:
    """Takes children until the budget is spent, and joins those that touch."""

    def __init__(self, parents: Mapping[str, Entry], budget: Budget) -> None:
        self.is_full = False
        self._passages: list[Passage] = []
        self._parents, self._budget = parents, budget
        self._max_header = budget.room // 2
        self._passage_of_text: dict[str, Passage] = {}

    def passages(self) -> list[Passage]:
        """Return the passages, in the order of their best children."""
        return sorted(self._passages, key=lambda each: each.matches[0].rank or 0)

    def add(self, child: LocatedChild) -> bool:
        """Take a child if it fits, and return whether it was taken.

        The text of a child is taken once: its copies are further matches of the same passage. A
        child that the search did not find must touch a passage.
        """
        copied = self._passage_of_text.get(child.match.child.text)
        if copied is not None:
            if child.rank is not None:
                copied.children.append(child)
            return False
        if self._budget.measure(child.header) > self._max_header:
            child = replace(child, header="")
        touching = [each for each in self._passages if self._touches(each, child)]
        parts = _parts_outside(child, touching)
        if parts and not touching and not self._may_begin(child):
            return False
        bounds = (child.start, child.end)
        if parts:
            gaps = _union_length(child, touching) - sum(len(self._text(child, *p)) for p in parts)
            gap_size = gaps if self._budget.measure is len else min(gaps, 1)
            gap_size += self._header_size(child, touching)
            size = gap_size + sum(self._budget.measure(self._text(child, *part)) for part in parts)
            if size > self._budget.room:
                shortened = self._shorten(child, parts, touching, self._budget.room - gap_size)
                if shortened is None:
                    self.is_full = True
                    return False
                bounds = shortened
                touching = [each for each in touching if self._adjoins(each, child, bounds)]
                size = gap_size + self._budget.measure(self._text(child, *bounds))
            self._budget.room -= size
            self.is_full = self._budget.room <= 0
        self._join(child, bounds, touching)
        return True

    def _header_size(self, child: LocatedChild, touching: Sequence[Passage]) -> int:
        """Return how much longer headers are once a child is joined with the passages."""
        measure = self._budget.measure
        both: list[LocatedChild | Passage] = [child, *touching]
        first = min(both, key=lambda each: each.start)
        return measure(first.header) - sum(measure(each.header) for each in touching)

    def _adjoins(self, passage: Passage, child: LocatedChild, bounds: tuple[int, int]) -> bool:
        """Return whether a passage still touches a child of which only a part was taken."""
        start, end = bounds
        if passage.end <= start:
            return not self._text(child, passage.end, start).strip()
        return not self._text(child, end, passage.start).strip()

    def _may_begin(self, child: LocatedChild) -> bool:
        return child.rank is not None and len(self._passages) < self._budget.max_results

    def _touches(self, passage: Passage, child: LocatedChild) -> bool:
        """Return whether nothing but white space stands between a passage and a child."""
        if passage.space != child.space:
            return False
        inner = passage.inner_children
        if child.start >= passage.end:
            return self._is_blank(max(inner, key=lambda each: each.end), child, passage.end)
        if passage.start >= child.end:
            first = min(inner, key=lambda each: each.start)
            return self._is_blank(child, first, child.end, passage.start)
        return True

    def _is_blank(
        self, left: LocatedChild, right: LocatedChild, start: int, end: int | None = None
    ) -> bool:
        """Return whether nothing but white space stands between two children.

        What stands between their parents is not known yet; `read_texts` looks at it.
        """
        end = right.start if end is None else end
        if right.offset > left.offset + len(self._parents[left.parent].text) + _MAX_BORDER:
            return False
        return not any(self._text(each, start, end).strip() for each in (left, right))

    def _text(self, child: LocatedChild, start: int, end: int) -> str:
        """Return what stands between two positions, as far as it is in the child's parent."""
        text = self._parents[child.parent].text
        return text[max(0, start - child.offset) : max(0, end - child.offset)]

    def _shorten(
        self,
        child: LocatedChild,
        parts: Sequence[tuple[int, int]],
        touching: Sequence[Passage],
        room: int,
    ) -> tuple[int, int] | None:
        """Return the bounds of the sentences of a child that fit, beginning beside what it touches.

        The first child of all is always taken, with one sentence at least.
        """
        if len(parts) > 1:
            return None
        ((start, end),) = parts
        text, measure = self._text(child, start, end), self._budget.measure
        spans = sentence_spans(text) or [(0, len(text))]
        if touching and touching[0].start >= end:
            starts = [start + first for first, _ in spans]
            fitting = [each for each in starts if measure(text[each - start :]) <= room]
            return (fitting[0], end) if fitting else None
        ends = [start + last for _, last in spans]
        fitting = [each for each in ends if measure(text[: each - start]) <= room]
        if fitting:
            return start, fitting[-1]
        return None if self._passages else (start, ends[0])

    def _join(
        self, child: LocatedChild, bounds: tuple[int, int], touching: Sequence[Passage]
    ) -> None:
        """Make one passage of a child and the passages that it touches."""
        passage = Passage([child], *bounds)
        for each in touching:
            passage.children += each.children
            passage.start = min(passage.start, each.start)
            passage.end = max(passage.end, each.end)
        self._passages = [each for each in self._passages if each not in touching] + [passage]
        for one in passage.children:
            self._passage_of_text[one.match.child.text] = passage


def _parts_outside(child: LocatedChild, passages: Sequence[Passage]) -> list[tuple[int, int]]:
    """Return the parts of a child that no passage has."""
    parts, start = [], child.start
    for passage in sorted(passages, key=lambda each: each.start):
        if start < min(passage.start, child.end):
            parts.append((start, min(passage.start, child.end)))
        start = max(start, passage.end)
    return [*parts, (start, child.end)] if start < child.end else parts


def _union_length(child: LocatedChild, passages: Sequence[Passage]) -> int:
    """Return how many characters a child adds to the passages, with what stands between them."""
    bounds = [(child.start, child.end), *((each.start, each.end) for each in passages)]
    length = max(end for _, end in bounds) - min(start for start, _ in bounds)
    return length - sum(each.end - each.start for each in passages)


def split_at_parents(passage: Passage) -> list[Passage]:
    """Return the part of a passage in each parent, where something else stands between them.

    A part that has no match, only neighbours of matches in other parts, is left out.
    """
    groups: dict[str, list[LocatedChild]] = {}
    for child in passage.inner_children:
        groups.setdefault(child.parent, []).append(child)
    parts = []
    for children in groups.values():
        start = max(passage.start, min(child.start for child in children))
        end = min(passage.end, max(child.end for child in children))
        parts.append(Passage(children, start, end))
    copies = [each for each in passage.children if not passage.holds(each)]
    parts[0].children += copies
    return [part for part in parts if part.matches]
