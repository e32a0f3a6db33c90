"""ChatModel: one way to ask any chat model, whichever framework it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, PlainSerializer

from rag_splitters.calls import arun, run
from rag_splitters.fields import whole_number
from rag_splitters.models.calling import client_retries, for_each, retrying, run_async
from rag_splitters.models.clients import (
    ask_calls,
    is_awaitable,
    is_chat_client,
    is_structured,
)
from rag_splitters.models.describing import describe_model, load_model, stable_name
from rag_splitters.models.errors import ModelError, model_error
from rag_splitters.models.pickling import ModelHolder
from rag_splitters.text.surrogates import without_surrogates

Answer: TypeAlias = "str | BaseModel | ModelError"
"""The answer to a prompt: text, an object of the schema, or the error if there is none."""

_Schema: TypeAlias = "type[BaseModel] | None"

_KINDS = (
    "a LangChain chat model, a LlamaIndex LLM, a callable prompt -> text, or a function without "
    "parameters that returns one of them"
)


def chat_model(llm: Any, *, max_concurrency: int | None = None, max_retries: int = 4) -> ChatModel:
    """The model with `ask` and `aask`, whichever framework it comes from.

    Parameters:
        llm: a LangChain chat model (or any runnable that answers a prompt), a LlamaIndex LLM, a
            callable from a prompt to text, sync or async, or a `ChatModel`. A function without
            parameters is a factory, which is called here, and again where a pickle is loaded.
        max_concurrency: maximum number of prompts under way at once. None: 4, but 1 for a sync
            callable, which may not be thread-safe.
        max_retries: how often a prompt is repeated after a rate limit, a time-out, a lost
            connection or a failure of the server; only for models whose client does not retry by
            itself.

    Raises TypeError if `llm` is not a chat model, and ValueError if a number is out of range.

    >>> chat_model(str.upper).ask(["hello", "world"])
    ['HELLO', 'WORLD']
    """
    if not isinstance(llm, ChatModel):
        return ChatModel(llm, max_concurrency, max_retries)
    return llm if max_concurrency is None else replace(llm, max_concurrency=max_concurrency)


@dataclass(frozen=True, repr=False)
class ChatModel(ModelHolder):
    """A chat model and how it is called; `chat_model` creates it.

    `ask` never loses an answer: a prompt that fails gives a `ModelError` in its place, with the
    prompt's number, the model and the cause, and the other prompts continue. The repr, the pickle
    and the errors hold no secret: unpickling creates a model with an API key anew, with the key
    from the environment and with the same server. Pass a factory if a model cannot be pickled, for
    example because it has a proxy.
    """

    max_concurrency: int | None = None
    max_retries: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        is_client = is_chat_client(self.model)
        if isinstance(self.model, type) or not (is_client or callable(self.model)):
            raise TypeError(f"llm must be {_KINDS}, got {describe_model(self.model)}")
        if self.max_concurrency is None:
            default = 4 if is_client or is_awaitable(self.model) else 1
            object.__setattr__(self, "max_concurrency", default)
        whole_number(self.max_concurrency, "max_concurrency", 1)
        whole_number(self.max_retries, "max_retries", 0)

    __hash__ = ModelHolder.__hash__

    @property
    def is_structured(self) -> bool:
        """Whether it can answer with an object of a schema; a callable always answers with text."""
        return is_structured(self.model)

    def ask(self, prompts: Sequence[str], schema: _Schema = None) -> list[Answer]:
        """The answer to each prompt, or the error, in their order.

        Parameters:
            prompts: the prompts; lone surrogates are replaced, because no client can send them.
            schema: the pydantic model to answer with, by the means of the model's framework. With
                None, or if the model does not support it (see `is_structured`), answers are text.
        """
        if is_awaitable(self.model) and not is_chat_client(self.model):
            return run_async(self.aask(prompts, schema))
        return run(self._ask(prompts, schema))

    async def aask(self, prompts: Sequence[str], schema: _Schema = None) -> list[Answer]:
        """`ask` without blocking the event loop."""
        return await arun(self._ask(prompts, schema))

    async def _ask(self, prompts: Sequence[str], schema: _Schema) -> list[Answer]:
        calls = ask_calls(self.model, schema)
        retries = 0 if client_retries(self.model) else self.max_retries

        async def answer(index: int) -> Answer:
            prompt = without_surrogates(prompts[index])
            try:
                response = await retrying(*calls, prompt, retries=retries)
                return _read(self.model, response, schema, index)
            except ModelError as error:
                return error
            except Exception as error:  # one prompt's failure must not lose the others
                return model_error(self.model, f"failed on prompt {index}", error, index)

        return await for_each(answer, range(len(prompts)), self.max_concurrency or 1)


def _read(llm: Any, response: Any, schema: _Schema, index: int) -> str | BaseModel:
    """The response as text or as an object of the schema."""
    if schema is not None and isinstance(response, (dict, schema)):
        return response if isinstance(response, schema) else schema.model_validate(response)
    text = response if isinstance(response, str) else getattr(response, "text", None)
    if text is None or (isinstance(response, BaseModel) and not isinstance(text, str)):
        kind = type(response).__name__
        raise model_error(llm, f"answered prompt {index} with {kind}, not with text", index=index)
    if not str(text).strip():
        raise model_error(llm, f"answered prompt {index} with nothing", index=index)
    return str(text)


Llm = Annotated[
    Any,
    BeforeValidator(lambda value: load_model(value, "llm", _KINDS, chat_model)),
    PlainSerializer(stable_name, return_type=str),
]
"""A field for a chat model: any that `chat_model` takes; its value is a `ChatModel`."""
