"""The methods of LangChain's and LlamaIndex's models: the only place that knows them by name.

Neither framework is imported. A model is recognised by its methods, so that a user's own class of
the same shape works too.
"""

from __future__ import annotations

import asyncio
import dis
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from pydantic import BaseModel

from rag_splitters.models.prompts import Prompt

_Function: TypeAlias = Callable[[Any], Any]
_AsyncFunction: TypeAlias = Callable[[Any], Awaitable[Any]]
_Calls: TypeAlias = tuple[_Function, _AsyncFunction]
_Schema: TypeAlias = "type[BaseModel] | None"

_BATCH = 100  # texts in a request of LlamaIndex, instead of its default
_LLAMA_INDEX_BATCH, _MAX_LLAMA_INDEX_BATCH = 10, 2048  # its default and its maximum


def is_awaitable(model: Any) -> bool:
    """Whether it is an async function, or an object whose `__call__` is one."""
    called = inspect.getattr_static(type(model), "__call__", None)
    return inspect.iscoroutinefunction(model) or inspect.iscoroutinefunction(called)


def blocks_when_awaited(model: Any, method: str) -> bool:
    """Whether an asynchronous method of a LlamaIndex model does its work on the event loop.

    Many only call the synchronous method, among them the defaults of LlamaIndex's base classes.
    Their code gives them away: it never awaits anything. (LangChain's defaults run the synchronous
    method in a thread.)
    """
    if method not in HOOKS:
        return False
    hooks = [getattr(type(model), name, None) for name in (*HOOKS[method], method)]
    function = next((_undecorated(hook) for hook in hooks if hook and not _is_default(hook)), None)
    if not inspect.iscoroutinefunction(function):
        return False
    return not any(step.opname in _AWAITING for step in dis.get_instructions(function))


HOOKS = {
    "aget_text_embedding_batch": ("_aget_text_embeddings", "_aget_text_embedding"),
    "aget_query_embedding": ("_aget_query_embedding",),
    "acomplete": (),
    "achat": (),
}
"""LlamaIndex's asynchronous methods, and the private ones in which its models implement them."""

_AWAITING = ("GET_AWAITABLE", "GET_ANEXT")  # the bytecode of await, async with and async for


def _is_default(hook: Any) -> bool:
    """Whether it is LlamaIndex's `_aget_text_embeddings`, which awaits the hook for one text."""
    return getattr(hook, "__qualname__", "") == "BaseEmbedding._aget_text_embeddings"


def _undecorated(function: Any) -> Any:
    """The function inside its decorators, also inside LlamaIndex's, which keep it in a closure."""
    wrapped = getattr(function, "__wrapped__", None)
    if callable(wrapped):  # LlamaIndex marks what it has decorated by True
        return _undecorated(wrapped)
    if not inspect.isfunction(function):
        return function
    for inner in inspect.getclosurevars(function).nonlocals.values():
        is_same = getattr(inner, "__qualname__", None) == function.__qualname__
        if is_same and inspect.iscoroutinefunction(inner):
            return _undecorated(inner)
    return function


# Embedding models


def is_embedding_client(model: Any) -> bool:
    """Whether it is an embedding model of LangChain or LlamaIndex, or of the same shape."""
    return first_method(model, "embed_documents", "get_text_embedding_batch") is not None


def embed_calls(model: Any) -> _Calls:
    """How to embed a list of texts: a function that blocks, and a coroutine function."""
    embed = first_method(model, "embed_documents", "get_text_embedding_batch") or model
    return embed, _twin(model, embed, "aembed_documents", "aget_text_embedding_batch")


def query_calls(model: Any) -> _Calls | None:
    """The same for a question, if the model has a method of its own for questions."""
    embed = first_method(model, "embed_query", "get_query_embedding")
    return embed and (embed, _twin(model, embed, "aembed_query", "aget_query_embedding"))


def client_batch(model: Any) -> int | None:
    """How many texts the model's client sends in one request; None if it does not say."""
    for name in ("chunk_size", "embed_batch_size"):
        size = getattr(model, name, None)
        if isinstance(size, int) and size > 0:
            is_default = name == "embed_batch_size" and size == _LLAMA_INDEX_BATCH
            return _BATCH if is_default else size
    return None


def with_batch(model: Any, max_texts: int | None) -> Any:
    """The model; for LlamaIndex, a shallow copy with the batch size that is used here."""
    current = getattr(model, "embed_batch_size", None)
    size = min(max_texts or client_batch(model) or 1, _MAX_LLAMA_INDEX_BATCH)
    if isinstance(current, int) and current != size and hasattr(model, "model_copy"):
        return model.model_copy(update={"embed_batch_size": size})
    return model


# Chat models


def is_chat_client(model: Any) -> bool:
    """Whether it is a chat model of LangChain or LlamaIndex, or of the same shape."""
    return _is_langchain(model) or _is_llama_index(model)


def is_structured(model: Any) -> bool:
    """Whether the model can answer with an object of a schema."""
    if _is_langchain(model):
        return _with_schema(model, _Probe) is not None
    return _is_llama_index(model)


def ask_calls(model: Any, schema: _Schema) -> _Calls:
    """How to send a prompt: a function that waits for the answer, and a coroutine function."""
    if _is_langchain(model):
        runnable = (_with_schema(model, schema) if schema else None) or model
        if _is_anthropic(model):
            return (
                lambda prompt: runnable.invoke(_with_cache_point(prompt)),
                lambda prompt: runnable.ainvoke(_with_cache_point(prompt)),
            )
        return runnable.invoke, runnable.ainvoke
    if not _is_llama_index(model):
        return model, _twin(model, model)
    metadata = getattr(model, "metadata", None)
    is_chat = schema is not None and getattr(metadata, "is_chat_model", False)
    if schema is None and _is_anthropic(model):
        return _cached_chat(model)
    if schema is None:
        ask, async_ask = model.complete, model.acomplete
    else:
        ask, async_ask = (
            _predict(model, name, schema) for name in ("structured_predict", "astructured_predict")
        )
    blocks = blocks_when_awaited(model, "achat" if is_chat else "acomplete")
    return ask, _twin(model, ask) if blocks else async_ask


def _predict(model: Any, method: str, schema: type[BaseModel]) -> Any:
    """LlamaIndex's method that answers with the schema; braces in the prompt stay text."""
    from llama_index.core.prompts import PromptTemplate

    return lambda prompt: getattr(model, method)(schema, PromptTemplate("{text}"), text=prompt)


def _is_anthropic(model: Any) -> bool:
    """Whether it is one of Anthropic's models, whose prompt cache has to be told what to keep."""
    for name in ("bound", "first"):  # of LangChain's bindings and sequences
        model = getattr(model, name, model)
    return any("Anthropic" in kind.__name__ for kind in type(model).__mro__)


def _with_cache_point(prompt: str) -> Any:
    """The prompt for LangChain, with a mark behind what it shares with others if it does."""
    if not isinstance(prompt, Prompt) or not prompt.shared:
        return prompt
    shared, rest = prompt.parts
    marked = {"type": "text", "text": shared, "cache_control": {"type": "ephemeral"}}
    return [{"role": "user", "content": [marked, {"type": "text", "text": rest}]}]


def _cached_chat(model: Any) -> _Calls:
    """How to send a prompt to one of Anthropic's models in LlamaIndex, with the same mark."""
    from llama_index.core.base.llms.types import (
        CacheControl,
        CachePoint,
        ChatMessage,
        CompletionResponse,
        TextBlock,
    )

    mark = CachePoint(cache_control=CacheControl(type="ephemeral"))

    def messages(prompt: str) -> list[Any]:
        blocks: list[Any] = [TextBlock(text=str(prompt))]
        if isinstance(prompt, Prompt) and prompt.shared:
            shared, rest = prompt.parts
            blocks = [TextBlock(text=shared), mark, TextBlock(text=rest)]
        return [ChatMessage(role="user", blocks=blocks)]

    def completion(response: Any) -> Any:
        return CompletionResponse(text=response.message.content or "", raw=response.raw)

    async def async_ask(prompt: str) -> Any:
        return completion(await model.achat(messages(prompt)))

    def ask(prompt: str) -> Any:
        return completion(model.chat(messages(prompt)))

    return ask, _twin(model, ask) if blocks_when_awaited(model, "achat") else async_ask


class _Probe(BaseModel):
    """A schema to find out whether a model accepts one."""

    answer: str


def _is_langchain(model: Any) -> bool:
    return None not in (first_method(model, "invoke"), first_method(model, "ainvoke"))


def _is_llama_index(model: Any) -> bool:
    return None not in (first_method(model, "complete"), first_method(model, "acomplete"))


def _with_schema(model: Any, schema: type[BaseModel]) -> Any:
    """LangChain's runnable that answers with the schema; None if the model does not support it."""
    if (method := first_method(model, "with_structured_output")) is None:
        return None
    try:
        return method(schema)
    except NotImplementedError:
        return None


# Methods


def first_method(model: Any, *names: str) -> _Function | None:
    """The first method that the model has, if any."""
    methods = (getattr(model, name, None) for name in names)
    return next((method for method in methods if callable(method)), None)


def _twin(model: Any, function: _Function, *names: str) -> _AsyncFunction:
    """The first of the model's methods of these names that does not block when awaited.

    Without one, the function itself if it is an async function, else the function in a thread.
    """
    method = first_method(model, *(name for name in names if not blocks_when_awaited(model, name)))
    if method or (function is model and is_awaitable(model)):
        return method or function
    return lambda argument: asyncio.to_thread(function, argument)
