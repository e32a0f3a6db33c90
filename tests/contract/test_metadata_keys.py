"""Users' own metadata keys stay what they are: ours give way, in every strategy and front end."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.documents import Document as LangChainDocument
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.schema import Document, MetadataMode

from rag_splitters import CATALOGUE
from rag_splitters.langchain import (
    ContentAwareTextSplitter,
    HierarchicalTextSplitter,
    RecursiveTextSplitter,
)
from rag_splitters.llama_index import ContextualNodeParser, RecursiveNodeParser
from tests.support.cases import CASES
from tests.support.forms import front_end

TEXT = "# Tea\n\nTea is old. Tea is hot.\n\n# Milk\n\n```python\nprint(1)\n```\n\nMilk is white."
OURS = {
    **dict.fromkeys(("chunk_index", "end_index", "parent_id", "score", "matches"), "mine"),
    **dict.fromkeys(("headings", "language", "context", "window", "level", "modality"), "mine"),
    **dict.fromkeys(("strategy", "topic", "keyword", "json_path", "entities"), "mine"),
}
every_strategy = pytest.mark.parametrize("name", CATALOGUE)


@every_strategy
def test_langchain_keeps_the_keys_of_the_user(name: str) -> None:
    splitter = front_end(CASES[name][0], "langchain")
    document = LangChainDocument(page_content=TEXT, metadata=dict(OURS))
    ways = [
        splitter.split_documents([document]),
        splitter.create_documents([TEXT], [dict(OURS)]),
        asyncio.run(splitter.atransform_documents([document])),
    ]
    for chunks in ways:
        assert chunks
        for chunk in chunks:
            assert OURS.items() <= chunk.metadata.items()
            assert isinstance(chunk.metadata["start_index"], int)
    plain = splitter.split_documents([LangChainDocument(page_content=TEXT)])
    assert [c.page_content for c in plain] == [c.page_content for c in ways[0]]


@every_strategy
def test_llama_index_keeps_the_keys_of_the_user(name: str) -> None:
    parser = front_end(CASES[name][0], "llama_index")
    parser.count_metadata = False
    document = Document(text=TEXT, metadata=dict(OURS))
    nodes = IngestionPipeline(transformations=[parser]).run(documents=[document])
    assert nodes
    for node in nodes:
        assert OURS.items() <= node.metadata.items()
        shown = node.get_metadata_str(mode=MetadataMode.LLM)
        assert all(f"{key}: mine" in shown for key in OURS)


def test_our_own_keys_of_a_chunk_are_those_of_the_last_splitter() -> None:
    splitter, finer = ContentAwareTextSplitter(chunk_size=60), RecursiveTextSplitter(chunk_size=15)
    document = LangChainDocument(page_content=TEXT, metadata={"language": "mine"})
    chunks = finer.split_documents(splitter.split_documents([document]))
    assert len(chunks) > 4
    for chunk in chunks:
        start, end = chunk.metadata["start_index"], chunk.metadata["end_index"]
        assert TEXT[start:end] == chunk.page_content
    nodes = RecursiveNodeParser(chunk_size=15, count_metadata=False)(
        RecursiveNodeParser(chunk_size=40, count_metadata=False)(
            [Document(text=TEXT, metadata={"chunk_index": "mine"})]
        )
    )
    assert {node.metadata["chunk_index"] for node in nodes} == {"mine"}


def test_positions_of_chunks_of_other_splitters_are_replaced_together() -> None:
    start = TEXT.index("Tea is old.")
    metadata = {"start_index": start, "end_index": start + 23, "headings": "mine"}
    chunk = LangChainDocument(page_content=TEXT[start : start + 23], metadata=metadata)
    pieces = RecursiveTextSplitter(chunk_size=12).split_documents([chunk])
    assert [piece.page_content for piece in pieces] == ["Tea is old.", "Tea is hot."]
    for piece in pieces:
        own = piece.metadata
        assert TEXT[own["start_index"] : own["end_index"]] == piece.page_content
        assert own["headings"] == "mine"


def test_context_stays_in_the_text_if_its_key_is_taken() -> None:
    parser = ContextualNodeParser(llm=lambda prompt: "About tea.")
    taken = parser([Document(text=TEXT, metadata={"context": "mine"})])
    free = parser([Document(text=TEXT)])
    assert all(node.text.startswith("About tea.\n\n") for node in taken)
    assert all(node.metadata["context"] == "About tea." for node in free)


def test_parents_of_a_hierarchy_are_named_unless_the_key_is_taken() -> None:
    splitter = HierarchicalTextSplitter(emit="all", chunk_size=40)
    ids = {chunk.id for chunk in splitter.create_documents([TEXT])}
    parents = [c.metadata.get("parent_id") for c in splitter.create_documents([TEXT])]
    assert len(ids) > 2
    assert set(parents) - {None} <= ids
    taken = splitter.create_documents([TEXT], [{"parent_id": 7}])
    assert {chunk.metadata["parent_id"] for chunk in taken} == {7}
