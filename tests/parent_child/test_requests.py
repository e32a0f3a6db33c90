"""Embedding requests of one addition to a model behind an API go side by side, bounded."""

from __future__ import annotations

import threading
import time

import pytest
from langchain_core.embeddings import Embeddings

from rag_splitters.models import Embedder, HashingEmbeddings
from tests.support.front_ends import FrontEnd, Page, every_front_end, sentence

PAGES: list[Page] = [
    (f"p{n}", " ".join(sentence(n * 50 + m) for m in range(50)), {}) for n in range(60)
]


class Meeting(Embeddings):
    """A model behind an API whose requests wait until several are under way, and are counted."""

    chunk_size = 500
    max_retries = 2

    def __init__(self, together: int) -> None:
        self._model = HashingEmbeddings(dimensions=16)
        self._barrier = threading.Barrier(together)
        self._lock = threading.Lock()
        self.under_way = self.most = self.requests = 0

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        assert len(texts) <= self.chunk_size
        with self._lock:
            self.requests += 1
            self.under_way += 1
            self.most = max(self.most, self.under_way)
        if self.requests <= self._barrier.parties:
            self._barrier.wait(timeout=60)
        with self._lock:
            self.under_way -= 1
        return self._model.embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        return self._model.embed_query(text)


@pytest.mark.slow
@every_front_end
def test_requests_go_side_by_side_and_bounded(front: FrontEnd) -> None:
    model = Meeting(together=4)
    retriever = front.build(PAGES, embeddings=model)
    assert model.most == 4
    assert model.requests == -(-front.collection(retriever).count() // 500) >= 6


@every_front_end
def test_a_function_gets_one_call_at_a_time(front: FrontEnd) -> None:
    """It need not be thread-safe."""
    under_way: list[int] = []
    calls: list[int] = []

    def embed(texts: list[str]) -> list[list[float]]:
        under_way.append(len(texts))
        calls.append(len(under_way))
        time.sleep(0.05)  # another thread would begin
        under_way.pop()
        return HashingEmbeddings(dimensions=16).embed_documents(texts)

    front.build(PAGES[:12], embeddings=Embedder(embed, max_texts=100))
    assert len(calls) > 4
    assert set(calls) == {1}
