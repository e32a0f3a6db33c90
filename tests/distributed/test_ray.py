"""Ray Data: real runs of tasks and actors give what one process gives."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rag_splitters.langchain
import rag_splitters.llama_index
from rag_splitters import Chunker, RecursiveChunker, SemanticChunker, SentenceChunker
from rag_splitters.distributed import TableSplitter
from rag_splitters.distributed.ray import split_dataset
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


def blocks(ray: Any, documents: list[Given], count: int) -> Any:
    """The documents as a dataset of so many blocks."""
    given = table_of(documents)
    size = -(-len(documents) // count)
    return ray.data.from_arrow([given.slice(at, size) for at in range(0, len(documents), size)])


@pytest.mark.parametrize("name", ["auto", "contextual", "hierarchical", "recursive", "table"])
def test_dataset_has_the_chunks_of_the_front_ends(ray: Any, name: str) -> None:
    """Plain, rewritten and nested chunks and a tree; `test_table.py` has the other strategies."""
    chunker = WITHOUT_MODEL[name]
    splitter = front_end(chunker, "langchain")
    dataset = blocks(ray, DOCUMENTS, 1 + len(name) % 4)
    chunks = split_dataset(dataset, TableSplitter(chunker, id_column="key", batch_size=3))
    assert by_chunk(of_rows(chunks.take_all())) == by_chunk(expected(splitter))
    known = TableSplitter(chunker, id_column="key").output_schema(table_of([]).schema)
    assert chunks.schema().base_schema == known


@pytest.mark.parametrize("module", ["langchain", "llama_index"])
def test_front_end_is_taken_as_the_chunker(ray: Any, module: str) -> None:
    suffix = {"langchain": "TextSplitter", "llama_index": "NodeParser"}[module]
    kind = getattr(sys.modules[f"rag_splitters.{module}"], f"Recursive{suffix}")
    dataset = blocks(ray, DOCUMENTS, 2)
    options = {"chunk_size": 20, "length_function": "characters", "page_break": "\f"}
    chunks = split_dataset(dataset, TableSplitter(kind(**options), id_column="key"))
    splitter = rag_splitters.langchain.RecursiveTextSplitter(**options)
    assert by_chunk(of_rows(chunks.take_all())) == by_chunk(expected(splitter))


def test_strategy_and_function_of_a_user_s_own_are_sent_to_the_workers(ray: Any) -> None:
    dataset = blocks(ray, [Given("a", "tick tock")], 1)
    rows = split_dataset(dataset, TableSplitter(own_chunker())).take_all()
    assert [row["text"] for row in rows] == ["tick", " tock"]


@pytest.mark.parametrize("in_actors", [False, True], ids=["tasks", "actors"])
def test_model_is_loaded_once_in_a_process_and_called_once_for_a_batch(
    ray: Any, tmp_path: Path, in_actors: bool
) -> None:
    documents = [Given(f"d{number}", f"{number}. {RAIN}") for number in range(24)]
    model = NotedEmbeddings(tmp_path)
    chunker = SemanticChunker(embeddings=model, chunk_size=60)
    options = {"compute": ray.data.ActorPoolStrategy(size=2)} if in_actors else {"concurrency": 2}
    dataset = blocks(ray, documents, 6)
    split = split_dataset(dataset, TableSplitter(chunker, id_column="key", batch_size=2), **options)
    rows = split.take_all()
    assert len(model.noted("calls")) == 12
    # The driver loads it, too, to check that the copy is the same.
    loads = Counter(each for each in model.noted("loads") if each != str(os.getpid()))
    assert set(loads.values()) == {1}
    assert 1 <= len(loads) <= 2
    whole = TableSplitter(chunker, id_column="key").split_table(table_of(documents))
    assert by_chunk(of_rows(rows)) == by_chunk(of_rows(whole.to_pylist()))


def test_wrong_columns_are_refused_at_once(ray: Any) -> None:
    dataset = ray.data.from_items([{"body": "One.", "n": 1, "page_end": 2}])
    with pytest.raises(ValueError, match="the table has no column 'text'; it has"):
        split_dataset(dataset, TableSplitter(SENTENCES))
    with pytest.raises(TypeError, match="column 'n' must hold strings, but its type is int64"):
        split_dataset(dataset, TableSplitter(SENTENCES, text_column="n"))
    with pytest.raises(ValueError, match=r"columns \['page_end'\]: rename"):
        split_dataset(dataset, TableSplitter(SENTENCES, text_column="body"))


def test_lone_surrogate_is_refused_with_the_way_out(ray: Any) -> None:
    """Ray makes a column of Python objects of it, as Arrow holds none."""
    dataset = ray.data.from_items([{"text": "half \ud83d"}])
    with pytest.raises(TypeError, match="replace lone surrogates"):
        split_dataset(dataset, TableSplitter(SENTENCES))


def test_error_names_the_document(ray: Any) -> None:
    documents = [*DOCUMENTS[:5], Given("bad-7", "And then boom."), *DOCUMENTS[5:]]
    chunker = RecursiveChunker(chunk_size=50, length_function=fail_on_boom)
    chunks = split_dataset(blocks(ray, documents, 3), TableSplitter(chunker, id_column="key"))
    with pytest.raises(ValueError, match="document 'bad-7' could not be split: RuntimeError: it"):
        chunks.take_all()


@pytest.mark.parametrize(
    "items",
    [[{"text": None, "n": 1}], [{"text": " ", "n": 1}, {"text": None, "n": 2}]],
    ids=["null", "blank"],
)
def test_dataset_without_text_gives_no_chunks_and_all_columns(ray: Any, items: Any) -> None:
    chunks = split_dataset(
        ray.data.from_items(items, override_num_blocks=1), TableSplitter(SENTENCES)
    )
    assert chunks.take_all() == []
    known = TableSplitter(SENTENCES).output_schema(pa.schema({"text": "string", "n": "int64"}))
    assert chunks.schema().base_schema == known


def test_dataset_without_rows_gives_no_chunks(ray: Any) -> None:
    assert (
        split_dataset(ray.data.from_arrow(table_of([])), TableSplitter(SENTENCES)).take_all() == []
    )


def test_dataset_of_pandas_blocks_is_split(ray: Any) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": ["One. Two three.", None, "Four."], "n": [1.0, None, 3.0]})
    rows = split_dataset(ray.data.from_pandas(frame), TableSplitter(SENTENCES)).take_all()
    assert [(row["text"], row["n"]) for row in rows] == [
        ("One.", 1.0),
        ("Two three.", 1.0),
        ("Four.", 3.0),
    ]


def test_tensors_are_carried_on(ray: Any) -> None:
    import numpy as np

    given = ray.data.from_numpy(np.arange(6.0).reshape(2, 3)).add_column(
        "text", lambda frame: ["One. Two three.", "Four."], batch_format="pandas"
    )
    rows = split_dataset(given, TableSplitter(SENTENCES)).take_all()
    assert [list(row["data"]) for row in rows] == [[0, 1, 2], [0, 1, 2], [3, 4, 5]]


def test_other_kind_of_dataset_is_refused(ray: Any) -> None:
    with pytest.raises(TypeError, match=r"must be a ray\.data\.Dataset, got Table"):
        split_dataset(table_of([]), TableSplitter(SENTENCES))


def test_missing_ray_is_told_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"needs Ray: pip install .*\[ray\]"):
        split_dataset(table_of([]), TableSplitter(SENTENCES))


def test_chunker_without_a_table_splitter_is_refused(ray: Any) -> None:
    with pytest.raises(
        TypeError, match=r"expected a TableSplitter, got .*: pass TableSplitter\(ch"
    ):
        split_dataset(ray.data.from_arrow(table_of([])), SENTENCES)
    with pytest.raises(TypeError, match="chunker must be a Chunker"):
        split_dataset(ray.data.from_arrow(table_of([])), TableSplitter(Chunker))
