"""The LangChain front end: what LangChain's own splitters get wrong, and what a chain expects."""

from __future__ import annotations

import asyncio
import json
import pickle
import uuid
from typing import Any

import numpy as np
import pytest
from langchain_chroma import Chroma
from langchain_classic.retrievers import ParentDocumentRetriever
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.indexing import InMemoryRecordManager, index
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import TextSplitter
from tokenizers import Tokenizer, models, pre_tokenizers

from rag_splitters import ParagraphChunker, RecursiveChunker, TitledChunker
from rag_splitters.langchain import (
    HybridTextSplitter,
    ParagraphTextSplitter,
    RecursiveTextSplitter,
    SentenceTextSplitter,
    SeparatorTextSplitter,
    SlidingWindowTextSplitter,
    TitledTextSplitter,
)
from rag_splitters.models import HashingEmbeddings
from tests.support.processes import run_python

PASSAGE = "The same passage again. It says what it said before, and no more than that.\n\n"

STORY = """# Lighthouses

A lighthouse warns ships of rocks. Its keeper climbed the stairs every evening.

The lamp burned paraffin. A lens of many prisms made one beam of it.

# Bridges

A bridge carries a road across a river. Engineers reckon with wind and flood.

Suspension bridges hang from cables. Their towers stand on rock.
"""


def bpe_tokenizer() -> Tokenizer:
    """A Hugging Face tokenizer of letters and a few merges, split at white space."""
    vocabulary = {letter: index for index, letter in enumerate("abcdefghijklmnopqrstuvwxyz.T")}
    merges = [("t", "h"), ("th", "e"), ("i", "n")]
    for left, right in merges:
        vocabulary[left + right] = len(vocabulary)
    vocabulary["?"] = len(vocabulary)
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return tokenizer


def splitters() -> list[Any]:
    """Splitters of every kind, small enough to cut `STORY` into several chunks.

    The one of plain slices, of overlapping windows, of rewritten chunks, and of nested strategies.
    """
    made = [
        HybridTextSplitter(stages=(ParagraphChunker(), RecursiveChunker(chunk_size=40))),
        RecursiveTextSplitter(chunk_size=50, chunk_overlap=10),
        SlidingWindowTextSplitter(chunk_size=8, chunk_overlap=2, length_function="words"),
        TitledTextSplitter(chunker=RecursiveChunker(chunk_size=60)),
    ]
    return [pytest.param(splitter, id=type(splitter).__name__) for splitter in made]


every_splitter = pytest.mark.parametrize("splitter", splitters())


# Positions


@pytest.mark.parametrize("number", [int, float, np.int64])
@pytest.mark.parametrize("inner", splitters())
def test_positions_of_chunks_of_chunks_are_those_of_the_source(inner: Any, number: Any) -> None:
    text = PASSAGE + STORY + PASSAGE + STORY
    parents = ParagraphTextSplitter(chunk_size=200).create_documents([text])
    assert len(parents) > 3
    for parent in parents:  # data frames and some vector stores give back other numbers
        parent.metadata |= {
            key: number(parent.metadata[key]) for key in ("start_index", "end_index")
        }
        children = inner.split_documents([parent])
        assert children
        for child in children:
            start, end = child.metadata["start_index"], child.metadata["end_index"]
            assert parent.metadata["start_index"] <= start < end <= parent.metadata["end_index"]
            assert child.page_content.endswith(text[start:end])
            if not isinstance(inner, TitledTextSplitter):
                assert child.page_content == text[start:end]


def test_positions_of_chunks_of_rewritten_chunks_bound_the_evidence() -> None:
    titled = TitledTextSplitter(title="T", chunker=RecursiveChunker(chunk_size=60))
    for parent in titled.create_documents(["no heading here. " * 20])[1:]:
        children = RecursiveTextSplitter(chunk_size=20).split_documents([parent])
        assert len(children) > 1
        for child in children:
            for key in ("start_index", "end_index"):
                assert child.metadata[key] == parent.metadata[key]


@every_splitter
def test_add_start_index_off_adds_nothing(splitter: Any) -> None:
    plain = splitter.model_copy(update={"add_start_index": False})
    found = plain.create_documents([STORY], [{"page_title": "S"}])
    assert [d.page_content for d in found] == splitter.split_text(STORY)
    for document in found:
        assert not {"start_index", "end_index", "chunk_index"} & set(document.metadata)
        assert document.metadata["page_title"] == "S"


# Metadata and ids


@every_splitter
def test_nested_metadata_is_shared_with_nobody(splitter: Any) -> None:
    source = Document(page_content=STORY, metadata={"tags": ["a"], "deep": {"er": [1]}, "n": 1})
    one, other, *_ = splitter.split_documents([source])
    one.metadata["tags"].append("b")
    one.metadata["deep"]["er"].append(2)
    one.metadata["n"] = 2
    for metadata in (source.metadata, other.metadata):
        assert (metadata["tags"], metadata["deep"], metadata["n"]) == (["a"], {"er": [1]}, 1)
    source.metadata["tags"].append("c")
    assert other.metadata["tags"] == ["a"]


def test_headings_are_shared_with_nobody() -> None:
    splitter = TitledTextSplitter(include_headings=True, chunker=RecursiveChunker(chunk_size=60))
    documents = [d for d in splitter.create_documents([STORY]) if "headings" in d.metadata]
    assert len(documents) > 3
    before = [list(d.metadata["headings"]) for d in documents[1:]]
    documents[0].metadata["headings"].append("changed")
    assert [d.metadata["headings"] for d in documents[1:]] == before


@pytest.mark.slow
def test_ids_are_the_same_in_another_process() -> None:
    """Also with sets in the metadata, whose order is another one in each process."""
    code = (
        "from rag_splitters.langchain import SentenceTextSplitter\n"
        f"texts, metadatas = {[STORY] * 2 + ['one'] * 3}, [{{'a': ['b']}}, {{}}]\n"
        "metadatas += [{'tags': set('abcd')}, {'deep': [frozenset('abcd')]}, {'x': object()}]\n"
        "made = SentenceTextSplitter(chunk_size=60).create_documents(texts, metadatas)\n"
        "ids = [each.id for each in made]\n"
    )
    here: dict[str, Any] = {}
    exec(code, here)
    assert run_python(f"{code}print(*ids)", PYTHONHASHSEED="29").split() == here["ids"]
    assert len(here["ids"]) == len(set(here["ids"])) > 11


CIRCULAR: list[Any] = ["a"]
CIRCULAR.append(CIRCULAR)


@pytest.mark.parametrize(
    "metadata",
    [
        {1: "a", "b": 2},
        {("a", "b"): 1},
        {"deep": {None: 1, "x": 2}},
        {"bytes": b"x"},
        {"self": CIRCULAR},
    ],
)
def test_metadata_of_any_kind_is_kept(metadata: dict[Any, Any]) -> None:
    one, other = SeparatorTextSplitter(chunk_size=3).create_documents(["one\n\ntwo"], [metadata])
    for each in (one, other):
        assert str(metadata)[1:-1] in str(each.metadata)
    assert one.id != other.id


@every_splitter
def test_duplicated_documents_get_distinct_ids(splitter: Any) -> None:
    documents = splitter.split_documents([Document(page_content=STORY, metadata={"a": [1]})] * 3)
    ids = [document.id for document in documents]
    assert len(set(ids)) == len(ids) == 3 * len(splitter.split_text(STORY))


def test_vector_stores_take_chunks_that_repeat_rewritten_text() -> None:
    titled = TitledChunker(chunker=RecursiveChunker(chunk_size=400), title="T")
    splitter = HybridTextSplitter(stages=[titled, RecursiveChunker(chunk_size=18)])
    chunks = splitter.create_documents(["ha ha ha. " * 300])
    places = {(chunk.page_content, chunk.metadata["start_index"]) for chunk in chunks}
    ids = Chroma("repeats", HashingEmbeddings(dimensions=16)).add_documents(chunks)
    assert len(set(ids)) == len(ids) == len(chunks) > len(places)
    assert splitter.create_documents(["ha ha ha. " * 300]) == chunks


@pytest.mark.parametrize("given", [["a", "a"], ["a", "a", "a#2"], ["a#2", "a", "a"]])
def test_duplicated_document_ids_give_distinct_chunk_ids(given: list[str]) -> None:
    sources = [Document(page_content=STORY, id=each) for each in given]
    ids = [d.id for d in RecursiveTextSplitter(chunk_size=50).split_documents(sources)]
    assert len(set(ids)) == len(ids)


@every_splitter
def test_documents_are_what_their_class_makes_of_their_fields(splitter: Any) -> None:
    for document in splitter.split_documents([Document(page_content=STORY, metadata={"a": [1]})]):
        fields = {"page_content": document.page_content, "metadata": document.metadata}
        made = Document(**fields, id=document.id)
        assert document == made
        assert pickle.loads(pickle.dumps(document)) == made
        assert list(vars(document)) == list(vars(made))
        assert document.model_fields_set == made.model_fields_set
        assert document.model_dump_json() == made.model_dump_json()
        document.id = None
    assert document.model_copy(deep=True).id is None


@pytest.mark.parametrize("given", [None, "one", "lone \ud800"])
def test_ids_of_lone_surrogates_are_made(given: str | None) -> None:
    text, metadata = "before \ud800 and after", {"a": "\udc00", "\ud800": 1}
    sources = [Document(page_content=text, metadata=metadata, id=given) for _ in range(2)]
    documents = RecursiveTextSplitter(chunk_size=10).split_documents(sources)
    assert "".join(document.page_content for document in documents).count("\ud800") == 2
    versions = {uuid.UUID(document.id).version for document in documents}
    assert versions == {5}
    assert len({document.id for document in documents}) == len(documents)


@every_splitter
def test_document_id_is_used(splitter: Any) -> None:
    def ids(given: str | None, text: str = STORY, **metadata: str) -> list[str | None]:
        source = Document(page_content=text, id=given, metadata=metadata)
        return [document.id for document in splitter.split_documents([source])]

    assert ids("one") == ids("one", author="x")
    assert not set(ids("one")) & set(ids("two"))
    assert not set(ids(None)) & set(ids("one"))
    assert not set(ids(None)) & set(ids(None, author="x"))


@every_splitter
def test_indexing_twice_skips_everything(splitter: Any) -> None:
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    manager = InMemoryRecordManager("test")
    manager.create_schema()

    def run() -> Any:
        documents = splitter.create_documents([STORY], [{"source": "story"}])
        return index(documents, manager, store, cleanup="full", source_id_key="source")

    first, second = run(), run()
    assert first["num_added"] == len(splitter.split_text(STORY))
    assert (second["num_added"], second["num_deleted"]) == (0, 0)
    assert second["num_skipped"] == first["num_added"]


# Calls


@every_splitter
def test_every_call_gives_the_same_documents(splitter: Any) -> None:
    metadatas = [{"title": f"Part {n}", "page": n} for n in range(3)]
    sources = [Document(page_content=STORY, metadata=each) for each in metadatas]
    expected = splitter.split_documents(sources)
    assert isinstance(splitter, TextSplitter)
    assert splitter.split_documents(each for each in sources) == expected
    assert splitter.transform_documents(sources) == expected
    assert splitter.create_documents([STORY] * 3, metadatas) == expected
    assert asyncio.run(splitter.atransform_documents(sources)) == expected
    if not isinstance(splitter, TitledTextSplitter):  # the title is part of its texts
        assert [d.page_content for d in expected] == splitter.split_text(STORY) * 3
    metadata = [document.metadata for document in expected]
    assert json.loads(json.dumps(metadata)) == metadata
    assert splitter.split_documents([]) == splitter.create_documents([]) == []
    assert list(asyncio.run(splitter.atransform_documents([]))) == []


# LangChain's own names and values


def test_from_huggingface_tokenizer_counts_its_tokens() -> None:
    tokenizer = bpe_tokenizer()
    splitter = RecursiveTextSplitter.from_huggingface_tokenizer(tokenizer, chunk_size=10)
    texts = splitter.split_text("the thin thing in the inn")
    counts = [len(tokenizer.encode(text).ids) for text in texts]
    # the(1) th-in(2) th-in-g(3) in(1) the(1) in-n(2): ten tokens
    assert texts == ["the thin thing in the inn"]
    assert counts == [10]
    small = RecursiveTextSplitter.from_huggingface_tokenizer(tokenizer, chunk_size=6)
    assert small.split_text("the thin thing in the inn") == ["the thin thing", "in the inn"]
    with pytest.raises(TypeError, match="multiple values for keyword argument 'length_function'"):
        RecursiveTextSplitter.from_huggingface_tokenizer(tokenizer, length_function=len)


def test_from_tiktoken_encoder_takes_special_tokens_for_ordinary_text() -> None:
    make = RecursiveTextSplitter.from_tiktoken_encoder
    for allowed in ("all", {"<|endoftext|>"}):
        with pytest.raises(ValueError, match="leave allowed_special out"):
            make(allowed_special=allowed)  # type: ignore[arg-type]
    assert make(chunk_size=5, allowed_special=set(), disallowed_special=()) == make(chunk_size=5)


@every_splitter
def test_langchain_option_strip_whitespace_is_accepted_where_true(splitter: Any) -> None:
    parameters = {name: getattr(splitter, name) for name in type(splitter).model_fields}
    assert type(splitter)(**{**parameters, "strip_whitespace": True}).split_text(STORY)
    if "strip_whitespace" not in parameters and splitter._strip_whitespace:
        with pytest.raises(ValueError, match=r"leave strip_whitespace out: .*got False"):
            type(splitter)(**parameters, strip_whitespace=False)


# The stock parent-child retriever


@every_splitter
@pytest.mark.parametrize("parent", [None, SentenceTextSplitter(chunk_size=160)])
def test_stock_parent_document_retriever_takes_our_splitters(
    splitter: Any, parent: TextSplitter | None
) -> None:
    store = Chroma(collection_name=f"t{uuid.uuid4().hex}", embedding_function=HashingEmbeddings())
    retriever = ParentDocumentRetriever(
        vectorstore=store, docstore=InMemoryStore(), child_splitter=splitter, parent_splitter=parent
    )
    retriever.add_documents([Document(page_content=STORY, metadata={"source": "story"})])
    found = retriever.invoke("What did the lamp burn? paraffin")
    assert "paraffin" in found[0].page_content
    assert found[0].metadata["source"] == "story"
    if parent is not None:
        start, end = found[0].metadata["start_index"], found[0].metadata["end_index"]
        assert found[0].page_content == STORY[start:end]
    kept = store.get()
    assert len(kept["ids"]) > 3
    for text, metadata in zip(kept["documents"], kept["metadatas"], strict=True):
        assert text.endswith(STORY[metadata["start_index"] : metadata["end_index"]])
    store.delete_collection()
