"""A docstore of files: a reader sees rows that are half written, and a kill leaves them so."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_classic.storage import LocalFileStore, create_kv_docstore
from langchain_core.documents import Document
from langchain_core.stores import InMemoryByteStore

from rag_splitters.langchain import (
    ParentDocumentRetriever,
    adapters,
    parent_document_retriever,
)
from rag_splitters.parent_child import DamagedRowsError, DocstoreInUseError
from rag_splitters.parent_child.records import record_key

DOCUMENTS = [
    Document(page_content="The lamp burned whale oil.", id="lamp"),
    Document(page_content="The fog horn is older than the pier.", id="horn"),
]


class SlowFiles(InMemoryByteStore):
    """Shows each value once as a store of files does while it is being written."""

    def __init__(self) -> None:
        super().__init__()
        self.half_written: set[str] = set()

    def mset(self, key_value_pairs: Sequence[tuple[str, bytes]]) -> None:
        super().mset(key_value_pairs)
        self.half_written.update(key for key, _ in key_value_pairs)

    def mget(self, keys: Sequence[str]) -> list[bytes | None]:
        values = [
            value and (value[:9] if key in self.half_written else value)
            for key, value in zip(keys, super().mget(keys), strict=True)
        ]
        self.half_written.difference_update(keys)
        return values


@pytest.mark.parametrize("option", ["byte_store", "docstore"])
def test_a_row_that_is_being_written_is_read_again(option: str) -> None:
    rows = SlowFiles()
    stores: dict[str, Any] = {option: rows if option == "byte_store" else create_kv_docstore(rows)}
    retriever = parent_document_retriever(DOCUMENTS, **stores, k=1)
    for search_type in ("hybrid", "similarity"):
        retriever = retriever.model_copy(update={"search_type": search_type})
        rows.half_written.update(rows.yield_keys())
        assert retriever.invoke("whale oil")[0].page_content == "The lamp burned whale oil."
        rows.half_written.update(rows.yield_keys())
        (result,) = asyncio.run(retriever.ainvoke("whale oil"))
        assert result.page_content == "The lamp burned whale oil."


@pytest.fixture
def retriever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ParentDocumentRetriever:
    """A retriever whose docstore is a folder of files, to which nobody else writes."""
    monkeypatch.setattr(adapters, "_WAITS", (0.0,))
    rows = LocalFileStore(tmp_path / "rows")
    return parent_document_retriever(DOCUMENTS, byte_store=rows)


@pytest.mark.parametrize("value", [b"", b"\xff", b'{"lc": 1, "ty', b"[1]"])
@pytest.mark.parametrize("kind", ["record", "parent"])
def test_a_row_that_was_cut_short_is_named_and_repaired(
    retriever: ParentDocumentRetriever, tmp_path: Path, kind: str, value: bytes
) -> None:
    (passage,) = retriever.invoke("whale oil", k=1)
    name, key = ("lamp", record_key("lamp")) if kind == "record" else (passage.id, passage.id)
    (tmp_path / "rows" / str(key)).write_bytes(value)
    with pytest.raises(
        DamagedRowsError,
        match=r"LocalFileStore: the values of .* are damaged.*verify\(repair=True\)",
    ) as caught:
        retriever.get([str(name)])
    assert isinstance(caught.value.__cause__, ValueError), "it says what was wrong"
    assert len(retriever.verify(repair=True).damaged) == 1
    assert retriever.add_documents(DOCUMENTS) == ["lamp", "horn"]
    assert retriever.verify().is_sound
    assert retriever.get(["lamp", "horn"]) == DOCUMENTS


def test_a_claim_that_was_cut_short_is_released(
    retriever: ParentDocumentRetriever, tmp_path: Path
) -> None:
    (tmp_path / "rows" / "state" / "writer").write_bytes(b"")
    changed = Document(page_content="The lamp burns gas.", id="lamp")
    with pytest.raises(DocstoreInUseError, match=r"call release_claim\(\), and then verify"):
        retriever.add_documents([changed])
    retriever.release_claim()
    assert retriever.verify(repair=True).is_sound
    retriever.add_documents([changed])
    assert retriever.verify().is_sound
    assert [each.page_content for each in retriever.invoke("lamp", k=1)] == ["The lamp burns gas."]
