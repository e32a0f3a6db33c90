"""Embeddings are asked for once, over strategies, models and interruptions."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_splitters import SemanticChunker
from rag_splitters.evaluation import CachedEmbeddings
from rag_splitters.models import Embedder
from tests.support.caches import CACHES
from tests.support.embedding_doubles import CountingEmbeddings


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


def test_each_distinct_text_is_embedded_once() -> None:
    model = Counting()
    cached = CachedEmbeddings(model)
    first = cached.embed(["a", "bb", "a"])
    again = cached.embed(["bb", "ccc", "a"])
    assert model.texts == ["a", "bb", "ccc"]
    assert first.tolist() == [[1, 1], [2, 1], [1, 1]]
    assert again.tolist() == [[2, 1], [3, 1], [1, 1]]
    assert cached.embed([]).shape == (0, 0)


@pytest.mark.parametrize("make", [str, *CACHES.values()])
def test_the_next_run_embeds_nothing(make: Any, tmp_path: Path) -> None:
    cache = make(tmp_path)
    runs = []
    for _ in range(2):
        model = Counting()
        cached = CachedEmbeddings(model, cache)
        rows = [cached.embed(TEXTS), cached.embed_questions(TEXTS[:2])]
        runs.append((len(model.texts), len(model.questions), [each.tolist() for each in rows]))
    assert [run[:2] for run in runs] == [(10, 2), (0, 0)]
    assert runs[0][2] == runs[1][2]


def test_models_and_questions_are_kept_apart(tmp_path: Path) -> None:
    model, other = Counting(), Counting("other")
    CachedEmbeddings(other, tmp_path).embed(["a"])
    cached = CachedEmbeddings(model, tmp_path)
    cached.embed(["a"])
    rows = cached.embed_questions(["a", "a"])
    assert model.texts == other.texts == model.questions == ["a"]
    assert rows.tolist() == [[1, 1], [1, 1]]


def test_a_strategy_shares_its_folder_with_the_evaluation(tmp_path: Path) -> None:
    text = " ".join(f"Sentence number {number} is here." for number in range(30))
    model = Counting()
    SemanticChunker(embeddings=model, cache=tmp_path, buffer_size=0).chunk(text)
    asked = len(model.texts)
    assert asked
    CachedEmbeddings(model, tmp_path).embed(model.texts[:])
    assert len(model.texts) == asked


def test_a_function_embeds_questions_as_texts() -> None:
    model = CountingEmbeddings()
    cached = CachedEmbeddings(model)
    cached.embed_questions(["one", "two"])
    cached.embed(["two"])
    assert model.texts == ["one", "two"]


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    def cached(model: Counting) -> CachedEmbeddings:
        return CachedEmbeddings(Embedder(model, max_texts=3), tmp_path)

    interrupted = Counting(fails_after=6)
    with pytest.raises(KeyboardInterrupt):
        cached(interrupted).embed(TEXTS)
    assert interrupted.texts == TEXTS[:6]
    resumed = Counting()
    rows = cached(resumed).embed(TEXTS)
    assert resumed.texts == TEXTS[6:]
    assert np.array_equal(rows, CachedEmbeddings(Counting()).embed(TEXTS))


def test_a_model_that_cannot_be_known_again_is_refused_with_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="lambda> cannot be written to a configuration"):
        CachedEmbeddings(lambda texts: [[1.0]] * len(texts), tmp_path)


def test_what_is_no_cache_is_refused() -> None:
    with pytest.raises(TypeError, match=r"cache must be a LangChain BaseStore.*got a int"):
        CachedEmbeddings(Counting(), 3)


def test_cached_embeddings_are_known_by_the_models_name() -> None:
    model = Counting()
    cached = CachedEmbeddings(model)
    assert cached.description == "counting"
    assert cached.embed_query("a") == cached.embed_query("a") == [1.0, 1.0]
    assert model.questions == ["a"]


def test_cache_serves_other_threads() -> None:
    cached = CachedEmbeddings(Counting())
    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(lambda text: cached.embed([text]).tolist(), TEXTS * 3))
    assert rows == [[[float(len(text)), 1.0]] for text in TEXTS * 3]
