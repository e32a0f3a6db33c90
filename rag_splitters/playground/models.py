"""The models that the playground was given, and how to write them down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rag_splitters.cli.models import load_embeddings, load_llm
from rag_splitters.models import Embedder, HashingEmbeddings, chat_model, describe_model

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Models"]

_NEEDED = {
    "llm": (
        "a chat model: start the playground with --llm openai:NAME, azure:DEPLOYMENT or "
        "function:MODULE:NAME, or with create_app(llm=...)"
    ),
    "ner": "what finds entities: start the playground in Python, with create_app(ner=...)",
}


@dataclass(frozen=True)
class Models:
    """The models, by the names of the parameters that hold them.

    Parameters:
        embeddings: an `Embedder`.
        llm: a chat model, or None.
        ner: what finds entities, or None.
        names: those that were given by a name of the command line, with it; `base_url` too.
    """

    embeddings: Any
    llm: Any = None
    ner: Any = None
    names: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, embeddings: Any, llm: Any, ner: Any = None, base_url: str | None = None) -> Models:
        """From models or their names; without embeddings, `HashingEmbeddings`."""
        given = {"embeddings": embeddings, "llm": llm, "base_url": base_url}
        names = {key: value for key, value in given.items() if isinstance(value, str)}
        if embeddings is None or embeddings == "hashing":
            return cls(Embedder(HashingEmbeddings()), _llm(llm, base_url), ner, names)
        if isinstance(embeddings, str):
            embeddings = load_embeddings(embeddings, base_url)
        return cls(_remembering(embeddings), _llm(llm, base_url), ner, names)

    @property
    def is_free(self) -> bool:
        """Do the embeddings cost nothing, so that a question may be asked again at every change?"""
        return isinstance(self.embeddings.model, HashingEmbeddings)

    @property
    def shown(self) -> dict[str, str | None]:
        """What the models are called; None for one that is not there."""
        return {
            "embeddings": describe_model(self.embeddings),
            "llm": None if self.llm is None else describe_model(self.llm),
            "ner": None if self.ner is None else describe_model(self.ner),
        }

    def missing(self, parameter: str) -> str | None:
        """What a strategy with this parameter waits for, and how to give it; None: nothing."""
        return _NEEDED.get(parameter) if getattr(self, parameter) is None else None

    def embed(self, texts: Sequence[str], question: str) -> NDArray[np.float32]:
        """A row for each text, and one for the question at the end."""
        import numpy as np

        if self.is_free:
            rows: NDArray[np.float32] = self.embeddings.embed([*texts, question])
            return rows
        known = self.embeddings.model  # `CachedEmbeddings`
        asked = known.cache.embed_questions(known.model, [question])
        return np.concatenate([known.cache.embed(known.model, texts), asked])


def _llm(value: Any, base_url: str | None) -> Any:
    if value is None:
        return None
    return load_llm(value, base_url) if isinstance(value, str) else chat_model(value)


def _remembering(embeddings: Any) -> Embedder:
    """A model that costs time or money, asked for every text once."""
    from rag_splitters.evaluation import CachedEmbeddings, EmbeddingCache

    model = embeddings if isinstance(embeddings, Embedder) else Embedder(embeddings)
    return Embedder(CachedEmbeddings(EmbeddingCache(), model))
