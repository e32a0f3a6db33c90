"""Results of a query: parents, children or passages, with their score and what matched."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rag_splitters.ids import chunk_id
from rag_splitters.parent_child.records import SOURCE_KEY, Entry, restore_child
from rag_splitters.text.origin import merged_places
from rag_splitters.text.sources import copy_metadata

if TYPE_CHECKING:  # the command line shows results without importing NumPy
    from rag_splitters.parent_child.passages import Passage
    from rag_splitters.parent_child.stores import Match, Stores

# A score is a number and the matches are JSON, because the frameworks rebuild results from text and
# metadata (caches, compressors, vector stores), and a vector store accepts nothing nested. A field
# of a subclass would be lost on the way.
SCORE_KEY, MATCHES_KEY = "score", "matches"
TAKEN = "_"
"""Stands before a key of ours if the user's metadata has one of that name: theirs stays."""
PARENT_IDS_KEY = "parent_ids"
"""The key in a passage's metadata that holds the ids of all its parents, if it has several."""

_MATCH_KEYS = ("start_index", "end_index", "line_start", "line_end")
HEADER_KEY = "table_header"
"""The key in a passage's metadata that holds the header that was put before its text."""

_MAX_MATCHES = 100  # of a result; the same text may stand in thousands of places


def build_parents(
    stores: Stores, matches: Sequence[Match], parents: Mapping[str, Entry], k: int
) -> list[Entry]:
    """Return the first k parents of the children, in the order of their best child.

    A child whose text was found before is one more match of the parent that it was found in.
    Reading stops at the k-th parent, so that results do not depend on how many children were
    read.
    """
    matches_of_parents: dict[str, list[Match]] = {}
    places: dict[str, str] = {}
    for match in matches:
        name = places.setdefault(match.child.text, match.child.metadata[stores.id_key])
        matches_of_parents.setdefault(name, []).append(match)
        if len(matches_of_parents) == k:
            break
    return [
        Entry(
            parents[name].text,
            _with_keys(
                copy_metadata(parents[name].metadata),
                describe_matches(own, stores.id_key),
                parents[name].metadata,
            ),
            name,
        )
        for name, own in matches_of_parents.items()
    ]


def build_children(
    stores: Stores, matches: Sequence[Match], parents: Mapping[str, Entry], k: int
) -> list[Entry]:
    """Return the first k children with different texts; the others of a text are its matches."""
    matches_of_texts: dict[str, list[Match]] = {}
    for match in matches:
        if len(matches_of_texts) == k and match.child.text not in matches_of_texts:
            break
        matches_of_texts.setdefault(match.child.text, []).append(match)
    results = []
    for own in matches_of_texts.values():
        child = restore_match(stores, own[0], parents)
        users = _inherited(stores, parents[own[0].child.metadata[stores.id_key]])
        ours = describe_matches(own, stores.id_key)
        ours[stores.id_key] = child.metadata[stores.id_key]
        results.append(Entry(child.text, _with_keys(child.metadata, ours, users), child.id))
    return results


def build_passages(
    stores: Stores, passages: Sequence[Passage], parents: Mapping[str, Entry]
) -> list[Entry]:
    """Return passages with the metadata of their best child.

    A passage that spans several parents names them all, in the order of the text. In a rewritten
    parent, the parent's positions bound those of the passage.
    """
    results = []
    for passage in passages:
        best, inner = passage.matches[0], passage.inner_children
        parent = parents[best.parent]
        metadata = restore_match(stores, best.match, parents).metadata
        metadata.pop("chunk_index", None)
        if best.space[0] == SOURCE_KEY:
            metadata |= {"start_index": passage.start, "end_index": passage.end}
        elif parent.span is not None:
            metadata |= dict(zip(("start_index", "end_index"), parent.span, strict=True))
        metadata |= merged_places([each.match.child.metadata for each in inner])
        in_order = sorted(inner, key=lambda each: (each.offset, each.start))
        names = list(dict.fromkeys(each.parent for each in in_order))
        ours = {stores.id_key: metadata[stores.id_key]}
        if len(names) > 1:
            ours[PARENT_IDS_KEY] = names
        if passage.header:
            ours[HEADER_KEY] = passage.header
        ours |= describe_matches([each.match for each in passage.matches], stores.id_key)
        metadata = _with_keys(metadata, ours, _inherited(stores, parent))
        text = passage.header + passage.text
        new_id = chunk_id(best.parent, passage.start, passage.end, text)
        results.append(Entry(text, metadata, new_id))
    return results


def restore_match(stores: Stores, match: Match, parents: Mapping[str, Entry]) -> Entry:
    """Return a child with the metadata that its vector store could not keep."""
    parent = parents[match.child.metadata[stores.id_key]]
    return restore_child(match.child, parent, stores.inherited_keys)


def _inherited(stores: Stores, parent: Entry) -> dict[str, Any]:
    """Return the metadata that a child has from its parent."""
    keys = stores.inherited_keys
    return {k: v for k, v in parent.metadata.items() if keys is None or k in keys}


def _with_keys(
    metadata: Mapping[str, Any], ours: Mapping[str, Any], users: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the metadata of a result with keys of ours, which give way to the user's.

    >>> _with_keys({"start_index": 3}, {"score": 0.5, "matches": "[]"}, {"score": 7})
    {'start_index': 3, 'score': 7, '_score': 0.5, 'matches': '[]'}
    """
    if SCORE_KEY in users:
        ours = {SCORE_KEY: None, **ours}
    own = {TAKEN + k if k in users and k != SOURCE_KEY else k: v for k, v in ours.items()}
    theirs = copy_metadata({key: value for key, value in users.items() if key in ours})
    return {**metadata, **theirs, **own}


def own_key(metadata: Mapping[str, Any], key: str) -> str:
    """Return where the metadata of a result have a value of ours.

    >>> own_key({"score": 7, "_score": 0.5}, "score"), own_key({"score": 0.5}, "score")
    ('_score', 'score')
    """
    return TAKEN + key if TAKEN + key in metadata else key


def without_matches(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a result but for its score and matches, which differ by question."""
    ours = [own_key(metadata, key) for key in (SCORE_KEY, MATCHES_KEY)]
    return {key: value for key, value in metadata.items() if key not in ours}


def describe_matches(matches: Sequence[Match], id_key: str) -> dict[str, Any]:
    """Return the metadata that a result has of its matches, the best first.

    These are the identity of the document, the score, and position, lines and score of each match;
    of one that stands in another parent, with the same text, also the parent's id.
    """
    best = matches[0].child.metadata
    added = {key: value for key, value in best.items() if key == SOURCE_KEY}
    if matches[0].score is not None:
        added[SCORE_KEY] = float(matches[0].score)
    described = []
    for match in matches[:_MAX_MATCHES]:
        metadata = match.child.metadata
        # Some stores return numbers of NumPy's, which JSON does not take.
        score = None if match.score is None else float(match.score)
        keys = [*_MATCH_KEYS] + [id_key] * (metadata.get(id_key) != best.get(id_key))
        described.append(
            {key: metadata[key] for key in keys if key in metadata} | {SCORE_KEY: score}
        )
    return added | {MATCHES_KEY: json.dumps(described)}


def read_matches(metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the matches in the metadata of a result; none if it has none.

    >>> from rag_splitters.parent_child.stores import Match
    >>> read_matches(describe_matches([Match(Entry("", {}), 0.5)], "parent_id"))
    [{'score': 0.5}]
    """
    matches: list[dict[str, Any]] = json.loads(metadata.get(own_key(metadata, MATCHES_KEY), "[]"))
    return matches
