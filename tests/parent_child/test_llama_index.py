"""Parent-child retrieval for LlamaIndex: its stores, its engines, its documents."""

from __future__ import annotations

import asyncio
import datetime
import pydoc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import SentenceWindowNodeParser
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import BaseNode, MetadataMode, NodeRelationship, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.storage.docstore.keyval_docstore import KVDocumentStore
from llama_index.core.storage.kvstore import SimpleKVStore
from llama_index.core.vector_stores import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    SimpleVectorStore,
)
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    VectorStoreQuery,
    VectorStoreQueryResult,
)
from llama_index.vector_stores.chroma import ChromaVectorStore
from pydantic import BaseModel

from rag_splitters.evaluation import CachedEmbeddings
from rag_splitters.langchain import ParentDocumentRetriever as LangChainRetriever
from rag_splitters.langchain import parent_document_retriever as open_in_langchain
from rag_splitters.llama_index import (
    HashingEmbedding,
    JSONKVStore,
    ParentDocumentRetriever,
    Representations,
    SentenceNodeParser,
    SQLiteStore,
    parent_document_retriever,
    retriever,
)
from rag_splitters.models import HashingEmbeddings
from tests.support.front_ends import FrontEnd, Page, sentence

FRONT = FrontEnd("llama_index")
METADATA = {"deep": {"a": [1, {"b": None}]}, "none": None, "tags": ["x"], "odd\ud800": "\ud800"}
PAGES: list[Page] = [
    (f"p{n}", " ".join(sentence(10 * n + m) for m in range(9)), {"n": n}) for n in range(5)
] + [("deep", f"Lone \ud800 surrogates. {sentence(77)}", METADATA)]


class ListVectorStore(BasePydanticVectorStore):
    """A vector store that keeps nodes, refuses ids that it has, and knows no other mode."""

    stores_text: bool = True
    kept: dict[str, Any]

    @property
    def client(self) -> Any:
        return None

    def add(self, nodes: Any, **kwargs: Any) -> list[str]:
        for node in nodes:
            assert node.node_id not in self.kept
            self.kept[node.node_id] = node.model_copy(deep=True)
        return [node.node_id for node in nodes]

    def delete(self, ref_doc_id: str, **kwargs: Any) -> None:
        self.kept = {k: n for k, n in self.kept.items() if n.ref_doc_id != ref_doc_id}

    def delete_nodes(self, node_ids: Any = None, filters: Any = None, **kwargs: Any) -> None:
        for node_id in node_ids:
            self.kept.pop(node_id, None)

    def get_nodes(self, node_ids: Any = None, filters: Any = None) -> list[BaseNode]:
        return [self.kept[node_id] for node_id in node_ids if node_id in self.kept]

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        asked = np.asarray(query.query_embedding)
        scores = {k: float(np.dot(node.embedding, asked)) for k, node in self.kept.items()}
        best = sorted(scores, key=lambda k: -scores[k])[: query.similarity_top_k]
        return VectorStoreQueryResult(
            nodes=[self.kept[k] for k in best], similarities=[scores[k] for k in best], ids=best
        )


DOCSTORES: dict[str, Callable[[Path], Any]] = {
    "memory": lambda path: None,
    "SimpleKVStore": lambda path: SimpleKVStore(),
    "SQLiteStore": lambda path: SQLiteStore(path / "kv.sqlite"),
    "JSONKVStore": lambda path: JSONKVStore(SQLiteStore(path / "kv.sqlite")),
    "SimpleDocumentStore": lambda path: SimpleDocumentStore(),
    "KVDocumentStore": lambda path: KVDocumentStore(JSONKVStore(SQLiteStore(path / "docs.sqlite"))),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("docstore", "own_vectors", "asynchronous"),
    [
        (name, own_vectors, (number + own_vectors) % 2 == 1)
        for number, name in enumerate(DOCSTORES)
        for own_vectors in (False, True)
    ],
)
def test_every_store_gives_the_same_results(
    docstore: str, own_vectors: bool, asynchronous: bool, tmp_path: Path
) -> None:
    front = FrontEnd("llama_index", asynchronous)
    plain = front.build(PAGES, k=5)
    options: dict[str, Any] = {"docstore": DOCSTORES[docstore](tmp_path), "k": 5}
    if own_vectors:
        options["vector_store"] = ListVectorStore(kept={})
    retriever = front.build(PAGES, **options)
    assert front.do(retriever, "add_documents", front.documents(PAGES)) == [p[0] for p in PAGES]
    for kind in ("similarity", "hybrid"):
        for retrieve in ("parents", "children", "passages"):
            varied = {"search_type": kind, "retrieve": retrieve}
            for question in ("amber n33", "lone n77"):
                found = front.find(front.varied(retriever, **varied), question)
                wanted = front.find(front.varied(plain, **varied), question)
                assert [(r.id, r.text, r.metadata.keys()) for r in found] == [
                    (r.id, r.text, r.metadata.keys()) for r in wanted
                ]
                assert [r.score for r in found] == pytest.approx(
                    [r.score for r in wanted], abs=1e-6
                )
    (document,) = front.do(retriever, "get", ["deep"])
    assert (document.text, document.metadata) == (PAGES[-1][1], METADATA)
    changed: Page = ("p3", "Zebras by amber fjord.", {})
    front.do(retriever, "add_documents", front.documents([changed]))
    assert front.find(retriever, "zebras")[0].text == "Zebras by amber fjord."
    done = front.do(retriever, "sync", front.documents([changed]))
    assert sorted(done.deleted) == ["deep", "p0", "p1", "p2", "p4"]
    verdict = front.do(retriever, "verify", repair=True)
    assert (verdict.documents, verdict.is_sound) == (1, True)
    assert verdict.orphans == (None if own_vectors else [])
    assert front.delete(retriever, ["p3"]) == ["p3"]
    assert front.find(retriever, "zebras") == []
    if own_vectors:
        assert retriever.vector_store.kept == {}


def test_results_are_nodes_that_show_a_model_only_what_is_meant_for_it() -> None:
    retriever = FRONT.build([("guide", PAGES[1][1], {"title": "Guide"})], k=1, headings=True)
    for retrieve in ("parents", "children", "passages"):
        (found,) = FRONT.varied(retriever, retrieve=retrieve).retrieve("amber n13")
        node = found.node
        assert isinstance(node, TextNode)
        assert node.text == PAGES[1][1][node.start_char_idx : node.end_char_idx]
        assert node.relationships[NodeRelationship.SOURCE].node_id == "guide"
        for mode in (MetadataMode.LLM, MetadataMode.EMBED):
            assert node.get_content(mode) == f"title: Guide\n\n{node.text}"


@pytest.mark.parametrize("retrieve", ["passages", "parents", "children"])
def test_keys_that_a_document_excludes_stay_hidden_from_models(
    retrieve: Any, tmp_path: Path
) -> None:
    document = Document(
        text=sentence(1),
        id_="a",
        metadata={"salary": 7, "line_start": 3, "team": "sea"},
        excluded_llm_metadata_keys=["salary"],
        excluded_embed_metadata_keys=["team"],
    )
    with parent_document_retriever([document], path=tmp_path, retrieve=retrieve) as retriever:
        (result,) = retriever.retrieve(sentence(1))
        shown = {mode: result.node.get_content(mode) for mode in MetadataMode}
        assert "salary" not in shown[MetadataMode.LLM]
        assert "team: sea" in shown[MetadataMode.LLM]
        assert "team" not in shown[MetadataMode.EMBED]
        assert not any("line_start" in shown[m] for m in (MetadataMode.LLM, MetadataMode.EMBED))
        assert "salary: 7" in shown[MetadataMode.ALL]
        assert "excluded" not in shown[MetadataMode.ALL]
        (stored,) = retriever.get(["a"])
        assert stored == document
        search = retriever.as_tools()[0]
        assert "excluded" not in str(search(question=sentence(1), filters={"team": "air"}))
        document.excluded_llm_metadata_keys = ["team"]
        assert retriever.sync([document]).changed == ["a"]
        assert "salary: 7" in retriever.retrieve(sentence(1))[0].node.get_content(MetadataMode.LLM)
    with open_in_langchain(path=tmp_path, retrieve=retrieve) as other:
        assert "excluded" not in str(other.invoke(sentence(1))[0].metadata)


def test_engines_callbacks_and_postprocessors_work() -> None:
    seen = LlamaDebugHandler(print_trace_on_end=False)
    manager = CallbackManager([seen])
    retriever = FRONT.build(PAGES, k=3, callback_manager=manager)
    keeps = SimilarityPostprocessor(similarity_cutoff=-1.0)
    engine = RetrieverQueryEngine.from_args(
        retriever, llm=MockLLM(), node_postprocessors=[keeps], callback_manager=manager
    )
    for answer in (engine.query("amber n33"), asyncio.run(engine.aquery("amber n33"))):
        assert [n.node_id for n in answer.source_nodes] == [
            n.node_id for n in retriever.retrieve("amber n33")
        ]
        assert answer.source_nodes[0].text in str(answer)
    assert len(seen.get_event_pairs(CBEventType.RETRIEVE)) >= 2


def test_an_index_over_the_same_rows_reads_nodes() -> None:
    retriever = FRONT.build(PAGES)
    store = retriever.vector_store
    index = VectorStoreIndex.from_vector_store(store, embed_model=HashingEmbedding())
    nodes = index.as_retriever(similarity_top_k=1).retrieve(sentence(33))
    ours = FRONT.find(FRONT.varied(retriever, retrieve="children", k=1), sentence(33))
    assert [(n.node_id, n.text) for n in nodes] == [(r.id, r.text) for r in ours]
    assert nodes[0].text == sentence(33)
    assert all("parent_id" in node.metadata for node in nodes)


def test_documents_are_known_by_given_ids_and_not_by_random_ones() -> None:
    retriever = FRONT.build()
    text = PAGES[0][1]
    first = retriever.add_documents([Document(text=text), Document(text=text, metadata={"a": 1})])
    assert len(set(first)) == 2
    again = [Document(text=text), Document(text=text, metadata={"a": 1})]
    assert asyncio.run(retriever.aadd_documents(again)) == first
    assert retriever.add_documents([Document(text=text, doc_id="x")]) == ["x"]
    named = Document(text=text)
    named.id_ = "y"
    assert retriever.add_documents([named, TextNode(text=text, id_="z")]) == ["y", "z"]
    assert retriever.add_documents([Document(text=text)], ids=["w"]) == ["w"]
    assert retriever.verify().documents == 6
    with pytest.raises(ValueError, match="ids must be one for each of 1 documents, got 0"):
        retriever.add_documents([Document(text=text)], ids=[])


def test_filters_of_every_kind_hold() -> None:
    retriever = FRONT.build(PAGES, k=50)
    late = MetadataFilter(key="n", value=3, operator=FilterOperator.GTE)
    first = MetadataFilter(key="n", value=0, operator=FilterOperator.EQ)
    for kind in ("similarity", "mmr", "hybrid"):
        for filters, wanted in (
            (MetadataFilters(filters=[late]), {3, 4}),
            (MetadataFilters(filters=[late, first], condition=FilterCondition.OR), {0, 3, 4}),
            (MetadataFilters(filters=[late, first]), set()),
            (MetadataFilters(filters=[]), {0, 1, 2, 3, 4, None}),
        ):
            varied = FRONT.varied(retriever, filters=filters, search_type=kind)
            assert {r.metadata.get("n") for r in FRONT.find(varied, "amber")} == wanted
    store = FRONT.build(PAGES, vector_store=ListVectorStore(kept={}), search_type="hybrid")
    store.filters = MetadataFilters(filters=[late])
    with pytest.raises(ValueError, match="hybrid' with a filter needs Chroma"):
        FRONT.find(store, "amber")


@pytest.mark.parametrize("retrieve", ["parents", "children", "passages"])
def test_parsers_of_llama_index_work_without_positions(retrieve: str) -> None:
    sentences = SentenceWindowNodeParser.from_defaults(
        sentence_splitter=lambda text: [f"{part}." for part in text.split(".") if part]
    )
    retriever = parent_document_retriever(
        FRONT.documents(PAGES[:5]),
        child_parser=sentences,
        parent_parser=None,
        retrieve=retrieve,  # type: ignore[arg-type]
        similarity_top_k=3,
    )
    assert len(retriever.retrieve("amber n33")) == 3
    for found in retriever.retrieve("amber n33"):
        assert found.node.start_char_idx is not None  # at least that of the parent
        assert "start_index" not in str(found.node.metadata)


def test_a_vector_store_without_texts_is_refused() -> None:
    with pytest.raises(ValueError, match="must keep texts, and SimpleVectorStore"):
        parent_document_retriever(vector_store=SimpleVectorStore())


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"docstore": {}}, "docstore must be a BaseDocumentStore, got {}"),
        ({"vector_store": 3}, "vector_store must be a BasePydanticVectorStore, got 3"),
    ],
)
def test_a_store_of_another_kind_is_named(option: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        parent_document_retriever([Document(text="Tea.")], **option)


def test_the_retriever_can_be_made_of_stores_alone(tmp_path: Path) -> None:
    import chromadb

    collection = chromadb.PersistentClient(str(tmp_path)).create_collection("own")
    retriever = ParentDocumentRetriever(
        vector_store=ChromaVectorStore(chroma_collection=collection),
        docstore=SimpleKVStore(),
        embed_model=HashingEmbeddings(),
        child_parser=SentenceNodeParser(chunk_size=60, length_function="characters"),
    )
    retriever.add_documents(FRONT.documents(PAGES))
    assert "n33" in retriever.retrieve(sentence(33))[0].text
    assert retriever.verify().is_sound


def test_a_store_in_memory_keeps_what_json_lacks() -> None:
    retriever = parent_document_retriever(docstore=SimpleKVStore())
    document = Document(text="Amber fjord.", id_="a", metadata={"day": datetime.date(2026, 1, 1)})
    retriever.add_documents([document])
    assert retriever.get(["a"])[0].metadata == document.metadata


def test_own_vector_store_gets_the_options_of_mmr_as_llama_index_passes_them() -> None:
    calls: list[dict[str, Any]] = []

    class Recording(ListVectorStore):
        def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
            calls.append({"mode": query.mode.value, "field": query.mmr_threshold, **kwargs})
            return super().query(query, **kwargs)

    options = {"search_type": "mmr", "mmr_threshold": 0.2, "mmr_prefetch_k": 99}
    with parent_document_retriever(
        [Document(text="Tea is hot.")], vector_store=Recording(kept={}), **options
    ) as retriever:
        assert retriever.retrieve("tea")
        retriever.search_type = "similarity"
        assert retriever.retrieve("tea")
    assert calls[0] == {"mode": "mmr", "field": 0.2, "mmr_threshold": 0.2, "mmr_prefetch_k": 99}
    assert calls[-1] == {"mode": "default", "field": None}


@pytest.mark.parametrize(
    "model", [HashingEmbeddings(), HashingEmbedding(), CachedEmbeddings(HashingEmbeddings())]
)
def test_hashed_words_are_weighed_as_no_model_in_every_form(model: Any) -> None:
    def answers(**options: Any) -> list[list[tuple[str, float | None]]]:
        with parent_document_retriever(FRONT.documents(PAGES), **options) as retriever:
            found = map(retriever.retrieve, (sentence(3), sentence(33) + sentence(4), "Lone"))
            return [[(each.text, each.score) for each in results] for results in found]

    assert answers(embed_model=model) == answers()


@pytest.mark.parametrize(
    "kind",
    [
        retriever.IndexOptions,
        retriever.LlamaIndexOptions,
        LangChainRetriever,
        Representations,
    ],
)
def test_help_describes_every_option_of_a_retriever(kind: type[BaseModel]) -> None:
    text = pydoc.render_doc(kind)
    assert not [name for name in kind.model_fields if f"    {name}: " not in text]
