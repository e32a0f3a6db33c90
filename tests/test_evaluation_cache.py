"""Embeddings are asked for once, over strategies, models and interruptions."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_splitters import EmbeddingChunker, SemanticChunker
from rag_splitters.evaluation import CachedEmbeddings, EmbeddingCache
from rag_splitters.models import HashingEmbeddings, ModelError


class Counting:
    """An embedding model that remembers what it was asked."""

    def __init__(self, name: str = "counting", fails_after: int = 10**9) -> None:
        self.model_name, self.fails_after = name, fails_after
        self.texts: list[str] = []
        self.questions: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        if len(self.texts) + len(texts) > self.fails_after:
            raise KeyboardInterrupt
        self.texts += texts
        return [[float(len(text)), 1.0] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        self.questions.append(text)
        return [1.0, float(len(text))]


TEXTS = [f"text {number}" for number in range(10)]


def test_embed_asks_for_each_distinct_text_once() -> None:
    cache, model = EmbeddingCache(), Counting()
    first = cache.embed(model, ["a", "bb", "a"])
    again = cache.embed(model, ["bb", "ccc", "a"])
    assert model.texts == ["a", "bb", "ccc"]
    assert first.tolist() == [[1, 1], [2, 1], [1, 1]]
    assert again.tolist() == [[2, 1], [3, 1], [1, 1]]
    assert cache.embed(model, []).shape == (0, 0)


def test_embed_keeps_models_and_questions_apart() -> None:
    cache, model, other = EmbeddingCache(), Counting(), Counting("other")
    cache.embed(model, ["a"])
    cache.embed(other, ["a"])
    rows = cache.embed_questions(model, ["a", "a"])
    assert model.texts == other.texts == model.questions == ["a"]
    assert rows.tolist() == [[1, 1], [1, 1]]


def test_embed_questions_uses_a_function_as_it_is() -> None:
    cache = EmbeddingCache()
    asked: list[str] = []

    def model(texts: list[str]) -> list[list[float]]:
        asked.extend(texts)
        return [[1.0]] * len(texts)

    cache.embed_questions(model, ["one", "two"])
    cache.embed(model, ["two"])
    assert asked == ["one", "two"]


def test_embed_in_memory_tells_functions_of_one_name_apart() -> None:
    cache = EmbeddingCache()
    values = [float(value) for value in range(1, 20)]
    assert values == [
        cache.embed(lambda texts, value=value: [[value]] * len(texts), ["a"]).item()
        for value in values
    ]


def test_embed_in_a_folder_goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    interrupted = Counting(fails_after=6)
    with pytest.raises(KeyboardInterrupt):
        EmbeddingCache(tmp_path, batch=3).embed(interrupted, TEXTS)
    assert interrupted.texts == TEXTS[:6]
    resumed = Counting()
    rows = EmbeddingCache(tmp_path, batch=3).embed(resumed, TEXTS)
    assert resumed.texts == TEXTS[6:]
    assert np.array_equal(rows, EmbeddingCache().embed(Counting(), TEXTS))


def test_embed_writes_each_batch_before_the_next(tmp_path: Path) -> None:
    cache = EmbeddingCache(tmp_path, batch=4)
    counts: list[int] = []

    def track(batches: Any) -> Any:
        for batch in batches:
            with closing(sqlite3.connect(tmp_path / "embeddings.sqlite")) as reader:
                counts.extend(reader.execute("SELECT COUNT(*) FROM vectors").fetchone())
            yield batch

    cache.embed(Counting(), TEXTS, track)
    assert counts == [0, 4, 8]


def test_embed_in_a_folder_refuses_a_model_that_cannot_be_known_again(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be recognised in another run: use a function at"):
        EmbeddingCache(tmp_path).embed(lambda texts: [[1.0]] * len(texts), ["a"])


def test_embed_keeps_lone_surrogates_apart_and_sends_none() -> None:
    model = Counting()
    rows = EmbeddingCache().embed(model, ["a\ud800", "a\ud801"])
    assert rows.shape == (2, 2)
    assert not any("\ud800" in text or "\ud801" in text for text in model.texts)


def test_embed_questions_names_the_model_that_fails() -> None:
    class Broken(Counting):
        def embed_query(self, text: str) -> list[float]:
            raise RuntimeError("out of order")

    with pytest.raises(ModelError, match=r"counting \(Broken\) failed on a question.*out of order"):
        EmbeddingCache().embed_questions(Broken(), ["a"])


def test_embed_questions_refuses_what_is_no_vector() -> None:
    class Empty(Counting):
        def embed_query(self, text: str) -> list[float]:
            return [float("nan"), 1.0]

    with pytest.raises(ModelError, match="a number that is not finite for the question 'Why'"):
        EmbeddingCache().embed_questions(Empty(), ["Why"])


def test_embed_takes_the_embedded_model() -> None:
    rows = EmbeddingCache().embed(HashingEmbeddings(dimensions=64), ["one", "two"])
    assert rows.shape == (2, 64)
    assert rows.dtype == np.float32


def test_cache_refuses_a_batch_of_nothing() -> None:
    with pytest.raises(ValueError, match="batch must be a whole number of at least 1, got 0"):
        EmbeddingCache(batch=0)


def test_cached_embeddings_embed_the_sentences_of_two_strategies_once() -> None:
    text = " ".join(f"Sentence number {number} is here." for number in range(30))
    counts = []
    for cache in (None, EmbeddingCache()):
        model = HashingEmbeddings()
        seen: list[str] = []

        def asked(texts: list[str], seen: list[str] = seen) -> Any:
            seen.extend(texts)
            return model.embed_documents(texts)  # noqa: B023  (called in this turn)

        embeddings = asked if cache is None else CachedEmbeddings(cache, asked)
        spans = [
            kind(embeddings=embeddings, chunk_size=200).spans(text)
            for kind in (EmbeddingChunker, SemanticChunker, EmbeddingChunker)
        ]
        counts.append((len(seen), len(set(seen)), spans))
    plain, cached = counts
    assert plain[0] > plain[1] == cached[0] == cached[1]
    assert plain[2] == cached[2]


def test_cached_embeddings_are_known_by_the_models_name() -> None:
    model = Counting()
    cached = CachedEmbeddings(EmbeddingCache(), model)
    assert cached.description == "counting"
    assert cached.embed_query("a") == cached.embed_query("a") == [1.0, 1.0]
    assert model.questions == ["a"]


def test_cache_serves_other_threads() -> None:
    cache, model = EmbeddingCache(), Counting()
    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(lambda text: cache.embed(model, [text]).tolist(), TEXTS * 3))
    assert rows == [[[float(len(text)), 1.0]] for text in TEXTS * 3]
