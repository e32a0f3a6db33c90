"""Ray Data and Spark: real runs on this machine give what one process gives."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rag_splitters import (
    AgenticChunker,
    ContextualChunker,
    RecursiveChunker,
    SemanticChunker,
    SentenceChunker,
)
from rag_splitters.distributed import TableSplitter
from rag_splitters.distributed.ray import split_dataset
from rag_splitters.distributed.spark import split_dataframe
from tests.distributed.test_failures import DOCUMENTS as WITH_A_BAD_ONE
from tests.distributed.test_failures import FINE, SECRET, check_rows, make_llm
from tests.support.forms import front_end
from tests.support.tables import (
    DOCUMENTS,
    RAIN,
    WITHOUT_MODEL,
    Given,
    NotedEmbeddings,
    Row,
    by_chunk,
    expected,
    fail_on_boom,
    of_rows,
    own_chunker,
    table_of,
)

SENTENCES = SentenceChunker(chunk_size=12)
as_text = partial(json.dumps, sort_keys=True)
FAILING = RecursiveChunker(chunk_size=9, length_function=fail_on_boom)


def test_chunks_are_those_of_the_front_ends(cluster: Any) -> None:
    """All strategies in one job; Ray takes a second for each, `test_table.py` has the others."""
    results, wanted = [], list[Row]()
    for name in cluster.strategies:
        chunker = WITHOUT_MODEL[name]
        documents = cluster.documents(DOCUMENTS, 1 + len(name) % 4)
        splitter = TableSplitter(chunker, id_column="key", batch_size=3)
        results.append(cluster.split(documents, splitter))
        wanted += expected(front_end(chunker, "langchain"))
    rows = of_rows(cluster.rows(*results))
    assert sorted(map(as_text, rows)) == sorted(map(as_text, wanted))


def test_strategy_and_function_of_a_user_s_own_are_sent_to_the_workers(cluster: Any) -> None:
    documents = cluster.documents([Given("a", "tick tock")], 1)
    rows = cluster.rows(cluster.split(documents, TableSplitter(own_chunker())))
    assert [row["text"] for row in rows] == ["tick", " tock"]


def check_calls(cluster: Any, folder: Path, **options: Any) -> Counter[str]:
    """A model is called once for a batch; returns how often each process has loaded it."""
    documents = [Given(f"d{number}", f"{number}. {RAIN}") for number in range(24)]
    model = NotedEmbeddings(folder)
    chunker = SemanticChunker(embeddings=model, chunk_size=60)
    splitter = TableSplitter(chunker, id_column="key", batch_size=2)
    rows = cluster.rows(cluster.split(cluster.documents(documents, 6), splitter, **options))
    assert len(model.noted("calls")) == 12
    # The driver loads it, too, to check that the copy is the same.
    loads = Counter(each for each in model.noted("loads") if each != str(os.getpid()))
    whole = TableSplitter(chunker, id_column="key").split_table(table_of(documents))
    assert by_chunk(of_rows(rows)) == by_chunk(of_rows(whole.to_pylist()))
    return loads


@pytest.mark.parametrize("in_actors", [False, True], ids=["tasks", "actors"])
def test_ray_loads_a_model_once_in_a_process(on_ray: Any, tmp_path: Path, in_actors: bool) -> None:
    actors = on_ray.ray.data.ActorPoolStrategy(size=2)
    options = {"compute": actors} if in_actors else {"concurrency": 2}
    loads = check_calls(on_ray, tmp_path, **options)
    assert set(loads.values()) == {1}
    assert 1 <= len(loads) <= 2


def test_spark_loads_a_model_once_in_a_process(on_spark: Any, tmp_path: Path) -> None:
    assert set(check_calls(on_spark, tmp_path).values()) == {1}


def test_error_names_the_document(cluster: Any) -> None:
    splitter = TableSplitter(FAILING, id_column="key")
    with pytest.raises(Exception, match="document 'bad' could not be split: RuntimeError: it went"):
        cluster.rows(cluster.split(cluster.documents(WITH_A_BAD_ONE), splitter))


def test_document_that_fails_is_a_row(cluster: Any) -> None:
    splitter = TableSplitter(FAILING, id_column="key", on_error="row")
    rows = cluster.rows(cluster.split(cluster.documents(WITH_A_BAD_ONE), splitter))
    check_rows(rows, "RuntimeError: it went boom")


def test_no_key_is_sent_to_the_workers(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    documents, sent = cluster.documents(FINE), list[bytes]()
    kind, method, pickle = cluster.sending()

    def keep(self: Any, function: Any, *schema: Any, **options: Any) -> str:
        sent.append(pickle.dumps((function, options)))
        return "chunks"

    monkeypatch.setattr(kind, method, keep)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    cluster.split(documents, TableSplitter(AgenticChunker(llm=make_llm), id_column="key"))
    (payload,) = sent
    assert SECRET.encode() not in payload


@pytest.mark.parametrize(
    ("split", "package", "kind"),
    [(split_dataset, "ray", r"a ray\.data\.Dataset"), (split_dataframe, "spark", "a Spark DataF")],
)
def test_missing_package_is_told_with_the_extra_and_another_table_is_refused(
    split: Any, package: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as without:
        name = {"ray": "ray", "spark": "pyspark"}[package]
        for module in [each for each in sys.modules if each.startswith("pyspark.")]:
            without.delitem(sys.modules, module)
        without.setitem(sys.modules, name, None)
        with pytest.raises(ImportError, match=rf"pip install .*\[{package}\]"):
            split(table_of([]), TableSplitter(SENTENCES))
    pytest.importorskip(name)
    with pytest.raises(TypeError, match=f"must be {kind}.*, got Table"):
        split(table_of([]), TableSplitter(SENTENCES))


# Ray alone


def test_columns_of_ray_are_refused_at_once(ray: Any) -> None:
    dataset = ray.data.from_items([{"body": "half \ud83d", "n": 1, "page_end": 2}])
    with pytest.raises(ValueError, match="the table has no column 'text'; it has"):
        split_dataset(dataset, TableSplitter(SENTENCES))
    with pytest.raises(TypeError, match="column 'n' must hold strings, but its type is int64"):
        split_dataset(dataset, TableSplitter(SENTENCES, text_column="n"))
    # Ray makes a column of Python objects of lone surrogates, as Arrow holds none.
    with pytest.raises(TypeError, match="replace lone surrogates"):
        split_dataset(dataset, TableSplitter(SENTENCES, text_column="body"))
    with pytest.raises(TypeError, match=r"expected a TableSplitter, got .*: pass TableSplitter\("):
        split_dataset(dataset, SENTENCES)  # type: ignore[arg-type]


@pytest.mark.parametrize("texts", [[], [None], [" ", None]], ids=["no rows", "null", "blank"])
def test_dataset_without_text_gives_no_chunks_and_all_columns(ray: Any, texts: Any) -> None:
    items = [{"text": text, "n": number} for number, text in enumerate(texts)]
    dataset = ray.data.from_items(items, override_num_blocks=1) if items else None
    chunks = split_dataset(dataset or ray.data.from_arrow(table_of([])), TableSplitter(SENTENCES))
    assert chunks.take_all() == []
    known = TableSplitter(SENTENCES).output_schema(pa.schema({"text": "string", "n": "int64"}))
    assert not items or chunks.schema().base_schema == known


def test_dataset_of_pandas_blocks_is_split(ray: Any) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": ["One. Two three.", None, "Four."], "n": [1.0, None, 3.0]})
    rows = split_dataset(ray.data.from_pandas(frame), TableSplitter(SENTENCES)).take_all()
    found = [(row["text"], row["n"]) for row in rows]
    assert found == [("One.", 1.0), ("Two three.", 1.0), ("Four.", 3.0)]


def test_tensors_are_carried_on(ray: Any) -> None:
    import numpy as np

    given = ray.data.from_numpy(np.arange(6.0).reshape(2, 3)).add_column(
        "text", lambda frame: ["One. Two three.", "Four."], batch_format="pandas"
    )
    rows = split_dataset(given, TableSplitter(SENTENCES)).take_all()
    assert [list(row["data"]) for row in rows] == [[0, 1, 2], [0, 1, 2], [3, 4, 5]]


@pytest.mark.nightly
def test_ray_checkpoints_know_the_documents_that_are_done(ray: Any, tmp_path: Path) -> None:
    checkpoint = pytest.importorskip("ray.data.checkpoint")
    ray.data.from_arrow(table_of(WITH_A_BAD_ONE)).write_parquet(str(tmp_path / "documents"))
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
    assert counts == [len(WITH_A_BAD_ONE), 0]


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
    on_ray: Any, tmp_path: Path, has_cache: bool, most: int
) -> None:
    """With a shared cache, only the prompt that was under way is asked again."""
    documents = [Given(f"d{number}", f"Text number {number} is here.") for number in range(40)]
    model = MortalModel(tmp_path)
    chunker = ContextualChunker(llm=model, cache=tmp_path / "cache" if has_cache else None)
    splitter = TableSplitter(chunker, id_column="key", batch_size=4)
    assert len(on_ray.rows(split_dataset(on_ray.documents(documents, 1), splitter))) == 40
    prompts = model.prompts()
    assert len(prompts) == 40
    assert 1 <= sum(prompts.values()) - 40 <= most


# Spark alone


def test_columns_are_known_before_anything_runs(on_spark: Any) -> None:
    splitter = TableSplitter(SENTENCES, id_column="key")
    chunks = split_dataframe(on_spark.documents([]), splitter)
    assert chunks.columns == splitter.output_schema(table_of([]).schema).names
    kinds = {field.name: field.dataType.simpleString() for field in chunks.schema}
    assert kinds["headings"] == "array<string>"
    assert {kinds[name] for name in ("start_index", "level", "page_end", "page")} == {"bigint"}
    assert chunks.collect() == []


def test_dataframe_with_empty_partitions_is_split(on_spark: Any) -> None:
    documents = on_spark.documents([Given("a", "One."), Given("b", None)], 8)
    chunks = split_dataframe(documents, TableSplitter(SENTENCES))
    assert [row["text"] for row in on_spark.rows(chunks)] == ["One."]
    nulls = on_spark.spark.sql("select null text, 1 n")
    assert on_spark.rows(split_dataframe(nulls, TableSplitter(SENTENCES))) == []


def test_columns_of_spark_are_refused_at_once(on_spark: Any) -> None:
    documents, at = on_spark.documents([]), on_spark.spark.sql("select 'a' text, now() at")
    for table, names, error, message in (
        (documents, {"text_column": "body"}, ValueError, "the table has no column 'body'; it has"),
        (documents, {"text_column": "page"}, TypeError, "'page' must hold strings, but its type"),
        (at, {"id_column": "at"}, TypeError, "'at' must hold strings or whole numbers, but its"),
        (
            documents.toDF("TEXT", "a", "b", "c"),
            {"text_column": "a"},
            ValueError,
            "'TEXT'.: rename",
        ),
        (documents.toDF("x", "text", "x", "y"), {}, ValueError, "the table has 2 columns 'x'"),
    ):
        with pytest.raises(error, match=message):
            split_dataframe(table, TableSplitter(SENTENCES, **names))


def test_columns_of_every_kind_are_carried_on(on_spark: Any) -> None:
    """Also one with a dot in its name, which Spark takes for a path."""
    documents = on_spark.spark.sql(
        """select 7 id, 'One. Two three.' text, null nothing, cast(1.5 as decimal(10, 2)) price,
        array(struct(1 as q)) pairs, map('a', 1) `a.b`, date'2026-01-02' day, X'00ff' raw,
        timestamp'2026-01-02 03:04:05' at, cast(2 as smallint) small, 0.5f share"""
    )
    chunks = split_dataframe(documents, TableSplitter(SENTENCES, id_column="id"))
    assert chunks.schema[-9:] == documents.schema[2:]
    (source,), rows = on_spark.rows(documents), on_spark.rows(chunks)
    assert [row["text"] for row in rows] == ["One.", "Two three."]
    assert {row["document_id"] for row in rows} == {"7"}
    carried = {name: value for name, value in source.items() if name not in ("id", "text")}
    assert all(carried.items() <= row.items() for row in rows)


def test_large_strings_are_read_and_written(on_spark: Any) -> None:
    name, splitter = "spark.sql.execution.arrow.useLargeVarTypes", TableSplitter(SENTENCES)
    on_spark.spark.conf.set(name, "true")
    try:
        chunks = split_dataframe(on_spark.documents([Given("a", "One. Two three.")]), splitter)
        assert [row["text"] for row in on_spark.rows(chunks)] == ["One.", "Two three."]
    finally:
        on_spark.spark.conf.unset(name)
