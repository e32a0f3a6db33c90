"""The SQLite store of parents as one of LangChain's stores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from langchain_core.documents import Document
from langchain_core.stores import BaseStore

from rag_splitters.parent_child.sqlite import SQLiteKeyValueStore, check_json

__all__ = ["SQLiteStore"]


class SQLiteStore(BaseStore[str, Document]):
    """Keeps LangChain documents in one SQLite file.

    The docstore of a folder; of use wherever a `BaseStore[str, Document]` is. Text, id and metadata
    come back exactly, as JSON and not pickled; metadata that JSON lacks (a date, a UUID, bytes, a
    set) raises a TypeError that names the key, before anything is written.

    >>> import tempfile
    >>> store = SQLiteStore(Path(tempfile.mkdtemp()) / "documents.sqlite")
    >>> store.mset([("a", Document(page_content="text", metadata={"nested": {"page": 1}}))])
    >>> store.mget(["a", "b"])
    [Document(metadata={'nested': {'page': 1}}, page_content='text'), None]
    """

    def __init__(self, path: str | Path) -> None:
        """Open the file at `path`; it and its folder are made where they do not exist."""
        self._rows = SQLiteKeyValueStore(path)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self._rows.path)!r})"

    def mget(self, keys: Sequence[str]) -> list[Document | None]:
        """The documents under the keys, in their order; None where there is none."""
        rows = self._rows.mget(keys)
        return [
            row and Document(page_content=row["text"], metadata=row["metadata"], id=row["id"])
            for row in rows
        ]

    def mset(self, key_value_pairs: Sequence[tuple[str, Document]]) -> None:
        """Write all the documents or, where one of them cannot be written, none."""
        for key, document in key_value_pairs:
            check_json(document.metadata, f"document {key!r}: metadata")
        self._rows.mset(
            [
                (key, {"text": d.page_content, "metadata": d.metadata, "id": d.id})
                for key, d in key_value_pairs
            ]
        )

    def mdelete(self, keys: Sequence[str]) -> None:
        """Remove the keys; those that are not there are passed over."""
        self._rows.mdelete(keys)

    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        """The keys that begin with `prefix`, in order."""
        return self._rows.yield_keys(prefix)

    def close(self) -> None:
        """Close the file."""
        self._rows.close()
