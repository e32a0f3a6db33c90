"""From a question to results: the way of one query, from its options to what it returns.

1. `ranking` ranks children by vector and by keyword; a reranker may order the first of them anew.
2. For parents and children, the ranked children are loaded until there are enough results.
   For passages, children lend to their neighbours (`lending`), and are taken in the order of their
   values until the budget is spent; those that touch are joined (`passages`).
3. `building` loads children, parents and the text between parents, and makes results of them;
   `budget` shortens or leaves out those that do not fit.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from rag_splitters.calls import call
from rag_splitters.parent_child.batching import batched
from rag_splitters.parent_child.budget import RESULT_SIZE, Budget, count_tokens, limit_results
from rag_splitters.parent_child.building import (
    Loader,
    build_children,
    build_parents,
    build_passages,
)
from rag_splitters.parent_child.lending import lend
from rag_splitters.parent_child.losses import were_replaced
from rag_splitters.parent_child.options import MAX_RESULTS, Query, Retrieve
from rag_splitters.parent_child.passages import Passage, PassageBuilder
from rag_splitters.parent_child.ranking import MIN_FUSED, Ranking, rank_children
from rag_splitters.parent_child.records import REPRESENTS_KEY, SOURCE_KEY, Entry, Record, record_key
from rag_splitters.parent_child.results import SCORE_KEY, free_key
from rag_splitters.parent_child.revisions import read_revision
from rag_splitters.parent_child.stores.stores import Stores

Rerank = Callable[[str, Sequence[Entry]], Awaitable[Sequence[tuple[int, float | None]]]]
"""(question, children) -> the number of each child, best first, and its score if it has one."""

_SEARCHES = 5  # while others replace what is found
_RERANKED = 100  # children that a reranker is given
# How many children are read first for each result; more follow if they are not enough.
_CHILDREN_PER_RESULT: dict[Retrieve, int] = {"passages": 10, "parents": 2, "children": 1}
_MIN_POOL = 50  # children, at least, among which passages are found
_MIN_READ = 10  # children that are read at once for passages, at least
_CHILD_SIZE = 400  # characters; a guess that decides how many children are read at once
_TOKENS_PER_RESULT = 100  # a guess that decides how much is read first for a budget


Answer = tuple[list[Entry], bool]
"""The results of a query, best first, and whether these are all that it asks for."""


async def search(stores: Stores, query: Query, rerank: Rerank | None = None) -> Answer:
    """Return the best results; their metadata has the `score` and the `matches`.

    If a document was replaced in the meantime, so that its old children or their parents are gone,
    the search is repeated, and again as long as others write, up to a limit.

    Parameters:
        rerank: scores the first children before results are made of them.

    Raises MissingParentsError if the docstore has lost parents.
    """
    revision, answers = None, list[Answer]()
    for _ in range(_SEARCHES):
        loader = Loader(stores, query)
        answers.append(await _search_once(loader, rerank))
        is_replaced = await were_replaced(stores, await loader.load_orphans())
        if not (is_replaced or loader.has_removed):
            return answers[-1]
        before, revision = revision, await read_revision(stores)
        if revision == before:
            return answers[-1]
    return max(answers, key=lambda answer: len(answer[0]))


async def _search_once(loader: Loader, rerank: Rerank | None) -> Answer:
    query, previous = loader.query, -1
    depth = _first_depth(query)
    if rerank is not None:
        depth = max(depth, query.rerank_k or _RERANKED)
    while True:
        ranking = await rank_children(loader.stores, query, depth)
        count = len(ranking.ids)
        is_last = ranking.is_complete or depth >= (query.max_children or depth + 1)
        ranking = replace(ranking, ids=ranking.ids[: query.max_children])
        if rerank is not None:
            ranking, is_last = await _rerank_children(loader, ranking, rerank), True
        answer = await _build_answer(loader, ranking)
        # The last test is for stores that never return as many as they are asked for.
        if answer[1] or is_last or count == previous:
            loader.check()
            return answer
        depth, previous = max(depth * 2, count + 1), count


def _first_depth(query: Query) -> int:
    """Return how many children are ranked first."""
    least = MIN_FUSED if query.search_type == "hybrid" else 1
    if query.retrieve == "passages":
        results = min(MAX_RESULTS, math.ceil(Budget.of(query).characters / RESULT_SIZE))
        return max(least, _MIN_POOL, results * _CHILDREN_PER_RESULT["passages"])
    depth = max(least, _first_read(query))
    return depth if query.search_type == "hybrid" else min(depth, query.max_children or depth)


def _first_read(query: Query) -> int:
    """Return how many children are read first for parents or children."""
    results = query.limit
    if query.max_tokens is not None:
        results = min(results, 1 + query.max_tokens // _TOKENS_PER_RESULT)
    return results * _CHILDREN_PER_RESULT[query.retrieve]


async def _rerank_children(loader: Loader, ranking: Ranking, rerank: Rerank) -> Ranking:
    """Put the first children into the order of a reranker, which sees equal texts once."""
    query, ids_of_texts = loader.query, defaultdict(list)
    for hit in await loader.load(ranking, ranking.ids[: query.rerank_k or _RERANKED], whole=True):
        ids_of_texts[hit.child.text].append(hit.child)
    copies = list(ids_of_texts.values())
    children = [loader.restore(own[0]) for own in copies]
    for child in children:  # some rerankers of the frameworks go by it
        child.metadata[free_key(child.metadata, SCORE_KEY)] = ranking.scores[child.id or ""]
    scores = {
        child.id or "": ranking.scores[child.id or ""] if score is None else score
        for number, score in (await rerank(query.text, children) if children else [])
        for child in copies[number]
    }
    return Ranking.of(scores, ranking.children, is_complete=True)


async def _build_answer(loader: Loader, ranking: Ranking) -> Answer:
    """Make results of the best children."""
    query = loader.query
    if query.retrieve == "passages":
        passages, is_full = await _find_passages(loader, ranking)
        return limit_results(query, build_passages(loader, passages)), is_full
    build = build_parents if query.retrieve == "parents" else build_children
    start, end = 0, _first_read(query)
    hits = []
    while True:
        hits += await loader.load(ranking, ranking.ids[start:end])
        results = build(loader, hits, query.limit)
        is_full = len(results) >= query.limit or (
            query.max_tokens is not None
            and sum(count_tokens(result.text) for result in results) >= query.max_tokens
        )
        if is_full or end >= len(ranking.ids):
            return limit_results(query, results), is_full
        start, end = end, 2 * end


async def _find_passages(loader: Loader, ranking: Ranking) -> tuple[list[Passage], bool]:
    """Return the passages that the best children make, and whether there is room for no more.

    The budget has room for as many of the best children as there are to be results.
    """
    query = loader.query
    while True:
        budget = Budget.of(query)
        if query.max_tokens is None:
            best = await loader.load(ranking, ranking.ids[: query.limit])
            budget.hold({hit.child.text: hit.end - hit.start for hit in best}.values())
        builder = PassageBuilder(budget)
        await _take_children(loader, ranking, builder, budget.characters)
        passages = builder.passages()
        if await loader.complete([hit for passage in passages for hit in passage.hits]):
            break  # otherwise some no longer exist, and the others make other passages
    is_full = builder.is_full or len(passages) >= query.limit
    return await loader.read_texts(passages), is_full


async def _take_children(
    loader: Loader, ranking: Ranking, builder: PassageBuilder, characters: int
) -> None:
    """Take children in the order of their values, until the builder is full."""
    count = max(_MIN_READ, characters // _CHILD_SIZE)
    limit = 4 * count
    seen: set[str] = set()
    while True:
        # If twice as many as there is room for lend, others change only the order of the rest.
        order = await _order_children(loader.stores, loader.query, ranking, 2 * count, limit)
        new = [name for name in order if name not in seen]
        for batch in batched(new, count):
            for hit in await loader.load(ranking, batch):
                builder.add(hit)
            if builder.is_full:
                return
        if not new:
            return
        seen.update(new)
        limit *= 4


async def _order_children(
    stores: Stores, query: Query, ranking: Ranking, lenders: int, limit: int
) -> list[str]:
    """Return the ids of the children to take, best first: the ranked ones and their neighbours.

    The keyword index knows the neighbours, and else the records of the documents do. Children that
    were chosen to be diverse lend nothing.

    Parameters:
        lenders: how many of the best children lend.
        limit: how many ids are returned at most.
    """
    values = dict(zip(ranking.ids, ranking.values(), strict=True))
    if query.search_type == "mmr":
        return list(ranking.ids[:limit])
    children = stores.children
    if stores.keywords is not None:
        is_closed = children.has_filter and children.where is None
        return await call(stores.keywords.lend, values, lenders, limit, children.where, is_closed)
    records = await _read_records(stores, ranking, lenders)
    names = list(chain.from_iterable(each.children[: each.piece_count] for each in records))
    number_of = {name: number for number, name in enumerate(names)}
    for name, child in ranking.children.items():
        if (piece := child.metadata.get(REPRESENTS_KEY)) in number_of:
            number_of[name] = number_of[piece]
    follows = np.ones(len(names), dtype=bool)
    follows[[number_of[record.children[0]] for record in records]] = False
    allowed = np.array([name in values for name in names]) if children.has_filter else None
    return lend(
        values, number_of, follows, lenders, limit, lambda new: {n: names[n] for n in new}, allowed
    )


async def _read_records(stores: Stores, ranking: Ranking, lenders: int) -> Sequence[Record]:
    """Return the records of the lenders' documents; classic's parents have none."""
    children = [
        ranking.children[name] for name in ranking.ids[:lenders] if name in ranking.children
    ]
    names = [child.metadata[SOURCE_KEY] for child in children if SOURCE_KEY in child.metadata]
    # `verify` reports damaged records, and a query does without neighbours.
    records, _ = await stores.read_sound_records(
        [record_key(name) for name in dict.fromkeys(names)]
    )
    return [each for each in records if each.is_complete and each.children]
