"""From a question to results: children are ranked, and results are built from the best of them."""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from rag_splitters.calls import Call, call
from rag_splitters.errors import InputError, InputTypeError
from rag_splitters.parent_child.budget import count_tokens
from rag_splitters.parent_child.keyword_index import KeywordIndex, KeywordMatches
from rag_splitters.parent_child.losses import were_replaced
from rag_splitters.parent_child.options import Query, Retrieve
from rag_splitters.parent_child.passages import Passage, find_passages
from rag_splitters.parent_child.records import SOURCE_KEY, Entry
from rag_splitters.parent_child.results import (
    SCORE_KEY,
    build_children,
    build_parents,
    build_passages,
)
from rag_splitters.parent_child.stores import Detail, Match, Stores
from rag_splitters.text.surrogates import without_surrogates

logger = logging.getLogger(__name__)

Reranker = Callable[[str, list[str]], Any]
"""(question, texts) -> a score for each text, higher is better; may be a coroutine function."""

RERANKED = 50
"""How many results a reranker is given."""

# How many children are read first for each result; more follow if they are not enough.
_CHILDREN_PER_RESULT: dict[Retrieve, int] = {"passages": 10, "parents": 2, "children": 1}
_MIN_NEIGHBOURS = 50  # children, at least, among which a passage finds its neighbours
_TOKENS_PER_RESULT = 100  # a guess that decides how much is read first for a budget
_MIN_FUSED = 100  # children of each ranking that are read, at least, before they are fused
_MIN_COMPARED = 250  # children that a filter lets through, and that are compared in any case
_MIN_UNFILTERED = 500  # nearest children that are searched, in any case, for those that pass
_MAX_TIED = 1000  # children with one score that are put in order
_RANK_CONSTANT = 60  # of reciprocal rank fusion, as its authors set it


def first_read(query: Query) -> int:
    """Return how many children are read first."""
    least = _MIN_NEIGHBOURS if query.retrieve == "passages" else 1
    k = query.limit
    if query.max_tokens is not None:
        k = min(k, 1 + query.max_tokens // _TOKENS_PER_RESULT)
    return max(k * _CHILDREN_PER_RESULT[query.retrieve], least)


def first_depth(query: Query) -> int:
    """Return how many children are ranked first."""
    depth = first_read(query)
    if query.search_type == "hybrid":
        return max(depth, _MIN_FUSED)
    return min(depth, query.max_children or depth)


def is_enough(query: Query, results: Sequence[Entry]) -> bool:
    """Return whether a query needs no more results."""
    if len(results) >= query.limit or query.max_tokens is None:
        return len(results) >= query.limit
    return sum(count_tokens(result.text) for result in results) >= query.max_tokens


async def search(stores: Stores, query: Query) -> list[Entry]:
    """Return the k best results, best first.

    Their metadata has the `score` and the `matches`. If a document was replaced in the meantime, so
    that the parents of the old version are gone, the search is repeated once.

    Raises MissingParentsError if the docstore has lost parents.
    """
    children, parents, results = await _search_once(stores, query)
    if await were_replaced(stores, children, parents):
        children, parents, results = await _search_once(stores, query)
        await were_replaced(stores, children, parents)
    return results


async def _search_once(
    stores: Stores, query: Query
) -> tuple[list[Match], dict[str, Entry | None], list[Entry]]:
    depth, previous = first_depth(query), -1
    parents: dict[str, Entry | None] = {}
    while True:
        ranking, is_complete = await _rank_children(stores, query, depth)
        if query.max_children is not None:
            is_complete = is_complete or depth >= query.max_children
            ranking = ranking[: query.max_children]
        children, results = await _results_from_ranking(stores, query, ranking, parents)
        # The last test is for stores that never return as many as they are asked for.
        if is_enough(query, results) or is_complete or len(ranking) == previous:
            break
        depth, previous = max(depth * 2, len(ranking) + 1), len(ranking)
    if children and not _children_with_parent(stores, children):
        raise _no_parents_error(stores, children)
    return children, parents, results


async def _results_from_ranking(
    stores: Stores, query: Query, ranking: Sequence[Match], parents: dict[str, Entry | None]
) -> tuple[list[Match], list[Entry]]:
    """Load children from the top of the ranking until they yield k results.

    Only hybrid search ranks children that are not loaded yet. `parents` collects what was read.
    """
    children: list[Match] = []
    start, end = 0, len(ranking)
    if query.search_type == "hybrid":
        end = first_read(query)
    while True:
        batch = ranking[start:end]
        children += await _load(stores, query, batch) if query.search_type == "hybrid" else batch
        matches = await _load_parents(stores, children, parents)
        results = await _build_results(stores, query, matches, parents, _worst_score(ranking))
        if is_enough(query, results) or end >= len(ranking):
            return children, results
        start, end = end, 2 * end


async def _rank_children(stores: Stores, query: Query, depth: int) -> tuple[list[Match], bool]:
    """Return the best `depth` children above the threshold, and whether there are no more."""
    if query.search_type == "hybrid":
        ranking, is_complete = await _fuse(stores, query, depth)
    elif query.search_type == "mmr":
        pool = max(query.fetch_k, depth)
        ranking = await stores.children.find_diverse(query.text, depth, pool, query.lambda_mult)
        is_complete = len(ranking) < depth
    else:
        ranking, is_complete = await _find_nearest(stores, query.text, depth)
    threshold = query.score_threshold
    if query.search_type == "similarity_score_threshold":
        threshold = threshold or 0.0
    if threshold is None:
        return ranking, is_complete
    if any(match.score is None for match in ranking):
        raise InputError("a threshold needs scores, and this vector store returns none")
    good = [match for match in ranking if (match.score or 0.0) >= threshold]
    is_sorted = query.search_type != "mmr"
    return good, is_complete or (is_sorted and len(good) < len(ranking))


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
        keywords.find, text, depth, others, where=children.where, allowed_ids=allowed_ids
    )


async def _load(stores: Stores, query: Query, matches: Sequence[Match]) -> list[Match]:
    """Return the matches with loaded or located children, without those that no longer exist."""
    ids = [match.child.id or "" for match in matches if not match.child.metadata]
    located = await _locate(stores, query, ids)
    others = [name for name in ids if name not in located]
    loaded = dict(zip(others, await stores.children.read(others), strict=True))
    existing_matches = []
    for match in matches:
        name = match.child.id or ""
        child = located.get(name) or loaded.get(name, match.child)
        if child is not None:
            existing_matches.append(Match(child, match.score, is_located=name in located))
    return existing_matches


async def _locate(stores: Stores, query: Query, ids: Sequence[str]) -> dict[str, Entry]:
    """Return the children whose places in their parents the keyword index knows, without text.

    That is enough to find parents and passages, and much faster than reading a child from the
    vector store. The vector store must have told the similarities, and so that the children exist.
    """
    is_enough = query.retrieve != "children" and query.fusion == "relative"
    if not is_enough or stores.keywords is None or not stores.children.tells_similarities:
        return {}
    children = {}
    for name, place in (await call(stores.keywords.locate, ids, stores.id_key)).items():
        positions = {"start_index": place.start_index, "end_index": place.end_index}
        children[name] = Entry("", {stores.id_key: place.parent, **positions}, name)
    return children


async def _load_parents(
    stores: Stores, children: Sequence[Match], parents: dict[str, Entry | None]
) -> list[Match]:
    """Return the children whose parents are in the docstore.

    The parents that are read are added to `parents`. Children that are only located get their text.
    """
    key = stores.id_key
    children = _children_with_parent(stores, children)
    ids = list(dict.fromkeys(match.child.metadata[key] for match in children))
    unread = [name for name in ids if name not in parents]
    if unread:
        parents.update(zip(unread, await stores.docstore.read(unread), strict=True))
    pairs = [(match, parents[match.child.metadata[key]]) for match in children]
    return [_with_text(match, parent) for match, parent in pairs if parent is not None]


def _with_text(match: Match, parent: Entry) -> Match:
    """Return a match whose child has its text, and its document's identity, from its parent."""
    if not match.is_located or match.child.text or parent.span is None:
        return match
    child, offset = match.child, parent.span[0]
    span = slice(child.metadata["start_index"] - offset, child.metadata["end_index"] - offset)
    metadata = child.metadata | {SOURCE_KEY: without_surrogates(parent.id or "")}
    return replace(match, child=Entry(parent.text[span], metadata, child.id))


async def _build_results(
    stores: Stores,
    query: Query,
    matches: Sequence[Match],
    parents: Mapping[str, Entry | None],
    worst: float | None,
) -> list[Entry]:
    present = {name: parent for name, parent in parents.items() if parent is not None}
    if query.retrieve == "parents":
        return build_parents(stores, matches, present, query.limit)
    if query.retrieve == "children":
        return build_children(stores, matches, present, query.limit)
    passages = await _find_passages(stores, query, matches, present, worst)
    return build_passages(stores, passages, present)


async def _find_passages(
    stores: Stores,
    query: Query,
    matches: Sequence[Match],
    parents: Mapping[str, Entry],
    worst: float | None,
) -> list[Passage]:
    """Find passages, and load their children."""
    size, threshold = query.passage_size, query.passage_threshold
    while True:
        passages = find_passages(
            matches, parents, stores.id_key, query.limit, worst, size, threshold
        )
        used_matches = [child.match for passage in passages for child in passage.children]
        ids = list(dict.fromkeys(m.child.id or "" for m in used_matches if m.is_located))
        children = dict(zip(ids, await stores.children.read(ids), strict=True))
        loaded = {name: child for name, child in children.items() if child is not None}
        if len(loaded) == len(ids):
            return [passage.with_children(loaded) for passage in passages]
        removed_ids = children.keys() - loaded.keys()
        matches = [match for match in matches if match.child.id not in removed_ids]


def _worst_score(ranking: Sequence[Match]) -> float | None:
    """Return the score that is farthest from the best child's; None if there are none."""
    scores = [match.score for match in ranking if match.score is not None]
    return max(scores, key=lambda score: abs(score - scores[0]), default=None)


def _children_with_parent(stores: Stores, children: Sequence[Match]) -> list[Match]:
    """Return the children that name a parent; the others belong to another program."""
    return [m for m in children if isinstance(m.child.metadata.get(stores.id_key), str)]


def _order_ties(matches: Sequence[Match]) -> list[Match]:
    """Return the same order, but with equal scores by id: stores return these in any order."""
    scores = {match.score for match in matches}
    if None in scores or len(scores) == len(matches):
        return list(matches)
    groups = groupby(matches, key=lambda match: match.score)
    ordered = (sorted(group, key=lambda match: match.child.id or "") for _, group in groups)
    return [match for group in ordered for match in group]


def _no_parents_error(stores: Stores, children: Sequence[Match]) -> InputError:
    keys = ", ".join(sorted(children[0].child.metadata))
    return InputError(
        f"none of the {len(children)} children that match names its parent under "
        f"id_key={stores.id_key!r}; the first has {keys}: set id_key to the key that holds the "
        "parent's id (langchain_classic's retriever uses 'doc_id')"
    )


def for_reranking(query: Query) -> Query:
    """Return the query whose results a reranker puts into order."""
    changes = {"k": max(query.limit, query.rerank_k or RERANKED), "max_tokens": None}
    return query.model_copy(update=changes)


async def rerank(reranker: Reranker, question: str, results: Sequence[Entry]) -> list[Entry]:
    """Order results by the scores of a reranker, which replace their own.

    Raises ValueError if the reranker does not return one score for each text, and TypeError if it
    is a coroutine function and the caller is synchronous.

    >>> from rag_splitters.calls import run
    >>> results = [Entry("a", {}), Entry("abc", {})]
    >>> by_length = lambda question, texts: [len(text) for text in texts]
    >>> [result.text for result in run(rerank(by_length, "", results))]
    ['abc', 'a']
    """
    if not results:
        return []
    texts = [result.text for result in results]

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

    scores = [float(score) for score in await Call(score, score_async)]
    if len(scores) != len(results):
        raise InputError(
            f"the reranker must return a score for each of {len(results)} texts, "
            f"and returned {len(scores)}"
        )
    order = sorted(range(len(scores)), key=lambda number: -scores[number])
    return [
        replace(results[n], metadata={**results[n].metadata, SCORE_KEY: scores[n]}) for n in order
    ]
