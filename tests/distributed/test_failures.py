"""Tables, Ray and Spark with models: failures as rows, ids that last, the cost of a dead worker."""

from __future__ import annotations

import os
import pickle
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from langchain_openai import ChatOpenAI

from rag_splitters import AgenticChunker, Chunker, ContextualChunker, RecursiveChunker, Span
from rag_splitters.distributed import TableSplitter
from rag_splitters.distributed.ray import split_dataset
from rag_splitters.distributed.spark import split_dataframe
from tests.distributed.test_ray import blocks
from tests.distributed.test_spark import frame, rows_of
from tests.support.chat_doubles import sentences_in
from tests.support.openai_server import OpenAIServer
from tests.support.tables import Given, fail_on_boom, table_of

SECRET = "sk-very-secret-0123456789"
OWN = TableSplitter(RecursiveChunker()).output_schema(table_of([]).schema).names
FINE = [Given(f"fine-{number}", f"Tea {number} is hot. I like it.", "Tea") for number in range(4)]
BAD = Given("bad", "One more. And then boom.", "Bad", 7)
DOCUMENTS = [*FINE[:2], BAD, *FINE[2:]]


def half(prompt: str) -> str:
    """An answer that is of no use if the sentences say "boom"."""
    return '{"starts": []}' if "boom" in " ".join(sentences_in(prompt)) else '{"starts": [1, 2]}'


class BadMetadata(Chunker):
    """Says something about a document that no table can hold."""

    def spans(self, text: str) -> list[Span]:
        return [Span(0, len(text), {"tags": {1, 2} if "boom" in text else []})]


def check_rows(rows: list[dict[str, Any]], message: str) -> None:
    """The bad document has a row that says why, and the others have their chunks."""
    (bad,) = [row for row in rows if row["error"] is not None]
    assert re.search(message, bad["error"])
    assert "'bad'" in bad["error"]
    values = {name: value for name, value in bad.items() if value is not None}
    values.pop("error")
    assert values == {"document_id": "bad", "key": "bad", "title": "Bad", "page": 7}
    chunks = [row for row in rows if row["error"] is None]
    assert {row["document_id"] for row in chunks} == {each.key for each in FINE}
    assert all(row["chunk_id"] and row["text"] for row in chunks)


@pytest.mark.parametrize("batch_size", [1, 2, 100])
@pytest.mark.parametrize(
    ("chunker", "message"),
    [
        (
            RecursiveChunker(chunk_size=9, length_function=fail_on_boom),
            "RuntimeError: it went boom",
        ),
        (BadMetadata(), "TypeError: Object of type set is not JSON serializable"),
    ],
)
def test_document_that_fails_is_a_row(chunker: Chunker, message: str, batch_size: int) -> None:
    splitter = TableSplitter(chunker, id_column="key", on_error="row", batch_size=batch_size)
    chunks = splitter.split_table(table_of(DOCUMENTS))
    check_rows(chunks.to_pylist(), message)
    assert chunks.schema == splitter.output_schema(table_of([]).schema)
    without = TableSplitter(chunker, id_column="key").split_table(table_of(FINE))
    fine = chunks.filter(pa.compute.is_null(chunks["error"])).drop_columns(["error"])
    assert fine.combine_chunks() == without.combine_chunks()


def test_document_that_a_model_fails_on_is_a_row() -> None:
    with OpenAIServer(half) as server:
        llm = ChatOpenAI(model="gpt-4o", base_url=server.url, api_key=SECRET, max_retries=0)
        chunker = AgenticChunker(llm=llm, max_retries=0)
        splitter = TableSplitter(chunker, id_column="key", on_error="row")
        rows = splitter.split_table(table_of(DOCUMENTS)).to_pylist()
        requests = len(server.requests)
    check_rows(rows, "AgenticChunker: document 2.* window 0 .*it names no sentence")
    assert requests == len(DOCUMENTS)


def test_missing_package_is_no_row() -> None:
    def lacking(text: str) -> int:
        raise ImportError("pip install one")

    splitter = TableSplitter(RecursiveChunker(length_function=lacking), on_error="row")
    with pytest.raises(ImportError, match="pip install one"):
        splitter.split_table(table_of(FINE))


def test_options_about_errors_are_checked() -> None:
    with pytest.raises(ValueError, match="on_error must be 'raise' or 'row', got 'skip'"):
        TableSplitter(RecursiveChunker(), on_error="skip")  # type: ignore[arg-type]
    table = pa.table({"text": ["Tea."], "error": ["none"]})
    with pytest.raises(ValueError, match=r"columns \['error'\]: rename"):
        TableSplitter(RecursiveChunker(), on_error="row").split_table(table)
    assert "error" in TableSplitter(RecursiveChunker()).split_table(table).column_names


# Ids


def test_id_column_keeps_its_name_and_type() -> None:
    table = pa.table({"key": pa.array([7, 8], pa.int32()), "text": ["Tea.", "Rain."], "n": [1, 2]})
    chunks = TableSplitter(RecursiveChunker(), id_column="key").split_table(table)
    assert chunks.column_names == [*OWN[: OWN.index("chunk_metadata") + 1], "key", "n"]
    assert chunks.schema.field("key").type == pa.int32()
    assert chunks.column("key").to_pylist() == [7, 8]
    assert chunks.column("document_id").to_pylist() == ["7", "8"]


@pytest.mark.parametrize("name", ["document_id", "Chunk_ID"])
def test_id_column_with_the_name_of_a_column_of_chunks_is_not_repeated(name: str) -> None:
    table = pa.table({name: ["a"], "text": ["Tea."]})
    chunks = TableSplitter(RecursiveChunker(), id_column=name).split_table(table)
    assert len(chunks.column_names) == len(set(map(str.lower, chunks.column_names)))
    assert chunks.column("document_id").to_pylist() == ["a"]


def test_id_column_may_be_named_among_the_metadata() -> None:
    table = table_of(FINE)
    splitter = TableSplitter(RecursiveChunker(), id_column="key", metadata_columns=["title", "key"])
    assert splitter.split_table(table).column_names[-2:] == ["title", "key"]


# Ray


def test_ray_gives_a_row_for_a_document_that_fails(ray: Any) -> None:
    chunker = RecursiveChunker(chunk_size=9, length_function=fail_on_boom)
    chunks = split_dataset(
        blocks(ray, DOCUMENTS, 2), TableSplitter(chunker, id_column="key", on_error="row")
    )
    check_rows(chunks.take_all(), "RuntimeError: it went boom")


@pytest.mark.nightly
def test_ray_checkpoints_know_the_documents_that_are_done(ray: Any, tmp_path: Path) -> None:
    checkpoint = pytest.importorskip("ray.data.checkpoint")
    ray.data.from_arrow(table_of(DOCUMENTS)).write_parquet(str(tmp_path / "documents"))
    context = ray.data.DataContext.get_current()
    before = context.checkpoint_config
    context.checkpoint_config = checkpoint.CheckpointConfig(
        "key", str(tmp_path / "checkpoints"), delete_checkpoint_on_success=False
    )
    try:
        counts = []
        for run in ("one", "two"):
            dataset = ray.data.read_parquet(str(tmp_path / "documents"))
            chunks = split_dataset(dataset, TableSplitter(RecursiveChunker(), id_column="key"))
            chunks.write_parquet(str(tmp_path / run))
            files = list((tmp_path / run).glob("*.parquet"))
            counts.append(sum(pa.parquet.read_table(file).num_rows for file in files))
    finally:
        context.checkpoint_config = before
    assert counts == [len(DOCUMENTS), 0]


class MortalModel:
    """Writes contexts, and notes each prompt; one of them kills its process, once."""

    description = "mortal"

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)

    def __call__(self, prompt: str) -> str:
        chunk = prompt.rpartition("<chunk>\n")[2].partition("\n</chunk>")[0]
        with (Path(self.folder) / "prompts").open("a") as file:
            file.write(f"{chunk}\n")
        grave = Path(self.folder) / "grave"
        if "number 17 " in chunk and not grave.exists():
            grave.touch()
            os._exit(1)
        return f"About {len(chunk)} characters."

    def prompts(self) -> Counter[str]:
        return Counter((Path(self.folder) / "prompts").read_text().splitlines())


@pytest.mark.nightly
@pytest.mark.parametrize(("has_cache", "most"), [(False, 4), (True, 1)])
def test_killed_worker_pays_its_own_batch_twice_at_most(
    ray: Any, tmp_path: Path, has_cache: bool, most: int
) -> None:
    """With a shared cache, only the prompt that was under way is asked again."""
    documents = [Given(f"d{number}", f"Text number {number} is here.") for number in range(40)]
    model = MortalModel(tmp_path)
    chunker = ContextualChunker(llm=model, cache=tmp_path / "cache" if has_cache else None)
    chunks = split_dataset(
        blocks(ray, documents, 1), TableSplitter(chunker, id_column="key", batch_size=4)
    )
    assert len(chunks.take_all()) == 40
    prompts = model.prompts()
    assert len(prompts) == 40
    assert 1 <= sum(prompts.values()) - 40 <= most


# What is sent to the workers


def test_nothing_that_is_sent_to_the_workers_holds_the_key(
    ray: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray.cloudpickle

    sent: list[bytes] = []

    def map_batches(self: Any, function: Any, **options: Any) -> str:
        sent.append(ray.cloudpickle.dumps((function, options)))
        return "dataset"

    monkeypatch.setattr(ray.data.Dataset, "map_batches", map_batches)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    split_dataset(
        blocks(ray, FINE, 1), TableSplitter(AgenticChunker(llm=make_llm), id_column="key")
    )
    assert len(sent) == 1
    assert not any(SECRET.encode() in each for each in sent)


def make_llm() -> ChatOpenAI:
    return ChatOpenAI(model="gpt-4o")


def test_model_with_a_key_is_not_sent_to_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TypeError, match="pass a factory") as caught:
        pickle.dumps(TableSplitter(AgenticChunker(llm=ChatOpenAI(model="gpt-4o", api_key=SECRET))))
    assert SECRET not in str(caught.value)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    assert SECRET.encode() not in pickle.dumps(TableSplitter(AgenticChunker(llm=make_llm)))


# Spark


def test_spark_gives_a_row_for_a_document_that_fails(spark: Any) -> None:
    chunker = RecursiveChunker(chunk_size=9, length_function=fail_on_boom)
    chunks = split_dataframe(
        frame(spark, DOCUMENTS), TableSplitter(chunker, id_column="key", on_error="row")
    )
    check_rows(rows_of(chunks), "RuntimeError: it went boom")


def test_spark_sends_no_key_to_the_workers(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyspark.cloudpickle

    dataframe = frame(spark, FINE)
    sent: list[bytes] = []

    def map_in_arrow(self: Any, function: Any, *options: Any) -> str:
        sent.append(pyspark.cloudpickle.dumps(function))
        return "dataframe"

    monkeypatch.setattr(type(dataframe), "mapInArrow", map_in_arrow)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    split_dataframe(dataframe, TableSplitter(AgenticChunker(llm=make_llm), id_column="key"))
    assert len(sent) == 1
    assert not any(SECRET.encode() in each for each in sent)
