"""Mistakes that `mypy --strict` must report, with the error's code; nothing here is run."""

from __future__ import annotations

from rag_splitters import (
    Chunker,
    HybridChunker,
    KeywordChunker,
    PageChunker,
    ParagraphChunker,
    RecursiveChunker,
    SentenceChunker,
    SeparatorChunker,
    TitledChunker,
    TokenChunker,
)
from rag_splitters.langchain import (
    RecursiveTextSplitter,
    SeparatorTextSplitter,
    parent_document_retriever,
)
from rag_splitters.llama_index import RecursiveNodeParser, SentenceNodeParser
from rag_splitters.llama_index import parent_document_retriever as llama_index_retriever
from rag_splitters.models import HashingEmbeddings

# Positional arguments
RecursiveChunker(200)  # expect: call-arg
SeparatorChunker(("\n",))  # expect: call-arg, arg-type
RecursiveTextSplitter(200, 20)  # expect: call-arg, arg-type
RecursiveNodeParser(200)  # expect: call-arg, arg-type
HashingEmbeddings(64)  # expect: call-arg

# Wrong types
RecursiveChunker(chunk_size="200")  # expect: arg-type
RecursiveChunker(chunk_size=200.5)  # expect: arg-type
RecursiveChunker(chunk_size=None)  # expect: arg-type
RecursiveChunker(separators=5)  # expect: arg-type
RecursiveChunker(language=3)  # expect: arg-type
SentenceChunker(overlap_sentences="1")  # expect: arg-type
SentenceChunker(segmenter=5)  # expect: arg-type
ParagraphChunker(group="no")  # expect: arg-type
KeywordChunker(keywords=(1, 2))  # expect: arg-type
PageChunker(page_break=None)  # expect: arg-type
TokenChunker(chunk_overlap="64")  # expect: arg-type
TitledChunker(chunker="recursive")  # expect: arg-type
HybridChunker(stages=("page", "sentence"))  # expect: arg-type
RecursiveTextSplitter(add_start_index="yes")  # expect: arg-type
RecursiveNodeParser(include_metadata="yes")  # expect: arg-type
SentenceNodeParser(id_func="number")  # expect: arg-type

# Unknown parameters
RecursiveChunker(chunksize=200)  # expect: call-arg
SentenceChunker(separators=("\n",))  # expect: call-arg
RecursiveTextSplitter(overlap=20)  # expect: call-arg
RecursiveNodeParser(add_start_index=True)  # expect: call-arg
RecursiveChunker(add_start_index=True)  # expect: call-arg

# Wrong literals
SeparatorChunker(keep_separator="both")  # expect: arg-type
SeparatorTextSplitter(keep_separator=1)  # expect: arg-type

# Wrong calls
chunker = RecursiveChunker()
chunker.chunk(b"bytes")  # expect: arg-type
chunker.chunk("text", {"title": "T"})  # expect: call-arg
chunker.chunks("text")  # expect: attr-defined
chunker.chunk("text")[0].content  # expect: attr-defined
wrong: list[str] = chunker.chunk("text")  # expect: assignment


# Retrieval
parent_document_retriever("a text")  # expect: arg-type
parent_document_retriever(retrieve="chunks")  # expect: arg-type
parent_document_retriever(top_k=3)  # expect: call-arg
parent_document_retriever().invoke(3)  # expect: arg-type
llama_index_retriever(search_type="keywords")  # expect: arg-type
answers: list[str] = llama_index_retriever().retrieve("question")  # expect: assignment


class Words(Chunker):
    """A chunker whose method gives texts instead of spans."""

    def spans(self, text: str) -> list[str]:  # expect: override
        return text.split()
