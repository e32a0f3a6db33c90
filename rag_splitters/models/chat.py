"""ChatModel: one way to ask any chat model, whichever framework it comes from."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, PlainSerializer

from rag_splitters.models.calling import (
    ModelError,
    abounded,
    acall,
    bounded,
    call,
    client_retries,
    model_error,
    run_async,
    sendable,
)
from rag_splitters.models.clients import is_awaitable
from rag_splitters.models.describing import describe_model, portable, restored
from rag_splitters.models.fields import check_count, load_model, written

__all__ = ["Answer", "ChatModel", "Llm", "chat_model"]

Answer: TypeAlias = "str | BaseModel | ModelError"
"""What comes back for a prompt: text, an object of the schema, or the error that it met."""

_Schema: TypeAlias = "type[BaseModel] | None"
_Ask: TypeAlias = Callable[[str], Any]
_AsyncAsk: TypeAlias = Callable[[str], Awaitable[Any]]

_KINDS = "a LangChain chat model, a LlamaIndex LLM or a callable prompt -> text"


def chat_model(llm: Any, *, max_concurrency: int | None = None, max_retries: int = 4) -> ChatModel:
    """The model behind `ask` and `aask`, whichever framework it comes from.

    Parameters:
        llm: a LangChain chat model (or any runnable that answers a prompt), a LlamaIndex LLM, a
            callable from a prompt to text, sync or async, or what this function returned.
        max_concurrency: the most prompts that are under way at once; None: 4, but 1 for a callable
            that is not async, which may not be safe in threads.
        max_retries: tries after the first on a rate limit, time-out, lost connection or failure of
            the server; only for models whose client does not retry by itself.

    Raises: TypeError for what is no chat model; ValueError for numbers that make no sense.

    >>> chat_model(str.upper).ask(["hello", "world"])
    ['HELLO', 'WORLD']
    """
    if isinstance(llm, ChatModel):
        if max_concurrency is None:
            return llm
        return ChatModel(llm.model, max_concurrency, llm.max_retries)
    is_framework = _is_langchain(llm) or _is_llama_index(llm)
    if isinstance(llm, type) or not (is_framework or callable(llm)):
        raise TypeError(f"llm must be {_KINDS}, got {describe_model(llm)}")
    default = 4 if is_framework or _is_async(llm) else 1
    return ChatModel(llm, default if max_concurrency is None else max_concurrency, max_retries)


@dataclass(frozen=True, repr=False)
class ChatModel:
    """A chat model and how it is called; `chat_model` makes them.

    `ask` never loses an answer: a prompt that fails gives a `ModelError` in its place, which names
    the prompt's number, the model and the cause, and the other prompts go on. Its repr, its
    pickle and its errors hold no secret: a model with an API key is made again, when it is
    unpickled, with the key from its environment.
    """

    model: Any
    max_concurrency: int = 4
    max_retries: int = 4

    def __post_init__(self) -> None:
        check_count(self.max_concurrency, "max_concurrency", 1)
        check_count(self.max_retries, "max_retries", 0)

    @property
    def description(self) -> str:
        """The model's stable name."""
        return describe_model(self.model)

    @property
    def is_structured(self) -> bool:
        """Can it answer with an object of a schema? A callable cannot: it answers with text."""
        if _is_langchain(self.model):
            return _structured_langchain(self.model, _Probe) is not None
        return _is_llama_index(self.model)

    def __repr__(self) -> str:
        return f"ChatModel({self.description})"

    def __hash__(self) -> int:
        return hash(self.description)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (portable(self.model), self.max_concurrency, self.max_retries)

    def ask(self, prompts: Sequence[str], schema: _Schema = None) -> list[Answer]:
        """An answer, or its error, for each prompt in order.

        Parameters:
            prompts: the prompts; lone surrogates in them are replaced, as no client can send them.
            schema: the pydantic model to answer with, by the means of the model's framework;
                None, or a model that has none (`is_structured` is False): text.
        """
        if _is_async(self.model):
            return run_async(self.aask(prompts, schema))
        ask, retries = _asker(self.model, schema), self._retries

        def answer(index: int) -> Answer:
            try:
                found = call(ask, sendable(prompts[index]), retries=retries)
                return _checked(self.model, found, schema, index)
            except Exception as error:  # one prompt's failure must not lose the others
                return _failed(self.model, error, index)

        return bounded(answer, range(len(prompts)), self.max_concurrency)

    async def aask(self, prompts: Sequence[str], schema: _Schema = None) -> list[Answer]:
        """`ask` without blocking the event loop."""
        ask, retries = _async_asker(self.model, schema), self._retries

        async def answer(index: int) -> Answer:
            try:
                found = await acall(ask, sendable(prompts[index]), retries=retries)
                return _checked(self.model, found, schema, index)
            except Exception as error:
                return _failed(self.model, error, index)

        return await abounded(answer, range(len(prompts)), self.max_concurrency)

    @property
    def _retries(self) -> int:
        return 0 if client_retries(self.model) else self.max_retries


class _Probe(BaseModel):
    """A schema to find out by whether a model takes one."""

    answer: str


def _unpickled(model: Any, max_concurrency: int, max_retries: int) -> ChatModel:
    return ChatModel(restored(model), max_concurrency, max_retries)


def _is_langchain(llm: Any) -> bool:
    return callable(getattr(llm, "invoke", None)) and callable(getattr(llm, "ainvoke", None))


def _is_llama_index(llm: Any) -> bool:
    return callable(getattr(llm, "complete", None)) and callable(getattr(llm, "acomplete", None))


def _is_async(llm: Any) -> bool:
    if _is_langchain(llm) or _is_llama_index(llm):
        return False
    return is_awaitable(llm)


def _structured_langchain(llm: Any, schema: type[BaseModel]) -> Any:
    """The runnable that answers with the schema; None where the model has no such means."""
    if not callable(getattr(llm, "with_structured_output", None)):
        return None
    try:
        return llm.with_structured_output(schema)
    except NotImplementedError:
        return None


def _runnable(llm: Any, schema: _Schema) -> Any:
    return (_structured_langchain(llm, schema) if schema else None) or llm


def _template() -> Any:
    """A LlamaIndex template that is nothing but the prompt, so that its braces stay text."""
    from llama_index.core.prompts import PromptTemplate

    return PromptTemplate("{text}")


def _asker(llm: Any, schema: _Schema) -> _Ask:
    """What asks a prompt, and waits for the answer."""
    if _is_langchain(llm):
        ask: _Ask = _runnable(llm, schema).invoke
        return ask
    if not _is_llama_index(llm):
        return lambda prompt: llm(prompt)
    if schema is None:
        return lambda prompt: llm.complete(prompt)
    return lambda prompt: llm.structured_predict(schema, _template(), text=prompt)


def _async_asker(llm: Any, schema: _Schema) -> _AsyncAsk:
    """What asks a prompt, to be awaited."""
    if _is_langchain(llm):
        ask: _AsyncAsk = _runnable(llm, schema).ainvoke
        return ask
    if not _is_llama_index(llm):
        return llm if _is_async(llm) else lambda prompt: asyncio.to_thread(llm, prompt)
    if schema is None:
        return lambda prompt: llm.acomplete(prompt)
    return lambda prompt: llm.astructured_predict(schema, _template(), text=prompt)


def _checked(llm: Any, found: Any, schema: _Schema, index: int) -> str | BaseModel:
    """The answer as text or as an object of the schema."""
    if schema is not None and isinstance(found, (dict, schema)):
        return found if isinstance(found, schema) else schema.model_validate(found)
    text = found if isinstance(found, str) else getattr(found, "text", None)
    if text is None or (isinstance(found, BaseModel) and not isinstance(text, str)):
        kind = type(found).__name__
        raise model_error(llm, f"answered prompt {index} with {kind}, not with text", index=index)
    if not str(text).strip():
        raise model_error(llm, f"answered prompt {index} with nothing", index=index)
    return str(text)


def _failed(llm: Any, error: Exception, index: int) -> ModelError:
    if isinstance(error, ModelError):
        return error
    return model_error(llm, f"failed on prompt {index}", error, index)


Llm = Annotated[
    Any,
    BeforeValidator(lambda value: load_model(value, "llm", _KINDS, chat_model)),
    PlainSerializer(lambda value: written(value), return_type=str),
]
"""A field that holds a chat model: any that `chat_model` takes; its value is a `ChatModel`."""
