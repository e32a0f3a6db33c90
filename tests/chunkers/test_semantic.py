"""SemanticChunker, EmbeddingChunker and ClusterChunker: guarantees, counts and cuts."""

from __future__ import annotations

import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from rag_splitters.chunkers.cluster import ClusterChunker
from rag_splitters.chunkers.embedded import EmbeddingStrategy
from rag_splitters.chunkers.embedding import EmbeddingChunker
from rag_splitters.chunkers.semantic import SemanticChunker
from rag_splitters.meaning.similarity import best_runs, breakpoints, neighbour_distances
from rag_splitters.meaning.units import sentence_units
from rag_splitters.models import Embedder, HashingEmbeddings, ModelError
from rag_splitters.text.sentences import sentence_cuts, sentence_spans
from rag_splitters.text.sizing import Sizes
from rag_splitters.text.structure import Structure
from rag_splitters.text.unbreakable import marked_structure
from tests.support.boundaries import CASES as BOUNDARIES
from tests.support.boundaries import subjects
from tests.support.embedding_doubles import MODEL, LangChainEmbedder, LlamaIndexEmbedder, embed
from tests.support.splitting import split_texts

KINDS: tuple[type[EmbeddingStrategy], ...] = (SemanticChunker, EmbeddingChunker, ClusterChunker)
every_kind = pytest.mark.parametrize("kind", KINDS)


GLUED = BOUNDARIES["returning"]
TEXT = GLUED[0][0]


@every_kind
@pytest.mark.parametrize(
    "text",
    [
        "x" * 100_000,
        "\n" * 100_000,
        "The same sentence again. " * 3_000,
        "a. " * 20_000,
        "é " * 33_333,
    ],
    ids=["no_space", "newlines", "repeated", "short", "unpunctuated"],
)
def test_chunker_survives_large_degenerate_texts(kind: Any, text: str) -> None:
    spans = kind(embeddings=MODEL, chunk_size=500).spans(text)
    assert all(span.end - span.start <= 500 for span in spans)
    covered = sum(len(text[span.start : span.end].replace(" ", "")) for span in spans)
    assert covered == len("".join(text.split()))


# Counts: requests, texts, characters


@every_kind
def test_chunker_asks_once_for_all_documents(kind: Any) -> None:
    model = LangChainEmbedder()
    texts = [text for text, _ in GLUED] + ["", "  \n", "One sentence alone.", TEXT]
    results = split_texts(kind(embeddings=model), texts)
    assert len(model.calls) == 1
    assert len(set(model.calls[0])) == len(model.calls[0])
    assert all(text.strip() for text in model.calls[0])
    assert results[0] == results[-1]
    assert [len(spans) for spans in results[3:6]] == [0, 0, 1]


@every_kind
@pytest.mark.parametrize("text", ["", " \n\t ", "One sentence, and no other, stands here."])
def test_chunker_asks_nothing_where_there_is_nothing_to_ask(kind: Any, text: str) -> None:
    model = LangChainEmbedder()
    assert len(kind(embeddings=model).spans(text)) == bool(text.strip())
    assert model.calls == []


@every_kind
def test_segmenter_runs_once_for_each_text(kind: Any) -> None:
    texts: list[str] = []

    def segmenter(text: str) -> list[tuple[int, int]]:
        texts.append(text)
        return sentence_spans(text)

    chunker = kind(embeddings=HashingEmbeddings(), segmenter=segmenter, chunk_overlap=100)
    assert all(len(spans) > 1 for spans in split_texts(chunker, [TEXT, TEXT[:2500]]))
    assert texts == [TEXT, TEXT[:2500]]


# The same cuts, whatever the model came in


@every_kind
def test_chunker_cuts_at_the_same_places_whichever_framework_the_model_is_from(kind: Any) -> None:
    async def awaited(texts: list[str]) -> Any:
        return embed(texts)

    models = (
        LangChainEmbedder(),
        LlamaIndexEmbedder(),
        embed,
        awaited,
        Embedder(embed, max_texts=7),
    )
    options = {"chunk_size": 700, "chunk_overlap": 50}
    results = [
        split_texts(kind(embeddings=model, **options), [TEXT, TEXT[:900]]) for model in models
    ]
    assert len(results[0][0]) > 5
    assert all(result == results[0] for result in results)


# Configuration


@every_kind
def test_chunker_is_written_with_a_stable_name_of_its_model(kind: Any) -> None:
    chunker = kind(embeddings=MODEL, chunk_size=300)
    written = chunker.model_dump()
    assert written["embeddings"] == "HashingEmbeddings(dimensions=32) version 1"
    assert kind(**written) == chunker == pickle.loads(pickle.dumps(chunker))
    assert kind(embeddings=embed).model_dump()["embeddings"].endswith(":embed")
    with pytest.raises(ValueError, match="pass the model again as embeddings="):
        kind(**kind(embeddings=LangChainEmbedder()).model_dump())
    with pytest.raises(ValueError, match="define it with def at the top level"):
        kind(embeddings=lambda texts: embed(texts)).model_dump()


# Faults


@every_kind
def test_chunker_names_the_document_and_the_place_of_a_useless_answer(kind: Any) -> None:
    def model(texts: list[str]) -> Any:
        vectors = embed(texts)
        place = next(i for i, text in enumerate(texts) if text.startswith("The miller"))
        vectors[place] = [0.0] * 32
        return vectors

    before = "A first document is here, with a sentence. And it has another one, too, at the end."
    text = next(text for name, text in subjects() if "miller" in text)
    with pytest.raises(ModelError, match=r"zeros for text \d+ \(document 1, offset 0\)"):
        split_texts(kind(embeddings=model), [before, text])


# Semantic: what the threshold, the number and the sizes do


def distinct(letter: str, count: int) -> str:
    """Sentences that all say the same of their own subject."""
    subject = " ".join(letter * length for length in range(5, 10)).capitalize()
    ends = "red blue green black white brown pink grey yellow orange".split()
    return " ".join(f"{subject} is {end}." for end in ends[:count])


def beginnings(chunker: EmbeddingStrategy, text: str) -> list[int]:
    return [span.start for span in chunker.spans(text)][1:]


@pytest.mark.parametrize("buffer_size", [0, 1, 2])
@pytest.mark.parametrize(
    "threshold",
    [
        {"breakpoint_threshold_type": "percentile", "breakpoint_threshold_amount": 90},
        {"breakpoint_threshold_type": "standard_deviation", "breakpoint_threshold_amount": 2},
        {"breakpoint_threshold_type": "interquartile", "breakpoint_threshold_amount": 0.5},
        {"breakpoint_threshold_type": "absolute", "breakpoint_threshold_amount": 0.7},
        {"number_of_chunks": 3},
    ],
)
def test_semantic_cuts_where_the_subject_changes(
    threshold: dict[str, Any], buffer_size: int
) -> None:
    parts = [distinct("a", 9), distinct("b", 8), distinct("c", 9)]
    chunker = SemanticChunker(embeddings=HashingEmbeddings(), buffer_size=buffer_size, **threshold)
    assert [chunk.text for chunk in chunker.chunk(" ".join(parts))] == parts


@pytest.mark.parametrize("number", [1, 2, 5, 12])
def test_semantic_makes_so_many_chunks(number: int) -> None:
    chunker = SemanticChunker(
        embeddings=HashingEmbeddings(),
        number_of_chunks=number,
        chunk_size=len(TEXT),
        min_chunk_size=0,
    )
    assert len(chunker.spans(TEXT)) == number


@every_kind
@pytest.mark.parametrize(("size", "least"), [(1000, 0.2), (600, 250), (300, 0.5)])
def test_chunker_keeps_both_sizes_of_plain_prose(kind: Any, size: int, least: int | float) -> None:
    chunker = kind(embeddings=HashingEmbeddings(), chunk_size=size, min_chunk_size=least)
    lengths = [len(chunk.text) for chunk in chunker.chunk(TEXT)]
    assert max(lengths) <= size
    assert chunker.min_size == (least if isinstance(least, int) else least * size)
    assert sum(length < chunker.min_size for length in lengths) <= len(lengths) // 10


@every_kind
def test_chunker_cuts_prose_between_sentences_only(kind: Any) -> None:
    cuts = set(sentence_cuts(TEXT))
    assert set(beginnings(kind(embeddings=HashingEmbeddings()), TEXT)) <= cuts


def test_sentence_units_are_sentences_worth_a_vector() -> None:
    first = "Head\n\nYes. This is a sentence of a good length, no doubt. No."
    second = "So is this one, which begins after a word that joins the one before."
    text = f"{first} {second}\n"
    structure = marked_structure(text)
    structure.sentences = sentence_cuts(text)
    units = sentence_units(structure, Sizes(1000))
    assert [text[start:end] for start, end in units] == [first, second]
    long = "word " * 1000
    parts = sentence_units(Structure(long), Sizes(1000))
    assert len(parts) == 3
    assert max(end - start for start, end in parts) <= 2000


def test_embedding_threshold_says_how_alike() -> None:
    text = " ".join([distinct("a", 5), distinct("b", 5)])
    model = HashingEmbeddings()
    loose = EmbeddingChunker(embeddings=model, similarity_threshold=-1)
    tight = EmbeddingChunker(embeddings=model, similarity_threshold=0.5)
    strict = EmbeddingChunker(embeddings=model, similarity_threshold=1.0, min_chunk_size=0)
    assert [len(chunker.spans(text)) for chunker in (loose, tight, strict)] == [1, 2, 10]


def test_least_size_and_similarity_are_enough() -> None:
    def model(texts: list[str]) -> list[list[float]]:
        return [[1.0, 0.0] if text[0] == "A" else [0.0, 1.0] for text in texts]

    a, b = (f"{letter} river runs through the old town and into the sea." for letter in "AB")
    for least, counts in ((len(a), [2, 1, 3]), (len(a) + 1, [2, 2, 2])):
        chunker = ClusterChunker(embeddings=model, chunk_size=200, min_chunk_size=least)
        chunks = chunker.chunk(f"{a} {a} {b} {a} {a} {a}")
        assert [chunk.text.count("river") for chunk in chunks] == counts
    joining = EmbeddingChunker(embeddings=model, similarity_threshold=0, min_chunk_size=0)
    assert len(joining.spans(f"{a} {b}")) == 1


def test_embedding_fragment_joins_the_closer_neighbour() -> None:
    parts = [distinct("a", 6), distinct("b", 6)]
    lone = "Aaaaa aaaaaa aaaaaaa qqqqqq wwwwwww eeeeeee rrrrrr."
    text = f"{parts[0]} {lone} {parts[1]}"
    chunker = EmbeddingChunker(embeddings=HashingEmbeddings(), similarity_threshold=0.6)
    assert [chunk.text for chunk in chunker.chunk(text)] == [f"{parts[0]} {lone}", parts[1]]


# The arithmetic


def exhaustive(vectors: Any, most: int) -> float:
    """The best reward over all segmentations into runs of at most `most`."""
    unit = np.asarray(vectors) / np.linalg.norm(vectors, axis=1, keepdims=True)
    alike = unit @ unit.T
    count = len(unit)
    mean = (alike.sum() - count) / (count * (count - 1))

    def best(start: int) -> float:
        if start == count:
            return 0.0
        return max(
            reward(alike, mean, start, end) + best(end)
            for end in range(start + 1, min(start + most, count) + 1)
        )

    return best(0)


def reward(alike: Any, mean: float, start: int, end: int) -> float:
    rows, columns = np.triu_indices(end - start, 1)
    return float((alike[start:end, start:end][rows, columns] - mean).sum())


@pytest.mark.parametrize(("seed", "most"), list(enumerate([1, 2, 2, 4, 4, 9, 9])))
def test_best_runs_are_as_good_as_any(seed: int, most: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(9, 3))
    begins = [0, *best_runs(vectors, [most] * 9, [1] * 9), 9]
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    alike = unit @ unit.T
    mean = (alike.sum() - 9) / 72
    assert max(end - start for start, end in pairwise(begins)) <= most
    found = sum(reward(alike, mean, start, end) for start, end in pairwise(begins))
    assert found == pytest.approx(exhaustive(vectors, most), abs=1e-4)


def test_neighbour_distances_compare_what_has_nothing_in_common() -> None:
    vectors = np.eye(5)
    vectors[3] = vectors[0]
    assert list(neighbour_distances(vectors)) == [1, 1, 1, 1]
    assert list(neighbour_distances(vectors, 1)) == [1, 0, 1, 1]


@pytest.mark.parametrize(
    ("kind", "amount", "wanted"),
    [
        ("percentile", 50, [3, 4]),
        ("standard_deviation", 1, [4]),
        ("interquartile", 0.5, [4]),
        ("absolute", 0.15, [1, 3, 4]),
        ("gradient", 80, [4]),
    ],
)
def test_breakpoints_lie_above_the_threshold(kind: str, amount: float, wanted: list[int]) -> None:
    distances = np.array([0.1, 0.2, 0.1, 0.3, 0.9])
    assert list(np.flatnonzero(breakpoints(distances, kind, amount))) == wanted
