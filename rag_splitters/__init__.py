"""Chunking strategies for retrieval-augmented generation, for LangChain and LlamaIndex.

The chunkers here work without a framework. `rag_splitters.langchain` offers each of them as a
`TextSplitter`, `rag_splitters.llama_index` as a `NodeParser`.
"""

# ruff: noqa: E402

from rag_splitters.interrupts import end_quietly_while_starting

end_quietly_while_starting()  # before the imports below, which take half a second

from rag_splitters import chunkers
from rag_splitters.chunkers import *
from rag_splitters.contract.chunker import Chunker
from rag_splitters.contract.registry import register
from rag_splitters.contract.sized import SizedChunker
from rag_splitters.errors import RagSplittersError
from rag_splitters.span import Chunk, Source, Span
from rag_splitters.text.coloured import Chunks, show

__version__ = "0.1.0"

__all__ = [
    "Chunk",
    "Chunker",
    "Chunks",
    "RagSplittersError",
    "SizedChunker",
    "Source",
    "Span",
    "register",
    "show",
]
__all__ += chunkers.__all__
