"""The SQLite store of parents, alone and as LangChain's `BaseStore`."""

from __future__ import annotations

import datetime
import threading
import uuid
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest
from langchain_core.documents import Document
from langchain_tests.integration_tests import BaseStoreAsyncTests, BaseStoreSyncTests

from rag_splitters.parent_child.langchain import SQLiteStore
from rag_splitters.parent_child.sqlite import SQLiteKeyValueStore

THREE = tuple(
    Document(page_content=f"text {n}", metadata={"nested": {"n": [n, None, {}]}}, id=str(n))
    for n in range(3)
)


class TestSQLiteStoreSync(BaseStoreSyncTests[Document]):
    @pytest.fixture
    def kv_store(self, tmp_path: Path) -> Generator[SQLiteStore, None, None]:
        store = SQLiteStore(tmp_path / "sub" / "rows.sqlite")
        yield store
        store.close()

    @pytest.fixture
    def three_values(self) -> tuple[Document, Document, Document]:
        return THREE  # type: ignore[return-value]


class TestSQLiteStoreAsync(BaseStoreAsyncTests[Document]):
    @pytest.fixture
    async def kv_store(self, tmp_path: Path) -> AsyncGenerator[SQLiteStore, None]:
        store = SQLiteStore(tmp_path / "rows.sqlite")
        yield store
        store.close()

    @pytest.fixture
    def three_values(self) -> tuple[Document, Document, Document]:
        return THREE  # type: ignore[return-value]


@pytest.mark.parametrize(
    "value",
    [datetime.date(2026, 1, 1), uuid.UUID(int=1), b"bytes", {1, 2}, object(), {1: "int key"}],
    ids=lambda value: type(value).__name__,
)
def test_sqlite_store_refuses_what_json_lacks_before_it_writes(
    value: object, tmp_path: Path
) -> None:
    store = SQLiteStore(tmp_path / "rows.sqlite")
    bad = Document(page_content="b", metadata={"fine": 1, "outer": [{"inner": value}]})
    with pytest.raises(TypeError, match=r"'two': metadata\['outer'\]\[0\]\['inner'\] is a"):
        store.mset([("one", Document(page_content="a")), ("two", bad)])
    assert list(store.yield_keys()) == []


@pytest.mark.parametrize("text", ["\ud83d\ude00", "\ud800", "\x00", "a\r\nb", "", "😀", "'; --"])
def test_sqlite_store_keeps_texts_and_keys_exactly(text: str, tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "rows.sqlite")
    document = Document(page_content=text, metadata={"key" + text: [text]}, id=text)
    store.mset([("prefix" + text, document)])
    store.close()
    again = SQLiteStore(tmp_path / "rows.sqlite")
    assert again.mget(["prefix" + text]) == [document]
    assert list(again.yield_keys(prefix="prefix")) == ["prefix" + text]


def test_sqlite_store_yields_keys_in_order_while_it_is_written(tmp_path: Path) -> None:
    store = SQLiteKeyValueStore(tmp_path / "rows.sqlite")
    store.mset([(f"key-{number:05}", number) for number in reversed(range(2500))])
    store.mset([("kez", 0), ("kex", 0), ("key", 0)])
    seen = []
    for key in store.yield_keys("key-"):
        seen.append(key)
        store.mdelete([key])
    assert seen == [f"key-{number:05}" for number in range(2500)]
    assert list(store.yield_keys()) == ["kex", "key", "kez"]


def test_sqlite_store_takes_many_keys_at_once(tmp_path: Path) -> None:
    store = SQLiteKeyValueStore(tmp_path / "rows.sqlite")
    keys = [str(number) for number in range(50_000)]
    store.mset([(key, key) for key in keys])
    assert store.mget([*keys, "missing"]) == [*keys, None]
    store.mdelete(keys)
    assert list(store.yield_keys()) == []


def test_sqlite_store_serves_threads_and_a_second_connection(tmp_path: Path) -> None:
    store = SQLiteKeyValueStore(tmp_path / "rows.sqlite")
    other = SQLiteKeyValueStore(tmp_path / "rows.sqlite")
    errors: list[BaseException] = []

    def work(name: int) -> None:
        try:
            for number in range(50):
                target = store if number % 2 else other
                target.mset([(f"{name}-{number}", [name] * 20)])
                assert target.mget([f"{name}-{number}"]) == [[name] * 20]
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(list(store.yield_keys())) == 200
