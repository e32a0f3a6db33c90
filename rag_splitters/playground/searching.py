"""Which chunks a question would retrieve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rag_splitters.playground.models import Models

__all__ = ["ranked"]


def ranked(
    text: str, chunks: Sequence[Any], question: str, k: int, models: Models
) -> list[dict[str, Any]]:
    """The numbers of the chunks that are most like the question, by exact cosine similarity.

    The page sends the chunks that it shows, so that no chat model is asked for them again.

    Parameters:
        text: the text.
        chunks: [start, end] of each, in code points, or the text that is delivered instead.
        question: the question.
        k: how many to find.
        models: whose embeddings are compared.

    Raises: ValueError for chunks outside of the text or a blank question; ModelError for a model
    that fails.

    >>> found = ranked("The cat. The lamp.", [[0, 8], [9, 18]], "a lamp", 1, Models.of(None, None))
    >>> found[0]["chunk"]
    1
    """
    if not question.strip():
        raise ValueError("the question is empty")
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise ValueError(f"k must be a whole number of at least 1, got {k!r}")
    delivered = [_delivered(text, chunk) for chunk in chunks]
    numbers = [number for number, each in enumerate(delivered) if each.strip()]
    if not numbers:
        return []
    from rag_splitters.evaluation.locating import LocatedChunk
    from rag_splitters.evaluation.measuring import ChunkIndex

    texts = [delivered[number] for number in numbers]
    rows = models.embed(texts, question)
    import numpy as np

    located = [LocatedChunk(each, "", None) for each in texts]
    index = ChunkIndex(located, np.zeros(len(texts), dtype=np.int64), rows[:-1])
    best = next(index.rankings(rows[-1:]))[:k].tolist()
    lengths = np.linalg.norm(rows, axis=1)
    return [
        {
            "chunk": numbers[row],
            "score": round(float(rows[row] @ rows[-1] / (lengths[row] * lengths[-1])), 4),
        }
        for row in best
    ]


def _delivered(text: str, chunk: Any) -> str:
    if isinstance(chunk, str):
        return chunk
    if isinstance(chunk, list) and len(chunk) == 2 and all(type(each) is int for each in chunk):
        start, end = chunk
        if 0 <= start <= end <= len(text):
            return text[start:end]
    raise ValueError(f"a chunk is [start, end] within the text, or a string; got {chunk!r}")
