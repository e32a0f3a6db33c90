"""Opens a key-value store by the name of its back end, in processes that import little else."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

KINDS = {"sqlite": "keyvalue.SQLiteStore", "redis": "redis.RedisStore"}


def opener(back_end: str, place: str) -> Callable[[], Any]:
    """What opens the store of a back end: at a path or a URL."""
    module, name = KINDS.get(back_end, "postgres.PostgresStore").split(".")
    kind = getattr(import_module(f"rag_splitters.parent_child.stores.{module}"), name)
    return partial(kind, place) if back_end == "sqlite" else partial(kind, place, timeout=10)
