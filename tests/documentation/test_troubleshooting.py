"""docs/troubleshooting.md: its headings are messages of the code, and many are raised here."""

from __future__ import annotations

import ast
import asyncio
import pickle
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document

import rag_splitters
from rag_splitters import RecursiveChunker
from rag_splitters.langchain import (
    PostgresStore,
    RecursiveTextSplitter,
    parent_document_retriever,
)
from rag_splitters.models import HashingEmbeddings
from rag_splitters.parent_child.writing import process_lock
from tests.support.processes import run_python
from tests.support.uninstalled import UNINSTALLED

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
MESSAGES = re.findall(r"^### `(.+)`$", PAGE, re.MULTILINE)
OF_OTHERS = {  # messages of the providers' clients, of SQLite and of Chroma
    "AuthenticationError: Error code: 401",
    "RateLimitError: Error code: 429",
    "APIConnectionError: Connection error.",
    "file is not a database",
    "Could not connect to a Chroma server",
    "Expected IDs to be unique, found",
}
TEXT = " ".join(f"Tea {n} is green. Coffee {n} is black." for n in range(12))
DOCUMENTS = [Document("Tea is green.", id="a"), Document("Coffee is black.", id="b")]


# Messages that are raised as the page quotes them


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")


def with_retriever(function: Callable[[Any], object], **options: Any) -> None:
    with parent_document_retriever(DOCUMENTS, **options) as retriever:
        function(retriever)


def open_with_another_model() -> None:
    parent_document_retriever(DOCUMENTS, path="index").close()
    parent_document_retriever(path="index", embeddings=HashingEmbeddings(dimensions=8))


def search_after_a_loss() -> None:
    with parent_document_retriever(DOCUMENTS, path="index") as retriever:
        retriever.vectorstore.delete(ids=retriever.vectorstore.get()["ids"])
    with parent_document_retriever(path="index") as retriever:
        retriever.invoke("tea")


def add_while_adding() -> None:
    async def add_twice() -> None:
        with parent_document_retriever(DOCUMENTS) as retriever:
            many = [Document(f"Text {n}.", id=f"{n}") for n in range(300)]
            task = asyncio.create_task(retriever.aadd_documents(many))
            index = retriever.shared.writer.identity
            while not process_lock(index.id).is_held:  # type: ignore[union-attr]
                await asyncio.sleep(0)
            try:
                retriever.add_documents([Document("Another text.", id="another")])
            finally:
                await task

    asyncio.run(add_twice())


def add_unstorable() -> None:
    with_retriever(
        lambda retriever: retriever.add_documents([Document("x", id="x", metadata={"a": {1}})]),
        path="index",
    )


def count_with_an_empty_cache() -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "empty")
        RecursiveChunker(length_function="tokens:gpt2").chunk(TEXT)


RAISED: dict[str, Callable[[], object]] = {
    "separator '(' is not a valid regular expression": partial(
        RecursiveChunker, separators=["("], is_regex=True
    ),
    "pass separators or language ('python'), not both": partial(
        RecursiveTextSplitter, separators=["x"], language="python"
    ),
    "the file of the encoding 'gpt2' is not on this machine, and it is not downloaded": (
        count_with_an_empty_cache
    ),
    "was written with the embedding model": open_with_another_model,
    "the vector store has lost children of documents that are in the docstore": (
        search_after_a_loss
    ),
    "of the documents cannot be stored and were left out; all the others were added": (
        add_unstorable
    ),
    "an asynchronous operation on this index is under way in this thread": add_while_adding,
    "cannot be pickled: it holds open stores": lambda: with_retriever(pickle.dumps),
    "invalid PostgreSQL URL: use postgresql://user:password@host/database": lambda: PostgresStore(
        "nonsense://x"
    ),
    "PostgresStore('postgresql://127.0.0.1:1/x', table='rag_splitters'): "
    "connection failed": lambda: PostgresStore("postgresql://127.0.0.1:1/x", timeout=5).mget(["a"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("message", RAISED)
def test_message_is_raised(message: str) -> None:
    assert message in MESSAGES
    with pytest.raises(Exception, match=re.escape(message)):
        RAISED[message]()


def test_messages_about_packages_are_raised(tmp_path: Path) -> None:
    """In a process that has not imported any of them yet."""
    assert UNINSTALLED.keys() <= set(MESSAGES)
    code = "from tests.support.uninstalled import use_what_is_missing; use_what_is_missing()"
    assert run_python(code, cwd=tmp_path).splitlines() == list(UNINSTALLED)


# The others stand in the code, and are raised by other tests


def fixed_parts() -> set[str]:
    """What the strings and f-strings of the package consist of, without their values."""
    return {
        node.value
        for path in Path(rag_splitters.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def test_other_messages_stand_in_the_code() -> None:
    others = set(MESSAGES) - OF_OTHERS - RAISED.keys() - UNINSTALLED.keys()
    parts = {part for each in fixed_parts() if len(part := each.strip()) > 7}
    assert len(others) > 20
    for message in others:
        if not any(message in part for part in parts):
            from_code = {
                at
                for part in parts
                if (start := message.find(part)) >= 0
                for at in range(start, start + len(part))
            }
            assert len(from_code) > len(message) / 2, message
