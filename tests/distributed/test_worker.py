"""What a worker does with a batch, run in this process: what is refused, and what goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rag_splitters.distributed import IndexSummary, TableIndexer
from rag_splitters.distributed.indexing import Worker, identify, turn_to_index
from rag_splitters.langchain import parent_document_retriever
from rag_splitters.models import ModelError
from tests.support.index_opening import MortalEmbeddings, Place, document, open_index

Index = Callable[..., IndexSummary]
ROWS = [document(number) for number in range(8)]


@pytest.fixture
def where(
    postgres_url: str, chroma_server: tuple[str, int], collection_name: str, tmp_path: Path
) -> Place:
    """A place for an index of this test's own."""
    return Place(postgres_url, *chroma_server, collection_name, str(tmp_path))


@pytest.fixture
def index(where: Place) -> Index:
    """Indexes rows of documents."""

    def index_rows(rows: list[dict[str, Any]], **options: Any) -> IndexSummary:
        defaults = {"open_index": partial(open_index, where), "id_column": "id", "batch_size": 3}
        indexer = TableIndexer(**{**defaults, **options})
        table = identify(indexer, pa.Table.from_pylist(rows))
        with turn_to_index(indexer) as (turn, finish):
            worker = Worker(indexer, turn)
            batches = [table.slice(start, 3) for start in range(0, len(rows), 3)]
            return finish(row for batch in batches for row in worker.add(batch).to_pylist())

    return index_rows


@pytest.fixture
def retriever(where: Place) -> Iterator[Any]:
    """The index, as another process opens it."""
    with closing(open_index(where)) as opened:
        yield opened


def test_nothing_is_embedded_or_written_for_unchanged_documents(index: Index, where: Place) -> None:
    first = index(ROWS)
    texts = MortalEmbeddings(where.folder).noted("texts")
    assert (first.documents, first.added) == (8, 8)
    assert texts
    second = index(ROWS)
    assert (second.unchanged, second.added, second.changed) == (8, 0, 0)
    assert MortalEmbeddings(where.folder).noted("texts") == texts


def test_what_is_missing_is_written_again(index: Index, retriever: Any) -> None:
    index(ROWS)
    collection = retriever.vectorstore._collection
    collection.delete(ids=collection.get(limit=1)["ids"])
    assert index(ROWS).changed == 1
    assert retriever.verify().is_sound


def test_only_what_is_gone_from_the_scope_is_removed(index: Index, retriever: Any) -> None:
    index(ROWS)
    assert index(ROWS[:-2]).deleted == 0
    reds = [row for row in ROWS[:-4] if row["team"] == "red"]
    assert index(reds, scope={"team": "red"}).deleted == 2
    assert len(retriever.get([row["id"] for row in ROWS])) == 6
    assert index(ROWS[:1], scope={}).deleted == 5
    with pytest.raises(ValueError, match=r"document 'lamp-0' is outside of scope=\{'team': 'red'"):
        index(ROWS, scope={"team": "red"})


def test_blank_document_is_indexed_without_parents(index: Index, retriever: Any) -> None:
    index(ROWS)
    nothing = {"id": "nothing", "text": None, "team": "red", "tower": 1}
    summary = index([nothing], scope={"team": "red"})
    assert (summary.added, summary.deleted) == (1, 4)
    assert retriever.verify().is_sound


def test_document_that_cannot_be_stored_is_refused_or_left_out(
    index: Index, retriever: Any
) -> None:
    index(ROWS)
    rows = [{**row, "data": b"" if row["id"] == "lamp-2" else None} for row in ROWS[:-1]]
    with pytest.raises(ValueError, match=r"document 'lamp-2': metadata\['data'\] is of type bytes"):
        index(rows)
    summary = index(rows, on_error="row", scope={})
    assert (summary.documents, summary.failed, summary.deleted) == (7, 1, 1)
    assert "'lamp-2'" in summary.errors[0]
    assert len(retriever.get(["lamp-2"])) == 1  # as it was


def test_document_that_cannot_be_cut_is_left_out(
    index: Index, where: Place, retriever: Any
) -> None:
    def fail_on_lamp_2(text: str) -> int:
        if "Lamp 2 " in text:
            raise RuntimeError("it went out")
        return len(text)

    def opened() -> Any:
        other = open_index(where)
        other.child_splitter.length_function = fail_on_lamp_2
        return other

    with pytest.raises(ValueError, match=r"document .lamp-2. could not be split: .*it went out"):
        index(ROWS, open_index=opened)
    summary = index(ROWS, open_index=opened, on_error="row")
    assert (summary.documents, summary.failed) == (8, 1)
    assert len(retriever.get([row["id"] for row in ROWS])) == 7


def test_run_that_failed_is_finished_by_another(
    index: Index, retriever: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(MortalEmbeddings, "embed_documents", lambda *_: 1 / 0)
        with pytest.raises(ModelError, match="division by zero"):
            index(ROWS)
    assert index(ROWS).documents == 8
    assert retriever.verify().is_sound


def test_stores_for_one_process_are_refused(index: Index, retriever: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="several processes need a docstore"):
        index(ROWS, open_index=parent_document_retriever)
    for options in ({"path": tmp_path / "folder"}, {"docstore": retriever.docstore}):
        with pytest.raises(ValueError, match="cannot write to a Chroma in memory or in a folder"):
            index(ROWS, open_index=partial(parent_document_retriever, **options))
    with pytest.raises(TypeError, match="open_index must be a function without parameters"):
        index(ROWS, open_index=retriever)
    with pytest.raises(TypeError, match="must return what parent_document_retriever returns"):
        index(ROWS, open_index=dict)
