"""Builds the results of a query: parents, children or passages, with score and matches."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rag_splitters.ids import chunk_id
from rag_splitters.parent_child.loading import Loader
from rag_splitters.parent_child.passages import Hit, Passage
from rag_splitters.parent_child.records import SOURCE_KEY, Entry
from rag_splitters.parent_child.results import (
    HEADER_KEY,
    MATCHES_KEY,
    PARENT_IDS_KEY,
    SCORE_KEY,
    TAKEN,
)
from rag_splitters.text.origin import merged_places
from rag_splitters.text.sources import copy_metadata

_MATCH_KEYS = ("start_index", "end_index", "line_start", "line_end")
_MAX_MATCHES = 100  # of a result; the same text may stand in thousands of places


def build_parents(loader: Loader, hits: Sequence[Hit], k: int) -> list[Entry]:
    """Return the first k parents of the children, in the order of their best child.

    A child whose text was found before is one more match of the parent that it was found in.
    Reading stops at the k-th parent, so that results do not depend on how many children were
    read.
    """
    hits_of_parents: dict[str, list[Hit]] = {}
    places: dict[str, str] = {}
    for hit in hits:
        hits_of_parents.setdefault(places.setdefault(hit.child.text, hit.parent), []).append(hit)
        if len(hits_of_parents) == k:
            break
    results = []
    for name, own in hits_of_parents.items():
        parent = loader.parents[name]
        ours = _describe_matches(own)
        metadata = _with_keys(copy_metadata(parent.metadata), ours, parent.metadata)
        results.append(Entry(parent.text, metadata, name))
    return results


def build_children(loader: Loader, hits: Sequence[Hit], k: int) -> list[Entry]:
    """Return the first k children with different texts; the others of a text are its matches."""
    hits_of_texts: dict[str, list[Hit]] = {}
    for hit in hits:
        if len(hits_of_texts) == k and hit.child.text not in hits_of_texts:
            break
        hits_of_texts.setdefault(hit.child.text, []).append(hit)
    results = []
    for own in hits_of_texts.values():
        child = loader.restore(own[0].child)
        ours = {**_describe_matches(own), own[0].id_key: own[0].parent}
        metadata = _with_keys(child.metadata, ours, loader.inherited(own[0]))
        results.append(Entry(child.text, metadata, child.id))
    return results


def build_passages(loader: Loader, passages: Sequence[Passage]) -> list[Entry]:
    """Return passages with the metadata of their best child.

    A passage that spans several parents names them all, in the order of the text. In a rewritten
    parent, the parent's positions bound those of the passage.
    """
    results = []
    for passage in passages:
        best, names = passage.best, passage.parents
        parent = loader.parents[best.parent]
        metadata = loader.restore(best.child).metadata
        metadata.pop("chunk_index", None)
        if best.space[0] == SOURCE_KEY:
            metadata |= {"start_index": passage.start, "end_index": passage.end}
        elif parent.span is not None:
            metadata |= dict(zip(("start_index", "end_index"), parent.span, strict=True))
        metadata |= merged_places([hit.child.metadata for hit in passage.children])
        ours: dict[str, Any] = {best.id_key: best.parent}
        if len(names) > 1:
            ours[PARENT_IDS_KEY] = names
        if passage.header:
            ours[HEADER_KEY] = passage.header
        ours |= _describe_matches(passage.matches)
        metadata = _with_keys(metadata, ours, loader.inherited(best))
        text = passage.header + passage.text
        new_id = chunk_id(best.parent, passage.start, passage.end, text)
        results.append(Entry(text, metadata, new_id))
    return results


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


def _describe_matches(hits: Sequence[Hit]) -> dict[str, Any]:
    """Return the metadata that a result has of its matches, the best first.

    These are the identity of the document, the score, and position, lines and score of each match;
    of one that stands in another parent, with the same text, also the parent's id.
    """
    best = hits[0]
    added = {key: value for key, value in best.child.metadata.items() if key == SOURCE_KEY}
    if best.score is not None:
        added[SCORE_KEY] = float(best.score)
    described = []
    for hit in hits[:_MAX_MATCHES]:
        keys = [*_MATCH_KEYS] + [hit.id_key] * (hit.parent != best.parent)
        place = {key: hit.child.metadata[key] for key in keys if key in hit.child.metadata}
        # Some stores return numbers of NumPy's, which JSON does not take.
        described.append(place | {SCORE_KEY: None if hit.score is None else float(hit.score)})
    return added | {MATCHES_KEY: json.dumps(described)}
