"""The methods of LangChain's and LlamaIndex's models; no other file refers to them by name.

Neither framework is imported. A model is recognised by its methods, so that a user's own class with
the same methods works, too. Only the synchronous methods are called, in threads if need be: which
of the asynchronous ones block, and on which event loop their connections live, nobody can tell.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from pydantic import BaseModel

from rag_splitters.models.describing import inner_models
from rag_splitters.models.hashing import HashingEmbeddings
from rag_splitters.models.loop import arun_async, finished, in_thread, run_async
from rag_splitters.models.prompts import Prompt

_Function: TypeAlias = Callable[..., Any]
_AsyncFunction: TypeAlias = Callable[[Any], Awaitable[Any]]
_Calls: TypeAlias = tuple[_Function, _AsyncFunction]
_Schema: TypeAlias = "type[BaseModel] | None"

_BATCH = 100  # texts in a request of LlamaIndex, instead of its default
_LLAMA_INDEX_BATCH, _MAX_LLAMA_INDEX_BATCH = 10, 2048  # its default and its maximum

_REMOTE = ("api_key", "api_base", "base_url", "endpoint", "max_retries", "timeout")
"""Settings of models behind an API, which those in this process do not have."""


def is_awaitable(model: Any) -> bool:
    """Whether a model can only be awaited.

    This is so for an async function, an object whose `__call__` is one, and a LangChain runnable of
    one.
    """
    method = inspect.getattr_static(type(model), "__call__", None)
    is_runnable = hasattr(model, "afunc") and not hasattr(model, "func")
    return is_runnable or inspect.iscoroutinefunction(model) or inspect.iscoroutinefunction(method)


def is_concurrent(model: Any) -> bool:
    """Whether several calls may run at once: a model in this process may not be thread-safe."""
    return is_awaitable(model) or any(hasattr(model, name) for name in _REMOTE)


def client_retries(model: Any) -> bool:
    """Whether a client in the model retries by itself; then we do not, or attempts multiply."""
    return any(map(_retries, inner_models(model)))


def _retries(model: Any) -> bool:
    if getattr(model, "max_attempt_number", 0):  # LangChain's with_retry()
        return True
    if callable(getattr(model, "retry_with", None)):  # a function that tenacity decorated
        return True
    return hasattr(model, "max_retries") and model.max_retries != 0


# Embedding models


def is_embedding_client(model: Any) -> bool:
    """Whether it is an embedding model of LangChain or LlamaIndex, or has the same methods."""
    return first_method(model, "embed_documents", "get_text_embedding_batch") is not None


def embed_calls(model: Any) -> _Calls:
    """Return a blocking function and a coroutine function that embed a list of texts."""
    if type(model) is HashingEmbeddings:  # an array needs a quarter of the memory of lists
        return _calls(model, model.embed_array)
    return _calls(model, first_method(model, "embed_documents", "get_text_embedding_batch"))


def query_calls(model: Any) -> _Calls | None:
    """Return the same for a list of one question, if the model has a method for questions."""
    if (embed := first_method(model, "embed_query", "get_query_embedding")) is None:
        return None
    blocking, awaited = _calls(model, embed)

    async def await_one(questions: Sequence[str]) -> list[Any]:
        return [await awaited(questions[0])]

    return lambda questions: [blocking(questions[0])], await_one


def client_batch(model: Any) -> int | None:
    """Return how many texts the client sends in one request; None if unknown."""
    for name in ("chunk_size", "embed_batch_size"):
        size = getattr(model, name, None)
        if isinstance(size, int) and size > 0:
            is_default = name == "embed_batch_size" and size == _LLAMA_INDEX_BATCH
            return _BATCH if is_default else size
    return None


def with_batch(model: Any, max_texts: int | None) -> Any:
    """Return the model; for LlamaIndex, a shallow copy with our batch size."""
    current = getattr(model, "embed_batch_size", None)
    size = min(max_texts or client_batch(model) or 1, _MAX_LLAMA_INDEX_BATCH)
    if isinstance(current, int) and current != size and hasattr(model, "model_copy"):
        return model.model_copy(update={"embed_batch_size": size})
    return model


# Chat models


def is_chat_client(model: Any) -> bool:
    """Whether it is a chat model of LangChain or LlamaIndex, or has the same methods."""
    return _is_langchain(model) or _is_llama_index(model)


def is_structured(model: Any) -> bool:
    """Whether the model can answer with an object of a schema."""
    if _is_langchain(model):
        return _with_schema(model, _Probe) is not None
    return _is_llama_index(model)


def ask_calls(model: Any, schema: _Schema) -> _Calls:
    """Return a blocking function and a coroutine function that send a prompt."""
    if _is_langchain(model):
        if is_awaitable(model):
            return _calls(model, model.invoke)
        runnable = (_with_schema(model, schema) if schema else None) or model
        form = _with_cache_point if _is_anthropic(model) else str
        return _calls(model, lambda prompt: runnable.invoke(form(prompt)))
    if not _is_llama_index(model):
        return _calls(model, None)
    if schema is not None:
        return _calls(model, partial(_predict, model, schema))
    return _calls(model, partial(_chat, model) if _is_anthropic(model) else model.complete)


def _predict(model: Any, schema: type[BaseModel], prompt: str) -> dict[str, Any]:
    """Return LlamaIndex's structured answer in the form of LangChain's `include_raw`.

    LlamaIndex returns structured answers without the response that says whether they are complete,
    but passes it to callbacks. So a shallow copy of the model is asked, with one more callback.
    """
    from llama_index.core.callbacks import (
        CallbackManager,
        CBEventType,
        EventPayload,
        LlamaDebugHandler,
    )
    from llama_index.core.prompts import PromptTemplate

    events = LlamaDebugHandler(print_trace_on_end=False)
    if hasattr(model, "model_copy") and hasattr(model, "callback_manager"):
        manager = CallbackManager([*model.callback_manager.handlers, events])
        model = model.model_copy(update={"callback_manager": manager})
    parsed, failure = None, None
    try:  # a template ignores braces in the prompt
        parsed = model.structured_predict(schema, PromptTemplate("{text}"), text=prompt)
    except ValueError as error:
        failure = error
    payloads = [event.payload or {} for event in events.get_events(CBEventType.LLM)]
    kinds = (EventPayload.RESPONSE, EventPayload.COMPLETION)
    responses = [payload[kind] for payload in payloads for kind in kinds if kind in payload]
    return {
        "parsed": parsed,
        "parsing_error": failure,
        "raw": responses[-1] if responses else None,
    }


_CUT_OFF_REASONS = frozenset("length max_tokens model_length max_output_tokens".split())
_FILTER_REASONS = frozenset(
    "content_filter content_filtered safety recitation blocklist prohibited_content refusal "
    "guardrail_intervened".split()
)
_REASONS = ("finish_reason", "stop_reason", "done_reason", "finishReason", "stopReason", "reason")
_REASON_HOLDERS = (
    *("response_metadata", "raw", "additional_kwargs", "message", "choices", "candidates"),
    "incomplete_details",
)


def why_unfinished(response: Any) -> str:
    """Say why the answer in a response is incomplete; empty if it is complete or unknown.

    >>> why_unfinished({"choices": [{"finish_reason": "length"}]})
    'it was cut off (length): allow longer answers, such as with a larger max_tokens'
    """
    for reason in _finish_reasons(response, 5):
        name = reason.rpartition(".")[2].lower()
        if name in _CUT_OFF_REASONS:
            return (
                f"it was cut off ({name}): allow longer answers, such as with a larger max_tokens"
            )
        if name in _FILTER_REASONS:
            return f"the service withheld it ({name})"
    return ""


def _finish_reasons(response: Any, depth: int) -> Iterator[str]:
    if isinstance(response, list):
        response = response[0] if response else None
    if response is None or isinstance(response, (str, int, float)) or depth == 0:
        return
    is_dict = isinstance(response, Mapping)
    for name in ("refusal", *_REASONS, *_REASON_HOLDERS):
        part = response.get(name) if is_dict else getattr(response, name, None)
        if name == "refusal":  # OpenAI's models explain it there, and leave the answer empty
            yield name if part else ""
        elif name in _REASONS:
            yield str(getattr(part, "name", part) or "")
        elif part is not None:
            yield from _finish_reasons(part, depth - 1)


def _is_anthropic(model: Any) -> bool:
    """Whether it is one of Anthropic's models, whose prompt cache needs marks in the prompt."""
    for name in ("bound", "first"):  # LangChain's bindings and sequences
        model = getattr(model, name, model)
    return any("Anthropic" in kind.__name__ for kind in type(model).__mro__)


def _with_cache_point(prompt: str) -> Any:
    """Return the prompt for LangChain, with a mark after the part that prompts share, if any."""
    if not isinstance(prompt, Prompt) or not prompt.shared:
        return prompt
    shared, rest = prompt.parts
    marked = {"type": "text", "text": shared, "cache_control": {"type": "ephemeral"}}
    return [{"role": "user", "content": [marked, {"type": "text", "text": rest}]}]


def _chat(model: Any, prompt: str) -> Any:
    """Send a prompt with this mark to one of Anthropic's models in LlamaIndex."""
    from llama_index.core.base.llms.types import (
        CacheControl,
        CachePoint,
        ChatMessage,
        CompletionResponse,
        TextBlock,
    )

    blocks: list[Any] = [TextBlock(text=str(prompt))]
    if isinstance(prompt, Prompt) and prompt.shared:
        shared, rest = prompt.parts
        mark = CachePoint(cache_control=CacheControl(type="ephemeral"))
        blocks = [TextBlock(text=shared), mark, TextBlock(text=rest)]
    response = model.chat([ChatMessage(role="user", blocks=blocks)])
    return CompletionResponse(text=response.message.content or "", raw=response.raw)


class _Probe(BaseModel):
    """A schema for testing whether a model accepts schemas."""

    answer: str


def _is_langchain(model: Any) -> bool:
    return None not in (first_method(model, "invoke"), first_method(model, "ainvoke"))


def _is_llama_index(model: Any) -> bool:
    return None not in (first_method(model, "complete"), first_method(model, "acomplete"))


def _with_schema(model: Any, schema: type[BaseModel]) -> Any:
    """Return LangChain's runnable that answers with the schema; None if it is not supported.

    If possible, it also returns the message, which says whether the answer is complete.
    """
    if (method := first_method(model, "with_structured_output")) is None:
        return None
    try:
        return method(schema, include_raw=True)
    except NotImplementedError:
        return None
    except TypeError:  # a user's own class without this option
        return method(schema)


# Retrievers


def retrieve_calls(retriever: Any) -> _Calls:
    """Return a blocking function and a coroutine function that retrieve texts for a question."""
    return _calls(retriever, first_method(retriever, "invoke", "retrieve"))


# Methods


def first_method(model: Any, *names: str) -> _Function | None:
    """Return the first of these methods that the model has, if any."""
    methods = (getattr(model, name, None) for name in names)
    return next((method for method in methods if callable(method)), None)


def _calls(model: Any, method: _Function | None) -> _Calls:
    """Return a method, or else the model itself, as a blocking and as a coroutine function.

    What can only be awaited runs on the background loop. Everything else runs in a thread when it
    is awaited.
    """
    if is_awaitable(model) and (method is None or is_chat_client(model)):
        awaited = model if method is None else model.ainvoke

        async def call(argument: Any) -> Any:
            return await awaited(argument)

        return lambda argument: run_async(call(argument)), lambda arg: arun_async(call(arg))
    function = method or model

    def blocking(argument: Any) -> Any:
        return finished(function(argument))

    return blocking, partial(in_thread, blocking)
