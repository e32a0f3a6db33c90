"""Adapters from LangChain's documents, splitters and stores to parent-child retrieval."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from inspect import unwrap
from typing import Any

from langchain_core.documents import Document
from langchain_core.load import dumps, loads
from langchain_core.stores import BaseStore, ByteStore, InMemoryBaseStore
from langchain_core.vectorstores import VectorStore
from langchain_text_splitters import TextSplitter

from rag_splitters import calls
from rag_splitters.calls import Call, in_both_forms
from rag_splitters.errors import InputError, OperationError
from rag_splitters.langchain.documents import to_document, to_entry
from rag_splitters.langchain.kvstores import DocumentStore
from rag_splitters.models import describe_model
from rag_splitters.parent_child.batching import MAX_ROWS, batched
from rag_splitters.parent_child.errors import damaged_values
from rag_splitters.parent_child.keywords.metadata_index import filter_keys
from rag_splitters.parent_child.records import EXCLUDED_KEY, SOURCE_KEY, Entry
from rag_splitters.parent_child.results import SCORE_KEY, own_key, read_matches, without_matches
from rag_splitters.parent_child.stores.children import ChildStore, Detail, Level, Match, Split
from rag_splitters.parent_child.stores.chroma import ChromaChildren
from rag_splitters.parent_child.stores.keyvalue import KeyValueDocstore
from rag_splitters.parent_child.vectors import Draft, Vectors
from rag_splitters.parent_child.writing import Docstore, Expected, Keys, Rows, Turn
from rag_splitters.text.sources import copy_metadata
from rag_splitters.text.surrogates import without_surrogates

_WRITING_METHODS = {"add_documents", "delete", "mdelete", "mset"}
_NUMBER_KEY = "_rag_splitters_entry"
_loads = unwrap(loads)  # without its warning that it is in beta, which is meant for callers
_UNREADABLE = (FileNotFoundError, ValueError)
"""What a store raises for a row that is damaged, or is being written or removed."""
_WAITS = (0.001, 0.01, 0.1, 0.5)  # seconds before such a row is read again


def call_method(target: Any, name: str, *args: Any, **kwargs: Any) -> Call[Any]:
    """Call a method of LangChain; in asynchronous use, its counterpart "a" + name."""
    return calls.call_method(target, name, *args, is_write=name in _WRITING_METHODS, **kwargs)


# Documents and splitters


class ResultDocument(Document):
    """A document that a retriever found.

    It is equal to any document with the same text, id and metadata. Score and matches are not
    compared, so that a passage found by two questions counts as the same. Both are in the metadata,
    as "score" and, in JSON, as "matches"; as "_score" and "_matches" if your own metadata has keys
    of these names.
    """

    @property
    def score(self) -> float | None:
        """The score of its best child, higher is better; None if the vector store has none."""
        return self.metadata.get(own_key(self.metadata, SCORE_KEY))

    @property
    def matches(self) -> list[dict[str, Any]]:
        """Positions and scores of its children that match, best first."""
        return read_matches(self.metadata)

    @classmethod
    def lc_id(cls) -> list[str]:
        """Return the name for `dumps`, that of a plain document, which it is loaded as."""
        return Document.lc_id()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Document):
            return NotImplemented
        return _passage(self) == _passage(other)


def _passage(document: Document) -> tuple[Any, ...]:
    return document.page_content, document.id, without_matches(document.metadata)


def to_result(entry: Entry) -> ResultDocument:
    """Convert a result, whose metadata nothing else shares."""
    for key in (SOURCE_KEY, EXCLUDED_KEY):
        entry.metadata.pop(key, None)
    return ResultDocument(page_content=entry.text, metadata=entry.metadata, id=entry.id)


def make_split(splitters: Mapping[Level, TextSplitter | None]) -> Split:
    """Return a function that cuts entries with LangChain's splitters, in one call."""

    async def split(level: Level, entries: list[Entry]) -> list[list[Entry]] | None:
        splitter = splitters.get(level)
        if splitter is None:
            return None
        numbered = [
            Document(
                page_content=entry.text,
                metadata={**copy_metadata(entry.metadata), _NUMBER_KEY: number},
            )
            for number, entry in enumerate(entries)
        ]
        chunks: list[list[Entry]] = [[] for _ in entries]
        for document in await call_method(splitter, "transform_documents", numbered):
            metadata = dict(document.metadata)
            number = metadata.pop(_NUMBER_KEY)
            if _NUMBER_KEY in entries[number].metadata:
                metadata[_NUMBER_KEY] = entries[number].metadata[_NUMBER_KEY]
            chunks[number].append(Entry(document.page_content, metadata))
        return chunks

    return split


# Docstores


def make_docstore(store: BaseStore[str, Document]) -> Docstore:
    """Return a docstore over a store; our own stores are used directly, without documents."""
    if type(store) is DocumentStore:
        return KeyValueDocstore(store.rows)
    return _StoreDocstore(store)


class _StoreDocstore(Docstore):
    """A docstore over a `BaseStore`."""

    def __init__(self, store: BaseStore[str, Document]) -> None:
        self._store = store
        inner = store.byte_store if isinstance(store, ByteDocuments) else store
        self._name = type(inner).__name__
        self.is_in_memory = isinstance(inner, InMemoryBaseStore)
        self.is_json = not isinstance(store, InMemoryBaseStore)

    async def read(self, keys: Sequence[str]) -> list[Entry | None]:
        documents: list[Document | None] = []
        damaged: dict[str, Exception] = {}
        for batch in batched(keys, MAX_ROWS):
            try:
                documents += await self.make(call_method(self._store, "mget", list(batch)))
            except _UNREADABLE:
                for key in batch:
                    try:
                        documents.append(await self._read_again(key))
                    except _UNREADABLE as error:
                        damaged[key] = error
        if damaged:
            cause = next(iter(damaged.values()))
            raise damaged_values(self._name, list(damaged)) from cause
        return [None if each is None else to_entry(each) for each in documents]

    async def _read_again(self, key: str) -> Document | None:
        """Read a row until it can be read: a store of files also shows what is half written."""
        documents: list[Document | None] = []
        for wait in _WAITS:
            await calls.sleep(wait)
            try:
                documents = await self.make(call_method(self._store, "mget", [key]))
                break
            except _UNREADABLE:
                if wait == _WAITS[-1]:
                    raise
        return documents[0]

    async def write(self, rows: Rows, removed: Keys = (), expected: Expected = None) -> bool:
        for batch in batched(rows, MAX_ROWS):
            pairs = [(key, to_document(entry)) for key, entry in batch]
            await self.make(call_method(self._store, "mset", pairs))
        for keys in batched(removed, MAX_ROWS):
            await self.make(call_method(self._store, "mdelete", list(keys)))
        return True

    async def list_keys(self, prefix: str) -> list[str]:
        async def collect() -> list[str]:
            return [key async for key in self._store.ayield_keys(prefix=prefix or None)]

        return await Call(lambda: list(self._store.yield_keys(prefix=prefix or None)), collect)


class ByteDocuments(BaseStore[str, Document]):
    """Documents in a byte store, in the format of `langchain_classic`'s `create_kv_docstore`."""

    def __init__(self, byte_store: ByteStore) -> None:
        self.byte_store = byte_store

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByteDocuments) and other.byte_store is self.byte_store

    def __hash__(self) -> int:
        return id(self.byte_store)

    async def _mget(self, keys: Sequence[str]) -> list[Document | None]:
        return list(map(_load_document, await call_method(self.byte_store, "mget", keys)))

    async def _mset(self, key_value_pairs: Sequence[tuple[str, Document]]) -> None:
        pairs = [(key, dumps(document).encode()) for key, document in key_value_pairs]
        await call_method(self.byte_store, "mset", pairs)

    async def _mdelete(self, keys: Sequence[str]) -> None:
        await call_method(self.byte_store, "mdelete", keys)

    mget, amget = in_both_forms(_mget)
    mset, amset = in_both_forms(_mset)
    mdelete, amdelete = in_both_forms(_mdelete)

    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        yield from self.byte_store.yield_keys(prefix=prefix)

    async def ayield_keys(self, *, prefix: str | None = None) -> AsyncIterator[str]:
        async for key in self.byte_store.ayield_keys(prefix=prefix):
            yield key


def _load_document(value: bytes | None) -> Document | None:
    if value is None:
        return None
    document = _loads(value.decode(), allowed_objects=[Document])
    if not isinstance(document, Document):
        raise InputError(f"the byte store holds a {type(document).__name__} instead of a document")
    return document


# Vector stores


def make_child_store(
    vectorstore: VectorStore, search_kwargs: Mapping[str, Any], model_name: str | None
) -> ChildStore:
    """Return a store of children over a vector store; Chroma is used directly."""
    collection = chroma_collection(vectorstore)
    if collection is None:
        return VectorStoreChildren(vectorstore, search_kwargs, model_name)
    rest = dict(search_kwargs)
    where = {"where": rest.pop("filter", None), "where_document": rest.pop("where_document", None)}
    if rest:
        raise InputError(
            f"unknown search_kwargs {sorted(rest)}: use filter, where_document, score_threshold, "
            "fetch_k or lambda_mult"
        )
    vectors = Vectors(vectorstore.embeddings, model_name)
    return ChromaChildren(collection, vectors, where, _relevance_function(vectorstore))


class VectorStoreChildren(ChildStore):
    """A store of children over any LangChain vector store."""

    def __init__(
        self, vectorstore: VectorStore, search_kwargs: Mapping[str, Any], model_name: str | None
    ) -> None:
        self._vectorstore = vectorstore
        self._model_name = model_name
        self._search_kwargs = dict(search_kwargs)
        self.has_filter = bool(search_kwargs)
        self.filter_keys = filter_keys(self._search_kwargs.get("filter"))
        self._relevance = _relevance_function(vectorstore)

    @property
    def model(self) -> str:
        embeddings = self._vectorstore.embeddings
        return self._model_name or ("" if embeddings is None else describe_model(embeddings))

    async def write(self, drafts: Sequence[Draft], turn: Turn) -> None:
        written = [child for each in drafts for child in each.new_children]
        for batch in batched(written, self.batch_size):
            await turn.confirm()
            converted = [
                Document(page_content=without_surrogates(c.text), metadata=c.metadata, id=c.id)
                for c in batch
            ]
            ids = [child.id for child in batch]
            await call_method(self._vectorstore, "add_documents", converted, ids=ids)

    async def remove(self, ids: Sequence[str], up_to: int | None = None) -> None:
        for batch in batched(ids, self.batch_size):
            if await call_method(self._vectorstore, "delete", list(batch)) is False:
                raise OperationError(f"the vector store did not delete {len(batch)} children")

    async def read(self, ids: Sequence[str], detail: Detail = "text") -> list[Entry | None]:
        children: dict[str | None, Entry] = {}
        for batch in batched(ids, self.batch_size):
            for document in await call_method(self._vectorstore, "get_by_ids", list(batch)):
                children[document.id] = to_entry(document)
        return [children.get(name) for name in ids]

    async def find(self, query: str, n: int, detail: Detail = "text") -> list[Match]:
        """Find the nearest children; scores become similarities if the store can convert them."""
        kwargs = {**self._search_kwargs, "k": n}
        text = without_surrogates(query)
        try:
            pairs = await call_method(
                self._vectorstore, "similarity_search_with_score", text, **kwargs
            )
        except NotImplementedError:
            documents = await call_method(self._vectorstore, "similarity_search", text, **kwargs)
            return [Match(to_entry(document), None) for document in documents]
        relevance = self._relevance
        return [
            Match(to_entry(d), s if s is None or relevance is None else relevance(s))
            for d, s in pairs
        ]

    async def find_diverse(self, query: str, n: int, pool: int, balance: float) -> list[Match]:
        """Find children by the store's own maximal marginal relevance, which returns no scores."""
        kwargs = {**self._search_kwargs, "k": n, "fetch_k": pool, "lambda_mult": balance}
        documents = await call_method(
            self._vectorstore, "max_marginal_relevance_search", without_surrogates(query), **kwargs
        )
        return [Match(to_entry(document), None) for document in documents]


def chroma_collection(vectorstore: VectorStore) -> Any:
    """Return the collection of a Chroma store with an embedding model; None for any other."""
    chromadb = sys.modules.get("chromadb")
    if chromadb is None or vectorstore.embeddings is None:
        return None
    collection = getattr(vectorstore, "_collection", None)
    return collection if isinstance(collection, chromadb.Collection) else None


def _relevance_function(vectorstore: VectorStore) -> Callable[[float], float] | None:
    """Return the store's own function that converts a score to a similarity, or None."""
    try:
        return vectorstore._select_relevance_score_fn()
    except (NotImplementedError, ValueError):
        return None
