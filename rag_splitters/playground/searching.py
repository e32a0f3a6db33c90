"""Which chunks a question would retrieve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rag_splitters.errors import InputError
from rag_splitters.evaluation.measure.chunks import LocatedChunk
from rag_splitters.evaluation.measure.ranking import ChunkIndex
from rag_splitters.parameters.checks import whole_number
from rag_splitters.playground.model_set import ModelSet


def rank_chunks(
    text: str, chunks: Sequence[Any], question: str, k: int, models: ModelSet
) -> list[dict[str, Any]]:
    """The chunks most similar to the question, by exact cosine similarity.

    The page sends the chunks that it shows, so that no chat model has to make them again.

    Parameters:
        chunks: each as [start, end] in code points, or as a string if its text was rewritten.
        models: the models; their embeddings are compared.

    Returns: the number (`chunk`) and the `score` of each chunk, the best first.

    Raises: ValueError if a chunk lies outside of the text, or if the question is blank; ModelError
    if the model fails.

    >>> ranked = rank_chunks("The cat. The lamp.", [[0, 8], [9, 18]], "a lamp", 1, ModelSet.load())
    >>> ranked[0]["chunk"]
    1
    """
    if not question.strip():
        raise InputError("the question is empty")
    whole_number(k, "k", 1)
    chunk_texts = [_chunk_text(text, chunk) for chunk in chunks]
    numbers = [number for number, each in enumerate(chunk_texts) if each.strip()]
    if not numbers:
        return []
    texts = [chunk_texts[number] for number in numbers]
    vectors = models.embed(texts, question)
    located = [LocatedChunk(each, "", None) for each in texts]
    index = ChunkIndex(located, np.zeros(len(texts), dtype=np.int64), vectors[:-1])
    best = next(index.rankings(vectors[-1:]))[:k].tolist()
    lengths = np.linalg.norm(vectors, axis=1)
    return [
        {
            "chunk": numbers[row],
            "score": round(float(vectors[row] @ vectors[-1] / (lengths[row] * lengths[-1])), 4),
        }
        for row in best
    ]


def _chunk_text(text: str, chunk: Any) -> str:
    if isinstance(chunk, str):
        return chunk
    if isinstance(chunk, list) and len(chunk) == 2 and all(type(each) is int for each in chunk):
        start, end = chunk
        if 0 <= start <= end <= len(text):
            return text[start:end]
    raise InputError(f"a chunk is [start, end] inside the text, or a string; got {chunk!r}")
