"""The stores of LangChain documents: LangChain's own suite over each, and exact documents."""

from __future__ import annotations

import asyncio
import datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_tests.integration_tests import BaseStoreAsyncTests, BaseStoreSyncTests

from rag_splitters.langchain import DocumentStore, PostgresStore, RedisStore
from rag_splitters.parent_child.errors import DamagedRowsError
from tests.parent_child.test_stores_keyvalue import KEYS, VALUES
from tests.support.stores import OpenStore

THREE = tuple(
    Document(page_content=f"text {n}", metadata={"nested": {"n": [n, None, {}]}}, id=str(n))
    for n in range(3)
)


@pytest.fixture
def store(open_store: OpenStore) -> DocumentStore:
    """Documents in the store of a back end."""
    return DocumentStore(open_store())


class TestSync(BaseStoreSyncTests[Document]):
    @pytest.fixture
    def kv_store(self, store: DocumentStore) -> DocumentStore:
        return store

    @pytest.fixture
    def three_values(self) -> tuple[Document, Document, Document]:
        return THREE  # type: ignore[return-value]


class TestAsync(BaseStoreAsyncTests[Document]):
    @pytest.fixture
    async def kv_store(self, store: DocumentStore) -> DocumentStore:
        return store

    @pytest.fixture
    def three_values(self) -> tuple[Document, Document, Document]:
        return THREE  # type: ignore[return-value]


def test_a_row_that_is_no_document_is_named(store: DocumentStore) -> None:
    store.rows.mset([("a", {"text": "no metadata"})])
    with pytest.raises(DamagedRowsError, match="the values of 'a' are damaged"):
        store.mget(["a", "b"])


DOCUMENTS = st.builds(
    Document,
    page_content=KEYS,
    metadata=st.dictionaries(KEYS, VALUES, max_size=3),
    id=st.none() | KEYS,
)


@settings(
    deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=st.dictionaries(KEYS, DOCUMENTS, max_size=5))
def test_store_keeps_documents_exactly(store: DocumentStore, rows: dict[str, Document]) -> None:
    store.mset(list(rows.items()))
    assert store.mget(list(rows)) == list(rows.values())
    assert asyncio.run(store.amget(list(rows))) == list(rows.values())


def test_store_names_what_json_lacks_before_it_writes(store: DocumentStore) -> None:
    metadata = {"fine": 1, "outer": [{"inner": datetime.date(2026, 1, 1)}]}
    rows = [("one", Document("a")), ("two", Document("b", metadata=metadata))]
    with pytest.raises(TypeError, match=r"'two': metadata\['outer'\]\[0\]\['inner'\] is of type"):
        store.mset(rows)
    assert list(store.yield_keys()) == []


def test_stores_on_a_server_are_apart_by_name(redis_url: str, postgres_url: str) -> None:
    for pair in (
        (RedisStore(redis_url, namespace="a"), RedisStore(redis_url, namespace="b")),
        (PostgresStore(postgres_url, table="a"), PostgresStore(postgres_url, table='b"% {x}')),
    ):
        one, other = map(DocumentStore, pair)
        one.mset([("key", THREE[0])])
        assert list(other.yield_keys()) == []
        other.mset([("key", THREE[1])])
        assert (one.mget(["key"]), other.mget(["key"])) == ([THREE[0]], [THREE[1]])
        one.close()
        other.close()


def test_redis_store_takes_a_url_that_asks_for_strings(redis_url: str) -> None:
    store = DocumentStore(RedisStore(f"{redis_url}?decode_responses=True&protocol=2"))
    store.mset([("\ud800", THREE[0])])
    assert (store.mget(["\ud800"]), list(store.yield_keys())) == ([THREE[0]], ["\ud800"])
    store.close()


def test_store_takes_documents_alone(store: DocumentStore) -> None:
    with pytest.raises(TypeError, match=r"expected a LangChain Document, .* got 'tea'"):
        store.mset([("one", Document("a")), ("two", "tea")])  # type: ignore[list-item]
    assert list(store.yield_keys()) == []
