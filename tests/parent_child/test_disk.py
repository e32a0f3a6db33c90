"""A full disk is called a full disk, and nothing that was finished is lost."""

from __future__ import annotations

import errno
from collections import namedtuple
from pathlib import Path

import pytest
from langchain_core.documents import Document

from rag_splitters.langchain import DocumentStore, parent_document_retriever
from rag_splitters.parent_child import errors
from rag_splitters.parent_child.stores.keyvalue import SQLiteStore

TEA = Document(page_content="Tea is hot. " * 20, id="tea")
LONG = Document(page_content="Rain fell all day. " * 40_000, id="long")


def limit(docstore: object, pages: int) -> None:
    """Let SQLite say that the disk is full when its file has grown to so many pages."""
    assert isinstance(docstore, DocumentStore)
    assert isinstance(docstore.rows, SQLiteStore)
    docstore.rows._database.read(f"PRAGMA max_page_count = {pages}")


@pytest.mark.slow
def test_full_disk_is_explained_and_adding_again_finishes(tmp_path: Path) -> None:
    with parent_document_retriever([TEA], path=tmp_path, search_type="similarity") as retriever:
        limit(retriever.docstore, 50)
        with pytest.raises(OSError, match=r"disk is full.*Free some space.*verify") as caught:
            retriever.add_documents([LONG])
        assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(tmp_path))
        assert [each.id for each in retriever.get(["tea"])] == ["tea"]
        limit(retriever.docstore, 1 << 30)
        retriever.add_documents([LONG])
        assert retriever.verify().is_sound


def test_other_errors_on_a_disk_with_little_space_name_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(errors.shutil, "disk_usage", lambda folder: usage(9, 9, 0))
    message = r"0 bytes are free\): RuntimeError: failed to apply logs"
    with pytest.raises(OSError, match=message), errors.explaining_full_disk(tmp_path):
        raise RuntimeError("failed to apply logs")
    with pytest.raises(ValueError, match="no such key"), errors.explaining_full_disk(tmp_path):
        raise ValueError("no such key")
    with pytest.raises(RuntimeError, match="elsewhere"), errors.explaining_full_disk(None):
        raise RuntimeError("elsewhere")
