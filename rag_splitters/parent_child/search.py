"""From a question to results: children are found, and parents or passages made of them."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal, get_args

from rag_splitters.parent_child.keywords import KeywordIndex
from rag_splitters.parent_child.merging import match_of, merged_passages, source_of
from rag_splitters.parent_child.passages import Passage, copied, full_child
from rag_splitters.parent_child.stores import Detail, Found, Stores

__all__ = ["Crowding", "Query", "Retrieve", "SearchType", "search"]

logger = logging.getLogger(__name__)

Retrieve = Literal["parents", "children", "merged"]
SearchType = Literal["similarity", "similarity_score_threshold", "mmr", "hybrid"]

# How many are fetched at first for each result; each costs time, and more follow if need be.
_CHILDREN_PER_RESULT: dict[Retrieve, int] = {"parents": 2, "children": 1, "merged": 4}
_LEAST_FUSED = 50  # how deep two rankings are read, at least, before they are fused
_MOST_TIED = 1000  # how many children with one score are put in order
_RANK_CONSTANT = 60  # of reciprocal rank fusion, as its authors set it


@dataclass(slots=True)
class Crowding:
    """How many children to fetch at first for each parent: enough for nine in ten questions."""

    children: float = 1.0

    def learn(self, *, were_enough: bool) -> None:
        """Take a question into account."""
        self.children = max(1.0, self.children + (-0.025 if were_enough else 0.225))


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

    @property
    def detail(self) -> Detail:
        """What has to be known of a child: for its parent's sake, not its text."""
        return "metadata" if self.retrieve == "parents" else "text"

    def __post_init__(self) -> None:
        """Check what may have been set since the retriever was made."""
        for name, kinds in (("retrieve", Retrieve), ("search_type", SearchType)):
            value = getattr(self, name)
            if value not in get_args(kinds):
                known = ", ".join(get_args(kinds))
                raise ValueError(f"{name} must be one of {known}, got {value!r}")
        for name in ("k", "fetch_k", "merged_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")


async def search(stores: Stores, query: Query, crowding: Crowding) -> list[Passage]:
    """The k best results, best first, with `score` and, but for children, `matches` told.

    What is found does not depend on the crowding.
    """
    depth, seen = query.k * _CHILDREN_PER_RESULT[query.retrieve], -1
    if query.search_type == "hybrid":
        depth = max(depth, _LEAST_FUSED)
    is_guessed = query.retrieve == "parents" and query.search_type not in ("hybrid", "mmr")
    depth = round(query.k * crowding.children) if is_guessed else depth
    parents: dict[str, Passage | None] = {}
    while True:
        ranked, is_all = await _candidates(stores, query, depth)
        found, results = await _made(stores, query, ranked, parents)
        if is_guessed and seen < 0 and not is_all:
            crowding.learn(were_enough=len(results) >= query.k)
        # The last test is for stores that give fewer than asked for whatever is asked.
        if len(results) >= query.k or is_all or len(ranked) == seen:
            break
        depth, seen = max(depth * 2, len(ranked) + 1), len(ranked)
    if found and not _tied(found, stores.id_key):
        raise _untied(found, stores.id_key)
    _warn_of_missing(parents)
    return results


async def _made(
    stores: Stores, query: Query, ranked: Sequence[Found], parents: dict[str, Passage | None]
) -> tuple[list[Found], list[Passage]]:
    """The children that had to be read, and the results that they make.

    Hybrid search ranks many children by their ids: the best are read, then more if need be.
    """
    reach = len(ranked)
    if query.search_type == "hybrid" and query.retrieve != "merged":
        reach = query.k * _CHILDREN_PER_RESULT[query.retrieve]
    found: list[Found] = []
    done = 0
    while True:
        more = ranked[done:reach]
        found += await _read(stores, query, more) if query.search_type == "hybrid" else more
        held = await _held(stores, query, found, parents)
        results = await _results(stores, query, held, parents)
        if len(results) >= query.k or reach >= len(ranked):
            return found, results
        done, reach = reach, 2 * reach


async def _candidates(stores: Stores, query: Query, depth: int) -> tuple[list[Found], bool]:
    """The best `depth` children, and whether there are no more."""
    if query.search_type == "hybrid":
        return await _fused(stores, query.text, depth)
    if query.search_type == "mmr":
        pool = max(query.fetch_k, depth)
        found = await stores.children.find_diverse(query.text, depth, pool, query.lambda_mult)
        return found, len(found) < depth
    found, is_all = await _nearest(stores, query.text, depth, query.detail)
    if query.search_type == "similarity":
        return found, is_all
    if any(match.score is None for match in found):
        raise ValueError("the vector store tells no scores: a score_threshold cannot be held")
    good = [match for match in found if (match.score or 0.0) >= query.score_threshold]
    return good, is_all or len(good) < len(found)


async def _nearest(
    stores: Stores, text: str, depth: int, detail: Detail
) -> tuple[list[Found], bool]:
    """The nearest children, at least `depth` of them, and whether there are no more.

    Equal scores are in the order of the ids. A store gives any of those that score like its last:
    they are left out, unless they are very many.
    """
    n = depth + 1
    while True:
        found = await stores.children.find(text, n, detail)
        if len(found) < n or found[-1].score is None:
            return _settled(found), len(found) < n
        sure = [match for match in found if match.score != found[-1].score]
        if len(sure) >= depth:
            return _settled(sure), False
        if n > depth + _MOST_TIED:
            return _settled(found), False
        n *= 2


async def _fused(stores: Stores, text: str, depth: int) -> tuple[list[Found], bool]:
    """Neighbours by vector and by keyword, fused by reciprocal rank (Cormack et al. 2009).

    Those that the vector store has told no more of than their ids are to be read.
    """
    if stores.keywords is None:
        raise ValueError("search_type='hybrid' needs a keyword index")
    near, no_more_near = await _nearest(stores, text, depth, "id")
    children = {match.child.id or "": match.child for match in near}
    by_keyword, no_more_worded = await _worded(stores, stores.keywords, text, depth, children)
    scores: dict[str, float] = defaultdict(float)
    for ranking in (children, by_keyword):
        for rank, name in enumerate(ranking, 1):
            scores[name] += 1 / (_RANK_CONSTANT + rank)
    ordered = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    found = [Found(children.get(name) or Passage("", {}, name), score) for name, score in ordered]
    return found, no_more_near and no_more_worded


async def _worded(
    stores: Stores, keywords: KeywordIndex, text: str, depth: int, known: Collection[str]
) -> tuple[list[str], bool]:
    """The best `depth` children by keyword, and whether there are no more.

    Those that a filter refuses do not count; the `known` children it lets through.
    """
    n = depth
    while True:
        found = await stores.call(keywords.find, text, n, stores.children.smoothing)
        names = [name for name, _ in found]
        others = await stores.children.allowed([name for name in names if name not in known])
        kept = {*known, *others}
        allowed = [name for name in names if name in kept]
        if len(allowed) >= depth or len(found) < n:
            return allowed[:depth], len(found) < n
        n *= 4


async def _read(stores: Stores, query: Query, found: Sequence[Found]) -> list[Found]:
    """The same with what is asked of each child, without those that are not there any more."""
    unread = [match.child.id or "" for match in found if not match.child.metadata]
    read = dict(zip(unread, await stores.children.read(unread, query.detail), strict=True))
    pairs = [(read.get(match.child.id or "", match.child), match.score) for match in found]
    return [Found(child, score) for child, score in pairs if child is not None]


def _tied(found: Sequence[Found], id_key: str) -> list[Found]:
    """The children that name a parent; one that names none is another program's."""
    return [match for match in found if isinstance(match.child.metadata.get(id_key), str)]


async def _held(
    stores: Stores, query: Query, found: Sequence[Found], parents: dict[str, Passage | None]
) -> list[Found]:
    """The children up to the one that brings the k-th parent that is in the docstore.

    Of more there would be more matches, but how many were fetched shall not tell in the results.
    `parents` remembers what was read.
    """
    key = stores.id_key
    tied = _tied(found, key)
    names = list(dict.fromkeys(match.child.metadata[key] for match in tied))
    enough = len(names) if query.retrieve == "merged" else query.k
    while True:
        first = [name for name in names if parents.get(name, name) is not None][:enough]
        unread = [name for name in first if name not in parents]
        if not unread:
            break
        parents.update(zip(unread, await stores.rows.read(unread), strict=True))
    kept = set(first)
    held = [match for match in tied if match.child.metadata[key] in kept]
    if query.retrieve != "parents" or len(first) < query.k:
        return held
    return held[: [match.child.metadata[key] for match in held].index(first[-1]) + 1]


def _untied(found: Sequence[Found], id_key: str) -> ValueError:
    keys = ", ".join(sorted(found[0].child.metadata))
    return ValueError(
        f"none of the {len(found)} children that were found names its parent under "
        f"id_key={id_key!r}; the first has {keys}: set id_key to the key that holds the parent's "
        "id (langchain_classic's retriever uses 'doc_id')"
    )


async def _results(
    stores: Stores, query: Query, found: Sequence[Found], parents: dict[str, Passage | None]
) -> list[Passage]:
    key = stores.id_key
    present = {name: parent for name, parent in parents.items() if parent is not None}
    if query.retrieve == "parents":
        return _parents(found, present, key)
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
    """The parents of the children, in the order of their best child."""
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
    if None in (scores := {match.score for match in found}) or len(scores) == len(found):
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
