"""Retrieval figures against sets of positions; bootstrap intervals."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rag_splitters.evaluation.measure.metrics import (
    Range,
    cover,
    overlap,
    precision_omega,
    recall_at_budgets,
    total,
    union,
)
from rag_splitters.evaluation.measure.uncertainty import estimates

intervals = st.lists(
    st.tuples(st.integers(0, 60), st.integers(1, 20)).map(lambda pair: (pair[0], sum(pair))),
    max_size=8,
)
some_intervals = intervals.filter(bool)


def ground(known: list[Range]) -> set[int]:
    """The same as a set of positions."""
    return {at for start, end in known for at in range(start, end)}


# Against sets of positions


@given(intervals)
def test_union_is_the_same_ground_disjoint_and_in_order(known: list[Range]) -> None:
    joined = union(known)
    assert ground(joined) == ground(known)
    assert total(joined) == len(ground(known))
    assert all(end < start for (_, end), (start, _) in pairwise(joined))


@given(intervals, intervals)
def test_overlap_is_the_size_of_the_intersection(known: list[Range], others: list[Range]) -> None:
    assert overlap(known, others) == len(ground(known) & ground(others)) == overlap(others, known)


@example([(0, 10)], [], 0)
@given(some_intervals, intervals, st.integers(0, 50))
def test_cover_agrees_with_counting_characters(
    references: list[Range], found: list[Range], elsewhere: int
) -> None:
    retrieved = Counter(at for start, end in found for at in range(start, end))
    count = sum(retrieved.values()) + elsewhere
    shared, wanted = len(ground(references) & set(retrieved)), len(ground(references))
    recall, precision, iou = cover(references, found, total(found) + elsewhere)
    assert recall == shared / wanted
    assert precision == (shared / count if count else 0)
    assert iou == shared / (count + wanted - shared)
    assert iou <= min(precision, recall) or not count


@given(some_intervals, intervals)
def test_precision_omega_agrees_with_counting_characters(
    references: list[Range], chunks: list[Range]
) -> None:
    wanted = ground(references)
    touching = [chunk for chunk in chunks if ground([chunk]) & wanted]
    expected = len(ground(touching) & wanted) / len(ground(touching) | wanted)
    assert precision_omega(references, chunks) == expected


ranked_chunks = st.lists(
    st.tuples(st.none() | some_intervals.map(lambda known: known[0]), st.integers(0, 9)), max_size=8
)


@given(some_intervals, ranked_chunks, st.lists(st.integers(1, 60), min_size=1, max_size=6))
def test_recall_at_budgets_agrees_with_taking_characters_in_turn(
    references: list[Range], ranked: list[tuple[Range | None, int]], budgets: list[int]
) -> None:
    budgets.sort()
    expected = []
    for budget in budgets:
        left, taken = budget, set()
        for chunk, size in ranked:
            if chunk is not None:
                part = size and min(size, left)
                whole = list(range(*chunk))
                taken |= set(whole if part == size else whole[: len(whole) * part // size])
            if left < size:
                break
            left -= size
        expected.append(len(taken & ground(references)) / len(ground(references)))
    assert recall_at_budgets(references, ranked, budgets) == expected
    assert expected == sorted(expected)


# Intervals


def test_estimate_has_the_width_that_the_central_limit_says() -> None:
    values = np.random.default_rng(0).random(400)
    (result,) = estimates([values])
    half = 1.96 * values.std() / 20
    assert result.mean == values.mean()
    assert result.high - result.mean == pytest.approx(half, rel=0.1)
    assert result.mean - result.low == pytest.approx(half, rel=0.1)


def test_estimate_of_a_paired_difference_is_narrower_than_that_of_its_parts() -> None:
    first = np.random.default_rng(0).random(200)
    (result,) = estimates([first + 0.01 - first])
    assert result.low == pytest.approx(0.01) == result.high
