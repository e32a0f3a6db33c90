"""From a question to results: children are found, and parents or passages made of them."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

from rag_splitters.parent_child.merging import match_of, merged_passages, source_of
from rag_splitters.parent_child.passages import Passage, copied, full_child
from rag_splitters.parent_child.stores import Found, Stores

__all__ = ["Query", "Retrieve", "SearchType", "search"]

logger = logging.getLogger(__name__)

Retrieve = Literal["parents", "children", "merged"]
SearchType = Literal["similarity", "similarity_score_threshold", "mmr", "hybrid"]

_CHILDREN_PER_RESULT = 4  # how many are fetched at first for each result made of several
_LEAST_FUSED = 50  # how deep two rankings are read, at least, before they are fused
_RANK_CONSTANT = 60  # of reciprocal rank fusion, as its authors set it


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question and how it is to be answered."""

    text: str
    k: int
    retrieve: Retrieve = "parents"
    search_type: SearchType = "similarity"
    score_threshold: float = 0.0
    fetch_k: int = 20
    lambda_mult: float = 0.5
    merged_size: int = 2000


async def search(stores: Stores, query: Query) -> list[Passage]:
    """The k best results, best first, with `score` and, but for children, `matches` told."""
    depth, seen = query.k * (1 if query.retrieve == "children" else _CHILDREN_PER_RESULT), -1
    parents: dict[str, Passage | None] = {}
    while True:
        found, is_all = await _candidates(stores, query, depth)
        held = await _held(stores, found, parents)
        results = await _results(stores, query, held, parents)
        # The last test is for stores that give fewer than asked for whatever is asked.
        if len(results) >= query.k or is_all or len(found) == seen:
            break
        depth, seen = depth * 2, len(found)
    _warn_of_missing(parents)
    return results


async def _candidates(stores: Stores, query: Query, depth: int) -> tuple[list[Found], bool]:
    """The best `depth` children, and whether there are no more."""
    if query.search_type == "hybrid":
        return await _fused(stores, query.text, max(depth, _LEAST_FUSED))
    if query.search_type == "mmr":
        pool = max(query.fetch_k, depth)
        found = await stores.children.find_diverse(query.text, depth, pool, query.lambda_mult)
        return found, len(found) < depth
    found = _settled(await stores.children.find(query.text, depth))
    if query.search_type == "similarity":
        return found, len(found) < depth
    if any(match.score is None for match in found):
        raise ValueError("the vector store tells no scores: a score_threshold cannot be held")
    good = [match for match in found if (match.score or 0.0) >= query.score_threshold]
    return good, len(good) < depth


async def _fused(stores: Stores, text: str, depth: int) -> tuple[list[Found], bool]:
    """Neighbours by vector and by keyword, fused by reciprocal rank (Cormack et al. 2009)."""
    if stores.keywords is None:
        raise ValueError("search_type='hybrid' needs a keyword index")
    near = _settled(await stores.children.find(text, depth))
    smoothing = stores.children.smoothing
    worded = await stores.call(stores.keywords.find, text, depth, smoothing)
    children = {match.child.id or "": match.child for match in near}
    unread = [name for name, _ in worded if name not in children]
    read = zip(unread, await stores.children.read(unread, filtered=True), strict=True)
    children.update({name: child for name, child in read if child is not None})
    scores: dict[str, float] = defaultdict(float)
    for ranking in ([match.child.id or "" for match in near], [name for name, _ in worded]):
        for rank, name in enumerate(filter(children.__contains__, ranking), 1):
            scores[name] += 1 / (_RANK_CONSTANT + rank)
    ordered = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    is_all = len(near) < depth and len(worded) < depth
    return [Found(children[name], score) for name, score in ordered], is_all


async def _held(
    stores: Stores, found: Sequence[Found], parents: dict[str, Passage | None]
) -> list[Found]:
    """The children that have a parent in the docstore; `parents` remembers what was read."""
    key = stores.id_key
    tied = [match for match in found if isinstance(match.child.metadata.get(key), str)]
    if found and not tied:
        keys = ", ".join(sorted(found[0].child.metadata))
        raise ValueError(
            f"none of the {len(found)} children that were found names its parent under "
            f"id_key={key!r}; the first has {keys}: set id_key to the key that holds the parent's "
            "id (langchain_classic's retriever uses 'doc_id')"
        )
    unread = list(dict.fromkeys(match.child.metadata[key] for match in tied) - parents.keys())
    parents.update(zip(unread, await stores.rows.read(unread), strict=True))
    return [match for match in tied if parents[match.child.metadata[key]] is not None]


async def _results(
    stores: Stores, query: Query, found: Sequence[Found], parents: dict[str, Passage | None]
) -> list[Passage]:
    key = stores.id_key
    present = {name: parent for name, parent in parents.items() if parent is not None}
    if query.retrieve == "parents":
        return _parents(found, present, key)[: query.k]
    if query.retrieve == "merged":
        return await merged_passages(stores, found, present, query.k, query.merged_size)
    return [
        _told(
            full_child(m.child, present[m.child.metadata[key]], stores.inherited),
            **source_of(m),
            score=m.score,
        )
        for m in found[: query.k]
    ]


def _parents(found: Sequence[Found], parents: dict[str, Passage], id_key: str) -> list[Passage]:
    """The parents in the order of their best child."""
    matches: dict[str, list[Found]] = {}
    for match in found:
        matches.setdefault(match.child.metadata[id_key], []).append(match)
    return [
        _told(
            Passage(parents[name].text, copied(parents[name].metadata), name),
            **source_of(of_parent[0]),
            score=of_parent[0].score,
            matches=[match_of(match) for match in of_parent],
        )
        for name, of_parent in matches.items()
    ]


def _told(passage: Passage, **facts: Any) -> Passage:
    passage.metadata.update(facts)
    return passage


def _settled(found: Sequence[Found]) -> list[Found]:
    """The same order, but with equal scores by id: stores give these in any order."""
    if any(match.score is None for match in found):
        return list(found)
    groups = groupby(found, key=lambda match: match.score)
    ordered = (sorted(group, key=lambda match: match.child.id or "") for _, group in groups)
    return [match for group in ordered for match in group]


def _warn_of_missing(parents: dict[str, Passage | None]) -> None:
    missing = sorted(name for name, parent in parents.items() if parent is None)
    if missing:
        logger.warning(
            "%d parents of children that match are not in the docstore and were passed over: "
            "%s; add the documents again, or repair the index with verify(repair=True)",
            len(missing),
            ", ".join(missing[:5]) + (", ..." if len(missing) > 5 else ""),
        )
