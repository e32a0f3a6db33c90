"""Loading what one query needs: children, parents, and the text between parents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rag_splitters.calls import call
from rag_splitters.errors import InputError
from rag_splitters.parent_child.errors import DamagedRowsError
from rag_splitters.parent_child.options import Query
from rag_splitters.parent_child.passages import LocatedChild, Passage, split_at_parents
from rag_splitters.parent_child.records import SOURCE_KEY, Entry
from rag_splitters.parent_child.stores import Match, Stores
from rag_splitters.text.surrogates import without_surrogates


class Loader:
    """Loads children and parents for one query, each once."""

    def __init__(self, stores: Stores, query: Query) -> None:
        self.stores, self.query = stores, query
        self.parents: dict[str, Entry] = {}
        """The parents that were read, by id."""
        self._missing_parents: set[str] = set()
        self._matches: dict[str, Match | None] = {}
        """The children that were looked for, by id; None for those that no longer exist."""

    async def load(self, matches: Sequence[Match]) -> list[Match]:
        """Load or locate children, and load their parents; leave out those without either."""
        new = {m.child.id or "": m for m in matches if (m.child.id or "") not in self._matches}
        if new:
            self._matches |= dict.fromkeys(new)
            loaded = await self._load_children(list(new.values()))
            await self._load_parents(loaded)
            for match in loaded:
                self._matches[match.child.id or ""] = self._with_text(match)
        existing = [
            replace(earlier, score=match.score)  # a reranker may have changed it
            for match in matches
            if (earlier := self._matches[match.child.id or ""]) is not None
        ]
        return [match for match in existing if self._parent_id(match) in self.parents]

    async def load_whole(self, matches: Sequence[Match]) -> list[Match]:
        """Load children and their parents as `load` does, with all the children's metadata."""
        await self._complete(await self.load(matches))
        return await self.load(matches)

    async def load_children_of(self, passages: Sequence[Passage]) -> bool:
        """Load the metadata of the children of passages; False if some no longer exist."""
        matches = [child.match for passage in passages for child in passage.children]
        await self._complete(matches)
        children = {m.child.id or "": self._matches[m.child.id or ""] for m in matches}
        loaded = {name: m.child for name, m in children.items() if m is not None}
        for passage in passages:
            passage.exchange_children(loaded)
        return len(loaded) == len(children)

    async def read_texts(self, passages: Sequence[Passage]) -> list[Passage]:
        """Give passages their texts, and split those for which the document has changed."""
        whole: list[Passage] = []
        for passage in passages:
            if len({child.parent for child in passage.inner_children}) > 1:
                text = await self._read_document(passage)
                if text is not None:
                    passage.text = text
                    whole.append(passage)
                    continue
            for part in split_at_parents(passage):
                part.text = self._text_in_parent(part.inner_children[0], part.start, part.end)
                whole.append(part)
        return whole

    def check(self) -> None:
        """Raise ValueError if no child names its parent."""
        children = [match.child for match in self.children]
        key = self.stores.id_key
        if children and not any(isinstance(child.metadata.get(key), str) for child in children):
            keys = ", ".join(sorted(children[0].metadata))
            raise InputError(
                f"none of the {len(children)} children that match names its parent under "
                f"id_key={key!r}; the first has {keys}: set id_key to the key that holds the "
                "parent's id (langchain_classic's retriever uses 'doc_id')"
            )

    @property
    def children(self) -> list[Match]:
        """The children that were loaded."""
        return [match for match in self._matches.values() if match is not None]

    @property
    def parent_rows(self) -> dict[str, Entry | None]:
        """The parents that were looked for, by id; None for those that are missing."""
        return {**self.parents, **dict.fromkeys(self._missing_parents)}

    async def _load_children(self, matches: Sequence[Match]) -> list[Match]:
        """Return matches with loaded or located children, without those that no longer exist."""
        names = [match.child.id or "" for match in matches if not match.child.metadata]
        located = await self._locate(names)
        others = [name for name in names if name not in located]
        loaded: dict[str, Entry | None] = dict.fromkeys(others)
        if others:
            try:
                children = await self.stores.children.read(others)
                loaded = dict(zip(others, children, strict=True))
            except NotImplementedError:  # a vector store that cannot look up neighbours
                pass
        existing = []
        for match in matches:
            name = match.child.id or ""
            child = located.get(name) or loaded.get(name, match.child)
            if child is not None:
                existing.append(Match(child, match.score, is_located=name in located))
        return existing

    async def _locate(self, names: Sequence[str]) -> dict[str, Entry]:
        """Return the children whose places the keyword index knows, without their texts.

        That is enough to find parents and passages, and much faster than reading a child from the
        vector store. The vector store must have told the similarities, and so that they exist.
        """
        stores, query = self.stores, self.query
        is_enough = query.retrieve != "children" and query.fusion == "relative"
        is_told = stores.children.tells_similarities and query.search_type == "hybrid"
        if not names or not is_enough or stores.keywords is None or not is_told:
            return {}
        children = {}
        for name, place in (await call(stores.keywords.locate, names, stores.id_key)).items():
            positions = {"start_index": place.start_index, "end_index": place.end_index}
            children[name] = Entry("", {stores.id_key: place.parent, **positions}, name)
        return children

    async def _load_parents(self, matches: Sequence[Match]) -> None:
        names = [name for match in matches if isinstance(name := self._parent_id(match), str)]
        unread = dict.fromkeys(names).keys() - self.parents.keys() - self._missing_parents
        keys = [name for name in dict.fromkeys(names) if name in unread]
        if keys:
            rows = dict(zip(keys, await self.stores.docstore.read(keys), strict=True))
            self.parents |= {key: row for key, row in rows.items() if row is not None}
            self._missing_parents |= {key for key, row in rows.items() if row is None}

    async def _complete(self, matches: Sequence[Match]) -> None:
        """Load all of the children that are only located."""
        names = list(dict.fromkeys(m.child.id or "" for m in matches if m.is_located))
        children = await self.stores.children.read(names) if names else []
        for name, child in zip(names, children, strict=True):
            match = self._matches[name]
            self._matches[name] = Match(child, match.score) if match and child else None

    def _parent_id(self, match: Match) -> object:
        return match.child.metadata.get(self.stores.id_key)

    def _with_text(self, match: Match) -> Match:
        """Return a match whose child has its text, and its document's identity, from its parent."""
        child, parent = match.child, self.parents.get(str(self._parent_id(match)))
        if not match.is_located or parent is None or parent.span is None:
            return match
        offset = parent.span[0]
        span = slice(child.metadata["start_index"] - offset, child.metadata["end_index"] - offset)
        metadata = child.metadata | {SOURCE_KEY: without_surrogates(parent.id or "")}
        return Match(Entry(parent.text[span], metadata, child.id), match.score, is_located=True)

    def _text_in_parent(self, child: LocatedChild, start: int, end: int) -> str:
        text = self.parents[child.parent].text
        return text[max(0, start - child.offset) : max(0, end - child.offset)]

    async def _read_document(self, passage: Passage) -> str | None:
        """Return the text of a passage that several parents share.

        None if the document was changed since, or if something other than white space stands
        between two parents.
        """
        firsts = {child.parent: child for child in passage.inner_children}
        identity = self.parents[next(iter(firsts))].id or ""
        try:
            (record,) = await self.stores.read_records([identity])
        except DamagedRowsError:  # `verify` reports it; the parts in its parents can be returned
            return None
        spans = {} if record is None else dict(zip(record.parents, record.spans, strict=True))
        texts: list[str] = []
        position = passage.start
        for child in sorted(firsts.values(), key=lambda each: each.offset):
            span = spans.get(child.parent)
            if record is None or span is None:
                return None
            if position < child.offset:
                origin = child.offset - span[0]  # where the document itself begins
                between = record.text_between(position - origin, span[0])
                if between is None or between.strip():
                    return None
                texts.append(between)
                position = child.offset
            texts.append(self._text_in_parent(child, position, passage.end))
            position = max(position, child.offset + len(self.parents[child.parent].text))
        return "".join(texts)
