"""Ray Data and Spark with one face: `documents` go in, `split` cuts them, `rows` are the chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pytest

from rag_splitters.distributed.ray import split_dataset
from rag_splitters.distributed.spark import split_dataframe
from tests.support.tables import WITHOUT_MODEL, Given, Row, table_of


@dataclass
class RayCluster:
    """Ray Data."""

    ray: Any
    split = staticmethod(split_dataset)

    strategies = ("auto", "hierarchical", "recursive", "table", "titled")
    """Plain, rewritten and nested chunks, and a tree."""

    def sending(self) -> tuple[type, str, Any]:
        """The class and the method that send a function to the workers, and what pickles it."""
        return self.ray.data.Dataset, "map_batches", self.ray.cloudpickle

    def documents(self, documents: Sequence[Given], parts: int = 2) -> Any:
        given, size = table_of(documents), -(-len(documents) // parts)
        return self.ray.data.from_arrow(
            [given.slice(at, size) for at in range(0, len(documents), size)]
        )

    def rows(self, first: Any, *others: Any) -> list[Row]:
        rows: list[Row] = (first.union(*others) if others else first).take_all()
        return rows


@dataclass
class SparkCluster:
    """Spark."""

    spark: Any
    split = staticmethod(split_dataframe)

    strategies = tuple(WITHOUT_MODEL)

    def sending(self) -> tuple[type, str, Any]:
        import pyspark.cloudpickle

        return type(self.documents([])), "mapInArrow", pyspark.cloudpickle

    def documents(self, documents: Sequence[Given], parts: int = 2) -> Any:
        rows = self.spark.sparkContext.parallelize([tuple(each) for each in documents], parts)
        return self.spark.createDataFrame(rows, "key string, text string, title string, page long")

    def rows(self, *chunks: Any) -> list[Row]:
        every = reduce(lambda one, other: one.unionByName(other), chunks)
        return [row.asDict(recursive=True) for row in every.collect()]


@pytest.fixture
def on_ray(ray: Any) -> RayCluster:
    return RayCluster(ray)


@pytest.fixture
def on_spark(spark: Any) -> SparkCluster:
    return SparkCluster(spark)


@pytest.fixture(
    params=[pytest.param(name, marks=getattr(pytest.mark, name)) for name in ("ray", "spark")]
)
def cluster(request: pytest.FixtureRequest) -> Any:
    """Each of the two."""
    return request.getfixturevalue(f"on_{request.param}")
