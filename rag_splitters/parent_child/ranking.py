"""Which children match a question best: by vector, by keyword, or by both."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby

from rag_splitters.calls import call
from rag_splitters.errors import InputError
from rag_splitters.parent_child.keywords.index import KeywordIndex, KeywordMatches
from rag_splitters.parent_child.options import Query
from rag_splitters.parent_child.records import Entry
from rag_splitters.parent_child.stores.children import ChildStore, Detail, Match
from rag_splitters.parent_child.stores.stores import Stores

MIN_FUSED = 100
"""Children of each ranking that are read, at least, before they are fused."""
_MIN_COMPARED = 250  # children that a filter lets through, and that are compared in any case
_MIN_UNFILTERED = 500  # nearest children that are searched, in any case, for those that pass
_MAX_TIED = 1000  # children with one score that are put in order
_KEYWORD_SHARE = 0.5  # of a score of a hybrid search
_KEYWORD_SHARE_WITHOUT_MODEL = 0.7  # hashed words say less than BM25 does about the same words
_RANK_CONSTANT = 60  # of reciprocal rank fusion, as its authors set it


@dataclass(frozen=True)
class Ranking:
    """The children that a search found, best first."""

    ids: Sequence[str]
    scores: Mapping[str, float | None]
    """The score of each, if the store tells it."""
    children: Mapping[str, Entry]
    """Those of them that the store returned with more than their ids."""
    is_complete: bool
    """Whether no more children can be found."""
    worst: float | None
    """The score of the worst child, also if a threshold leaves it out. Scores count from there,
    because the similarities of some models are all between 0.7 and 0.9, and distances fall."""

    @classmethod
    def of(
        cls, scores: Mapping[str, float | None], children: Mapping[str, Entry], is_complete: bool
    ) -> Ranking:
        """Return a ranking of children that are in order."""
        numbers = [score for score in scores.values() if score is not None]
        # The score that is farthest from the best child's.
        worst = max(numbers, key=lambda score: abs(score - numbers[0]), default=None)
        return cls(list(scores), scores, children, is_complete, worst)

    @cached_property
    def ranks(self) -> dict[str, int]:
        """The place of each child, from 0."""
        return {name: rank for rank, name in enumerate(self.ids)}

    def values(self) -> list[float]:
        """Return the value of each child for a result: by its score or, without one, its rank."""
        scores = [score for name in self.ids if (score := self.scores[name]) is not None]
        values = [abs(score - self.worst) for score in scores if self.worst is not None]
        if len(values) == len(self.ids) and values == sorted(values, reverse=True):
            return values
        return [1 - rank / len(self.ids) for rank in range(len(self.ids))]


async def rank_children(stores: Stores, query: Query, depth: int) -> Ranking:
    """Return the best `depth` children above the threshold."""
    if stores.keywords is not None:
        ranking = await _fuse(stores.children, stores.keywords, query.text, depth)
    elif query.search_type == "mmr":
        pool = max(query.fetch_k, depth)
        matches = await stores.children.find_diverse(query.text, depth, pool, query.lambda_mult)
        ranking = _ranking(matches, len(matches) < depth)
    else:
        ranking = await _find_nearest(stores.children, query.text, depth)
    threshold = query.score_threshold
    if query.search_type == "similarity_score_threshold":
        threshold = threshold or 0.0
    if threshold is None:
        return ranking
    scores = ranking.scores
    if None in scores.values():
        raise InputError("a threshold needs scores, and this vector store returns none")
    good = [name for name in ranking.ids if (scores[name] or 0.0) >= threshold]
    is_last = query.search_type != "mmr" and len(good) < len(ranking.ids)
    return replace(ranking, ids=good, is_complete=ranking.is_complete or is_last)


def _ranking(matches: Iterable[Match], is_complete: bool) -> Ranking:
    children = {match.child.id or "": match.child for match in matches}
    scores = {match.child.id or "": match.score for match in matches}
    whole = {name: child for name, child in children.items() if child.metadata}
    return Ranking.of(scores, whole, is_complete)


async def _find_nearest(
    children: ChildStore, text: str, depth: int, detail: Detail = "text"
) -> Ranking:
    """Return the nearest children, at least `depth` of them.

    Equal scores are ordered by id. If several children tie with the last one, a store returns any
    of them, so they are left out unless they are very many.
    """
    n = depth + 1
    while True:
        nearest = await children.find(text, n, detail)
        if len(nearest) < n or nearest[-1].score is None:
            return _ranking(_order_ties(nearest), len(nearest) < n)
        untied = _without_last_tie(nearest)
        if len(untied) >= depth or n > depth + _MAX_TIED:
            return _ranking(_order_ties(untied if len(untied) >= depth else nearest), False)
        n *= 2


def _without_last_tie(matches: Sequence[Match]) -> list[Match]:
    return [match for match in matches if match.score != matches[-1].score]


def _order_ties(matches: Sequence[Match]) -> Sequence[Match]:
    """Return the same order, but with equal scores by id: stores return these in any order."""
    scores = {match.score for match in matches}
    if None in scores or len(scores) == len(matches):
        return matches
    groups = groupby(matches, key=lambda match: match.score)
    ordered = (sorted(group, key=lambda match: match.child.id or "") for _, group in groups)
    return [match for group in ordered for match in group]


async def _fuse(children: ChildStore, keywords: KeywordIndex, text: str, depth: int) -> Ranking:
    """Rank children by vector and by keyword."""
    nearest = await _find_allowed(children, keywords, text, depth)
    is_closed = children.has_filter and children.where is None
    by_keyword = await call(
        keywords.find,
        text,
        depth,
        nearest.ids,
        where=children.where,
        allowed_ids=await children.list_allowed() if is_closed else None,
        with_neighbours=children.smoothing > 0,
    )
    is_complete = nearest.is_complete and len(by_keyword.best) < depth
    similarities = {name: score for name, score in nearest.scores.items() if score is not None}
    if len(similarities) < len(nearest.ids):
        scores = _reciprocal_ranks(nearest.ids, list(by_keyword.best))
    else:
        unseen = [name for name in by_keyword.best if name not in similarities]
        similarities |= await children.similarities(text, unseen)
        if children.scores_any_child:
            present = {n: score for n, score in by_keyword.best.items() if n in similarities}
            by_keyword = replace(by_keyword, best=present)
        ranked = [similarities[name] for name in nearest.ids]
        if ranked and ranked[0] < ranked[-1]:  # the store returns distances: the least is the best
            similarities = {name: -distance for name, distance in similarities.items()}
        is_hashed = children.vectors is not None and children.vectors.is_hashed
        share = _KEYWORD_SHARE_WITHOUT_MODEL if is_hashed else _KEYWORD_SHARE
        if is_hashed and not by_keyword.coverage:  # words that are nowhere; their hashes collide
            similarities = {name: (1 - share) * score for name, score in similarities.items()}
        scores = _relative_scores(similarities, by_keyword, share)
    words = by_keyword.best | by_keyword.others
    # Of equal ones, the child that has more of the question's words is first.
    order = sorted((-score, -words.get(name, 0.0), name) for name, score in scores.items())
    return Ranking.of({name: -score for score, _, name in order}, nearest.children, is_complete)


def _reciprocal_ranks(*rankings: Sequence[str]) -> dict[str, float]:
    """Score children by their ranks, for stores without scores (Cormack et al. 2009)."""
    scores: dict[str, float] = defaultdict(float)
    for ranking in rankings:
        for rank, name in enumerate(ranking, 1):
            scores[name] += 1 / (_RANK_CONSTANT + rank)
    return scores


def _relative_scores(
    similarities: Mapping[str, float], by_keyword: KeywordMatches, share: float
) -> dict[str, float]:
    """Score children by where they stand between the best and the worst on either side.

    The scores are scaled by how well anything matches at all: by the greatest similarity, or the
    share of the question that the best child by keyword covers.

    Parameters:
        share: how much the keywords count; the similarities count the rest.
    """
    keywords = by_keyword.best | by_keyword.others
    names = {**similarities, **keywords}
    sides = [
        (weight, relative)
        for weight, side in ((1 - share, similarities), (share, keywords))
        if (relative := _relative(side, names))
    ]
    strength = min(max(by_keyword.coverage, *similarities.values(), 0.0), 1.0)
    if not sides:  # a single child, or children that cannot be told apart
        return dict.fromkeys(names, strength)
    total = sum(weight for weight, _ in sides)
    weighted = [[weight / total * value for value in values] for weight, values in sides]
    return {name: strength * sum(values) for name, *values in zip(names, *weighted, strict=True)}


def _relative(scores: Mapping[str, float], names: Iterable[str]) -> list[float]:
    """Scale scores so that the worst is 0 and the best 1; nothing if all are the same.

    A child whose score is not known gets the worst.
    """
    worst, best = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
    if best == worst:
        return []
    return [(scores.get(name, worst) - worst) / (best - worst) for name in names]


async def _find_allowed(
    children: ChildStore, keywords: KeywordIndex, text: str, depth: int
) -> Ranking:
    """Do the same as `_find_nearest`, for the ids of the children that the filter lets through.

    The keyword index knows them, and a vector store takes long to evaluate a filter. So if they
    are few, their vectors are all compared; if they are many, the nearest of all children are
    searched for them. Only if these are not enough does the store evaluate the filter.
    """
    if children.where is None:
        return await _find_nearest(children, text, depth, "id")
    allowed_count, count = await call(keywords.count_allowed, children.where)
    if allowed_count <= _most_compared(count):
        ids = await call(keywords.list_allowed, children.where)
        similarities = await children.similarities(text, ids)
        best = sorted(similarities.items(), key=lambda item: (-item[1], item[0]))[:depth]
        return Ranking.of(dict(best), {}, len(ids) <= depth)
    n = round(1.5 * depth * count / allowed_count)
    if n <= _most_unfiltered(count):
        nearest = await children.find_unfiltered(text, n)
        ids = [match.child.id or "" for match in nearest]
        allowed = set(await call(keywords.list_allowed, children.where, ids))
        # Of those that tie with the last one, the store returns any.
        untied = [match for match in _without_last_tie(nearest) if match.child.id in allowed]
        if len(untied) >= depth:
            return _ranking(_order_ties(untied), False)
    return await _find_nearest(children, text, depth, "id")


def _most_compared(count: int) -> int:
    """Return how many of so many children may be compared one by one.

    In Chroma, this takes three times as long per child as finding the nearest ones, of which the
    fewer are needed, the more children pass.
    """
    return max(_MIN_COMPARED, math.isqrt(50 * count))


def _most_unfiltered(count: int) -> int:
    """Return how many of the nearest of so many children are found faster than by a filter."""
    return max(_MIN_UNFILTERED, count // 10)
