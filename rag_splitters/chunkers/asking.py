"""Base class of the strategies that ask a chat model."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, Field

from rag_splitters.contract.chunker import Chunker
from rag_splitters.models import Llm, ModelError, chat_model
from rag_splitters.models.asking import Read, Result, ask_each
from rag_splitters.models.cache import Cache, check_cache


class AskingStrategy(Chunker):
    """A strategy that asks a chat model, which may be told that its answer was invalid.

    Raises ValueError if `llm` is not a chat model, or if a `cache` is used with an `llm` that has
    no stable name.
    """

    llm: Llm
    """A LangChain chat model, a LlamaIndex LLM, or a function from prompt to answer."""

    max_retries: int = Field(default=2, ge=0)
    """How often to ask the model again after an invalid answer."""

    cache: Cache = Field(default=None, repr=False)
    """Cache for answers: a LangChain `BaseStore`, a LlamaIndex `BaseKVStore`, or the `Path`
    of a folder; None: no cache."""

    max_concurrency: int | None = Field(default=None, ge=1)
    """Maximum number of concurrent calls; None: 4, or 1 for a function that is not async."""

    def check_parameters(self) -> None:
        super().check_parameters()
        check_cache(self.cache, self.llm)

    async def _ask(
        self,
        prompts: Sequence[str],
        schema: type[BaseModel] | None,
        read: Read[Result],
        keys: Sequence[str] | None = None,
    ) -> list[Result | ModelError]:
        """Return what `read` makes of the answer to each prompt; see `ask_each`."""
        model = chat_model(self.llm, max_concurrency=self.max_concurrency)
        return await ask_each(
            model, prompts, schema, read, self.max_retries, cache=self.cache, keys=keys
        )
