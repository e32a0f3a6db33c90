"""Ray and Spark on this machine alone, as pytest's fixtures: a session starts each of them once."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.processes import ROOT

__all__ = ["ray", "spark"]


@pytest.fixture(scope="session")
def ray() -> Iterator[Any]:
    """Ray, with two processes at most."""
    ray = pytest.importorskip("ray")
    pytest.importorskip("ray.data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("PYTHONPATH", str(ROOT))  # the workers import what is in `tests`
        ray.init(
            num_cpus=2,
            include_dashboard=False,
            object_store_memory=2**27,
            logging_level="ERROR",
            log_to_driver=False,
        )
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.default_hash_shuffle_parallelism = 2
    yield ray
    ray.shutdown()


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """Spark, with two workers."""
    sql = pytest.importorskip("pyspark.sql")
    if not shutil.which("java") and not {"JAVA_HOME", "CI"} & os.environ.keys():
        pytest.skip("Spark needs Java: apt-get install openjdk-17-jre-headless")
    loopback = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    quick = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYTHONPATH", str(ROOT))  # the workers import what is in `tests`
        builder = sql.SparkSession.builder.master("local[2]").config("spark.driver.memory", "512m")
        session = builder.config(map={**loopback, **quick}).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
