"""What looks for subjects finds their boundaries, better than windows and the frameworks do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rag_splitters import (
    ClusterChunker,
    EmbeddingChunker,
    RecursiveChunker,
    SemanticChunker,
    TopicChunker,
)
from rag_splitters.evaluation import CachedEmbeddings
from rag_splitters.models import HashingEmbeddings
from tests.support.boundaries import CASES, Case, Cut, cuts_of, errors, windows
from tests.support.minilm import minilm

OURS: dict[str, Callable[[Any], Cut]] = {
    "semantic": lambda model: cuts_of(SemanticChunker(embeddings=model)),
    "embedding": lambda model: cuts_of(EmbeddingChunker(embeddings=model)),
    "cluster": lambda model: cuts_of(ClusterChunker(embeddings=model)),
    "topic": lambda model: cuts_of(TopicChunker()),
}
MOST = {"semantic": 0.25, "embedding": 0.22, "cluster": 0.15, "topic": 0.18}
"""The worst error that is borne, with hashed words, which know no synonyms, and with MiniLM."""

pytest.importorskip("sklearn")
pytestmark = [
    pytest.mark.parametrize("name", OURS),
    pytest.mark.parametrize("case", CASES.values(), ids=CASES),
]


@pytest.fixture(scope="module", params=["hashing", pytest.param("minilm", marks=pytest.mark.model)])
def model(request: pytest.FixtureRequest) -> Any:
    return CachedEmbeddings(HashingEmbeddings() if request.param == "hashing" else minilm())


def test_boundaries_are_found_better_than_by_windows(name: str, case: Case, model: Any) -> None:
    """By Pk and by WindowDiff."""
    ours = errors(OURS[name](model), case)
    for size in (500, 1000):
        assert (ours < 0.65 * errors(windows(size), case)).all()
    assert (ours < errors(cuts_of(RecursiveChunker()), case)).all()
    assert ours.max() <= MOST[name]
