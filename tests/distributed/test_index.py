"""Ray and Spark write the index that one process writes, also if a worker is killed.

INDEXED_DOCUMENTS sets how many documents they write.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rag_splitters.distributed import IndexSummary, TableIndexer
from rag_splitters.distributed.ray import index_dataset
from rag_splitters.distributed.spark import index_dataframe
from tests.support.index_opening import (
    MortalEmbeddings,
    Place,
    as_documents,
    document,
    documents,
    open_index,
)
from tests.support.stores import check_children, stored

Index = Callable[..., IndexSummary]
COUNT = int(os.environ.get("INDEXED_DOCUMENTS", "400"))
BATCH = COUNT // 20


@pytest.fixture
def make_place(
    postgres_url: str, chroma_server: tuple[str, int], collection_name: str, tmp_path: Path
) -> Callable[[str], Place]:
    """Makes a place for an index of this test's own."""

    def make(name: str) -> Place:
        folder = tmp_path / name
        folder.mkdir()
        return Place(postgres_url, *chroma_server, f"{collection_name}_{name}", str(folder))

    return make


def index_with_ray(ray: Any, rows: list[dict[str, Any]], place: Place, **options: Any) -> Any:
    dataset = ray.data.from_items(rows, override_num_blocks=2)
    options = {"id_column": "id", "batch_size": BATCH, **options}
    return index_dataset(dataset, TableIndexer(partial(open_index, place), **options))


def index_with_spark(spark: Any, rows: list[dict[str, Any]], place: Place, **options: Any) -> Any:
    frame = spark.createDataFrame(rows, "id string, text string, team string, tower long")
    options = {"id_column": "id", "batch_size": BATCH, **options}
    indexer = TableIndexer(partial(open_index, place), **options)
    return index_dataframe(frame.repartition(4), indexer)


def assert_equal_indexes(many: Place, one: Place) -> None:
    """Two indexes hold the same, find the same, and are sound."""
    with closing(open_index(many)) as written, closing(open_index(one)) as expected:
        (children, rows), (expected_children, expected_rows) = (
            stored(each.vectorstore._collection, each.docstore) for each in (written, expected)
        )
        assert rows == expected_rows
        check_children(children, expected_children)
        for question in ("Which lamp was lit on day 1764?", "keeper of lamp 150"):
            assert written.invoke(question) == expected.invoke(question)
        keywords = written.shared.keywords, expected.shared.keywords
        assert keywords[0].list_ids() == keywords[1].list_ids()
        questions = [each.find("lamp 42 tower", 9).best for each in keywords]
        assert questions[0] == questions[1]
        assert written.verify().is_sound


def check_index(index: Index, places: Callable[[str], Place], *, survives: bool) -> None:
    """Write documents, killing a worker, then edit them; compare with one process."""
    many, one = places("many"), places("one")
    rows = documents(COUNT)
    (Path(many.folder) / "mortal").touch()
    if not survives:
        with pytest.raises(Exception, match=r"worker|Worker|crashed|exited"):
            index(rows, many)
    summary = index([*rows, *rows[5:9]], many)
    assert (Path(many.folder) / "grave").exists()
    assert (summary.documents, summary.failed) == (COUNT, 0)
    assert summary.added + summary.changed + summary.unchanged == COUNT
    embedded = MortalEmbeddings(many.folder).noted("texts")

    edited = [document(7, " It went out."), *rows[8:-4], document(9999)]
    with closing(open_index(one)) as retriever:
        retriever.add_documents(as_documents(rows))
        # What the killed worker had written is not embedded again.
        children = retriever.vectorstore._collection.count()
        assert children <= len(embedded) <= 1.25 * children
        report = retriever.sync(as_documents(edited), scope={})
        assert (len(report.added), len(report.changed), len(report.deleted)) == (1, 1, 11)
    summary = index(edited, many, scope={})
    assert (summary.added, summary.changed, summary.deleted) == (1, 1, 11)
    assert summary.unchanged == len(edited) - 2
    assert summary.documents == len(edited)
    again = MortalEmbeddings(many.folder).noted("texts")
    assert len(again) - len(embedded) <= 4
    assert_equal_indexes(many, one)


def check_refusals(index: Index, places: Callable[[str], Place]) -> None:
    """An id of several documents is refused; without an id column, the content is the id."""
    rows = documents(20)
    place = places("one")
    assert index(rows, place, id_column=None, metadata_columns=["team"]).added == 20
    assert index(rows[:0], place, scope={}).deleted == 20
    with pytest.raises(Exception, match=r"different documents have the same id, such as 'lamp-3'"):
        index([*rows, {**rows[3], "text": "Another lamp."}], places("refused"))


@pytest.mark.nightly
def test_ray_writes_what_one_process_writes(ray: Any, make_place: Callable[[str], Place]) -> None:
    check_index(partial(index_with_ray, ray), make_place, survives=True)


@pytest.mark.nightly
def test_spark_writes_what_one_process_writes(
    spark: Any, make_place: Callable[[str], Place]
) -> None:
    check_index(partial(index_with_spark, spark), make_place, survives=False)


def test_ray_refuses_what_it_cannot_write(ray: Any, make_place: Callable[[str], Place]) -> None:
    check_refusals(partial(index_with_ray, ray), make_place)


def test_spark_refuses_what_it_cannot_write(spark: Any, make_place: Callable[[str], Place]) -> None:
    check_refusals(partial(index_with_spark, spark), make_place)
