"""`HashingEmbeddings`, and `Embedder` under the names of LangChain."""

from __future__ import annotations

import asyncio
import json
import math
import pickle
from unittest.mock import Mock

import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_openai import OpenAIEmbeddings
from llama_index.core import Document, MockEmbedding, Settings, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.embeddings import resolve_embed_model
from llama_index.core.ingestion import IngestionPipeline

from rag_splitters.llama_index import HashingEmbedding, RecursiveNodeParser
from rag_splitters.models import Embedder, HashingEmbeddings, chat_model, describe_model
from tests.support.processes import run_python

MODEL = HashingEmbeddings()


class OwnEmbedding(MockEmbedding):
    """A model of a user's own, which gives itself no name."""


def similarity(one: str, other: str) -> float:
    return math.fsum(a * b for a, b in zip(*MODEL.embed_documents([one, other]), strict=True))


@pytest.mark.parametrize(
    "text",
    [
        *("", " \n\t", "the of and", "?!... --", "日本語の文章です", "ก", "\ud800", "\x00"),
        *("a\u0301", "🧑‍🚀"),
    ],
)
def test_hashing_gives_every_text_a_vector_of_length_one(text: str) -> None:
    vector = MODEL.embed_query(text)
    assert len(vector) == 1024
    assert math.isclose(math.hypot(*vector), 1.0)
    assert vector == MODEL.embed_documents(["something else", text])[1]


@pytest.mark.parametrize(
    ("query", "near", "far"),
    [
        ("How do cats sleep?", "A cat was sleeping.", "How do I pay the taxes?"),
        ("日本の首都", "首都は東京です", "猫が眠る"),
        ("?!", "?! ?!", "--"),
        ("the of", "of the", "what is"),
        ("naïve", "NAI\u0308VE", "native"),
        ("lightning", "Lightning and rain and snow", "lighten"),  # words count more than letters
    ],
)
def test_hashing_finds_the_text_with_the_same_words(query: str, near: str, far: str) -> None:
    assert similarity(query, near) > similarity(query, far)


def test_hashing_gives_the_same_vectors_in_another_process() -> None:
    code = (
        "import json; from rag_splitters.models import HashingEmbeddings as H;"
        "print(json.dumps(H(dimensions=64).embed_query('Déjà vu, 日本語 and 12 cats')))"
    )
    here = HashingEmbeddings(dimensions=64).embed_query("Déjà vu, 日本語 and 12 cats")
    assert json.loads(run_python(code)) == here


def test_hashing_vectors_do_not_depend_on_the_batch() -> None:
    texts = [f"text number {number} of many" for number in range(1500)]
    alone = [MODEL.embed_query(texts[number]) for number in (0, 999, 1000, 1499)]
    assert [MODEL.embed_documents(texts)[number] for number in (0, 999, 1000, 1499)] == alone


def test_hashing_answers_under_the_names_of_both_frameworks() -> None:
    texts = ["one text", "another"]
    vectors = MODEL.embed_documents(texts)
    assert MODEL.get_text_embedding_batch(texts) == vectors
    assert MODEL.get_query_embedding("another") == vectors[1]
    assert asyncio.run(MODEL.aembed_documents(texts)) == vectors
    assert asyncio.run(MODEL.aembed_query("another")) == vectors[1]
    assert MODEL.embed_documents([]) == []


def test_hashing_counts_as_embeddings_of_langchain() -> None:
    import rag_splitters.langchain  # noqa: F401  (registers it)

    assert isinstance(MODEL, Embeddings)
    assert isinstance(Embedder(MODEL), Embeddings)
    assert not issubclass(dict, Embeddings)
    store = InMemoryVectorStore.from_texts(["A cat slept.", "Prices rose."], MODEL)
    assert [found.page_content for found in store.similarity_search("cats", 1)] == ["A cat slept."]


def test_hashing_is_an_embedding_model_of_llama_index(monkeypatch: pytest.MonkeyPatch) -> None:
    model = HashingEmbedding(dimensions=64)
    assert isinstance(model, BaseEmbedding)
    assert resolve_embed_model(model) is model
    documents = [Document(text="A cat slept."), Document(text="Prices rose.")]
    index = VectorStoreIndex.from_documents(documents, embed_model=model)
    monkeypatch.setattr(Settings, "_embed_model", None)
    Settings.embed_model = model
    for each in (index, VectorStoreIndex.from_documents(documents)):
        assert each.as_retriever(similarity_top_k=1).retrieve("cats")[0].text == "A cat slept."
    nodes = IngestionPipeline(transformations=[RecursiveNodeParser(), model]).run(
        documents=documents
    )
    plain = HashingEmbeddings(dimensions=64)
    assert [node.embedding for node in nodes] == plain.embed_documents([d.text for d in documents])
    assert asyncio.run(model.aget_query_embedding("a")) == plain.embed_query("a")
    assert asyncio.run(model.aget_text_embedding_batch(["a"])) == plain.embed_documents(["a"])
    copies = [pickle.loads(pickle.dumps(model)), HashingEmbedding.from_dict(model.to_dict())]
    assert {*map(describe_model, [model, *copies])} == {describe_model(plain)}
    with pytest.raises(ValueError, match="dimensions must be a whole number of at least 1, got 0"):
        HashingEmbedding(dimensions=0)


def test_hashing_can_be_pickled_compared_and_named() -> None:
    model = HashingEmbeddings(dimensions=16)
    assert pickle.loads(pickle.dumps(model)) == model != MODEL
    assert repr(model) == "HashingEmbeddings(dimensions=16)"


class LlamaIndexLike:
    model_name = "small-model"

    def get_text_embedding_batch(self, texts: list[str]) -> list[list[float]]:
        return [[float(len(text))] for text in texts]

    def get_query_embedding(self, text: str) -> list[float]:
        return [-float(len(text))]


def test_embedder_is_an_embedding_model_for_langchain() -> None:
    llama = Embedder(LlamaIndexLike())
    assert llama.embed_documents(["ab"]) == [[2.0]]
    assert llama.embed_query("abc") == [-3.0]
    assert llama.description == "small-model"
    assert asyncio.run(llama.aembed_documents(["ab"])) == [[2.0]]
    assert asyncio.run(llama.aembed_query("abc")) == [-3.0]
    assert Embedder(lambda texts: [[float(len(text))] for text in texts]).embed_query("ab") == [2.0]


def test_model_has_one_name_in_both_frameworks() -> None:
    """An index that was written with one framework can be opened with the other."""
    name = "text-embedding-3-small"
    assert describe_model(OpenAIEmbeddings(model=name, api_key="none")) == name
    assert describe_model(MockEmbedding(embed_dim=256, model_name=name)) == name
    small = OpenAIEmbeddings(model=name, dimensions=256, api_key="none")
    assert describe_model(small) == describe_model(Embedder(small)) == f"{name}(dimensions=256)"


def test_model_of_llama_index_without_a_name_is_named_by_its_class() -> None:
    """LlamaIndex calls all of them "unknown", so that an index would accept any."""
    assert describe_model(MockEmbedding(embed_dim=4)) == "llama_index.MockEmbedding"
    assert describe_model(OwnEmbedding(embed_dim=4)) == "tests.OwnEmbedding"


def test_a_mock_has_a_name_though_it_has_every_attribute() -> None:
    model = Mock(return_value="an answer")
    assert describe_model(model) == "unittest.Mock"
    (error,) = chat_model(model).ask(["a question"])
    assert "unittest.Mock answered prompt 0" in str(error)
