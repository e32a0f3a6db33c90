"""ChatModel: the same interface for chat models of any framework."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, PlainSerializer

from rag_splitters.calls import in_both_forms
from rag_splitters.errors import InputTypeError
from rag_splitters.models.calling import Stop, for_each, with_retries
from rag_splitters.models.clients import (
    ask_calls,
    client_retries,
    is_awaitable,
    is_chat_client,
    is_structured,
    why_unfinished,
)
from rag_splitters.models.describing import load_model, stable_name
from rag_splitters.models.errors import ModelError, model_error
from rag_splitters.models.pickling import ModelHolder
from rag_splitters.parameters.checks import whole_number
from rag_splitters.parameters.messages import describe_value
from rag_splitters.text.surrogates import without_surrogates

Answer: TypeAlias = "str | BaseModel | ModelError"
"""The answer to a prompt: text, an object of the schema, or an error."""

_Schema: TypeAlias = "type[BaseModel] | None"

_KINDS = (
    "a LangChain chat model, a LlamaIndex LLM, a callable prompt -> text, or a function without "
    "parameters that returns one of them"
)


def chat_model(
    llm: Any, *, max_concurrency: int | None = None, max_retries: int | None = None
) -> ChatModel:
    """Wrap a chat model of any framework, so that it has `ask` and `aask`.

    Parameters:
        llm: a LangChain chat model (or any runnable that answers a prompt), a LlamaIndex LLM, a
            callable from a prompt to text, sync or async, or a `ChatModel`. A function without
            parameters is a factory, which is called here, and again wherever a pickle is loaded.
        max_concurrency: maximum number of concurrent prompts. None: 4, but 1 for a sync callable,
            which may not be thread-safe, and for a `ChatModel` its own number.
        max_retries: how often to repeat a prompt after a rate limit, a time-out, a lost connection
            or a server error; only for models whose client does not retry by itself. None: 4, and
            for a `ChatModel` its own number.

    Raises TypeError if `llm` is not a chat model, and ValueError if a number is out of range.

    >>> chat_model(str.upper).ask(["hello", "world"])
    ['HELLO', 'WORLD']
    """
    numbers = {"max_concurrency": max_concurrency, "max_retries": max_retries}
    changes: dict[str, Any] = {k: number for k, number in numbers.items() if number is not None}
    if not isinstance(llm, ChatModel):
        return ChatModel(llm, **changes)
    return replace(llm, **changes) if changes else llm


@dataclass(frozen=True, repr=False)
class ChatModel(ModelHolder):
    """A chat model and how it is called; `chat_model` creates it.

    `ask` never loses an answer: for a prompt that fails, it returns a `ModelError` with the
    prompt's number, the model and the cause, and continues with the others. The repr, pickles and
    errors hold no secret: a model with an API key cannot be pickled, so pass a factory for work in
    other processes.
    """

    max_concurrency: int | None = None
    max_retries: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        is_client = is_chat_client(self.model)
        if isinstance(self.model, type) or not (is_client or callable(self.model)):
            raise InputTypeError(f"llm must be {_KINDS}, got {describe_value(self.model)}")
        if self.max_concurrency is None:
            default = 4 if is_client or is_awaitable(self.model) else 1
            object.__setattr__(self, "max_concurrency", default)
        whole_number(self.max_concurrency, "max_concurrency", 1)
        whole_number(self.max_retries, "max_retries", 0)

    __hash__ = ModelHolder.__hash__

    @property
    def is_structured(self) -> bool:
        """Whether the model can answer with an object of a schema; a callable cannot."""
        return is_structured(self.model)

    async def _ask(self, prompts: Sequence[str], schema: _Schema = None) -> list[Answer]:
        """Send the prompts, and return an answer or an error for each, in their order.

        Parameters:
            prompts: the prompts; lone surrogates are replaced, because no client can send them.
            schema: the pydantic model of the answers, for the framework's structured output. With
                None, or if the model does not support it (see `is_structured`), answers are text,
                without the reasoning in `<think>` tags that some servers leave before it.
        """
        asking = Asking(self, schema)
        return await for_each(
            lambda index: asking.answer(prompts[index], index, f"prompt {index}"),
            range(len(prompts)),
            self.max_concurrency or 1,
        )

    ask, aask = in_both_forms(_ask)


class Asking:
    """A series of questions to one model, which stops once no other question can succeed."""

    def __init__(self, model: ChatModel, schema: _Schema) -> None:
        self._model, self._schema = model.model, schema
        self._calls = ask_calls(model.model, schema)
        self._retries = 0 if client_retries(model.model) else model.max_retries
        self._stop = Stop(model.max_concurrency or 1)

    async def answer(self, prompt: str, index: int, name: str) -> Answer:
        """Return the answer to a prompt, or an error, which refers to the prompt by this name."""
        if self._stop.error is not None:
            return self._stop.error.about(f"not sent, because {self._stop.error}", index)
        try:
            response = await with_retries(*self._calls, without_surrogates(prompt), self._retries)
            answer: Answer = _read(self._model, response, self._schema, name)
        except ModelError as error:
            answer = error
        except Exception as error:  # one prompt's failure must not lose the others
            answer = model_error(self._model, f"failed on {name}", error)
        if isinstance(answer, ModelError):
            answer.index = index
        self._stop.count(answer if isinstance(answer, ModelError) else None)
        return answer


def _read(llm: Any, response: Any, schema: _Schema, name: str) -> str | BaseModel:
    """Read a response as text or an object. Raises ModelError if it is incomplete."""
    if problem := why_unfinished(response):
        error = model_error(llm, f"answered {name}, but {problem}")
        error.answered = False  # asking again would give the same answer
        raise error
    if schema is not None and isinstance(response, dict) and "parsed" in response:
        if parsing_error := response.get("parsing_error"):
            raise parsing_error
        response = response["parsed"]
    if schema is not None and isinstance(response, (dict, schema)):
        return response if isinstance(response, schema) else schema.model_validate(response)
    text = response if isinstance(response, str) else getattr(response, "text", None)
    if text is None or (isinstance(response, BaseModel) and not isinstance(text, str)):
        kind = type(response).__name__
        raise model_error(llm, f"answered {name} with {kind} instead of text")
    answer = _without_reasoning(str(text))
    if not answer.strip():
        raise model_error(llm, f"answered {name} with an empty text")
    return answer


def _without_reasoning(text: str) -> str:
    """Return an answer without the reasoning before it, which some servers leave in the text.

    >>> _without_reasoning("<think>It is about tea.</think>\\n\\nTea")
    'Tea'
    """
    reasoning, end, answer = text.partition("</think>")
    is_reasoning = reasoning.lstrip().startswith("<think>") or (end and "<think>" not in reasoning)
    return answer.lstrip() if is_reasoning else text


Llm = Annotated[
    Any,
    BeforeValidator(lambda value: load_model(value, "llm", _KINDS, chat_model)),
    PlainSerializer(stable_name, return_type=str),
]
"""A field for a chat model: any that `chat_model` accepts; its value is a `ChatModel`."""
