"""What users do to a retriever of LangChain or LlamaIndex works on ours: FINDINGS, line by line."""

from __future__ import annotations

import asyncio
import copy
import pickle
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_chroma import Chroma
from langchain_classic.retrievers import (
    ContextualCompressionRetriever,
    EnsembleRetriever,
    MultiQueryRetriever,
)
from langchain_classic.retrievers import ParentDocumentRetriever as Classic
from langchain_classic.retrievers.document_compressors import LLMChainExtractor
from langchain_classic.storage import LocalFileStore
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.load import dumps, loads
from langchain_core.stores import InMemoryByteStore, InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import Document as LlamaDocument
from llama_index.core import MockEmbedding, StorageContext, VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import QueryBundle, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.vector_stores.chroma import ChromaVectorStore

from rag_splitters import langchain, llama_index
from rag_splitters.langchain import ParentDocumentRetriever, parent_document_retriever
from rag_splitters.models import HashingEmbeddings
from rag_splitters.parent_child.errors import StoreError
from rag_splitters.parent_child.results import read_matches
from tests.parent_child.test_llama_index import ListVectorStore
from tests.support.front_ends import FrontEnd, every_front_end, sentence
from tests.support.processes import run_python

TEXTS = [" ".join(sentence(10 * n + m) for m in range(12)) for n in range(4)]
DOCUMENTS = [
    Document(page_content=text, metadata={"source": f"{n}.txt"}, id=f"d{n}")
    for n, text in enumerate(TEXTS)
]
QUESTIONS = ["amber birch n3", "cedar delta n3 n14", "ember fjord n14 n3"]
SPLITTERS: dict[str, Any] = {
    "child_splitter": langchain.RecursiveTextSplitter(chunk_size=70),
    "parent_splitter": langchain.RecursiveTextSplitter(chunk_size=300),
}
EMBEDDINGS: Any = HashingEmbeddings()
MODEL: Any = llama_index.HashingEmbedding()


def build(**options: Any) -> ParentDocumentRetriever:
    return parent_document_retriever(DOCUMENTS, **{**SPLITTERS, **options})


def found_twice(retriever: Any) -> tuple[Any, Any]:
    """A passage as two questions find it: with other scores."""
    ask = retriever.invoke if hasattr(retriever, "invoke") else retriever.retrieve
    first, *others = (ask(question) for question in QUESTIONS)
    for one in first:
        for other in (each for results in others for each in results):
            if texts([one]) == texts([other]) and facts(one) != facts(other):
                return one, other
    raise AssertionError("no passage was found twice with other scores")


def reloaded(document: Document) -> Any:
    return loads(dumps(document), allowed_objects=[Document])


def texts(results: Sequence[Any]) -> list[str]:
    return [each.page_content if isinstance(each, Document) else each.text for each in results]


def facts(result: Any) -> tuple[Any, Any]:
    return result.score, getattr(result, "node", result).matches


@pytest.fixture
def chroma() -> Iterator[Chroma]:
    store = Chroma(f"c{uuid.uuid4().hex}", EMBEDDINGS)
    yield store
    store.delete_collection()


# One passage, found twice


def test_a_passage_of_langchain_is_equal_to_itself_whatever_its_score() -> None:
    for retrieve in ("parents", "children"):
        one, other = found_twice(build(retrieve=retrieve))
        assert one == other
        plain = Document(
            page_content=one.page_content,
            metadata={k: v for k, v in one.metadata.items() if k not in ("score", "matches")},
            id=one.id,
        )
        for same in (plain, Document(**one.model_dump()), reloaded(other)):
            assert type(same) is Document
            assert same == one
            assert one == same
        for change in ({"page_content": "x"}, {"id": "x"}, {"metadata": {}}):
            changed = plain.model_copy(update=change)
            assert changed != one
            assert one != changed
        assert one != one.page_content


def test_score_and_matches_of_langchain_survive_copies_and_serialisation() -> None:
    (result, *_) = build().invoke(QUESTIONS[0])
    copies: list[Any] = [
        copy.copy(result),
        copy.deepcopy(result),
        result.model_copy(),
        result.model_copy(deep=True),
        pickle.loads(pickle.dumps(result)),
        type(result).model_validate(result.model_dump()),
        type(result).model_validate_json(result.model_dump_json()),
    ]
    for each in copies:
        assert facts(each) == facts(result)
        assert each == result
    assert reloaded(result).metadata == result.metadata
    assert result.score > 0
    for match in result.matches:
        place = slice(match["start_index"], match["end_index"])
        assert TEXTS[int(result.metadata["source"][0])][place].strip()


def test_a_passage_of_llama_index_is_equal_to_itself_whatever_its_score() -> None:
    documents = [LlamaDocument(text=text, id_=f"d{n}") for n, text in enumerate(TEXTS)]
    for retrieve in ("parents", "children"):
        retriever = llama_index.parent_document_retriever(documents, retrieve=retrieve)
        one, other = (each.node for each in found_twice(retriever))
        assert one == other
        assert one.hash == other.hash
        assert TextNode.from_dict(one.to_dict()) == other
        assert other == TextNode.from_dict(one.to_dict())
        assert one != other.model_copy(update={"text": "x"})
        assert one.hash != other.model_copy(update={"text": "x"}).hash
        copies = [
            copy.deepcopy(one),
            one.model_copy(),
            pickle.loads(pickle.dumps(one)),
            type(one).from_dict(one.to_dict()),
            type(one).from_json(one.to_json()),
        ]
        for each in copies:
            assert each == one
            assert each.hash == one.hash
            assert each.matches == one.matches
        store = SimpleDocumentStore()
        store.add_documents([one])
        assert SimpleDocumentStore.from_dict(store.to_dict()).docs[one.node_id] == one
        assert one.get_content("llm") == one.get_content("embed") == one.text  # type: ignore[arg-type]


def test_multi_query_ensemble_and_compression_find_each_passage_once() -> None:
    retriever = build(k=3)
    model = FakeListChatModel(responses=["\n".join(QUESTIONS)])
    multi_query = MultiQueryRetriever.from_llm(retriever=retriever, llm=model)
    results = multi_query.invoke("anything")
    assert len(texts(results)) == len(set(texts(results))) > 3
    other = retriever.model_copy(update={"search_type": "similarity"})
    ensemble = EnsembleRetriever(retrievers=[retriever, other])
    fused = ensemble.invoke(QUESTIONS[0])
    assert len(texts(fused)) == len(set(texts(fused)))
    compression = ContextualCompressionRetriever(
        base_compressor=LLMChainExtractor.from_llm(FakeListChatModel(responses=["Amber"])),
        base_retriever=retriever,
    )
    scores = [each.metadata["score"] for each in compression.invoke(QUESTIONS[0])]
    assert scores == [each.metadata["score"] for each in retriever.invoke(QUESTIONS[0])]


def test_results_go_into_any_vector_store(chroma: Chroma) -> None:
    results = build(k=3).invoke(QUESTIONS[0])
    store = Chroma.from_documents(results, EMBEDDINGS, collection_name=f"c{uuid.uuid4().hex}")
    for each in (store, chroma, InMemoryVectorStore(EMBEDDINGS)):
        each.add_documents(results)
        assert texts(each.similarity_search(results[0].page_content, k=1)) == texts(results[:1])
    store.delete_collection()
    again = parent_document_retriever(results, **SPLITTERS)
    again.add_documents(build(k=3).invoke(QUESTIONS[0]))
    assert again.verify().documents == 3


def test_nodes_go_into_any_vector_store(chroma: Chroma) -> None:
    documents = [LlamaDocument(text=text, id_=f"d{n}") for n, text in enumerate(TEXTS)]
    retriever = llama_index.parent_document_retriever(documents)
    nodes = [each.node for each in retriever.retrieve(QUESTIONS[0])]
    for store in (None, ChromaVectorStore(chroma_collection=chroma._collection)):
        context = StorageContext.from_defaults(vector_store=store)
        index = VectorStoreIndex(nodes, storage_context=context, embed_model=MODEL)
        (best,) = index.as_retriever(similarity_top_k=1).retrieve(nodes[0].text)
        assert best.text == nodes[0].text


def test_query_fusion_and_similarity_postprocessor() -> None:
    documents = [LlamaDocument(text=text, id_=f"d{n}") for n, text in enumerate(TEXTS)]
    retriever = llama_index.parent_document_retriever(documents, search_type="similarity")
    for mode in ("reciprocal_rerank", "relative_score", "simple"):
        fusion = QueryFusionRetriever(
            [retriever, copy.deepcopy(retriever)],
            llm=MockLLM(),
            mode=mode,
            similarity_top_k=4,
            num_queries=1,
            use_async=False,
        )
        results = fusion.retrieve(QUESTIONS[0])
        assert len(texts(results)) == len(set(texts(results))) == 4
    results = retriever.retrieve(QUESTIONS[0])
    cutoff = results[1].score
    good = SimilarityPostprocessor(similarity_cutoff=cutoff).postprocess_nodes(results)
    assert good == [each for each in results if each.score >= cutoff] != []


def test_texts_of_a_query_bundle_are_embedded_in_place_of_the_question() -> None:
    """As `HyDEQueryTransform` asks for; LlamaIndex takes the mean of their vectors."""
    documents = [LlamaDocument(text=text, id_=f"d{n}") for n, text in enumerate(TEXTS)]
    retriever = llama_index.parent_document_retriever(
        documents, embed_model=MODEL, search_type="similarity", smoothing=0, headings=False
    )

    def scores(*arguments: Any, **options: Any) -> list[float]:
        found = retriever.retrieve(QueryBundle(*arguments, **options))
        again = asyncio.run(retriever.aretrieve(QueryBundle(*arguments, **options)))
        assert again == found
        return [each.score for each in found]

    first, second = QUESTIONS[:2]
    expected = scores(second)
    assert scores(first) != expected
    assert scores(first, custom_embedding_strs=[second]) == expected
    assert scores(first, custom_embedding_strs=[]) == scores(first)
    of_both = scores(first, custom_embedding_strs=[first, second])
    assert len({*map(tuple, (of_both, expected, scores(first)))}) == 3
    others = VectorStoreIndex.from_documents(documents, embed_model=MockEmbedding(embed_dim=3))
    bundle = QueryBundle(second)
    others.as_retriever().retrieve(bundle)  # leaves its own model's vector there
    assert [each.score for each in retriever.retrieve(bundle)] == expected


# The stores and options of a retriever


@every_front_end
def test_a_deep_copy_has_options_of_its_own_over_the_same_stores(front: FrontEnd) -> None:
    pages = [(f"d{n}", text, {"source": f"{n}.txt"}) for n, text in enumerate(TEXTS)]
    retriever = front.build(pages, where={"source": "1.txt"}, search_type="hybrid")
    copied = copy.deepcopy(retriever)
    found = front.find(retriever, QUESTIONS[0])
    assert found == front.find(copied, QUESTIONS[0]) != []
    if front.framework == "langchain":
        copied.search_kwargs["filter"]["source"] = "2.txt"
        assert retriever.model_copy(deep=True).search_kwargs == retriever.search_kwargs
    else:
        copied.filters.filters[0].value = "2.txt"
    assert {each.metadata["source"] for each in front.find(copied, QUESTIONS[0])} == {"2.txt"}
    assert front.find(retriever, QUESTIONS[0]) == found
    front.delete(copied, ["d1"])
    assert front.find(retriever, QUESTIONS[0]) == []


@every_front_end
def test_with_blocks_close_the_folder(front: FrontEnd, tmp_path: Path) -> None:
    async def use_asynchronously() -> Any:
        async with front.build(path=tmp_path) as retriever:
            assert await retriever.aadd_documents(front.documents([("d", TEXTS[0], {})])) == ["d"]
        async with front.build(path=tmp_path) as retriever:
            assert len(await retriever.aget(["d"])) == 1
        await retriever.aclose()
        return retriever

    if front.asynchronous:
        retriever = asyncio.run(use_asynchronously())
    else:
        with front.build([("d", TEXTS[0], {})], path=tmp_path):
            pass
        with front.build(path=tmp_path) as retriever:
            assert len(retriever.get(["d"])) == 1
        retriever.close()
    in_memory = front.build([("d", TEXTS[0], {})])
    in_memory.close()
    for closed in (retriever, in_memory):
        with pytest.raises(StoreError, match="this retriever is closed: open the index again"):
            front.find(closed, QUESTIONS[0])


def test_k_of_search_kwargs_counts_the_children_that_are_used() -> None:
    retriever = build(search_kwargs={"k": 2})

    def used(**options: Any) -> list[int]:
        return [
            len(read_matches(each.metadata)) for each in retriever.invoke(QUESTIONS[0], **options)
        ]

    assert sum(used()) == 2
    retriever.search_kwargs = {"k": 9}
    for kind in ("similarity", "mmr", "hybrid"):
        retriever.search_type = kind  # type: ignore[assignment]
        assert sum(used()) == 9
        assert len(used(k=1)) == 1, "k counts results"
    retriever.search_kwargs["k"] = 1
    assert used() == used(k=4) == [1]
    assert len(asyncio.run(retriever.ainvoke(QUESTIONS[0]))) == 1
    retriever.search_kwargs = {"k": 0}
    with pytest.raises(ValueError, match=r'search_kwargs\["k"\] must be a whole number of at'):
        retriever.invoke(QUESTIONS[0])
    children = build(search_kwargs={"k": 3}, retrieve="children")
    assert len(children.invoke(QUESTIONS[0])) == 3


def test_the_factory_takes_a_byte_store_and_whole_documents_as_classic_does(
    chroma: Chroma, tmp_path: Path
) -> None:
    child: Any = {"child_splitter": SPLITTERS["child_splitter"]}
    store = InMemoryByteStore()
    for options in ({}, {"parent_splitter": None}):
        retriever = parent_document_retriever(
            DOCUMENTS, vectorstore=chroma, byte_store=store, **child, **options
        )
        assert set(texts(retriever.invoke(QUESTIONS[0], k=9))) == set(TEXTS)
    theirs = Classic(vectorstore=chroma, byte_store=store, **child, id_key="parent_id")
    assert set(texts(theirs.invoke(QUESTIONS[0]))) <= set(TEXTS)
    small = parent_document_retriever(DOCUMENTS, byte_store=InMemoryByteStore(), **SPLITTERS)
    assert not set(texts(small.invoke(QUESTIONS[0]))) & set(TEXTS)
    with pytest.raises(ValueError, match="pass docstore or byte_store, not both"):
        parent_document_retriever(byte_store=store, docstore=InMemoryStore())
    with pytest.raises(ValueError, match="LocalFileStore stores bytes: pass it as byte_store"):
        parent_document_retriever(DOCUMENTS, docstore=LocalFileStore(tmp_path))  # type: ignore[arg-type]


def test_documents_in_a_byte_store_are_read_without_a_warning_as_in_classic() -> None:
    run_python(  # a process is warned only once
        "import warnings\n"
        "from langchain_core.documents import Document\n"
        "from langchain_core.stores import InMemoryByteStore\n"
        "from rag_splitters.langchain import parent_document_retriever\n"
        "documents, store = [Document('The ferry leaves at seven.')], InMemoryByteStore()\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    retriever = parent_document_retriever(documents, byte_store=store)\n"
        "    assert retriever.invoke('When does the ferry leave?')\n"
        "assert 'in beta' not in ' '.join(str(each.message) for each in caught)\n"
    )


def test_numbers_of_any_kind_are_scores() -> None:
    class Store(InMemoryVectorStore):
        def similarity_search_with_score(
            self, query: str, k: int = 4, **kwargs: Any
        ) -> list[tuple[Document, float]]:
            pairs = super().similarity_search_with_score(query, k, **kwargs)
            return [(document, np.float32(score)) for document, score in pairs]  # type: ignore[misc]

    (result, *_) = build(vectorstore=Store(EMBEDDINGS)).invoke(QUESTIONS[0])
    assert read_matches(result.metadata)[0]["score"] == result.metadata["score"]
    assert type(result.metadata["score"]) is float


@pytest.mark.parametrize("is_ours", [True, False])
def test_store_that_is_passed_is_searched_as_every_store_can_be(is_ours: bool) -> None:
    store: Any = None if is_ours else InMemoryVectorStore(EMBEDDINGS)
    nodes: Any = None if is_ours else ListVectorStore(kept={})
    for retriever in (
        langchain.parent_document_retriever(vectorstore=store),
        llama_index.parent_document_retriever(vector_store=nodes, embed_model=MODEL),
    ):
        options = retriever.search_type, retriever.smoothing, retriever.headings
        assert options == (("hybrid", 0.6, True) if is_ours else ("similarity", 0.0, False))
