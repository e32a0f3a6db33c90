"""The key-value stores under test, each over a real back end, and what an index holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_splitters.parent_child.stores.keyvalue import KeyValueStore
from tests.support.openers import opener

__all__ = ["OpenStore", "check_children", "on_server", "open_store", "place", "stored"]

OpenStore = Callable[[], KeyValueStore]


def on_server(*names: str) -> list[Any]:
    """Parameters of a fixture or test that need a server, marked accordingly."""
    return [pytest.param(name, marks=pytest.mark.server) for name in names]


@pytest.fixture(params=["sqlite", *on_server("redis", "postgres")])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """A back end, and an empty place in it."""
    if request.param == "sqlite":
        return "sqlite", str(tmp_path / "rows.sqlite")
    return request.param, request.getfixturevalue(f"{request.param}_url")


@pytest.fixture
def open_store(place: tuple[str, str]) -> Iterator[OpenStore]:
    """Opens a store on one and the same place, as often as it is called."""
    opened: list[KeyValueStore] = []

    def opening() -> KeyValueStore:
        opened.append(opener(*place)())
        return opened[-1]

    yield opening
    for store in opened:
        store.close()


def stored(collection: Any, docstore: Any) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """Chroma's children as [text, metadata, vector], and the docstore's rows but for its state."""
    found = collection.get(include=["documents", "metadatas", "embeddings"])
    for metadata in found["metadatas"]:
        metadata.pop("_edition", None)  # the number of the turn that wrote the child
    vectors = [vector.tolist() for vector in found["embeddings"]]
    columns = (found["ids"], found["documents"], found["metadatas"], vectors)
    keys = [key for key in docstore.yield_keys() if not key.startswith("state/")]
    rows = dict(zip(keys, docstore.mget(keys), strict=True))
    return {name: each for name, *each in zip(*columns, strict=True)}, rows


def check_children(children: dict[str, list[Any]], expected: dict[str, list[Any]]) -> None:
    """Check that children are the same, but for the rounding of their vectors."""
    plain = [{name: row[:2] for name, row in each.items()} for each in (children, expected)]
    assert plain[0] == plain[1]
    for name, (*_, vector) in children.items():
        np.testing.assert_allclose(vector, expected[name][2], atol=2e-5)
