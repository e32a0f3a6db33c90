"""From children to results: loading parents and the text between them, and building results."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rag_splitters.calls import call
from rag_splitters.ids import chunk_id
from rag_splitters.parent_child.errors import wrong_id_key
from rag_splitters.parent_child.metadata import restore_child
from rag_splitters.parent_child.options import Query
from rag_splitters.parent_child.passages import Hit, Passage, split_at_parents
from rag_splitters.parent_child.ranking import Ranking
from rag_splitters.parent_child.records import REPRESENTS_KEY, SOURCE_KEY, Entry, Record, record_key
from rag_splitters.parent_child.results import (
    HEADER_KEY,
    MATCHES_KEY,
    PARENT_IDS_KEY,
    SCORE_KEY,
    free_key,
)
from rag_splitters.parent_child.stores.stores import Stores
from rag_splitters.text.origin import merged_places, places_of
from rag_splitters.text.sources import copy_metadata
from rag_splitters.text.surrogates import without_surrogates

_MATCH_KEYS = ("start_index", "end_index", "line_start", "line_end")
_MAX_MATCHES = 100  # of a result; the same text may stand in thousands of places


class Loader:
    """Loads children and parents for one query, each once."""

    def __init__(self, stores: Stores, query: Query) -> None:
        self.stores, self.query = stores, query
        self.parents: dict[str, Entry] = {}
        """The parents that were read, by id."""
        self._missing_parents: set[str] = set()
        self._children: dict[str, Entry | None] = {}
        """The children that were looked for, by id; None for those that no longer exist."""
        self._partial: set[str] = set()
        """The children of which only text, parent and positions are known."""

    async def load(self, ranking: Ranking, ids: Sequence[str], *, whole: bool = False) -> list[Hit]:
        """Load children and their parents, and leave out the children without either.

        Parameters:
            whole: whether all the metadata of the children is needed.
        """
        new = [name for name in ids if name not in self._children]
        if new:
            await self._load_children(new, ranking.children)
        if whole:
            await self._complete(ids)
        children = [child for name in ids if (child := self._children[name]) is not None]
        return [
            Hit.of(child, ranking, self.parents[name], self.stores.id_key)
            for child in children
            if (name := self._parent_id(child)) in self.parents
        ]

    async def complete(self, hits: Sequence[Hit]) -> bool:
        """Load all the metadata of children; False if some no longer exist."""
        await self._complete([hit.id for hit in hits])
        for hit in hits:
            child = self._children[hit.id]
            if child is None:
                return False
            hit.child = child
        return True

    async def read_texts(self, passages: Sequence[Passage]) -> list[Passage]:
        """Give passages their texts, and split those for which the document has changed."""
        documents = {
            passage: self.parents[passage.parents[0]].id or ""
            for passage in passages
            if len(passage.parents) > 1
        }
        keys = [record_key(name) for name in dict.fromkeys(documents.values())]
        # `verify` reports damaged records; the parts in the parents can be returned.
        records, _ = await self.stores.read_sound_records(keys)
        by_identity = {record.identity: record for record in records}
        split: list[Passage] = []
        for passage in passages:
            if passage in documents:
                text = self._read_document(passage, by_identity.get(documents[passage]))
                if text is None:
                    split += split_at_parents(passage)
                    continue
                passage.text = text
            split.append(passage)
        for passage in split:
            own = passage.children[0].slice_parent(passage.start, passage.end)
            passage.text = passage.text or own
        return split

    def restore(self, child: Entry) -> Entry:
        """Return a child with the metadata that its vector store could not keep."""
        parent = self.parents[str(self._parent_id(child))]
        return restore_child(child, parent, self.stores.inherited_keys)

    def inherited(self, hit: Hit) -> dict[str, Any]:
        """Return the metadata that a child has from its parent."""
        metadata, keys = self.parents[hit.parent].metadata, self.stores.inherited_keys
        return {k: v for k, v in metadata.items() if keys is None or k in keys}

    def check(self) -> None:
        """Raise ValueError if no child names its parent."""
        children, key = self.children, self.stores.id_key
        if children and not any(isinstance(self._parent_id(child), str) for child in children):
            raise wrong_id_key([child.metadata for child in children], key)

    @property
    def children(self) -> list[Entry]:
        """The children that were loaded."""
        return [child for child in self._children.values() if child is not None]

    @property
    def has_removed(self) -> bool:
        """Whether the search found children that no longer exist."""
        return None in self._children.values()

    async def load_orphans(self) -> list[Entry]:
        """Load the children whose parents are missing, with all their metadata."""
        names = [
            child.id or ""
            for child in self.children
            if self._parent_id(child) in self._missing_parents
        ]
        await self._complete(names)
        return [child for name in names if (child := self._children[name]) is not None]

    async def _load_children(self, ids: Sequence[str], whole: Mapping[str, Entry]) -> None:
        """Load or locate children, and load their parents.

        Parameters:
            whole: the children that the search returned with metadata and text.
        """
        unread = [name for name in ids if name not in whole]
        located = await self._locate(unread)
        children: dict[str, Entry | None] = {name: whole.get(name) for name in ids}
        if others := [name for name in unread if name not in located]:
            try:
                read = await self.stores.children.read(others)
                children |= dict(zip(others, read, strict=True))
            except NotImplementedError:  # a vector store that cannot look up neighbours
                pass
        children |= located
        await self._load_parents(child for child in children.values() if child is not None)
        for name, child in located.items():
            children[name] = self._with_text(child)
        self._children |= children
        self._partial |= located.keys()

    async def _locate(self, ids: Sequence[str]) -> dict[str, Entry]:
        """Return the children whose places the keyword index knows, without their texts.

        That is enough to find parents and passages, and much faster than reading a child from the
        vector store. The vector store must have told the similarities, and so that they exist.
        """
        stores = self.stores
        is_enough = stores.children.scores_any_child and self.query.retrieve != "children"
        if not ids or stores.keywords is None or not is_enough:
            return {}
        return await call(stores.keywords.locate, ids, stores.id_key)

    async def _load_parents(self, children: Iterable[Entry]) -> None:
        names = {name for each in children if isinstance(name := self._parent_id(each), str)}
        keys = sorted(names - self.parents.keys() - self._missing_parents)
        if keys:
            rows = dict(zip(keys, await self.stores.docstore.read(keys), strict=True))
            self.parents |= {key: row for key, row in rows.items() if row is not None}
            self._missing_parents |= {key for key, row in rows.items() if row is None}

    async def _complete(self, ids: Sequence[str]) -> None:
        """Load all of the children that are only located."""
        names = [name for name in dict.fromkeys(ids) if name in self._partial]
        if names:
            children = await self.stores.children.read(names)
            for name, child in zip(names, children, strict=True):
                located = self._children[name]
                if child and located:  # another program may have changed its metadata
                    child.metadata[self.stores.id_key] = self._parent_id(located)
                self._children[name] = child
            self._partial -= set(names)

    def _parent_id(self, child: Entry) -> object:
        return child.metadata.get(self.stores.id_key)

    def _with_text(self, child: Entry) -> Entry:
        """Return a located child with its text, and its document's identity, from its parent."""
        parent = self.parents.get(str(self._parent_id(child)))
        if parent is None or parent.span is None:
            return child
        start, end = (child.metadata[key] - parent.span[0] for key in ("start_index", "end_index"))
        metadata = child.metadata | {SOURCE_KEY: without_surrogates(parent.id or "")}
        return Entry(parent.text[start:end], metadata, child.id)

    def _read_document(self, passage: Passage, record: Record | None) -> str | None:
        """Return the text of a passage that several parents share.

        None if the document was changed since, or if something other than white space stands
        between two parents.
        """
        spans = {} if record is None else dict(zip(record.parents, record.spans, strict=True))
        hits = {hit.parent: hit for hit in passage.children}
        texts: list[str] = []
        position = passage.start
        for hit in sorted(hits.values(), key=lambda each: each.offset):
            span = spans.get(hit.parent)
            if record is None or span is None:
                return None
            if position < hit.offset:
                origin = hit.offset - span[0]  # where the document itself begins
                between = record.text_between(position - origin, span[0])
                if between is None or between.strip():
                    return None
                texts.append(between)
                position = hit.offset
            texts.append(hit.slice_parent(position, passage.end))
            position = max(position, hit.offset + len(hit.parent_text))
        return "".join(texts)


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
    """Return the first k children with different texts; the others of a text are its matches.

    Where a child stands in a rewritten parent is not known; the parent's positions bound its own.
    """
    hits_of_texts: dict[str, list[Hit]] = {}
    for hit in hits:
        if len(hits_of_texts) == k and hit.child.text not in hits_of_texts:
            break
        hits_of_texts.setdefault(hit.child.text, []).append(hit)
    results = []
    for own in hits_of_texts.values():
        child = loader.restore(own[0].child)
        ours = {**_describe_matches(own), own[0].id_key: own[0].parent}
        metadata = _positions(loader.parents[own[0].parent]) | child.metadata
        metadata = _with_keys(metadata, ours, loader.inherited(own[0]))
        new_id = own[0].child.metadata.get(REPRESENTS_KEY, child.id)
        results.append(Entry(child.text, metadata, new_id))
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
        else:
            metadata |= _positions(parent)
        metadata |= merged_places([_places(hit) for hit in passage.children])
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


def _places(hit: Hit) -> Mapping[str, Any]:
    """Return a child's metadata, with the pages and lines of the part that was taken."""
    metadata, span = hit.child.metadata, hit.child.span
    if hit.space[0] != SOURCE_KEY or not span or not span[0] <= hit.start < hit.end <= span[1]:
        return metadata
    start, end = hit.start - span[0], hit.end - span[0]
    return {**metadata, **places_of(metadata, hit.slice_parent(*span), start, end)}


def _positions(parent: Entry) -> dict[str, int]:
    """Return the metadata that say where a parent stands in its document, if that is known."""
    return dict(zip(("start_index", "end_index"), parent.span or (), strict=False))


def _with_keys(
    metadata: Mapping[str, Any], ours: Mapping[str, Any], users: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the metadata of a result with keys of ours, which give way to the user's.

    >>> _with_keys({"start_index": 3}, {"score": 0.5, "matches": "[]"}, {"score": 7})
    {'start_index': 3, 'score': 7, '_score': 0.5, 'matches': '[]'}
    """
    if free_key(users, SCORE_KEY) != SCORE_KEY:
        ours = {SCORE_KEY: None, **ours}
    own = {k if k == SOURCE_KEY else free_key(users, k): value for k, value in ours.items()}
    theirs = copy_metadata({key: value for key, value in users.items() if key in ours})
    return {**metadata, **theirs, **own}


def _describe_matches(hits: Sequence[Hit]) -> dict[str, Any]:
    """Return the metadata that a result has of its matches, the best first.

    These are the identity of the document, the score, and position, lines and score of each match;
    of one that stands in another parent, with the same text, also the parent's id.
    """
    best = hits[0]
    metadata = {key: value for key, value in best.child.metadata.items() if key == SOURCE_KEY}
    if best.score is not None:
        metadata[SCORE_KEY] = float(best.score)
    matches = []
    for hit in hits[:_MAX_MATCHES]:
        keys = [*_MATCH_KEYS] + [hit.id_key] * (hit.parent != best.parent)
        place = {key: hit.child.metadata[key] for key in keys if key in hit.child.metadata}
        # Some stores return numbers of NumPy's, which JSON does not take.
        matches.append(place | {SCORE_KEY: None if hit.score is None else float(hit.score)})
    return metadata | {MATCHES_KEY: json.dumps(matches)}
