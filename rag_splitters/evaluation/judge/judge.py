"""Judge: a chat model whose answers are checked and cached."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ValidationError

from rag_splitters.errors import InputError
from rag_splitters.models import ModelError, chat_model
from rag_splitters.models.asking import ask_each
from rag_splitters.models.cache import check_cache, text_cache
from rag_splitters.parameters.checks import whole_number

Answer = TypeVar("Answer", bound=BaseModel)

_JSON = "Answer with one JSON object and nothing else. This is its schema:\n"


def _not_blank(text: str) -> str:
    if not text.strip():
        raise InputError("it is blank")
    return text.strip()


Text = Annotated[str, AfterValidator(_not_blank)]
"""A text in an answer, which must not be blank."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no verdict.

    Parameters:
        reason: the kind of failure; failures are counted by it.
        detail: what happened, in full.
    """

    reason: str
    detail: str

    def __str__(self) -> str:
        return self.detail

    @classmethod
    def of(cls, error: ModelError) -> Failure:
        """Return a model's error as a failure."""
        if error.answered:
            return cls("the answer could not be used", str(error))
        reason = f"the model raised {error.kind}" if error.kind else "the answer is not whole"
        return cls(reason, str(error))


class Judge:
    """Asks a chat model for verdicts. With a cache, the next run asks only for what failed.

    Parameters:
        llm: a LangChain chat model, a LlamaIndex LLM, or a function from prompt to answer, sync or
            async. LangChain and LlamaIndex models are asked for structured output, functions for
            JSON.
        cache: where the answers are kept, as for the strategies: a LangChain `BaseStore`, a
            LlamaIndex `BaseKVStore`, or the path of a folder. A cached answer is checked again.
        max_concurrency: maximum number of calls at once; None: 4, or 1 for a function that is not
            async.
        max_retries: how often the model is asked again, with what is wrong, if its answer cannot be
            used. Rate limits and timeouts are retried as well, by the model's client or by us.

    Raises: TypeError if `llm` is not a chat model, or `cache` not a cache; ValueError for a cache
    with a model that has no stable name.

    >>> judge = Judge(lambda prompt: "True")
    >>> judge.model
    'function:rag_splitters.evaluation.judge.judge:<lambda>'
    """

    def __init__(
        self,
        llm: Any,
        *,
        cache: Any = None,
        max_concurrency: int | None = None,
        max_retries: int = 2,
    ) -> None:
        self._max_retries = whole_number(max_retries, "max_retries", 0)
        self._chat = chat_model(llm, max_concurrency=max_concurrency)
        self._cache = None if cache is None else text_cache(cache)
        check_cache(self._cache, self._chat)

    @property
    def model(self) -> str:
        """The model's stable name, without secrets."""
        return self._chat.description

    async def judge(
        self, groups: Sequence[Sequence[str]], schema: type[Answer]
    ) -> list[list[Answer | Failure]]:
        """Return the answers to groups of prompts, which may be empty, as objects of a schema.

        Run it by `calls.run` or `arun`.
        """
        form = f"\n\n{_JSON}{json.dumps(schema.model_json_schema())}"
        if self._chat.is_structured:
            form = ""
        prompts = [prompt + form for group in groups for prompt in group]
        answers = await ask_each(
            self._chat,
            prompts,
            schema,
            lambda _, answer: _read(answer, schema),
            self._max_retries,
            cache=self._cache,
        )
        rest = (Failure.of(each) if isinstance(each, ModelError) else each for each in answers)
        return [[next(rest) for _ in group] for group in groups]


def _read(answer: str | BaseModel, schema: type[Answer]) -> Answer:
    """Return an answer as an object; in text, it is between the first brace and the last one.

    Raises: ValueError if the answer does not fit the schema.

    >>> class Rain(BaseModel):
    ...     is_wet: bool
    >>> _read('```json\\n{"is_wet": true}\\n```', Rain)
    Rain(is_wet=True)
    """
    if isinstance(answer, schema):
        return answer
    text = str(answer)
    try:
        return schema.model_validate_json(text[text.find("{") : text.rfind("}") + 1])
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise InputError(f"it does not fit the schema: {place} {first['msg']}") from None


def as_judge(judge: Any) -> Judge:
    """Return the judge itself, or a judge for a chat model."""
    return judge if isinstance(judge, Judge) else Judge(judge)
