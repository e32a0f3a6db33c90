"""The chunkers that the contract suite runs over: every strategy of the catalogue, several ways."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from rag_splitters import (
    AgenticChunker,
    AutoChunker,
    Chunker,
    ClusterChunker,
    CodeChunker,
    ContentAwareChunker,
    ContextualChunker,
    EmbeddingChunker,
    EntityChunker,
    FixedSizeChunker,
    HierarchicalChunker,
    HybridChunker,
    JsonChunker,
    KeywordChunker,
    ModalityChunker,
    PageChunker,
    ParagraphChunker,
    PropositionChunker,
    RecursiveChunker,
    SemanticChunker,
    SentenceChunker,
    SentenceWindowChunker,
    SeparatorChunker,
    SlidingWindowChunker,
    TableChunker,
    TitledChunker,
    TokenChunker,
    TopicChunker,
    register,
)
from rag_splitters.models import HashingEmbeddings


def letters(text: str) -> int:
    """A length function of a user's own: characters that are no white space."""
    return sum(not character.isspace() for character in text)


def halves(text: str) -> list[tuple[int, int]]:
    """A sentence segmenter of a user's own."""
    middle = len(text) // 2
    return [(0, middle), (middle, len(text))]


def words_in_capitals(text: str) -> list[tuple[int, int, str]]:
    """An entity recogniser of a user's own."""
    return [(m.start(), m.end(), "NAME") for m in re.finditer(r"[A-Z][a-z]+(?: [A-Z]\w+)*", text)]


def people_and_places(text: str) -> list[tuple[int, int, str]]:
    """An entity recogniser that knows the persons and places of the golden files."""
    people = r"(?:Ada |Charles |Grace )?(?:Lovelace|Babbage|Hopper)"
    found = re.finditer(rf"(?P<PERSON>{people})|(?P<PLACE>London)", text)
    return [(*match.span(), str(match.lastgroup)) for match in found]


def every_third(prompt: str) -> str:
    """A chat model that begins a chunk at every third sentence."""
    return ", ".join(re.findall(r"^\[(\d+)\]", prompt, re.MULTILINE)[::3]) or "1"


def no_propositions(prompt: str) -> str:
    """A chat model that finds nothing to say."""
    return "none"


def about_tea(prompt: str) -> str:
    """A chat model that takes everything to be about the same."""
    return "About tea."


def says(answer: str | dict[str, str]) -> Callable[[str], str]:
    """A chat model that gives this answer, or the one whose key stands in what it is shown."""
    answers = {"": answer} if isinstance(answer, str) else answer

    def model(prompt: str) -> str:
        shown = re.findall(r"<(?:sentences|chunk)>\n(.*?)\n</", prompt, re.DOTALL)[-1]
        return next(answer for key, answer in answers.items() if key in shown)

    return model


for _function in (
    letters,
    halves,
    words_in_capitals,
    people_and_places,
    every_third,
    no_propositions,
    about_tea,
):
    register(_function.__name__, _function)

HASHES = HashingEmbeddings(dimensions=64)

CHARACTERS = ({"chunk_size": 20, "chunk_overlap": 0}, {"chunk_size": 17, "chunk_overlap": 6})
SIZES = (
    *CHARACTERS,
    {"chunk_size": 1},
    {"chunk_size": 60, "chunk_overlap": 0.5},
    {"chunk_size": 4, "chunk_overlap": 1, "length_function": "words"},
    {"chunk_size": 8, "chunk_overlap": 3, "length_function": "tokens"},
    {"chunk_size": 12, "chunk_overlap": 5, "length_function": letters},
)

VISIBLE: dict[str, Any] = {"chunk_size": 20, "separators": ["word", ". ", "e", ""]}
UNSTRIPPED: dict[str, Any] = {"chunk_size": 17, "chunk_overlap": 6, "strip_whitespace": False}
LINES: dict[str, Any] = {"chunk_size": 9, "separators": ["\n", " "], "strip_whitespace": False}
KEEPING: tuple[dict[str, Any], ...] = (
    *({**VISIBLE, "keep_separator": side} for side in ("auto", True, "end")),
    *({**UNSTRIPPED, "keep_separator": side} for side in ("auto", "end", False)),
    *({**LINES, "keep_separator": side} for side in ("start", "end", "none")),
    {"chunk_size": 30, "min_chunk_size": 10, "strip_whitespace": False},
)

CASES: dict[str, list[Chunker]] = {
    "auto": [
        AutoChunker(),
        *(AutoChunker(**size) for size in SIZES),
        AutoChunker(chunk_size=30, chunk_overlap=8, embeddings=HASHES),
        AutoChunker(chunk_size=25, rules={"text": "paragraph", "markdown": PageChunker()}),
    ],
    "separator": [
        SeparatorChunker(),
        SeparatorChunker(separators=["\n", " "], keep_separator="start"),
        SeparatorChunker(separators=[r"\s+"], is_regex=True, keep_separator="end"),
        *(SeparatorChunker(**size) for size in SIZES),
        SeparatorChunker(separators=["word", ""], keep_separator="start", chunk_size=9),
        SeparatorChunker(
            separators=["\n\n"], strip_whitespace=True, chunk_size=20, chunk_overlap=6
        ),
    ],
    "fixed_size": [FixedSizeChunker(), *(FixedSizeChunker(**size) for size in SIZES)],
    "sliding_window": [SlidingWindowChunker(), *(SlidingWindowChunker(**size) for size in SIZES)],
    "token": [
        TokenChunker(),
        TokenChunker(chunk_size=6),
        TokenChunker(chunk_size=9, chunk_overlap=4),
        TokenChunker(chunk_size=9, chunk_overlap=4, strip_whitespace=True),
    ],
    "recursive": [
        RecursiveChunker(),
        *(RecursiveChunker(**size) for size in SIZES),
        RecursiveChunker(chunk_size=20, separators=["\n\n", "\n", ". ", " ", ""]),
        RecursiveChunker(chunk_size=20, chunk_overlap=5, separators=[r"\n+", r"\s"], is_regex=True),
        RecursiveChunker(chunk_size=20, language="markdown"),
        RecursiveChunker(chunk_size=30, min_chunk_size=10),
        RecursiveChunker(chunk_size=30, min_chunk_size=10, chunk_overlap=7),
        *(RecursiveChunker(**keeping) for keeping in KEEPING),
        RecursiveChunker(chunk_size=20, language="markdown", strip_whitespace=False),
    ],
    "sentence": [
        SentenceChunker(),
        *(SentenceChunker(**size) for size in SIZES),
        SentenceChunker(chunk_size=40, overlap_sentences=1),
        SentenceChunker(chunk_size=30, segmenter=halves),
        SentenceChunker(
            chunk_size=30, paragraph_separator="\n", secondary_chunking_regex="[^,.]+[,.]?"
        ),
    ],
    "sentence_window": [
        SentenceWindowChunker(),
        *(SentenceWindowChunker(**size) for size in SIZES),
        SentenceWindowChunker(window_size=0, segmenter=halves),
    ],
    "paragraph": [
        ParagraphChunker(),
        *(ParagraphChunker(**size) for size in SIZES),
        ParagraphChunker(chunk_size=30, group=False),
        ParagraphChunker(chunk_size=30, group=False, min_chunk_size=12),
    ],
    "keyword": [KeywordChunker(keywords=["word", "The"], **size) for size in SIZES]
    + [KeywordChunker(patterns=["^#", "s"], whole_line=True, ignore_case=True)],
    "page": [
        PageChunker(),
        *(PageChunker(**size) for size in SIZES),
        PageChunker(page_break=r"\n\n", pages_per_chunk=2),
    ],
    "content_aware": [
        ContentAwareChunker(),
        *(ContentAwareChunker(format="markdown", **size) for size in SIZES),
        ContentAwareChunker(chunk_size=20, format="text"),
        ContentAwareChunker(chunk_size=40, min_chunk_size=15),
    ],
    "hierarchical": [
        HierarchicalChunker(),
        *(HierarchicalChunker(format="markdown", **size) for size in SIZES),
        HierarchicalChunker(chunk_sizes=[60, 20], format="text"),
        HierarchicalChunker(emit="all", chunk_size=30, format="markdown"),
        HierarchicalChunker(emit="all", chunk_sizes=[80, 30, 10], format="text"),
    ],
    "table": [
        TableChunker(),
        *(TableChunker(**size) for size in SIZES),
        TableChunker(chunk_size=40, render="json", format="markdown"),
        TableChunker(chunk_size=40, render="markdown", format="html"),
        TableChunker(chunk_size=60, rows_per_chunk=2, format="csv"),
    ],
    "modality": [
        ModalityChunker(),
        ModalityChunker(text=SentenceChunker(chunk_size=20, chunk_overlap=5), format="markdown"),
        ModalityChunker(format="html"),
    ],
    "code": [
        CodeChunker(),
        *(CodeChunker(language="python", **size) for size in SIZES),
        CodeChunker(chunk_size=30, language="kotlin"),
    ],
    "json": [
        JsonChunker(),
        *(JsonChunker(**size) for size in SIZES),
        JsonChunker(chunk_size=30, min_chunk_size=10, with_path=True),
        JsonChunker(chunk_size=12, length_function="tokens", with_path=True),
    ],
    "semantic": [
        SemanticChunker(embeddings=HASHES),
        SemanticChunker(embeddings=HASHES, chunk_size=30, chunk_overlap=8, min_chunk_size=5),
        SemanticChunker(embeddings=HASHES, chunk_size=12, length_function="tokens"),
        SemanticChunker(
            embeddings=HASHES, buffer_size=0, breakpoint_threshold_type="gradient", chunk_size=80
        ),
        SemanticChunker(
            embeddings=HASHES, number_of_chunks=3, chunk_size=80, segmenter=halves, min_chunk_size=0
        ),
    ],
    "embedding": [
        EmbeddingChunker(embeddings=HASHES),
        EmbeddingChunker(embeddings=HASHES, chunk_size=30, chunk_overlap=8),
        EmbeddingChunker(
            embeddings=HASHES, chunk_size=120, min_chunk_size=60, similarity_threshold=0.1
        ),
    ],
    "cluster": [
        ClusterChunker(embeddings=HASHES),
        ClusterChunker(embeddings=HASHES, chunk_size=40, chunk_overlap=8, piece_size=10),
        ClusterChunker(embeddings=HASHES, chunk_size=6, chunk_overlap=2, length_function="words"),
    ],
    "topic": [
        TopicChunker(),
        TopicChunker(chunk_size=30),
        TopicChunker(chunk_size=40, chunk_overlap=8, n_topics=2, min_chunk_size=10),
        TopicChunker(chunk_size=12, length_function="tokens", model="lda", n_topics=2),
    ],
    "entity": [
        EntityChunker(ner=words_in_capitals),
        EntityChunker(ner=words_in_capitals, chunk_size=30),
        EntityChunker(ner=words_in_capitals, chunk_size=24, chunk_overlap=8),
        EntityChunker(ner=words_in_capitals, chunk_size=30, min_chunk_size=10, max_gap=1),
        EntityChunker(
            ner=words_in_capitals, chunk_size=6, length_function="tokens", chunk_overlap=0.3
        ),
    ],
    "agentic": [
        AgenticChunker(llm=every_third),
        AgenticChunker(llm=every_third, chunk_size=30, chunk_overlap=8, window=5),
        AgenticChunker(llm=every_third, chunk_size=4, length_function="words", window=4),
        AgenticChunker(llm=every_third, chunk_size=1, window=4),
    ],
    "proposition": [PropositionChunker(llm=no_propositions, chunk_size=20)],
    "contextual": [
        ContextualChunker(llm=about_tea),
        ContextualChunker(
            llm=about_tea, chunker=SentenceChunker(chunk_size=20), count_context=False
        ),
        ContextualChunker(llm=about_tea, chunker=RecursiveChunker(chunk_size=25, chunk_overlap=4)),
        ContextualChunker(llm=about_tea, chunk_size=12, length_function="tokens"),
    ],
    "hybrid": [
        HybridChunker(),
        HybridChunker(stages=[PageChunker(), RecursiveChunker(chunk_size=20, chunk_overlap=5)]),
        HybridChunker(stages=[SeparatorChunker(), TitledChunker(title="T")]),
    ],
    "titled": [
        TitledChunker(),
        TitledChunker(title="A title", chunker=RecursiveChunker(chunk_size=25, chunk_overlap=4)),
        TitledChunker(title="A title", chunker=SeparatorChunker(chunk_size=25, chunk_overlap=4)),
        TitledChunker(
            title="A long title of many words",
            include_headings=True,
            chunker=SentenceChunker(chunk_size=12, length_function="tokens"),
        ),
    ],
}
"""By the names of the catalogue."""

ALL = [
    (f"{name}-{number}", chunker)
    for name, chunkers in CASES.items()
    for number, chunker in enumerate(chunkers)
]
