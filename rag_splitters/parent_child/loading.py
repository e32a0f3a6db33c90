"""Loading what one query needs: children, parents, and the text between parents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rag_splitters.calls import call
from rag_splitters.errors import InputError
from rag_splitters.parent_child.options import Query
from rag_splitters.parent_child.passages import Hit, Passage, split_at_parents
from rag_splitters.parent_child.ranking import Ranking
from rag_splitters.parent_child.records import SOURCE_KEY, Entry, Record, record_key, restore_child
from rag_splitters.parent_child.stores import Stores
from rag_splitters.text.surrogates import without_surrogates


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
        wide = [passage for passage in passages if len(passage.parents) > 1]
        names = [self.parents[passage.parents[0]].id or "" for passage in wide]
        keys = [record_key(name) for name in dict.fromkeys(names)]
        # `verify` reports damaged rows; the parts in their parents can be returned.
        rows, _ = await self.stores.read_readable(keys) if keys else ({}, [])
        split: list[Passage] = []
        for passage in passages:
            if passage in wide:
                identity = names[wide.index(passage)]
                text = self._read_document(passage, rows.get(record_key(identity)))
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
            keys = ", ".join(sorted(children[0].metadata))
            raise InputError(
                f"none of the {len(children)} children that match names its parent under "
                f"id_key={key!r}; the first has {keys}: set id_key to the key that holds the "
                "parent's id (langchain_classic's retriever uses 'doc_id')"
            )

    @property
    def children(self) -> list[Entry]:
        """The children that were loaded."""
        return [child for child in self._children.values() if child is not None]

    @property
    def parent_rows(self) -> dict[str, Entry | None]:
        """The parents that were looked for, by id; None for those that are missing."""
        return {**self.parents, **dict.fromkeys(self._missing_parents)}

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
        stores, query = self.stores, self.query
        is_enough = query.retrieve != "children" and query.fusion == "relative"
        is_told = stores.children.tells_similarities and query.search_type == "hybrid"
        if not ids or not is_enough or stores.keywords is None or not is_told:
            return {}
        return await call(stores.keywords.locate, ids, stores.id_key)

    async def _load_parents(self, children: Iterable[Entry]) -> None:
        names = {name for each in children if isinstance(name := self._parent_id(each), str)}
        keys = sorted(names - self.parent_rows.keys())
        if keys:
            rows = dict(zip(keys, await self.stores.docstore.read(keys), strict=True))
            self.parents |= {key: row for key, row in rows.items() if row is not None}
            self._missing_parents |= {key for key, row in rows.items() if row is None}

    async def _complete(self, ids: Sequence[str]) -> None:
        """Load all of the children that are only located."""
        names = [name for name in dict.fromkeys(ids) if name in self._partial]
        if names:
            children = await self.stores.children.read(names)
            self._children |= dict(zip(names, children, strict=True))
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

    def _read_document(self, passage: Passage, row: Entry | None) -> str | None:
        """Return the text of a passage that several parents share.

        None if the document was changed since, or if something other than white space stands
        between two parents.
        """
        record = Record.from_row(row)
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
