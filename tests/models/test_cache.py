"""The cache of answers and embeddings: a second run asks nothing, and an edit asks for itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from langchain_openai import ChatOpenAI

from rag_splitters import (
    AgenticChunker,
    ClusterChunker,
    ContextualChunker,
    EmbeddingChunker,
    PropositionChunker,
    SemanticChunker,
)
from rag_splitters.models import HashingEmbeddings
from rag_splitters.models.describing import cache_name
from tests.support.caches import CACHES
from tests.support.splitting import asplit_texts, split_texts

ASKED: list[str] = []


def chat(prompt: str) -> str:
    ASKED.append(prompt)
    return "1: It says something." if "proposition" in prompt else "1, 2"


def embed(texts: list[str]) -> list[list[float]]:
    ASKED.extend(texts)
    return HashingEmbeddings(dimensions=32).embed_documents(texts)


def sentences(number: int, count: int = 6) -> str:
    return " ".join(
        f"This is sentence {n} of the document {number}, no less." for n in range(count)
    )


TEXTS = [sentences(number) for number in range(4)]
STRATEGIES: dict[str, Callable[[Any], Any]] = {
    "agentic": lambda cache: AgenticChunker(llm=chat, cache=cache),
    "proposition": lambda cache: PropositionChunker(llm=chat, cache=cache),
    "semantic": lambda cache: SemanticChunker(embeddings=embed, cache=cache, buffer_size=0),
    "embedding": lambda cache: EmbeddingChunker(embeddings=embed, cache=cache),
    "cluster": lambda cache: ClusterChunker(embeddings=embed, cache=cache),
    "contextual": lambda cache: ContextualChunker(llm=chat, cache=cache),
}


@pytest.mark.parametrize(("strategy", "store"), list(zip(STRATEGIES, cycle(CACHES))))
def test_second_run_asks_nothing_and_an_edit_for_itself(
    strategy: str, store: str, tmp_path: Path
) -> None:
    cache = CACHES[store](tmp_path)
    ASKED.clear()
    spans = split_texts(STRATEGIES[strategy](cache), TEXTS)
    assert ASKED
    assert split_texts(STRATEGIES[strategy](None), TEXTS) == spans
    ASKED.clear()
    assert split_texts(STRATEGIES[strategy](cache), TEXTS) == spans
    assert asyncio.run(asplit_texts(STRATEGIES[strategy](cache), TEXTS)) == spans
    assert ASKED == []
    split_texts(STRATEGIES[strategy](cache), [TEXTS[0].replace("sentence 3", "words"), *TEXTS[1:]])
    assert len(ASKED) == 1


def test_key_depends_on_model_and_parameters_and_on_no_secret() -> None:
    def name(**options: Any) -> str:
        return cache_name(ChatOpenAI(**{"model": "m", "api_key": "sk-one", **options}))

    assert name() == name(api_key="sk-two", max_retries=5, base_url="http://127.0.0.1:1")
    names = {
        name(),
        name(model="other"),
        name(temperature=0.5),
        name(reasoning_effort="low"),
        name(extra_body={"top_k": 3}),
        cache_name(ChatOpenAI(model="m", api_key="sk-one").bind(stop=["x"])),
    }
    assert len(names) == 6


def test_cache_needs_a_model_with_a_name(tmp_path: Path) -> None:
    for make in (
        lambda: AgenticChunker(llm=lambda prompt: "1", cache=tmp_path),
        lambda: SemanticChunker(embeddings=lambda texts: [], cache=tmp_path),
    ):
        with pytest.raises(ValueError, match="no other process could find it by name"):
            make()
