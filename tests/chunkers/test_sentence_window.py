"""SentenceWindowChunker: windows, their size, and LlamaIndex's own postprocessor and parser."""

from __future__ import annotations

import asyncio
import re

import pytest
from langchain_core.documents import Document as LangChainDocument
from llama_index.core import Document, MockEmbedding, VectorStoreIndex
from llama_index.core.node_parser import SentenceWindowNodeParser as TheirParser
from llama_index.core.postprocessor import MetadataReplacementPostProcessor
from llama_index.core.schema import MetadataMode

from rag_splitters import SentenceWindowChunker
from rag_splitters.langchain import SentenceWindowTextSplitter
from rag_splitters.llama_index import SentenceWindowNodeParser

TEXT = "Rain fell. It was cold.  Nobody came.\nWe went home. Dinner was late."


def by_line(text: str) -> list[str]:
    return re.split(r"(?<=\.)\s+", text)


def test_window_is_the_text_around_the_sentence_as_it_stands() -> None:
    documents = SentenceWindowTextSplitter(window_size=1).split_documents(
        [LangChainDocument(TEXT, metadata={"source": "a.txt"})]
    )
    assert [each.page_content for each in documents] == by_line(TEXT)
    assert documents[2].metadata["window"] == "It was cold.  Nobody came.\nWe went home."
    assert all(each.page_content in each.metadata["window"] for each in documents)
    assert all(each.metadata["source"] == "a.txt" for each in documents)


def test_windows_of_a_text_without_sentences_grow_with_it_linearly() -> None:
    def characters(words: int) -> int:
        chunks = SentenceWindowChunker(chunk_size=100).chunk("word " * words)
        return sum(len(chunk.metadata["window"]) for chunk in chunks)

    assert 1.9 < characters(8000) / characters(4000) < 2.1


def test_nodes_are_those_of_llama_index() -> None:
    options = {"sentence_splitter": by_line, "window_size": 2}
    theirs = TheirParser.from_defaults(**options)
    ours = SentenceWindowNodeParser.from_defaults(**options)
    document = Document(text=TEXT, metadata={"source": "a.txt"})
    for one, other in zip(
        ours.get_nodes_from_documents([document]),
        theirs.get_nodes_from_documents([document]),
        strict=True,
    ):
        assert one.text == other.text  # type: ignore[attr-defined]
        assert one.metadata["original_text"] == other.metadata["original_text"]
        spaced = " ".join(one.metadata["window"].split())
        assert spaced == " ".join(other.metadata["window"].split())
        for mode in (MetadataMode.EMBED, MetadataMode.LLM):
            assert one.get_content(mode) == other.get_content(mode)


@pytest.mark.parametrize("is_async", [False, True])
def test_postprocessor_puts_the_window_in_the_place_of_the_sentence(is_async: bool) -> None:
    parser = SentenceWindowNodeParser.from_defaults(
        window_size=1, window_metadata_key="around", original_text_metadata_key="sentence"
    )
    documents = [Document(text=TEXT, id_="one")]
    if is_async:
        nodes = asyncio.run(parser.aget_nodes_from_documents(documents))
    else:
        nodes = parser.get_nodes_from_documents(documents)
    index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=3))
    found = index.as_retriever(similarity_top_k=5).retrieve("rain")
    replaced = MetadataReplacementPostProcessor("around").postprocess_nodes(found)
    texts = {each.node.metadata["sentence"]: each.node.get_content() for each in replaced}
    assert texts["Rain fell."] == "Rain fell. It was cold."
    assert texts["Dinner was late."] == "We went home. Dinner was late."
    assert "window" not in replaced[0].node.metadata
