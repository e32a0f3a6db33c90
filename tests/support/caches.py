"""The kinds of caches for answers and vectors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from langchain_classic.storage import LocalFileStore
from langchain_core.stores import InMemoryByteStore, InMemoryStore
from llama_index.core.storage.kvstore import SimpleKVStore

from rag_splitters.langchain import SQLiteStore

CACHES: dict[str, Callable[[Path], Any]] = {
    "langchain": lambda path: InMemoryStore(),
    "langchain bytes": lambda path: InMemoryByteStore(),
    "langchain files": lambda path: LocalFileStore(path / "files"),
    "llama_index": lambda path: SimpleKVStore(),
    "ours": lambda path: SQLiteStore(path / "rows.sqlite"),
    "folder": lambda path: path / "new" / "folder",
}
"""What makes each of them, given a folder."""
