"""From a query to parents: children are found, their parents collected; no framework, no store."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Protocol

from rag_splitters.parent_child.passages import Passage, copied, full_child

__all__ = ["Found", "SearchStores", "search_children", "search_parents"]

logger = logging.getLogger(__name__)

_CHILDREN_PER_PARENT = 4  # how many are fetched at first for each parent that is wanted


@dataclass(frozen=True, slots=True)
class Found:
    """A child that a search found, and its score where the store tells it."""

    child: Passage
    score: float | None


class SearchStores(Protocol):
    """What a search asks of a framework's stores."""

    async def find(self, query: str, n: int) -> Sequence[Found]:
        """The n children nearest to the query, best first; fewer where there are no more."""

    async def read(self, keys: Sequence[str]) -> list[Passage | None]:
        """Rows of the docstore."""


async def search_parents(stores: SearchStores, query: str, k: int, id_key: str) -> list[Passage]:
    """The k parents whose best child is nearest, with `score` and `matches` in their metadata."""
    found, parents = await _search(stores, query, k, id_key, distinct=True)
    matches: dict[str, list[Found]] = {}
    for match in found:
        matches.setdefault(match.child.metadata[id_key], []).append(match)
    results = []
    for parent_id, of_parent in list(matches.items())[:k]:
        parent = parents[parent_id]
        told = {"score": of_parent[0].score, "matches": [_match(match) for match in of_parent]}
        results.append(Passage(parent.text, copied(parent.metadata) | told, parent_id))
    return results


async def search_children(stores: SearchStores, query: str, k: int, id_key: str) -> list[Passage]:
    """The k nearest children, with `score` in their metadata."""
    found, parents = await _search(stores, query, k, id_key, distinct=False)
    results = []
    for match in found[:k]:
        child = full_child(match.child, parents[match.child.metadata[id_key]])
        child.metadata["score"] = match.score
        results.append(child)
    return results


async def _search(
    stores: SearchStores, query: str, k: int, id_key: str, *, distinct: bool
) -> tuple[list[Found], dict[str, Passage]]:
    """Children that have a parent, enough for k results if there are as many, and the parents."""
    parents: dict[str, Passage | None] = {}
    wanted, seen = (k * _CHILDREN_PER_PARENT if distinct else k), -1
    while True:
        found = _settled(await stores.find(query, wanted))
        fetched = len(found)
        found = [f for f in found if isinstance(f.child.metadata.get(id_key), str)]
        unread = list(dict.fromkeys(f.child.metadata[id_key] for f in found) - parents.keys())
        parents.update(zip(unread, await stores.read(unread), strict=True))
        present = {key: parent for key, parent in parents.items() if parent is not None}
        found = [f for f in found if f.child.metadata[id_key] in present]
        have = len({f.child.metadata[id_key] for f in found}) if distinct else len(found)
        # The second test is for stores that give fewer than asked for whatever is asked.
        if have >= k or fetched < wanted or fetched == seen:
            break
        wanted, seen = wanted * 2, fetched
    if len(present) < len(parents):
        missing = sorted(parents.keys() - present.keys())
        logger.warning(
            "%d parents of children that match are not in the docstore and were passed over: "
            "%s; add the documents again",
            len(missing),
            ", ".join(missing[:5]) + (", ..." if len(missing) > 5 else ""),
        )
    return found, present


def _settled(found: Sequence[Found]) -> list[Found]:
    """The same order, but with equal scores by id: stores give these in any order."""
    if any(match.score is None for match in found):
        return list(found)
    groups = groupby(found, key=lambda match: match.score)
    ordered = (sorted(group, key=lambda match: match.child.id or "") for _, group in groups)
    return [match for group in ordered for match in group]


def _match(found: Found) -> dict[str, Any]:
    told: dict[str, Any] = {
        key: found.child.metadata[key]
        for key in ("start_index", "end_index")
        if key in found.child.metadata
    }
    return told | {"score": found.score}
