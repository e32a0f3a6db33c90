"""What a strategy asks of a model, and an embedded stand-in for an embedding model.

For strategies: `chat_model(llm).ask(prompts, schema)`, `Embedder(model).embed(texts)`, and the
fields `Llm` and `Embeddings` that hold them. For retrieval: `embedding_model(model)`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rag_splitters.models.calling import ModelError
from rag_splitters.models.chat import Answer, ChatModel, Llm, chat_model
from rag_splitters.models.describing import describe_model
from rag_splitters.models.embedding import Embedder, Embeddings
from rag_splitters.models.hashing import features, hash_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "Answer",
    "ChatModel",
    "Embedder",
    "EmbeddingModel",
    "Embeddings",
    "HashingEmbeddings",
    "Llm",
    "ModelError",
    "Vectors",
    "chat_model",
    "describe_embeddings",
    "describe_model",
    "embedding_model",
]

Vectors = list[list[float]]
_BATCH = 1000  # texts that are hashed at once


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """Any embedding model behind the names that LangChain's have; `embedding_model` makes them."""

    model: Any
    documents: Callable[[list[str]], Vectors]
    query: Callable[[str], list[float]]

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """One vector for each text."""
        vectors = [list(map(float, vector)) for vector in self.documents(list(texts))]
        if len(vectors) != len(texts):
            raise ValueError(
                f"{describe_embeddings(self.model)} gave {len(vectors)} vectors for "
                f"{len(texts)} texts"
            )
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question."""
        return list(map(float, self.query(text)))

    async def aembed_documents(self, texts: Sequence[str]) -> Vectors:
        """One vector for each text, computed in a thread."""
        return await asyncio.to_thread(self.embed_documents, texts)

    async def aembed_query(self, text: str) -> list[float]:
        """The vector of a question, computed in a thread."""
        return await asyncio.to_thread(self.embed_query, text)


def embedding_model(model: Any) -> Any:
    """The model with LangChain's method names, whichever framework it comes from.

    `model` is a LangChain `Embeddings` (returned as it is), a LlamaIndex `BaseEmbedding`, or a
    callable that takes a list of texts and returns a list of vectors. Anything else raises a
    TypeError.

    >>> embedding_model(lambda texts: [[float(len(text))] for text in texts]).embed_query("four")
    [4.0]
    """
    if callable(getattr(model, "embed_documents", None)):
        return model
    batch = getattr(model, "get_text_embedding_batch", None)
    if callable(batch):
        return EmbeddingModel(model, batch, model.get_query_embedding)
    if callable(model) and not isinstance(model, type):
        return EmbeddingModel(model, model, lambda text: model([text])[0])
    raise TypeError(
        "embeddings must be a LangChain Embeddings, a LlamaIndex BaseEmbedding or a callable "
        f"list[str] -> list[list[float]], got {model!r}"
    )


def describe_embeddings(model: Any) -> str:
    """A name by which a model is known again, in another process or through the other framework.

    >>> describe_embeddings(HashingEmbeddings())
    'HashingEmbeddings(dimensions=1024)'
    """
    if isinstance(model, EmbeddingModel):
        return describe_embeddings(model.model)
    if isinstance(model, HashingEmbeddings):
        return repr(model)
    names = (getattr(model, name, None) for name in ("model_name", "model", "model_id"))
    name = next((name for name in names if isinstance(name, str) and name), None)
    dimensions = getattr(model, "dimensions", None)
    kind = getattr(model, "__qualname__", type(model).__qualname__)
    return (name or kind) + (f"({dimensions} dimensions)" if isinstance(dimensions, int) else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class HashingEmbeddings:
    """Turns a text into a vector by hashing its words: it matches words, not meaning.

    Stands in for an embedding model in the demo and the tests, and wherever there is no network: it
    downloads nothing, loads nothing, and gives the same vectors in every process. Use a real model
    for real retrieval: "car" and "automobile" have nothing in common here.

    A text's vector sums the hashes of its words (stop words dropped, endings cut), of neighbouring
    words and of the words' character n-grams; scripts that are written without spaces go by pairs
    of characters. It has length one, also for a blank text. `dimensions` is how many numbers it
    has: fewer save space, and more words collide.

    The hashing trick: Weinberger et al. (2009), Feature Hashing for Large Scale Multitask Learning.

    >>> model = HashingEmbeddings(dimensions=256)
    >>> query = model.embed_query("Which animals sleep?")
    >>> texts = ["The animal was sleeping.", "Prices rose again."]
    >>> alike = [sum(map(float.__mul__, query, v)) for v in model.embed_documents(texts)]
    >>> alike[0] > alike[1]
    True
    """

    dimensions: int = 1024

    def __post_init__(self) -> None:
        if self.dimensions < 1:
            raise ValueError(f"dimensions must be at least 1, got {self.dimensions}")

    @property
    def description(self) -> str:
        """The name by which `describe_model` knows it."""
        return repr(self)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """One vector for each text."""
        vectors: Vectors = self.embed_array(texts).tolist()
        return vectors

    def embed_array(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """`embed_documents` as one array, a row for each text: a quarter of the memory."""
        import numpy as np

        found = [self._embed(texts[at : at + _BATCH]) for at in range(0, len(texts), _BATCH)]
        return np.concatenate([np.zeros((0, self.dimensions)), *found])

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question, which is made like any other text's."""
        return self.embed_documents([text])[0]

    async def aembed_documents(self, texts: Sequence[str]) -> Vectors:
        """One vector for each text, computed in a thread."""
        return await asyncio.to_thread(self.embed_documents, texts)

    async def aembed_query(self, text: str) -> list[float]:
        """The vector of a question, computed in a thread."""
        return await asyncio.to_thread(self.embed_query, text)

    def get_text_embedding_batch(self, texts: Sequence[str]) -> Vectors:
        """`embed_documents` under the name that LlamaIndex uses."""
        return self.embed_documents(texts)

    def get_query_embedding(self, text: str) -> list[float]:
        """`embed_query` under the name that LlamaIndex uses."""
        return self.embed_query(text)

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float64]:
        import numpy as np

        rows, hashes, weights = features(texts)
        places = rows * self.dimensions + ((hashes >> 1) % self.dimensions)
        signed = np.where(hashes & 1, weights, -weights)
        summed = np.bincount(places, signed, minlength=len(texts) * self.dimensions)
        vectors = summed.reshape(len(texts), self.dimensions)
        lengths = np.linalg.norm(vectors, axis=1)
        for row in map(
            int, np.flatnonzero(lengths < 1e-9)
        ):  # features of opposite signs that fell together
            vectors[row] = 0.0
            vectors[row, hash_text(texts[row].strip()) % self.dimensions] = lengths[row] = 1.0
        normalised: NDArray[np.float64] = vectors / lengths[:, None]
        return normalised
