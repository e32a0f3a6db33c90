"""HashingEmbeddings: vectors without a model, for demos, tests and work offline."""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rag_splitters.parameters.checks import whole_number
from rag_splitters.text.terms import text_terms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_BATCH = 1000  # texts that are hashed at once
_GRAM_SHARE = 0.6
_BIGRAM_SHARE = 0.3
_VERSION = 1  # increase it when texts get other vectors: an index must not mix them
HASHING_NAME = re.compile(
    rf"HashingEmbeddings\(dimensions=(?P<dimensions>\d+)\) version {_VERSION}"
)
"""The description of a model of this version, by which a configuration names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HashingEmbeddings:
    """Turns a text into a vector by hashing its words: it matches words, not meaning.

    Use it instead of an embedding model in demos and tests, and wherever there is no network: it
    downloads and loads nothing, and gives the same vectors in every process. Use a real model for
    real retrieval: "car" and "automobile" have nothing in common here.

    A text's vector sums the hashes of its words (without stop words and endings), of pairs of
    neighbouring words, and of the words' character n-grams. In scripts written without spaces,
    pairs of characters are used instead of words. Every vector has length one, even that of a blank
    text.

    Parameters:
        dimensions: number of dimensions of a vector; with fewer, more words collide.

    Raises ValueError if `dimensions` is not a whole number of at least 1.

    The hashing trick: Weinberger et al. (2009), Feature Hashing for Large Scale Multitask Learning.

    >>> model = HashingEmbeddings(dimensions=256)
    >>> query = model.embed_query("Which animals sleep?")
    >>> texts = ["The animal was sleeping.", "Prices rose again."]
    >>> scores = [sum(map(float.__mul__, query, v)) for v in model.embed_documents(texts)]
    >>> scores[0] > scores[1]
    True
    """

    dimensions: int = 1024

    def __post_init__(self) -> None:
        whole_number(self.dimensions, "dimensions", 1)

    @property
    def description(self) -> str:
        """The name that `describe_model` returns for it."""
        return f"{self!r} version {_VERSION}"

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector for each text."""
        vectors: list[list[float]] = self.embed_array(texts).tolist()
        return vectors

    def embed_array(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return an array with a row for each text: a quarter of the memory of lists."""
        import numpy as np

        batches = [self._embed(texts[at : at + _BATCH]) for at in range(0, len(texts), _BATCH)]
        return np.concatenate([np.zeros((0, self.dimensions)), *batches])

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a question, which is computed like that of any text."""
        return self.embed_documents([text])[0]

    async def aembed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """`embed_documents` in a thread."""
        return await asyncio.to_thread(self.embed_documents, texts)

    async def aembed_query(self, text: str) -> list[float]:
        """`embed_query` in a thread."""
        return await asyncio.to_thread(self.embed_query, text)

    get_text_embedding_batch = embed_documents  # LlamaIndex's names
    get_query_embedding = embed_query

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float64]:
        import numpy as np

        rows, hashes, weights = _features(texts)
        places = rows * self.dimensions + ((hashes >> 1) % self.dimensions)
        signed = np.where(hashes & 1, weights, -weights)
        summed = np.bincount(places, signed, minlength=len(texts) * self.dimensions)
        vectors = summed.reshape(len(texts), self.dimensions)
        lengths = np.linalg.norm(vectors, axis=1)
        for row in map(int, np.flatnonzero(lengths < 1e-9)):  # no features, or they cancelled out
            vectors[row] = 0.0
            vectors[row, _hash(texts[row].strip()) % self.dimensions] = lengths[row] = 1.0
        normalised: NDArray[np.float64] = vectors / lengths[:, None]
        return normalised


def _features(texts: Sequence[str]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return row, hash and weight of every feature; distinct words are hashed once."""
    import numpy as np

    numbers: dict[str, int] = {}
    terms: dict[str, tuple[str, ...]] = {}
    per_text = [
        [numbers.setdefault(term, len(numbers)) for term in text_terms(text, terms)]
        for text in texts
    ]
    grams = [_grams(word) for word in numbers]
    starts = np.cumsum([0, *map(len, grams)])
    gram_hashes = np.array([h for hashes in grams for h in hashes], dtype=np.int64)
    words = np.array([number for row in per_text for number in row], dtype=np.int64)
    rows = np.repeat(np.arange(len(texts)), [len(row) for row in per_text])

    pairs, counts = np.unique(rows * max(len(numbers), 1) + words, return_counts=True)
    pair_rows, pair_words = np.divmod(pairs, max(len(numbers), 1))
    strength = 1.0 + np.log(counts)
    lengths = np.diff(starts)[pair_words]
    offsets = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    features = gram_hashes[np.repeat(starts[pair_words], lengths) + offsets]
    # The first feature is the word itself; its n-grams share a part of its weight.
    share = np.where(offsets == 0, 1.0, _GRAM_SHARE / np.sqrt(np.repeat(lengths, lengths)))
    feature_weights = np.repeat(strength, lengths) * share

    same = rows[1:] == rows[:-1]
    word_hashes = gram_hashes[starts[words]] if len(words) else words
    bigrams = (word_hashes[:-1][same] * 0x9E3779B1 + word_hashes[1:][same] * 7) & 0x7FFFFFFF
    bigram_weights = np.full(len(bigrams), _BIGRAM_SHARE)
    return (
        np.concatenate([np.repeat(pair_rows, lengths), rows[1:][same]]),
        np.concatenate([features, bigrams]),
        np.concatenate([feature_weights, bigram_weights]),
    )


def _grams(word: str) -> list[int]:
    """Return the hash of the word, then those of its character n-grams."""
    hashes = [_hash(word)]
    if len(word) > 3:
        marked = f"<{word}>" if len(word) < 64 else word[:64]
        sizes = (4, 5)
        hashes += [_hash(marked[i : i + n]) for n in sizes for i in range(len(marked) - n + 1)]
    return hashes


def _hash(text: str) -> int:
    """Hash a text to 31 bits, the same in every process, even with lone surrogates."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass")) & 0x7FFFFFFF
