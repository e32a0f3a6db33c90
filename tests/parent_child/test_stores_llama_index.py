"""The key-value stores of LlamaIndex: its own docstore, pipeline and retriever over each."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document as LangChainDocument
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.node_parser import get_leaf_nodes
from llama_index.core.retrievers import AutoMergingRetriever
from llama_index.core.schema import Document, NodeWithScore
from llama_index.core.storage.docstore.keyval_docstore import KVDocumentStore
from llama_index.core.storage.kvstore import SimpleKVStore
from llama_index.core.vector_stores import SimpleVectorStore

from rag_splitters.langchain import DocumentStore
from rag_splitters.llama_index import HierarchicalNodeParser, JSONKVStore, RecursiveNodeParser
from tests.parent_child.test_stores_keyvalue import KEYS, VALUES
from tests.support.stores import OpenStore


@pytest.fixture
def store(open_store: OpenStore) -> JSONKVStore:
    """Collections in the store of a back end."""
    return JSONKVStore(open_store())


COLLECTIONS = st.sampled_from(["data", "", "d", "data/", "\ud800", "%*"])
STEPS = st.tuples(
    st.sampled_from(["put", "put_all", "get", "get_all", "delete"]),
    st.lists(st.tuples(KEYS, st.dictionaries(KEYS, VALUES, max_size=2)), min_size=1, max_size=3),
    COLLECTIONS,
    st.booleans(),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEPS, max_size=12))
def test_store_behaves_as_llama_indexs_own(store: JSONKVStore, steps: list[Any]) -> None:
    store.rows.mdelete(list(store.rows.yield_keys()))
    model = SimpleKVStore()
    for name, pairs, collection, is_asynchronous in steps:
        if name.endswith("all"):
            arguments = (pairs,) if name == "put_all" else ()
        else:
            arguments = pairs[0] if name == "put" else pairs[0][:1]
        expected = getattr(model, name)(*arguments, collection=collection)
        if is_asynchronous:
            found = asyncio.run(getattr(store, f"a{name}")(*arguments, collection=collection))
        else:
            found = getattr(store, name)(*arguments, collection=collection)
        assert found == expected
        assert store.get_all(collection) == model.get_all(collection)


def test_store_has_the_default_collection_of_llama_index(store: JSONKVStore) -> None:
    store.put("key", {"n": 1})
    store.put_all([("other", {"n": 2})], batch_size=1)
    asyncio.run(store.aput_all([("third", {"n": 3})], batch_size=100))
    assert store.get_all("data") == {"key": {"n": 1}, "other": {"n": 2}, "third": {"n": 3}}
    assert (store.get("key"), store.get("key", "else")) == ({"n": 1}, None)
    with pytest.raises(ValueError, match=r"must not contain NUL, got 'a\\x00'"):
        store.put("key", {}, "a\0")


def test_store_lists_a_large_collection(store: JSONKVStore) -> None:
    rows = [(f"{number:04}", {"n": number}) for number in range(2500)]
    store.put_all(rows)
    store.put("9999", {}, "data2")
    assert list(store.get_all().items()) == rows
    assert list(asyncio.run(store.aget_all()).items()) == rows


TEXT = "One sentence about apples. " * 40


def test_ingestion_pipeline_upserts_into_it(store: JSONKVStore) -> None:
    def pipeline() -> IngestionPipeline:
        return IngestionPipeline(
            transformations=[
                RecursiveNodeParser(chunk_size=100, length_function="characters"),
                MockEmbedding(8),
            ],
            docstore=KVDocumentStore(store),
            vector_store=SimpleVectorStore(),
            docstore_strategy=DocstoreStrategy.UPSERTS,
        )

    documents = [Document(text=TEXT, id_="a"), Document(text="short \0", id_="b")]
    assert len(pipeline().run(documents=documents)) > 5
    assert pipeline().run(documents=documents) == [], "unchanged, also for who opens it again"
    changed = Document(text="changed", id_="b")
    assert [n.get_content() for n in asyncio.run(pipeline().arun(documents=[changed]))] == [
        "changed"
    ]
    docstore = KVDocumentStore(store)
    assert docstore.get_document("a").get_content() == TEXT  # type: ignore[union-attr]
    assert set(docstore.docs) == {"a", "b"}


def test_auto_merging_retriever_reads_its_parents_from_it(store: JSONKVStore) -> None:
    parser = HierarchicalNodeParser(chunk_sizes=[400, 100], length_function="characters")
    nodes = parser.get_nodes_from_documents([Document(text=TEXT, id_="a")])
    KVDocumentStore(store, batch_size=100).add_documents(nodes)
    context = StorageContext.from_defaults(docstore=KVDocumentStore(store))
    leaves = get_leaf_nodes(nodes)
    index = VectorStoreIndex(leaves, storage_context=context, embed_model=MockEmbedding(8))
    retriever = AutoMergingRetriever(index.as_retriever(similarity_top_k=12), context)
    found: list[NodeWithScore] = retriever.retrieve("apples")
    by_id = {node.node_id: node for node in nodes}
    parents = {node.node_id for node in nodes} - {leaf.node_id for leaf in leaves}
    assert parents & {result.node_id for result in found}
    for result in found:
        assert result.text == by_id[result.node_id].get_content()


def test_both_frameworks_share_rows(open_store: OpenStore) -> None:
    rows = open_store()
    document = LangChainDocument(page_content="text\ud800", metadata={"page": [1]}, id="id")
    DocumentStore(rows).mset([("key", document)])
    store = JSONKVStore(open_store())
    store.put("key", {"n": 1})
    assert store.rows.mget(["key"]) == [
        {"text": "text\ud800", "metadata": {"page": [1]}, "id": "id"}
    ]
    assert DocumentStore(store.rows).mget(["key"]) == [document]
