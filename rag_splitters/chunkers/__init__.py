"""The strategies, one file each, and their catalogue.

A new strategy is a file here, a line in the catalogue, and a class in each front end.
"""

from rag_splitters.chunkers.agentic import AgenticChunker
from rag_splitters.chunkers.auto import AutoChunker
from rag_splitters.chunkers.cluster import ClusterChunker
from rag_splitters.chunkers.code import CodeChunker
from rag_splitters.chunkers.content_aware import ContentAwareChunker
from rag_splitters.chunkers.contextual import ContextualChunker
from rag_splitters.chunkers.embedding import EmbeddingChunker
from rag_splitters.chunkers.entity import EntityChunker
from rag_splitters.chunkers.fixed_size import FixedSizeChunker
from rag_splitters.chunkers.hierarchical import HierarchicalChunker
from rag_splitters.chunkers.hybrid import HybridChunker
from rag_splitters.chunkers.json import JsonChunker
from rag_splitters.chunkers.keyword import KeywordChunker
from rag_splitters.chunkers.modality import ModalityChunker
from rag_splitters.chunkers.page import PageChunker
from rag_splitters.chunkers.paragraph import ParagraphChunker
from rag_splitters.chunkers.proposition import PropositionChunker
from rag_splitters.chunkers.recursive import RecursiveChunker
from rag_splitters.chunkers.semantic import SemanticChunker
from rag_splitters.chunkers.sentence import SentenceChunker
from rag_splitters.chunkers.sentence_window import SentenceWindowChunker
from rag_splitters.chunkers.separator import SeparatorChunker
from rag_splitters.chunkers.sliding_window import SlidingWindowChunker
from rag_splitters.chunkers.table import TableChunker
from rag_splitters.chunkers.titled import TitledChunker
from rag_splitters.chunkers.token import TokenChunker
from rag_splitters.chunkers.topic import TopicChunker
from rag_splitters.contract.chunker import Chunker
from rag_splitters.contract.registry import register

__all__ = [
    "CATALOGUE",
    "AgenticChunker",
    "AutoChunker",
    "ClusterChunker",
    "CodeChunker",
    "ContentAwareChunker",
    "ContextualChunker",
    "EmbeddingChunker",
    "EntityChunker",
    "FixedSizeChunker",
    "HierarchicalChunker",
    "HybridChunker",
    "JsonChunker",
    "KeywordChunker",
    "ModalityChunker",
    "PageChunker",
    "ParagraphChunker",
    "PropositionChunker",
    "RecursiveChunker",
    "SemanticChunker",
    "SentenceChunker",
    "SentenceWindowChunker",
    "SeparatorChunker",
    "SlidingWindowChunker",
    "TableChunker",
    "TitledChunker",
    "TokenChunker",
    "TopicChunker",
]

CATALOGUE: dict[str, type[Chunker]] = {
    kind.strategy: kind
    for kind in (
        AutoChunker,
        SeparatorChunker,
        FixedSizeChunker,
        SlidingWindowChunker,
        TokenChunker,
        RecursiveChunker,
        SentenceChunker,
        SentenceWindowChunker,
        ParagraphChunker,
        KeywordChunker,
        PageChunker,
        ContentAwareChunker,
        HierarchicalChunker,
        TableChunker,
        ModalityChunker,
        CodeChunker,
        JsonChunker,
        HybridChunker,
        TitledChunker,
        SemanticChunker,
        EmbeddingChunker,
        ClusterChunker,
        TopicChunker,
        EntityChunker,
        AgenticChunker,
        PropositionChunker,
        ContextualChunker,
    )
}
"""All strategies by name, in the order in which the documentation lists them."""

for _name, _kind in CATALOGUE.items():
    register(_name, _kind)
