"""Chunking strategies for retrieval-augmented generation, for LangChain and LlamaIndex.

The chunkers here work without a framework. `rag_splitters.langchain` offers each of them as a
`TextSplitter`, `rag_splitters.llama_index` as a `NodeParser`.
"""

from rag_splitters.chunker import Chunker, SizedChunker
from rag_splitters.chunkers import (
    CATALOGUE,
    AgenticChunker,
    ClusterChunker,
    CodeChunker,
    ContentAwareChunker,
    ContextualChunker,
    EmbeddingChunker,
    EntityChunker,
    FixedSizeChunker,
    HierarchicalChunker,
    HybridChunker,
    KeywordChunker,
    ModalityChunker,
    PageChunker,
    ParagraphChunker,
    PropositionChunker,
    RecursiveChunker,
    SemanticChunker,
    SentenceChunker,
    SeparatorChunker,
    SlidingWindowChunker,
    TableChunker,
    TitledChunker,
    TokenChunker,
    TopicChunker,
)
from rag_splitters.span import Chunk, Source, Span

__version__ = "0.1.0"

__all__ = [
    "CATALOGUE",
    "AgenticChunker",
    "Chunk",
    "Chunker",
    "ClusterChunker",
    "CodeChunker",
    "ContentAwareChunker",
    "ContextualChunker",
    "EmbeddingChunker",
    "EntityChunker",
    "FixedSizeChunker",
    "HierarchicalChunker",
    "HybridChunker",
    "KeywordChunker",
    "ModalityChunker",
    "PageChunker",
    "ParagraphChunker",
    "PropositionChunker",
    "RecursiveChunker",
    "SemanticChunker",
    "SentenceChunker",
    "SeparatorChunker",
    "SizedChunker",
    "SlidingWindowChunker",
    "Source",
    "Span",
    "TableChunker",
    "TitledChunker",
    "TokenChunker",
    "TopicChunker",
    "__version__",
]
