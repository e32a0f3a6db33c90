"""Judge: a chat model whose answers are checked, kept, and asked for once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from rag_splitters.calls import arun, run
from rag_splitters.evaluation.judging.answers import (
    Failure,
    Judgement,
    Task,
    answer_key,
    write_lines,
)
from rag_splitters.fields import whole_number
from rag_splitters.models import ModelError, chat_model
from rag_splitters.models.asking import ask_each
from rag_splitters.models.cache import text_cache
from rag_splitters.models.describing import stable_name

__all__ = ["Judge", "as_judge"]

Verdict = TypeVar("Verdict")

_AT_ONCE = 256  # how many answers are asked for before they are kept


class Judge:
    """Asks a chat model for verdicts, each one once, and keeps them.

    With a `cache`, the same run on another day asks the model nothing; what had failed is asked
    again. Answers are kept by the model's name, the task with its version, and the prompt, and are
    read and checked anew when they are taken from the cache. `export` writes everything that was
    judged, for an audit, and `recall` takes it back in the place of a cache.

    Parameters:
        llm: a LangChain chat model, a LlamaIndex LLM, or a function from prompt to answer, sync or
            async. LangChain and LlamaIndex models are asked for structured output.
        cache: a LangChain `BaseStore`, a LlamaIndex `BaseKVStore`, or the path of a folder, where
            `judgements.sqlite` is made.
        max_concurrency: how many calls are under way at once; None: 4, and 1 for a function that is
            not async.
        max_retries: how often an answer that is of no use is asked for again, with what is wrong
            with it. Rate limits and time-outs are retried besides, by the model's client or by us.

    Raises: TypeError for what is no chat model or no cache; ValueError for a cache with a model
    that has no name by which the next run would know it.

    >>> judge = Judge(lambda prompt: "True")
    >>> judge.model
    'function:rag_splitters.evaluation.judging.judge:<lambda>'
    """

    def __init__(
        self,
        llm: Any,
        *,
        cache: Any = None,
        max_concurrency: int | None = None,
        max_retries: int = 2,
    ) -> None:
        whole_number(max_retries, "max_retries", 0)
        self._chat = chat_model(llm, max_concurrency=max_concurrency)
        self._cache = None if cache is None else text_cache(cache, "judgements")
        if cache is not None:
            stable_name(self._chat)
        self._max_retries = max_retries
        self._records: dict[str, str] = {}
        self._judgements: dict[str, Judgement[Any]] = {}

    @property
    def model(self) -> str:
        """The model's stable name."""
        return self._chat.description

    @property
    def judgements(self) -> list[Judgement[Any]]:
        """What was judged so far, each prompt once, in the order of being asked."""
        return list(self._judgements.values())

    def ask(self, task: Task[Verdict], prompts: Sequence[str]) -> list[Judgement[Verdict]]:
        """The judgement of each prompt; none is lost: one that fails says why."""
        return run(self.judge(task, prompts))

    async def aask(self, task: Task[Verdict], prompts: Sequence[str]) -> list[Judgement[Verdict]]:
        """`ask` without blocking the event loop."""
        return await arun(self.judge(task, prompts))

    async def judge(self, task: Task[Verdict], prompts: Sequence[str]) -> list[Judgement[Verdict]]:
        """`ask` as a coroutine for `calls.run` and `calls.arun`."""
        asking = _Asking(self.model, task, prompts)
        asking.recall([self._records.get(key) for key in asking.open_keys()])
        cache = self._cache
        if cache is not None:
            asking.recall(await cache.read(asking.open_keys()))
        for keys, batch in asking.batches():
            answers = await ask_each(self._chat, batch, task.schema, asking.read, self._max_retries)
            pairs = asking.hear(keys, answers)
            if cache is not None and pairs:
                await cache.write(pairs)
        return self._kept(asking)

    def export(self, path: str | Path) -> None:
        """Write what was judged as JSON lines, each with its prompt, answer, verdict and model.

        A run that is repeated from a cache writes the same file again.
        """
        write_lines(path, (each.as_dict() for each in self.judgements))

    def recall(self, path: str | Path) -> None:
        """Take the answers that `export` wrote: what they answer is not asked again.

        Raises: ValueError, which names the line, for a file that is no export.
        """
        lines = Path(path).read_text(encoding="utf-8").rstrip("\n").split("\n")
        for number, line in enumerate(lines, 1):
            try:
                row = json.loads(line)
                key = answer_key(row["model"], row["task"], row["version"], row["prompt"])
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{path}, line {number} is no judgement: {error!r}") from None
            self._records[key] = line

    def _kept(self, asking: _Asking[Verdict]) -> list[Judgement[Verdict]]:
        self._judgements.update(asking.judgements)
        self._records.update(asking.records)
        return [asking.judgements[key] for key in asking.keys]


def as_judge(judge: Any) -> Judge:
    """The judge itself, or one for a chat model."""
    return judge if isinstance(judge, Judge) else Judge(judge)


class _Asking(Generic[Verdict]):
    """Prompts, and what is known of their answers so far."""

    def __init__(self, model: str, task: Task[Verdict], prompts: Sequence[str]) -> None:
        self._model, self._task = model, task
        self.keys = [answer_key(model, task.name, task.version, prompt) for prompt in prompts]
        self._prompts = dict(zip(self.keys, prompts, strict=True))
        self._known: dict[str, Judgement[Verdict]] = {}
        self.records: dict[str, str] = {}
        """What is worth keeping, as a cache keeps it."""

    @property
    def judgements(self) -> dict[str, Judgement[Verdict]]:
        """What is known, in the order of the prompts."""
        return {key: self._known[key] for key in self._prompts}

    def open_keys(self) -> list[str]:
        """The keys of what is not known yet."""
        return [key for key in self._prompts if key not in self._known]

    def recall(self, records: Sequence[str | None]) -> None:
        """Take what was kept under `open_keys()`, where it still reads."""
        for key, record in zip(self.open_keys(), records, strict=True):
            try:
                kept = json.loads(record or "")["answer"]
                answer = kept if isinstance(kept, str) else self._task.schema.model_validate(kept)
                self._judge(key, (kept, self._task.read(answer)))
            except (ValueError, KeyError, TypeError):
                continue  # none, a failure, or one that was damaged: it is asked again

    def batches(self) -> Iterator[tuple[list[str], list[str]]]:
        """Keys and prompts of what is not known yet."""
        missing = self.open_keys()
        for start in range(0, len(missing), _AT_ONCE):
            keys = missing[start : start + _AT_ONCE]
            yield keys, [self._prompts[key] for key in keys]

    def read(self, index: int, answer: str | BaseModel) -> tuple[Any, Verdict]:
        """The answer as it is kept, and the verdict in it."""
        kept = answer if isinstance(answer, str) else answer.model_dump(mode="json")
        return kept, self._task.read(answer)

    def hear(
        self, keys: Sequence[str], answers: Sequence[tuple[Any, Verdict] | ModelError]
    ) -> list[tuple[str, str]]:
        """Take the answers of a batch; returns those that are verdicts, to be kept."""
        for key, answer in zip(keys, answers, strict=True):
            self._judge(key, answer)
        return [(key, self.records[key]) for key in keys if key in self.records]

    def _judge(self, key: str, answer: tuple[Any, Verdict] | ModelError) -> None:
        failure = Failure.of(answer) if isinstance(answer, ModelError) else None
        kept, verdict = (None, None) if isinstance(answer, ModelError) else answer
        task, prompt = self._task, self._prompts[key]
        judgement = Judgement(task.name, task.version, self._model, prompt, kept, verdict, failure)
        self._known[key] = judgement
        if failure is None:
            self.records[key] = json.dumps(judgement.as_dict(), sort_keys=True)
