"""BM25 over postings: arrays of the children that contain each term.

Children are identified by number, and those of a document are numbered consecutively. A term of a
child also counts for the children around it, with less weight the farther away they are (Robertson,
Zaragoza and Taylor 2004, "Simple BM25 extension to multiple weighted fields").
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

POSTING = np.dtype([("number", "<u4"), ("count", "u1")])
"""A child that contains a term, and how often; counts above 255 make no difference."""
_K1, _B = 1.2, 0.75
_NEIGHBOUR_WEIGHTS = (0.5, 0.25)  # of a term for the next children, and for those behind them
MAX_CANDIDATES = 5_000
"""How many children are found before frequent terms find no more."""
_SPARSE = 40  # a term that more than one in so many children has is frequent
_LEAST_IDF = 1e-6  # of a term that most children have


def collect_postings(children: Sequence[Sequence[str]]) -> dict[str, NDArray[np.void]]:
    """Return, for each term, the numbers of the children that have it, from 0, and how often.

    Parameters:
        children: the terms of each child.

    >>> for term, postings in collect_postings([["a", "b"], ["b", "b"]]).items():
    ...     print(term, postings.tolist())
    a [(0, 1)]
    b [(0, 1), (1, 2)]
    """
    codes: dict[str, int] = {}
    terms = [codes.setdefault(term, len(codes)) for own in children for term in own]
    if not codes:
        return {}
    owners = np.repeat(np.arange(len(children)), [len(own) for own in children])
    places = np.array(terms, dtype=np.int64) * len(children) + owners
    places, counts = np.unique(places, return_counts=True)
    postings = np.empty(len(places), dtype=POSTING)
    postings["number"] = places % len(children)
    postings["count"] = np.minimum(counts, 255)
    ends = np.searchsorted(places, np.arange(1, len(codes)) * len(children))
    return dict(zip(codes, np.split(postings, ends), strict=True))


@dataclass(frozen=True, slots=True)
class _Neighbours:
    """The two children that are so many steps away from each child."""

    step: int
    weight: float
    """How much a term of theirs counts."""
    before: NDArray[np.bool_]
    """For each child, whether the one so far before it is of the same document."""
    behind: NDArray[np.bool_]
    """For each child, whether the one so far behind it is of the same document."""


def _find_neighbours(is_next: NDArray[np.bool_]) -> list[_Neighbours]:
    neighbours, before = [], is_next
    for step, weight in enumerate(_NEIGHBOUR_WEIGHTS, 1):
        behind = np.append(before[step:], np.zeros(min(step, len(before)), dtype=bool))
        neighbours.append(_Neighbours(step, weight, before, behind))
        before = is_next & np.append([False], before[:-1])[: len(before)]
    return neighbours


@dataclass(frozen=True, slots=True)
class Corpus:
    """What BM25 needs to know about all the children; each array has one item per child."""

    is_present: NDArray[np.bool_]
    """Whether the child has not been removed."""
    is_next: NDArray[np.bool_]
    """Whether the child before it is one of the same document."""
    neighbours: Sequence[_Neighbours]
    """The children around each one whose terms count for it, the nearest first."""
    length_norm: NDArray[np.float64]
    """Added to a term's frequency in the denominator of BM25; greater for longer children."""
    count: int
    """How many children are present."""

    @classmethod
    def of(
        cls,
        lengths: NDArray[np.uint32],
        follows: NDArray[np.bool_],
        removed: Sequence[int],
        with_neighbours: bool,
    ) -> Corpus:
        """Calculate it from the number of each child's terms.

        Parameters:
            with_neighbours: whether the terms of a child count for its neighbours.
        """
        is_present = np.ones(len(lengths), dtype=bool)
        is_present[np.array(removed, dtype=np.int64)] = False
        neighbours = _find_neighbours(follows) if with_neighbours else []
        totals = lengths.astype(np.float64)
        for each in neighbours:
            totals[each.step :] += lengths[: -each.step] * each.before[each.step :]
            totals[: -each.step] += lengths[each.step :] * each.before[each.step :]
        count = int(np.count_nonzero(is_present))
        mean = float(totals[is_present].sum()) / count if count else 0.0
        length_norm = _K1 * (1 - _B + _B * totals / (mean or 1.0))
        return cls(is_present, follows, neighbours, length_norm, count)


@dataclass(frozen=True, slots=True)
class Ranking:
    """The children that have a question's terms."""

    scores: NDArray[np.float64]
    """Score of every child; 0 if it has none of the terms, or only frequent ones."""
    _candidates: NDArray[np.int64]
    """The children whose scores may be above 0."""
    _corpus: Corpus
    _terms: list[tuple[NDArray[np.void], int]]
    """The postings of each term, and how many children have it."""

    def best(
        self, n: int, limit: int, is_allowed: NDArray[np.bool_] | None = None
    ) -> NDArray[np.int64]:
        """Return the n best of the allowed children, and those that tie with the last of them.

        No more than `limit` children are returned, unless n is larger.
        """
        numbers = self._candidates[self.scores[self._candidates] > 0]
        numbers = numbers if is_allowed is None else numbers[is_allowed[numbers]]
        scores = self.scores[numbers]
        if len(numbers) > n:
            is_good = scores >= np.partition(scores, len(scores) - n)[len(scores) - n]
            numbers, scores = numbers[is_good], scores[is_good]
        return numbers[np.argsort(-scores, kind="stable")[: max(n, limit)]]

    def coverage(self, number: int) -> float:
        """Return the share of the terms that a child covers, weighted by their idf."""
        first = number - sum(int(each.before[number]) for each in self._corpus.neighbours)
        last = number + sum(int(each.behind[number]) for each in self._corpus.neighbours)
        covered = total = 0.0
        for postings, count in self._terms:
            weight = math.log(1 + (self._corpus.count + 0.5) / (count + 0.5))
            numbers = postings["number"]
            covered += weight * bool(np.any((first <= numbers) & (numbers <= last)))
            total += weight
        return covered / total


def rank(
    postings_per_term: Sequence[NDArray[np.void]],
    corpus: Corpus,
    others: Sequence[int] = (),
    is_allowed: NDArray[np.bool_] | None = None,
) -> Ranking:
    """Score the children that have any of some terms, with BM25.

    The rarest terms come first. As soon as MAX_CANDIDATES children have one of them, the frequent
    terms that are left only count for these, and no child is found by them alone.

    Parameters:
        postings_per_term: the postings of each term.
        corpus: all the children.
        others: children that are scored with all the terms.
        is_allowed: the children that may be found; None: all.
    """
    scores = np.zeros(len(corpus.is_present))
    is_match = np.zeros(len(scores), dtype=bool)
    candidates: NDArray[np.int64] | None = None
    terms: list[tuple[NDArray[np.void], int]] = []
    for postings in sorted(postings_per_term, key=len):
        if len(postings) * _SPARSE > len(scores):
            term = _FrequentTerm(postings, corpus)
            count = int(np.count_nonzero(term.has_term))
            numbers = np.flatnonzero(term.has_term) if candidates is None else candidates
            frequencies = term.frequencies(numbers)
        else:
            numbers, frequencies = _frequencies(postings, corpus)
            count = len(numbers)
            if candidates is not None:
                stays = is_match[numbers]
                numbers, frequencies = numbers[stays], frequencies[stays]
        idf = math.log((corpus.count - count + 0.5) / (count + 0.5))
        weights = frequencies * (_K1 + 1) / (frequencies + corpus.length_norm[numbers])
        scores[numbers] += max(idf, _LEAST_IDF) * weights
        terms.append((postings, count))
        if candidates is None:
            is_match[numbers] = True
            is_found = is_match if is_allowed is None else is_match & is_allowed
            if np.count_nonzero(is_found) >= MAX_CANDIDATES:
                is_match = is_found
                is_match[list(others)] = True
                candidates = np.flatnonzero(is_match)
    if candidates is None:
        candidates = np.flatnonzero(is_match)
    return Ranking(scores, candidates, corpus, terms)


def _frequencies(
    postings: NDArray[np.void], corpus: Corpus
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the children that have a term, or a neighbour with it, and how much it counts."""
    numbers, counts = postings["number"].astype(np.int64), postings["count"].astype(np.float64)
    parts = [(numbers, counts)]
    for each in corpus.neighbours:
        for has_neighbour, step in ((each.before, -each.step), (each.behind, each.step)):
            own = has_neighbour[numbers]
            parts.append((numbers[own] + step, each.weight * counts[own]))
    numbers, counts = map(np.concatenate, zip(*parts, strict=True))
    is_present = corpus.is_present[numbers]
    numbers, counts = numbers[is_present], counts[is_present]
    if not len(numbers):
        return numbers, counts
    order = np.argsort(numbers, kind="stable")  # sorted parts are quick to sort
    numbers = numbers[order]
    starts = np.flatnonzero(np.append([True], numbers[1:] != numbers[:-1]))
    return numbers[starts], np.add.reduceat(counts[order], starts)


class _FrequentTerm:
    """A term of many children, looked up by number; there are a few more items on either side.

    Bytes are enough, and there is no quicker way through so many children.
    """

    def __init__(self, postings: NDArray[np.void], corpus: Corpus) -> None:
        self._neighbours, self._first = corpus.neighbours, len(corpus.neighbours)
        size, first = len(corpus.is_present), self._first
        self._counts = np.zeros(size + 2 * first, dtype="u1")
        self._counts[postings["number"].astype(np.int64) + first] = postings["count"]
        has_term = self._counts[first : first + size].copy()
        for each in corpus.neighbours:
            before, behind = first - each.step, first + each.step
            has_term |= self._counts[before : before + size] * each.before
            has_term |= self._counts[behind : behind + size] * each.behind
        has_term *= corpus.is_present
        self.has_term: NDArray[np.bool_] = has_term != 0

    def frequencies(self, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how much the term counts for some children."""
        places = numbers + self._first
        frequencies: NDArray[np.float64] = self._counts[places].astype(np.float64)
        for each in self._neighbours:
            before = self._counts[places - each.step] * each.before[numbers]
            behind = self._counts[places + each.step] * each.behind[numbers]
            frequencies += each.weight * (before.astype(np.float64) + behind)
        return frequencies
