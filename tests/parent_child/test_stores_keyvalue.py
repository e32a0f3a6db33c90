"""The key-value stores in SQLite, Redis and PostgreSQL: what is written comes back, exactly."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_splitters.calls import arun
from rag_splitters.parent_child.stores.keyvalue import KeyValueStore
from tests.support.stores import OpenStore

HOSTILE = [
    "", "\0", "a", "a\0", "a\0b", "ab", "A", "%", "%s", "_", "*", "a*", "[a]", "?", "\\", "{a}",
    '"; DROP TABLE rag_splitters; --', "\r\n", "é", "e\u0301", "\ud800", "\udfff", "\ud83d\ude00",
    "😀", "\uffff", "\U0010ffff", "k" * 2000,
]  # fmt: skip
KEYS = st.sampled_from(HOSTILE) | st.text(st.characters(), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | KEYS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
STEPS = st.tuples(
    st.sampled_from(["set", "delete", "get", "keys"]),
    st.lists(st.tuples(KEYS, VALUES), max_size=4),
    st.booleans(),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEPS, max_size=12))
def test_store_behaves_as_a_dictionary(open_store: OpenStore, steps: list[Any]) -> None:
    store, other, model = open_store(), open_store(), dict[str, Any]()
    store.mdelete(list(store.yield_keys()))
    for name, pairs, is_asynchronous in steps:
        keys = [key for key, _ in pairs]
        if name == "set":
            call(store, "mset", pairs, is_asynchronous=is_asynchronous)
            model.update(pairs)
        elif name == "delete":
            removed = call(store, "mdelete", keys, is_asynchronous=is_asynchronous)
            assert removed == len([model.pop(key) for key in set(keys) if key in model])
        elif name == "get":
            found = call(other, "mget", keys, is_asynchronous=is_asynchronous)
            assert found == [model.get(key) for key in keys]
        for prefix in ["", *keys]:
            found = call(other, "yield_keys", prefix, is_asynchronous=is_asynchronous)
            assert found == sorted(key for key in model if key.startswith(prefix))
    store.close()
    other.close()


def call(store: KeyValueStore, name: str, argument: Any, *, is_asynchronous: bool) -> Any:
    """What a method returns, or its coroutine in an event loop of its own."""
    if not is_asynchronous:
        found = getattr(store, name)(argument)
        return list(found) if name == "yield_keys" else found
    works: dict[str, Callable[[Any], Coroutine[Any, Any, Any]]] = {
        "mset": store.write,
        "mget": store.read,
        "mdelete": partial(store.write, []),
        "yield_keys": store.list_keys,
    }
    return asyncio.run(arun(works[name](argument)))


def test_store_yields_keys_in_order_while_it_is_written(open_store: OpenStore) -> None:
    store = open_store()
    store.mset([(f"key-{number:05}", number) for number in reversed(range(2500))])
    store.mset([("kez", 0), ("kex", 0), ("key", 0)])
    seen = []
    for key in store.yield_keys("key-"):
        seen.append(key)
        if key.endswith("0"):
            store.mdelete([key])
    assert seen == [f"key-{number:05}" for number in range(2500)]
    assert len(list(store.yield_keys("key-"))) == 2250
    assert next(store.yield_keys()) == "kex"


def test_store_takes_many_keys_at_once(open_store: OpenStore) -> None:
    store = open_store()
    keys = [str(number) for number in range(20_000)]
    store.mset([(key, key) for key in keys])
    assert store.mget([*keys, "missing"]) == [*keys, None]
    assert store.mdelete([*keys, "missing", keys[0]]) == 20_000
    assert list(store.yield_keys()) == []


def test_store_takes_large_values(open_store: OpenStore) -> None:
    store = open_store()
    rows = [(str(number), "😀\0" * 1_000_000) for number in range(4)]
    store.mset(rows)
    assert store.mget([key for key, _ in rows]) == [value for _, value in rows]


def test_store_says_how_deep_a_value_may_be_nested(open_store: OpenStore) -> None:
    value: Any = 0
    for _ in range(10_000):
        value = [value]
    with pytest.raises(TypeError, match="is nested more than 500 levels deep"):
        open_store().mset([("deep", value)])


@pytest.mark.parametrize(
    "value",
    [{1, 2}, b"bytes", object(), {1: "int key"}, [{"inner": {"deep": 1j}}]],
    ids=["set", "bytes", "object", "key", "inner"],
)
def test_store_refuses_what_json_lacks_before_it_writes(
    open_store: OpenStore, value: object
) -> None:
    store = open_store()
    with pytest.raises(TypeError, match=r"the value of key 'bad'.* which JSON cannot hold"):
        store.mset([("good", 1), ("bad", value)])
    assert list(store.yield_keys()) == []
