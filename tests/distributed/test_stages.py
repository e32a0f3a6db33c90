"""The stages of indexing a dataset, run in this process: what is refused, and what goes on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from rag_splitters.distributed.checkpoint import Checkpoint, draft_from_json, draft_to_json
from rag_splitters.distributed.runs import IndexSummary, make_job, make_shards, run_job
from rag_splitters.distributed.stages import Job, Row, Worker, WorkStage
from rag_splitters.langchain import parent_document_retriever
from rag_splitters.models import ModelError
from rag_splitters.parent_child.drafts import Draft
from rag_splitters.parent_child.records import Entry
from tests.support.index_opening import MortalEmbeddings, Place, document, open_index

Index = Callable[..., IndexSummary]


class LocalEngine:
    """Runs the stages one after the other in this process."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def prepare(self, job: Job) -> None:
        Path(job.checkpoint.chunks).mkdir()
        worker = Worker(job)
        with closing(worker.index):
            rows = pa.Table.from_batches(worker.prepare(self.table))
        pyarrow.parquet.write_table(rows, f"{job.checkpoint.chunks}/one.parquet")

    def work(self, job: Job, stage: WorkStage, items: Sequence[Sequence[str]]) -> list[Row]:
        worker = Worker(job)
        with closing(worker.index):
            do = {"write": worker.write, "count": worker.count, "settle": worker.settle}[stage]
            return [json.loads(json.dumps(do(item))) for item in items]


@pytest.fixture
def where(
    postgres_url: str, chroma_server: tuple[str, int], collection_name: str, tmp_path: Path
) -> Place:
    """A place for an index of this test's own."""
    return Place(postgres_url, *chroma_server, collection_name, str(tmp_path))


@pytest.fixture
def index(where: Place, tmp_path: Path) -> Index:
    """Indexes rows of documents."""

    def index_rows(rows: list[dict[str, Any]], **options: Any) -> IndexSummary:
        defaults = {"text_column": "text", "id_column": "id", "metadata_columns": None}
        defaults |= {"scope": None, "batch_size": 3, "on_error": "raise"}
        defaults |= {"open_index": partial(open_index, where), "checkpoint": tmp_path / "run"}
        run_options = {name: options.pop(name, None) for name in ("resume", "progress")}
        job = make_job(**{**defaults, **options})  # type: ignore[arg-type]
        return run_job(job, LocalEngine(pa.Table.from_pylist(rows)), **run_options)  # type: ignore[arg-type]

    return index_rows


@pytest.fixture
def retriever(where: Place) -> Iterator[Any]:
    """The index, as another process opens it."""
    with closing(open_index(where)) as opened:
        yield opened


ROWS = [document(number) for number in range(8)]


def test_nothing_is_embedded_or_written_for_unchanged_documents(index: Index, where: Place) -> None:
    first = index(ROWS)
    texts = MortalEmbeddings(where.folder).noted("texts")
    assert (first.documents, first.added, first.parents) == (8, 8, 10)
    assert len(texts) == first.children
    second = index(ROWS)
    assert (second.unchanged, second.added, second.changed) == (8, 0, 0)
    assert (second.parents, second.children) == (first.parents, first.children)
    assert MortalEmbeddings(where.folder).noted("texts") == texts


def test_what_is_missing_is_written_again(index: Index, where: Place, retriever: Any) -> None:
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


def test_empty_dataset_empties_the_scope(index: Index, retriever: Any) -> None:
    index(ROWS)
    nothing = {"id": "nothing", "text": None, "team": "red", "tower": 1}
    summary = index([nothing], scope={"team": "red"})
    assert (summary.added, summary.parents, summary.deleted) == (1, 0, 4)
    assert retriever.verify().is_sound


@pytest.mark.parametrize("distance", [1, 6], ids=["one batch", "two batches"])
def test_id_of_two_documents_is_refused_before_anything_is_written(
    index: Index, retriever: Any, distance: int
) -> None:
    rows = [*ROWS, {**ROWS[-distance], "text": "Another lamp."}]
    with pytest.raises(
        ValueError, match=r"different documents have the same id, such as 'lamp-\d'"
    ):
        index(rows)
    assert list(retriever.docstore.yield_keys()) == []
    assert index([*ROWS, *ROWS[2:]]).added == 8


def test_document_that_cannot_be_stored_is_refused_or_left_out(
    index: Index, retriever: Any, tmp_path: Path
) -> None:
    index(ROWS)
    rows = [{**row, "data": b"" if row["id"] == "lamp-2" else None} for row in ROWS[:-1]]
    with pytest.raises(ValueError, match=r"document 'lamp-2': metadata\['data'\] is a bytes"):
        index(rows)
    summary = index(rows, on_error="row", scope={})
    assert (summary.failed, summary.changed, summary.deleted) == (1, 6, 1)
    assert "'lamp-2'" in summary.errors[0]
    assert len(retriever.get(["lamp-2"])) == 1  # as it was
    stored = pyarrow.parquet.read_table(tmp_path / "run" / "chunks" / "one.parquet").to_pylist()
    assert [row["document_id"] for row in stored if row["error"]] == ["lamp-2"]


def test_wrong_columns_are_refused(index: Index) -> None:
    with pytest.raises(ValueError, match="the table has no column 'body'"):
        index(ROWS, text_column="body")
    with pytest.raises(TypeError, match="column 'tower' must hold strings"):
        index(ROWS, text_column="tower")
    with pytest.raises(ValueError, match="batch_size must be a whole number of at least 1, got 0"):
        index(ROWS, batch_size=0)
    with pytest.raises(ValueError, match="on_error must be 'raise' or 'row', got 'skip'"):
        index(ROWS, on_error="skip")


def test_run_goes_on_where_it_was_interrupted(
    index: Index, where: Place, retriever: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(MortalEmbeddings, "embed_documents", lambda *_: 1 / 0)
        with pytest.raises(ModelError, match="division by zero"):
            index(ROWS)
    reports: list[tuple[int, int]] = []
    nothing_new = [document(0)]  # the dataset is not read again
    summary = index(nothing_new, resume=True, progress=lambda *report: reports.append(report))
    assert (summary.documents, summary.added) == (8, 8)
    assert reports[-1] == (8, 8)
    assert retriever.verify().is_sound
    with closing(open_index(where)) as other:
        other.headings = False
        with pytest.raises(ValueError, match="have changed since the checkpoint"):
            index(ROWS, resume=True, open_index=lambda: other)


def test_folder_of_something_else_is_not_overwritten(index: Index, tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    (folder / "cat.jpg").touch()
    with pytest.raises(
        ValueError, match=r"is not the folder of a checkpoint, because it holds 'cat\.jpg'"
    ):
        index(ROWS, checkpoint=folder)
    assert (folder / "cat.jpg").exists()


def test_stores_for_one_process_are_refused(
    index: Index, where: Place, retriever: Any, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="need a docstore that can compare and write in one step"):
        index(ROWS, open_index=parent_document_retriever)
    folder = partial(parent_document_retriever, path=tmp_path / "folder")
    with pytest.raises(ValueError, match="cannot write to a Chroma in memory or in a folder"):
        index(ROWS, open_index=folder)
    mixed = partial(parent_document_retriever, docstore=retriever.docstore)
    with pytest.raises(ValueError, match="cannot write to a Chroma in memory or in a folder"):
        index(ROWS, open_index=mixed)
    with pytest.raises(TypeError, match="open_index must be a function without parameters"):
        index(ROWS, open_index=retriever)
    with pytest.raises(TypeError, match="must return what parent_document_retriever returns"):
        index(ROWS, open_index=dict)


def test_draft_keeps_lone_surrogates() -> None:
    draft = Draft("a\ud83d", Entry("half \ud83d", {"n": [1, None]}, "a\ud83d"), [], [])
    text = draft_to_json(draft)
    assert pa.array([text]).to_pylist() == [text]
    assert draft_from_json("a\ud83d", text) == draft


def test_shards_divide_all_keys() -> None:
    for documents in (0, 3_000_000, 10**9):
        shards = make_shards(documents)
        prefixes = sorted(prefix for shard in shards for prefix in shard)
        assert prefixes == [f"{number:02x}" for number in range(256)]
    assert len(make_shards(10**9)) == 256


def test_checkpoint_of_a_uri_is_read_by_arrow(tmp_path: Path) -> None:
    checkpoint = Checkpoint(f"{tmp_path.as_uri()}/run/")
    checkpoint.clear()
    checkpoint.write_state({"is_prepared": True})
    assert Checkpoint(tmp_path / "run").read_state() == {"is_prepared": True}
    assert checkpoint.list_files() == {}
