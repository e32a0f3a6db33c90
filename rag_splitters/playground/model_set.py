"""The models that the playground uses, and what they are called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rag_splitters.evaluation.measure.cached_embeddings import CachedEmbeddings
from rag_splitters.models import Embedder, HashingEmbeddings, chat_model, describe_model
from rag_splitters.models.named import load_embeddings, load_llm

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_HINTS = {
    "llm": (
        "a chat model: start the playground with --llm openai:NAME, azure:DEPLOYMENT or "
        "function:MODULE:NAME, or with create_app(llm=...)"
    ),
    "ner": "an entity recogniser: start the playground from Python, with create_app(ner=...)",
}


@dataclass(frozen=True)
class ModelSet:
    """The models, by the names of the parameters that hold them."""

    embeddings: Any
    llm: Any = None
    ner: Any = None

    @classmethod
    def load(
        cls, embeddings: Any = None, llm: Any = None, ner: Any = None, base_url: str | None = None
    ) -> ModelSet:
        """From models or their names; without embeddings, `HashingEmbeddings`."""
        if llm is not None:
            llm = load_llm(llm, base_url) if isinstance(llm, str) else chat_model(llm)
        if embeddings is None or embeddings == "hashing":
            return cls(Embedder(HashingEmbeddings()), llm, ner)
        if isinstance(embeddings, str):
            embeddings = load_embeddings(embeddings, base_url)
        return cls(Embedder(CachedEmbeddings(embeddings)), llm, ner)

    @property
    def is_free(self) -> bool:
        """Whether embedding costs nothing, so that a search may run again at every change."""
        return isinstance(self.embeddings.model, HashingEmbeddings)

    @property
    def descriptions(self) -> dict[str, str | None]:
        """What the models are called; None for a missing one."""
        return {
            "embeddings": describe_model(self.embeddings),
            "llm": None if self.llm is None else describe_model(self.llm),
            "ner": None if self.ner is None else describe_model(self.ner),
        }

    def missing(self, parameter: str) -> str | None:
        """Return how to pass the model for this parameter, if there is none."""
        return _HINTS.get(parameter) if getattr(self, parameter) is None else None

    def embed(self, texts: Sequence[str], question: str) -> NDArray[np.float32]:
        """Return one row for each text, and a last one for the question."""
        import numpy as np

        if self.is_free:
            rows: NDArray[np.float32] = self.embeddings.embed([*texts, question])
            return rows
        cached: CachedEmbeddings = self.embeddings.model
        return np.concatenate([cached.embed(texts), cached.embed_questions([question])])
