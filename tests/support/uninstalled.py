"""Strategies and readers without the packages that they need, in a process that has none loaded."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rag_splitters import CodeChunker, EntityChunker, SentenceChunker, TopicChunker
from rag_splitters.parent_child.stores.postgres import PostgresStore
from rag_splitters.reading.files import read_text

__all__ = ["UNINSTALLED", "use_what_is_missing"]

TEXT = " ".join(f"Tea {n} is green. Coffee {n} is black." for n in range(12))


def read(name: str, data: bytes) -> None:
    Path(name).write_bytes(data)
    read_text(Path(name))


UNINSTALLED: dict[str, tuple[list[str], Callable[[], object]]] = {
    "CodeChunker needs tree-sitter and tree-sitter-python: pip install 'rag-splitters[code]'": (
        ["tree_sitter", "tree_sitter_python"],
        lambda: CodeChunker(language="python").chunk("x = 1"),
    ),
    "EntityChunker needs spaCy: pip install 'rag-splitters[ner]'": (
        ["spacy"],
        lambda: EntityChunker(ner="en_core_web_sm").chunk(TEXT),
    ),
    "TopicChunker needs scikit-learn: pip install 'rag-splitters[topics]'": (
        ["sklearn", "sklearn.decomposition"],
        lambda: TopicChunker().chunk(TEXT * 5),
    ),
    "segmenter='punkt' needs NLTK: pip install nltk": (
        ["nltk"],
        lambda: SentenceChunker(segmenter="punkt").chunk(TEXT),
    ),
    "reading report.pdf needs pypdfium2: pip install 'rag-splitters[pdf]'": (
        ["pypdfium2"],
        lambda: read("report.pdf", b"%PDF-1.4"),
    ),
    "PostgreSQL stores need psycopg: pip install 'rag-splitters[postgres]'": (
        ["psycopg"],
        lambda: PostgresStore("postgresql://localhost/rag"),
    ),
    "is not in UTF-8 (byte 0xfc at offset 2): save it as UTF-8": (
        ["charset_normalizer"],
        lambda: read("a.txt", "Grüße".encode("latin-1")),
    ),
}
"""Messages, the packages that are not installed, and who then says so."""


def use_what_is_missing() -> None:
    """Print each message that is raised as it is expected."""
    for message, (packages, function) in UNINSTALLED.items():
        with pytest.MonkeyPatch.context() as monkeypatch:
            for package in packages:
                monkeypatch.setitem(sys.modules, package, None)
            with pytest.raises(ImportError, match=re.escape(message)):
                function()
        print(message)  # noqa: T201
