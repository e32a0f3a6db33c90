"""Documents in SQLite, Redis and PostgreSQL, as LangChain's `BaseStore`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence

from langchain_core.documents import Document
from langchain_core.stores import BaseStore

from rag_splitters.calls import arun, in_both_forms, run
from rag_splitters.langchain.documents import to_document, to_entry
from rag_splitters.parent_child.metadata import check_values
from rag_splitters.parent_child.stores.keyvalue import KeyValueDocstore, KeyValueStore


class DocumentStore(BaseStore[str, Document]):
    """Keeps LangChain documents in a `SQLiteStore`, `RedisStore` or `PostgresStore`.

    The retriever makes one of its docstore by itself; for everything else that needs a
    `BaseStore[str, Document]`, wrap a store in it. (langchain-redis and langchain-postgres have
    none.) Text, id and metadata are stored exactly, and never pickled. Metadata that JSON cannot
    represent (a date, a UUID, bytes, a set) raises a TypeError that names the key, before anything
    is written. If the store fails, a `StoreError` (an OSError) is raised.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from rag_splitters.langchain import SQLiteStore
    >>> store = DocumentStore(SQLiteStore(Path(tempfile.mkdtemp()) / "documents.sqlite"))
    >>> store.mset([("a", Document(page_content="text", metadata={"nested": {"page": 1}}))])
    >>> store.mget(["a", "b"])
    [Document(metadata={'nested': {'page': 1}}, page_content='text'), None]
    """

    def __init__(self, rows: KeyValueStore) -> None:
        self.rows = rows
        self._docstore = KeyValueDocstore(rows)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.rows!r})"

    async def _mget(self, keys: Sequence[str]) -> list[Document | None]:
        """Return the documents under the keys, in their order; None where there is none."""
        entries = await self._docstore.read(keys)
        return [None if entry is None else to_document(entry) for entry in entries]

    async def _mset(self, key_value_pairs: Sequence[tuple[str, Document]]) -> None:
        """Write all documents, or none if one of them cannot be written."""
        rows = [(key, to_entry(document)) for key, document in key_value_pairs]
        for key, entry in rows:
            check_values(entry.metadata, f"document {key!r}: metadata")
        await self._docstore.write(rows)

    async def _mdelete(self, keys: Sequence[str]) -> None:
        """Remove all the keys at once; missing ones are ignored."""
        await self._docstore.write([], keys)

    mget, amget = in_both_forms(_mget)
    mset, amset = in_both_forms(_mset)
    mdelete, amdelete = in_both_forms(_mdelete)

    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        """Yield the keys that begin with `prefix`, in order."""
        yield from run(self.rows.list_keys(prefix or ""))

    async def ayield_keys(self, *, prefix: str | None = None) -> AsyncIterator[str]:
        """Asynchronous `yield_keys`."""
        for key in await arun(self.rows.list_keys(prefix or "")):
            yield key

    def close(self) -> None:
        """Close the store; it cannot be used afterwards."""
        self.rows.close()
