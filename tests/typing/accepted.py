"""Uses of the public interface that `mypy --strict` must accept; nothing here is run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_text_splitters import Language, TextSplitter
from llama_index.core import Document as LlamaIndexDocument
from llama_index.core.base.base_retriever import BaseRetriever as LlamaIndexRetriever
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import NodeParser
from llama_index.core.schema import BaseNode, NodeWithScore
from typing_extensions import assert_type

from rag_splitters import (
    CATALOGUE,
    Chunker,
    Chunks,
    FixedSizeChunker,
    HybridChunker,
    KeywordChunker,
    PageChunker,
    ParagraphChunker,
    RecursiveChunker,
    SentenceChunker,
    SeparatorChunker,
    SizedChunker,
    SlidingWindowChunker,
    Source,
    Span,
    TitledChunker,
    TokenChunker,
)
from rag_splitters.langchain import (
    ChunkerTextSplitter,
    FileLoader,
    RecursiveTextSplitter,
    SentenceTextSplitter,
    TitledTextSplitter,
    parent_document_retriever,
)
from rag_splitters.llama_index import (
    ChunkerNodeParser,
    FileReader,
    HybridNodeParser,
    RecursiveNodeParser,
    SentenceNodeParser,
)
from rag_splitters.llama_index import parent_document_retriever as llama_index_retriever
from rag_splitters.models import HashingEmbeddings


def words_of(text: str) -> int:
    return len(text.split())


def halves(text: str) -> list[tuple[int, int]]:
    return [(0, len(text) // 2), (len(text) // 2, len(text))]


def number(index: int, document: BaseNode) -> str:
    return f"{document.node_id}-{index}"


# The core

chunkers: list[Chunker] = [
    FixedSizeChunker(chunk_size=10, length_function=words_of),
    HybridChunker(stages=(PageChunker(), SentenceChunker())),
    KeywordChunker(keywords=("a",), patterns=("b",), whole_line=True, ignore_case=True),
    PageChunker(page_break="\f", pages_per_chunk=2),
    ParagraphChunker(group=False, min_chunk_size=3),
    RecursiveChunker(chunk_size=10, chunk_overlap=0.1, language="python"),
    SentenceChunker(overlap_sentences=1, segmenter=halves),
    SeparatorChunker(separators=("x",), keep_separator="end"),
    SlidingWindowChunker(chunk_overlap=3),
    TitledChunker(chunker=RecursiveChunker(), title=None, include_headings=True),
    TokenChunker(length_function="tokens:o200k_base"),
    SeparatorChunker(separators=["x"], keep_separator=True, chunk_size=None),
    RecursiveChunker(separators=["x"], is_regex=True),
    HybridChunker(stages=[PageChunker(), SentenceChunker()]),
]
sized: SizedChunker = RecursiveChunker()
chunker = RecursiveChunker(chunk_size=10)
assert_type(chunker.chunk("text", metadata={"title": "T"}, id="one"), Chunks)
assert_type(chunker.spans("text"), list[Span])
assert_type(list(chunker.split([Source("text")])), list[list[Span]])
assert_type(chunker.chunk_size, int)
assert_type(chunker.chunk("text")[0].start, int)
assert_type(chunker.chunk("text")[0].text, str)
assert_type(CATALOGUE["recursive"], type[Chunker])


class Halves(Chunker):
    """A chunker of one's own."""

    least: int = 0
    """Texts below this stay whole."""

    def spans(self, text: str) -> list[Span]:
        return [Span(start, end) for start, end in halves(text) if end - start >= self.least]


class HalvesTextSplitter(Halves, ChunkerTextSplitter):
    """Its LangChain splitter."""


class HalvesNodeParser(Halves, ChunkerNodeParser):
    """Its LlamaIndex parser."""


own: TextSplitter = HalvesTextSplitter(least=3, add_start_index=False)
own_parser: NodeParser = HalvesNodeParser(least=3, id_func=number)

# LangChain

splitter = RecursiveTextSplitter(chunk_size=10, chunk_overlap=2, add_start_index=False)
python_splitter = RecursiveTextSplitter(language=Language.PYTHON)
base: TextSplitter = splitter
both: RecursiveChunker = splitter
assert_type(splitter.split_text("text"), list[str])
assert_type(splitter.split_documents([Document(page_content="text")]), list[Document])
assert_type(splitter.create_documents(["text"], [{"a": 1}]), list[Document])
assert_type(RecursiveTextSplitter.from_tiktoken_encoder(chunk_size=9), RecursiveTextSplitter)
titled = TitledTextSplitter(chunker=SentenceChunker(), title="T")


async def transform(documents: Sequence[Document]) -> Sequence[Document]:
    return await splitter.atransform_documents(documents)


# LlamaIndex

parser = RecursiveNodeParser(chunk_size=10, include_metadata=False, id_func=number)
base_parser: NodeParser = parser
assert_type(parser.get_nodes_from_documents([LlamaIndexDocument(text="text")]), list[BaseNode])
assert_type(RecursiveNodeParser.from_dict(parser.to_dict()), RecursiveNodeParser)
described: dict[str, Any] = parser.to_dict()
pipeline = IngestionPipeline(transformations=[parser, SentenceNodeParser()])
hybrid = HybridNodeParser(stages=(PageChunker(), SentenceChunker()))

# Retrieval

documents = [Document(page_content="text", metadata={"source": "a.txt"}, id="a")]
retriever = parent_document_retriever(
    documents,
    path="index",
    parent_splitter=RecursiveTextSplitter(chunk_size=2000),
    child_splitter=SentenceTextSplitter(chunk_size=400),
    search_type="hybrid",
    k=4,
)
base_retriever: BaseRetriever = retriever
assert_type(retriever.invoke("question"), list[Document])
retriever.add_documents(FileLoader("report.pdf").load())
retriever.delete(source="a.txt")
nodes = llama_index_retriever(path="index", retrieve="parents", similarity_top_k=2)
base_nodes: LlamaIndexRetriever = nodes
assert_type(nodes.retrieve("question"), list[NodeWithScore])
nodes.add_documents(FileReader().load_data("report.pdf"))


# Models

vectors: list[list[float]] = HashingEmbeddings(dimensions=64).embed_documents(["text"])
