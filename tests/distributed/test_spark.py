"""Spark: real runs on this machine give what one process gives."""

from __future__ import annotations

import os
import sys
from collections import Counter
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

import rag_splitters.langchain
from rag_splitters import RecursiveChunker, SemanticChunker, SentenceChunker
from rag_splitters.distributed import TableSplitter
from rag_splitters.distributed.spark import split_dataframe
from tests.support.forms import front_end
from tests.support.tables import (
    DOCUMENTS,
    RAIN,
    WITHOUT_MODEL,
    Given,
    NotedEmbeddings,
    by_chunk,
    expected,
    fail_on_boom,
    of_rows,
    own_chunker,
    table_of,
)

SENTENCES = SentenceChunker(chunk_size=12)
COLUMNS = "key string, text string, title string, page long"


def frame(spark: Any, documents: list[Given], partitions: int = 2) -> Any:
    """The documents as a DataFrame of so many partitions."""
    rows = spark.sparkContext.parallelize([tuple(each) for each in documents], partitions)
    return spark.createDataFrame(rows, COLUMNS)


def rows_of(dataframe: Any) -> list[dict[str, Any]]:
    """The rows, as dictionaries of plain values."""
    return [row.asDict(recursive=True) for row in dataframe.collect()]


def test_dataframe_has_the_chunks_of_the_front_ends(spark: Any) -> None:
    """All strategies in one job, as a job of its own for each would take Spark a second."""
    from pyspark.sql.functions import lit

    frames = []
    for name, chunker in WITHOUT_MODEL.items():
        documents = frame(spark, DOCUMENTS, 1 + len(name) % 4)
        chunks = split_dataframe(documents, TableSplitter(chunker, id_column="key", batch_size=3))
        frames.append(chunks.withColumn("strategy", lit(name)))
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in WITHOUT_MODEL}
    for row in rows_of(reduce(lambda one, other: one.unionByName(other), frames)):
        found[row.pop("strategy")].append(row)
    for name, chunker in WITHOUT_MODEL.items():
        splitter = front_end(chunker, "langchain")
        assert by_chunk(of_rows(found[name])) == by_chunk(expected(splitter)), name


def test_front_end_is_taken_as_the_chunker(spark: Any) -> None:
    splitter = rag_splitters.langchain.RecursiveTextSplitter(chunk_size=20, page_break="\f")
    chunks = split_dataframe(frame(spark, DOCUMENTS), TableSplitter(splitter, id_column="key"))
    assert by_chunk(of_rows(rows_of(chunks))) == by_chunk(expected(splitter))


def test_strategy_and_function_of_a_user_s_own_are_sent_to_the_workers(spark: Any) -> None:
    chunks = split_dataframe(frame(spark, [Given("a", "tick tock")]), TableSplitter(own_chunker()))
    assert [row.text for row in chunks.collect()] == ["tick", " tock"]


def test_columns_are_known_before_anything_runs(spark: Any) -> None:
    chunks = split_dataframe(frame(spark, []), TableSplitter(SENTENCES, id_column="key"))
    names = TableSplitter(SENTENCES, id_column="key").output_schema(table_of([]).schema).names
    assert chunks.columns == names
    kinds = {field.name: field.dataType.simpleString() for field in chunks.schema}
    assert kinds["headings"] == "array<string>"
    assert {kinds[name] for name in ("start_index", "level", "page_end", "page")} == {"bigint"}
    assert chunks.collect() == []


def test_dataframe_with_empty_partitions_is_split(spark: Any) -> None:
    chunks = split_dataframe(
        frame(spark, [Given("a", "One."), Given("b", None)], 8), TableSplitter(SENTENCES)
    )
    assert [row.text for row in chunks.collect()] == ["One."]


def test_model_is_loaded_once_in_a_process_and_called_once_for_a_batch(
    spark: Any, tmp_path: Path
) -> None:
    documents = [Given(f"d{number}", f"{number}. {RAIN}") for number in range(24)]
    model = NotedEmbeddings(tmp_path)
    chunker = SemanticChunker(embeddings=model, chunk_size=60)
    chunks = split_dataframe(
        frame(spark, documents, 6), TableSplitter(chunker, id_column="key", batch_size=2)
    )
    rows = rows_of(chunks)
    assert len(model.noted("calls")) == 12
    # The driver loads it, too, to check that the copy is the same.
    loads = Counter(each for each in model.noted("loads") if each != str(os.getpid()))
    assert set(loads.values()) == {1}
    whole = TableSplitter(chunker, id_column="key").split_table(table_of(documents))
    assert by_chunk(of_rows(rows)) == by_chunk(of_rows(whole.to_pylist()))


def test_wrong_columns_are_refused_at_once(spark: Any) -> None:
    documents = frame(spark, [])
    with pytest.raises(ValueError, match="the table has no column 'body'; it has"):
        split_dataframe(documents, TableSplitter(SENTENCES, text_column="body"))
    with pytest.raises(TypeError, match="column 'page' must hold strings, but its type is int64"):
        split_dataframe(documents, TableSplitter(SENTENCES, text_column="page"))
    with pytest.raises(TypeError, match="column 'at' must hold strings or whole numbers, but its"):
        split_dataframe(
            spark.sql("select 'a' text, now() at"), TableSplitter(SENTENCES, id_column="at")
        )
    with pytest.raises(ValueError, match=r"columns \['TEXT'\]: rename"):
        split_dataframe(
            documents.toDF("TEXT", "body", "c", "d"), TableSplitter(SENTENCES, text_column="body")
        )
    with pytest.raises(ValueError, match="the table has 2 columns 'x'"):
        split_dataframe(documents.toDF("x", "text", "x", "y"), TableSplitter(SENTENCES))


def test_error_names_the_document(spark: Any) -> None:
    documents = [*DOCUMENTS[:5], Given("bad-7", "And then boom."), *DOCUMENTS[5:]]
    chunker = RecursiveChunker(chunk_size=50, length_function=fail_on_boom)
    chunks = split_dataframe(frame(spark, documents), TableSplitter(chunker, id_column="key"))
    with pytest.raises(Exception, match="document 'bad-7' could not be split: RuntimeError: it"):
        chunks.collect()


def test_columns_of_every_kind_are_carried_on(spark: Any) -> None:
    """Also one with a dot in its name, which Spark takes for a path."""
    documents = spark.sql(
        """select 7 id, 'One. Two three.' text, null nothing, cast(1.5 as decimal(10, 2)) price,
        array(struct(1 as q)) pairs, map('a', 1) `a.b`, date'2026-01-02' day, X'00ff' raw,
        timestamp'2026-01-02 03:04:05' at, cast(2 as smallint) small, 0.5f share"""
    )
    chunks = split_dataframe(documents, TableSplitter(SENTENCES, id_column="id"))
    assert chunks.schema[-9:] == documents.schema[2:]
    (source,) = rows_of(documents)
    rows = rows_of(chunks)
    assert [row["text"] for row in rows] == ["One.", "Two three."]
    assert {row["document_id"] for row in rows} == {"7"}
    for row in rows:
        assert {name: row[name] for name in source if name not in ("id", "text")} == {
            name: value for name, value in source.items() if name not in ("id", "text")
        }


def test_large_strings_are_read_and_written(spark: Any) -> None:
    name = "spark.sql.execution.arrow.useLargeVarTypes"
    spark.conf.set(name, "true")
    try:
        chunks = split_dataframe(frame(spark, DOCUMENTS), TableSplitter(SENTENCES, id_column="key"))
        splitter = front_end(SENTENCES, "langchain")
        assert by_chunk(of_rows(rows_of(chunks))) == by_chunk(expected(splitter))
    finally:
        spark.conf.unset(name)


def test_nulls_alone_give_no_chunks(spark: Any) -> None:
    chunks = split_dataframe(spark.sql("select null text, 1 n"), TableSplitter(SENTENCES))
    assert chunks.collect() == []


def test_other_kind_of_dataframe_is_refused(spark: Any) -> None:
    with pytest.raises(TypeError, match="dataframe must be a Spark DataFrame, got Table"):
        split_dataframe(table_of([]), TableSplitter(SENTENCES))


def test_missing_spark_is_told_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyspark"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(ImportError, match=r"needs Spark: pip install .*\[spark\]"):
        split_dataframe(table_of([]), TableSplitter(SENTENCES))
