"""From a question to results: children are ranked, and results are built from the best of them."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from rag_splitters.calls import Call, call
from rag_splitters.errors import InputError, InputTypeError
from rag_splitters.parent_child.budget import limit_results
from rag_splitters.parent_child.keyword_index import KeywordIndex, KeywordMatches
from rag_splitters.parent_child.lending import Ranking, find_passages
from rag_splitters.parent_child.loading import Loader
from rag_splitters.parent_child.losses import were_replaced
from rag_splitters.parent_child.options import Query, Retrieve
from rag_splitters.parent_child.passages import RESULT_SIZE, Budget, count_tokens
from rag_splitters.parent_child.records import Entry
from rag_splitters.parent_child.results import (
    build_children,
    build_parents,
    build_passages,
    restore_match,
)
from rag_splitters.parent_child.stores import Detail, Match, Stores

Reranker = Callable[[str, list[str]], Any]
"""(question, texts) -> a score for each text, higher is better; may be a coroutine function."""

Rerank = Callable[[str, Sequence[Entry]], Awaitable[Sequence[tuple[int, float | None]]]]
"""(question, children) -> the number of each child, best first, and its score if it has one."""

RERANKED = 100
"""How many children a reranker is given."""

# How many children are read first for each result; more follow if they are not enough.
_CHILDREN_PER_RESULT: dict[Retrieve, int] = {"passages": 10, "parents": 2, "children": 1}
_MIN_POOL = 50  # children, at least, among which passages are found
_TOKENS_PER_RESULT = 100  # a guess that decides how much is read first for a budget
_MIN_FUSED = 100  # children of each ranking that are read, at least, before they are fused
_MIN_COMPARED = 250  # children that a filter lets through, and that are compared in any case
_MIN_UNFILTERED = 500  # nearest children that are searched, in any case, for those that pass
_MAX_TIED = 1000  # children with one score that are put in order
_RANK_CONSTANT = 60  # of reciprocal rank fusion, as its authors set it


def first_depth(query: Query) -> int:
    """Return how many children are ranked first."""
    least = _MIN_FUSED if query.search_type == "hybrid" else 1
    if query.retrieve == "passages":
        results = math.ceil(Budget.of(query).characters / RESULT_SIZE)
        return max(least, _MIN_POOL, results * _CHILDREN_PER_RESULT["passages"])
    depth = max(least, _first_read(query))
    return depth if query.search_type == "hybrid" else min(depth, query.max_children or depth)


def _first_read(query: Query) -> int:
    """Return how many children are read first for parents or children."""
    results = query.limit
    if query.max_tokens is not None:
        results = min(results, 1 + query.max_tokens // _TOKENS_PER_RESULT)
    return results * _CHILDREN_PER_RESULT[query.retrieve]


@dataclass(frozen=True, slots=True)
class Answer:
    """The results of a query, best first."""

    results: list[Entry]
    is_full: bool
    """Whether these are all that the query asks for, so that more children could add nothing."""


async def search(stores: Stores, query: Query, rerank: Rerank | None = None) -> Answer:
    """Return the best results; their metadata has the `score` and the `matches`.

    If a document was replaced in the meantime, so that the parents of the old version are gone, the
    search is repeated once.

    Parameters:
        rerank: scores the first children before results are made of them.

    Raises MissingParentsError if the docstore has lost parents.
    """
    loader, answer = await _search_once(stores, query, rerank)
    if await were_replaced(stores, loader.children, loader.parent_rows):
        loader, answer = await _search_once(stores, query, rerank)
        await were_replaced(stores, loader.children, loader.parent_rows)
    return answer


async def _search_once(
    stores: Stores, query: Query, rerank: Rerank | None
) -> tuple[Loader, Answer]:
    loader = Loader(stores, query)
    depth, previous = first_depth(query), -1
    if rerank is not None:
        depth = max(depth, query.rerank_k or RERANKED)
    while True:
        ranking = await _rank_children(stores, query, depth)
        count = len(ranking.matches)
        is_last = ranking.is_complete or depth >= (query.max_children or depth + 1)
        ranking = replace(ranking, matches=ranking.matches[: query.max_children])
        if rerank is not None:
            ranking, is_last = await _rerank_children(loader, ranking, rerank), True
        answer = await _build_answer(loader, ranking)
        # The last test is for stores that never return as many as they are asked for.
        if answer.is_full or is_last or count == previous:
            break
        depth, previous = max(depth * 2, count + 1), count
    loader.check()
    return loader, answer


async def _build_answer(loader: Loader, ranking: Ranking) -> Answer:
    """Make results of the best children."""
    stores, query = loader.stores, loader.query
    if query.retrieve == "passages":
        return await _build_passages(loader, ranking)
    build = build_parents if query.retrieve == "parents" else build_children
    start, end = 0, _first_read(query)
    matches: list[Match] = []
    while True:
        matches += await loader.load(ranking.matches[start:end])
        results = build(stores, matches, loader.parents, query.limit)
        is_full = len(results) >= query.limit or _fills_budget(query, results)
        if is_full or end >= len(ranking.matches):
            return Answer(limit_results(query, results), is_full)
        start, end = end, 2 * end


def _fills_budget(query: Query, results: Sequence[Entry]) -> bool:
    if query.max_tokens is None:
        return False
    return sum(count_tokens(result.text) for result in results) >= query.max_tokens


async def _build_passages(loader: Loader, ranking: Ranking) -> Answer:
    """Find passages, load their children, and read what stands between their parents."""
    stores, query = loader.stores, loader.query
    while True:
        passages, is_full = await find_passages(loader, ranking)
        if await loader.load_children_of(passages):
            break  # otherwise some no longer exist, and the others make other passages
    passages = await loader.read_texts(passages)
    results = build_passages(stores, passages, loader.parents)
    return Answer(limit_results(query, results), is_full)


async def _rerank_children(loader: Loader, ranking: Ranking, rerank: Rerank) -> Ranking:
    """Put the first children into the order of a reranker, which sees equal texts once."""
    query, copies = loader.query, defaultdict(list)
    for match in await loader.load_whole(ranking.matches[: query.rerank_k or RERANKED]):
        copies[match.child.text].append(match)
    groups = list(copies.values())
    children = [restore_match(loader.stores, group[0], loader.parents) for group in groups]
    matches = [
        match if score is None else replace(match, score=score)
        for number, score in (await rerank(query.text, children) if children else [])
        for match in groups[number]
    ]
    return Ranking(matches, is_complete=True, worst=_worst_score(matches))


async def _rank_children(stores: Stores, query: Query, depth: int) -> Ranking:
    """Return the best `depth` children above the threshold."""
    if query.search_type == "hybrid":
        matches, is_complete = await _fuse(stores, query, depth)
    elif query.search_type == "mmr":
        pool = max(query.fetch_k, depth)
        matches = await stores.children.find_diverse(query.text, depth, pool, query.lambda_mult)
        is_complete = len(matches) < depth
    else:
        matches, is_complete = await _find_nearest(stores, query.text, depth)
    worst, threshold = _worst_score(matches), query.score_threshold
    if query.search_type == "similarity_score_threshold":
        threshold = threshold or 0.0
    if threshold is None:
        return Ranking(matches, is_complete, worst)
    if any(match.score is None for match in matches):
        raise InputError("a threshold needs scores, and this vector store returns none")
    good = [match for match in matches if (match.score or 0.0) >= threshold]
    is_sorted = query.search_type != "mmr"
    return Ranking(good, is_complete or (is_sorted and len(good) < len(matches)), worst)


async def _find_nearest(
    stores: Stores, text: str, depth: int, detail: Detail = "text"
) -> tuple[list[Match], bool]:
    """Return the nearest children, at least `depth` of them, and whether there are no more.

    Equal scores are ordered by id. If several children tie with the last one, a store returns any
    of them, so they are left out unless they are very many.
    """
    n = depth + 1
    while True:
        nearest = await stores.children.find(text, n, detail)
        if len(nearest) < n or nearest[-1].score is None:
            return _order_ties(nearest), len(nearest) < n
        untied = [match for match in nearest if match.score != nearest[-1].score]
        if len(untied) >= depth:
            return _order_ties(untied), False
        if n > depth + _MAX_TIED:
            return _order_ties(nearest), False
        n *= 2


async def _fuse(stores: Stores, query: Query, depth: int) -> tuple[list[Match], bool]:
    """Rank children by vector and by keyword.

    The children that the vector store does not return with more than their ids must be loaded.
    """
    if stores.keywords is None:
        raise InputError("search_type='hybrid' needs a keyword index")
    nearest, is_complete = await _find_allowed(stores, stores.keywords, query.text, depth)
    children = {match.child.id or "": match.child for match in nearest}
    by_keyword = await _find_by_keyword(stores, stores.keywords, query.text, depth, list(children))
    has_all_keywords = len(by_keyword.best) < depth
    if query.fusion == "rrf" or any(match.score is None for match in nearest):
        scores = _reciprocal_ranks(list(children), [name for name, _ in by_keyword.best])
    else:
        similarities = {match.child.id or "": match.score or 0.0 for match in nearest}
        unseen = [name for name, _ in by_keyword.best if name not in children]
        similarities |= await stores.children.similarities(query.text, unseen)
        if stores.children.tells_similarities:
            best = [(name, score) for name, score in by_keyword.best if name in similarities]
            by_keyword = replace(by_keyword, best=best)
        ranked = [similarities[name] for name in children]
        if ranked and ranked[0] < ranked[-1]:  # the store returns distances: the least is the best
            similarities = {name: -distance for name, distance in similarities.items()}
        scores = _relative_scores(similarities, by_keyword)
    keywords = dict(by_keyword.best) | by_keyword.others
    # Of equal ones, the child that has more of the question's words is first.
    ordered = sorted(
        scores.items(), key=lambda item: (-item[1], -keywords.get(item[0], 0.0), item[0])
    )
    matches = [Match(children.get(name) or Entry("", {}, name), score) for name, score in ordered]
    return matches, is_complete and has_all_keywords


def _reciprocal_ranks(*rankings: Sequence[str]) -> dict[str, float]:
    """Score children by their ranks (Cormack et al. 2009)."""
    scores: dict[str, float] = defaultdict(float)
    for ranking in rankings:
        for rank, name in enumerate(ranking, 1):
            scores[name] += 1 / (_RANK_CONSTANT + rank)
    return scores


def _relative_scores(
    similarities: Mapping[str, float], by_keyword: KeywordMatches
) -> dict[str, float]:
    """Score children by where they stand between the best and the worst on either side.

    Both sides count the same. The scores are scaled by how well anything matches at all: by the
    greatest similarity, or the share of the question that the best child by keyword covers.
    """
    keywords = dict(by_keyword.best) | by_keyword.others
    names = list(dict.fromkeys([*similarities, *keywords]))
    sides = [relative for side in (similarities, keywords) if (relative := _relative(side, names))]
    strength = min(max(by_keyword.coverage, *similarities.values(), 0.0), 1.0)
    if not sides:  # a single child, or children that cannot be told apart
        return dict.fromkeys(names, strength)
    return {name: strength * sum(side[name] for side in sides) / len(sides) for name in names}


def _relative(scores: Mapping[str, float], names: Sequence[str]) -> dict[str, float]:
    """Scale scores so that the worst is 0 and the best 1; nothing if all are the same.

    A child whose score is not known gets the worst.
    """
    worst, best = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
    if best == worst:
        return {}
    return {name: (scores.get(name, worst) - worst) / (best - worst) for name in names}


async def _find_allowed(
    stores: Stores, keywords: KeywordIndex, text: str, depth: int
) -> tuple[list[Match], bool]:
    """Do the same as `_find_nearest`, for the ids of the children that the filter lets through.

    The keyword index knows them, and a vector store takes long to evaluate a filter. So if they
    are few, their vectors are all compared; if they are many, the nearest of all children are
    searched for them. Only if these are not enough does the store evaluate the filter.
    """
    where = stores.children.where
    if where is None:
        return await _find_nearest(stores, text, depth, "id")
    allowed_count, count = await call(keywords.count_allowed, where)
    if allowed_count <= _most_compared(count):
        ids = await call(keywords.list_allowed, where)
        similarities = await stores.children.similarities(text, ids)
        best = sorted(similarities.items(), key=lambda item: (-item[1], item[0]))[:depth]
        return [Match(Entry("", {}, name), score) for name, score in best], len(ids) <= depth
    n = round(1.5 * depth * count / allowed_count)
    if n <= _most_unfiltered(count):
        nearest = await stores.children.find_unfiltered(text, n)
        allowed = await call(keywords.allowed, where, [match.child.id or "" for match in nearest])
        # Of those that tie with the last one, the store returns any.
        untied = [
            match
            for match in nearest
            if match.child.id in allowed and match.score != nearest[-1].score
        ]
        if len(untied) >= depth:
            return _order_ties(untied), False
    return await _find_nearest(stores, text, depth, "id")


def _most_compared(count: int) -> int:
    """Return how many of so many children may be compared one by one.

    In Chroma, this takes three times as long per child as finding the nearest ones, of which the
    fewer are needed, the more children pass.
    """
    return max(_MIN_COMPARED, math.isqrt(50 * count))


def _most_unfiltered(count: int) -> int:
    """Return how many of the nearest of so many children are found faster than by a filter."""
    return max(_MIN_UNFILTERED, count // 10)


async def _find_by_keyword(
    stores: Stores, keywords: KeywordIndex, text: str, depth: int, others: Sequence[str]
) -> KeywordMatches:
    """Return the best `depth` children by keyword that the filter lets through.

    The scores of the others are returned too.
    """
    children, allowed_ids = stores.children, None
    if children.has_filter and children.where is None:
        allowed_ids = await children.list_allowed()
    return await call(
        keywords.find,
        text,
        depth,
        others,
        where=children.where,
        allowed_ids=allowed_ids,
        with_neighbours=children.smoothing > 0,
    )


def _worst_score(ranking: Sequence[Match]) -> float | None:
    """Return the score that is farthest from the best child's; None if there are none."""
    scores = [match.score for match in ranking if match.score is not None]
    return max(scores, key=lambda score: abs(score - scores[0]), default=None)


def _order_ties(matches: Sequence[Match]) -> list[Match]:
    """Return the same order, but with equal scores by id: stores return these in any order."""
    scores = {match.score for match in matches}
    if None in scores or len(scores) == len(matches):
        return list(matches)
    groups = groupby(matches, key=lambda match: match.score)
    ordered = (sorted(group, key=lambda match: match.child.id or "") for _, group in groups)
    return [match for group in ordered for match in group]


def rerank_with(reranker: Reranker) -> Rerank:
    """Return a `Rerank` that asks a user's function.

    It raises ValueError if the function does not return one score for each text, and TypeError if
    it is a coroutine function and the caller is synchronous.

    >>> from rag_splitters.calls import run
    >>> by_length = rerank_with(lambda question, texts: [len(text) for text in texts])
    >>> run(by_length("", [Entry("a", {}), Entry("abc", {})]))
    [(1, 3.0), (0, 1.0)]
    """

    async def rerank(question: str, children: Sequence[Entry]) -> list[tuple[int, float | None]]:
        texts = [child.text for child in children]

        def score() -> Any:
            if inspect.iscoroutinefunction(reranker):
                raise InputTypeError(
                    "the reranker is asynchronous: use await, or pass a plain function"
                )
            return reranker(question, texts)

        async def score_async() -> Any:
            if inspect.iscoroutinefunction(reranker):
                return await reranker(question, texts)
            scores = await asyncio.to_thread(reranker, question, texts)
            return await scores if inspect.isawaitable(scores) else scores

        scores = [float(each) for each in await Call(score, score_async)]
        if len(scores) != len(texts):
            raise InputError(
                f"the reranker must return a score for each of {len(texts)} texts, "
                f"and returned {len(scores)}"
            )
        order = sorted(range(len(scores)), key=lambda number: -scores[number])
        return [(number, scores[number]) for number in order]

    return rerank


def read_order(
    children: Sequence[Entry], answer: Sequence[tuple[str, Any]]
) -> list[tuple[int, float | None]]:
    """Return the order in which a framework's reranker returned children, and their scores.

    Children are known by their text, because some rerankers drop ids.

    Parameters:
        answer: the text and the score of each child that was returned; None if it has none.

    >>> read_order([Entry("tea", {}), Entry("rain", {})], [("rain", 0.9), ("tea", None)])
    [(1, 0.9), (0, None)]
    """
    numbers = {child.text: number for number, child in enumerate(children)}
    for text, _ in answer:
        if text not in numbers:
            raise InputError(
                f"the reranker returned a text that it was not given, {text[:80]!r}: a reranker "
                "orders chunks and may leave some out; apply what rewrites texts to the results"
            )
    return [
        (numbers[text], float(score) if isinstance(score, (int, float)) else None)
        for text, score in answer
    ]
