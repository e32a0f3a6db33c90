"""How models are called: bounded concurrency, retries, and errors that say what happened."""

from __future__ import annotations

import asyncio
import contextvars
import email.utils
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from rag_splitters.models.describing import describe_model, without_secrets

__all__ = [
    "ModelError",
    "abounded",
    "acall",
    "bounded",
    "call",
    "client_retries",
    "is_transient",
    "model_error",
    "retry_after",
    "run_async",
    "sendable",
    "showing",
]

_LOG = logging.getLogger(__name__)
_LONGEST_WAIT = 120.0

_T = TypeVar("_T")
_R = TypeVar("_R")

_TRANSIENT = frozenset(
    "RateLimitError TooManyRequests TooManyRequestsError ResourceExhausted ThrottlingException "
    "APITimeoutError TimeoutError Timeout TimeoutException ReadTimeout ConnectTimeout "
    "APIConnectionError ConnectionError ConnectError TransportError RemoteProtocolError "
    "ServiceUnavailable ServiceUnavailableError InternalServerError OverloadedError".split()
)
"""Names of exceptions, of many clients, that another try may get over."""


class ModelError(ValueError):
    """A model failed, or answered what is of no use.

    Parameters:
        message: what happened, to which model.
        model: the model, as `describe_model` names it.
        index: which text or prompt of the call it was, from 0, where known.
        answered: did the model answer, but with something else than what it was asked for?
        kind: the name of the client's exception's class, where there was one.

    The client's own exception is its `__cause__`, unless that one holds a secret.
    """

    def __init__(
        self,
        message: str,
        *,
        model: str = "",
        index: int | None = None,
        answered: bool = False,
        kind: str = "",
    ) -> None:
        super().__init__(message)
        self.model = model
        self.index = index
        self.answered = answered
        self.kind = kind


def model_error(
    model: Any, what: str, cause: BaseException | None = None, index: int | None = None
) -> ModelError:
    """A `ModelError` for this model, with what its client said and without its secrets."""
    kind = "" if cause is None else type(cause).__name__
    said = "" if cause is None else f": {kind}: {str(cause)[:500]}"
    name = describe_model(model)
    told = without_secrets(f"{name} {what}{said}", model)
    answered = cause is None or isinstance(cause, ValueError)  # what parsers and pydantic raise
    error = ModelError(told, model=name, index=index, answered=answered, kind=kind)
    if cause is not None:
        is_clean = without_secrets(str(cause) + repr(cause), model) == str(cause) + repr(cause)
        error.__cause__ = cause if is_clean else None
        error.__suppress_context__ = True
    return error


def client_retries(model: Any) -> bool:
    """Does the model's client retry by itself? Then we do not, or tries would multiply."""
    if getattr(model, "max_attempt_number", 0):  # LangChain's with_retry()
        return True
    model = getattr(model, "bound", model)
    return hasattr(model, "max_retries") and model.max_retries != 0


def is_transient(error: BaseException) -> bool:
    """Is it a rate limit, a time-out, a lost connection or a server's own failure?"""
    response = getattr(error, "response", None)
    for status in (getattr(error, "status_code", None), getattr(response, "status_code", None)):
        if isinstance(status, int):
            return status in (408, 409, 429) or status >= 500
    if isinstance(error, (TimeoutError, ConnectionError)):
        return True
    return any(kind.__name__ in _TRANSIENT for kind in type(error).__mro__)


def retry_after(error: BaseException) -> float | None:
    """The seconds that the server asked to wait (header Retry-After, a number or a date)."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    asked = headers.get("retry-after") if headers is not None else None
    asked = getattr(error, "retry_after", None) if asked is None else asked
    if asked is None:
        return None
    try:
        seconds = float(asked)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(str(asked)).timestamp() - time.time()
        except ValueError:
            return None
    return min(max(seconds, 0.0), _LONGEST_WAIT) if seconds == seconds else None


def _policy(retries: int) -> dict[str, Any]:
    """Tenacity's arguments: what the server asks, else exponential backoff with full jitter."""
    from tenacity import (
        before_sleep_log,
        retry_if_exception,
        stop_after_attempt,
        wait_random,
        wait_random_exponential,
    )

    backoff, jitter = wait_random_exponential(multiplier=0.5, max=30), wait_random(0, 0.2)

    def wait(state: Any) -> float:
        asked = retry_after(state.outcome.exception())
        return backoff(state) if asked is None else asked + jitter(state)

    return {
        "stop": stop_after_attempt(retries + 1),
        "wait": wait,
        "retry": retry_if_exception(is_transient),
        "reraise": True,
        "before_sleep": before_sleep_log(_LOG, logging.DEBUG),
    }


def call(function: Callable[..., _R], *arguments: Any, retries: int) -> _R:
    """Call it, and again after a transient error, at most `retries` times."""
    if not retries:
        return function(*arguments)
    from tenacity import Retrying

    return Retrying(**_policy(retries))(function, *arguments)


async def acall(function: Callable[..., Awaitable[_R]], *arguments: Any, retries: int) -> _R:
    """`call` for what is awaited."""
    if not retries:
        return await function(*arguments)
    from tenacity import AsyncRetrying

    async def once() -> _R:  # tenacity only awaits what was defined with async
        return await function(*arguments)

    return await AsyncRetrying(**_policy(retries))(once)


_BAR: contextvars.ContextVar[Callable[[int], Any] | None] = contextvars.ContextVar(
    "bar", default=None
)


@contextmanager
def showing(bar: Callable[[int], Any]) -> Iterator[None]:
    """Show how many calls of a model are done in here, by a bar like tqdm's of so many."""
    token = _BAR.set(bar)
    try:
        yield
    finally:
        _BAR.reset(token)


@contextmanager
def _counting(total: int) -> Iterator[Callable[[], object]]:
    """What to call when one of so many calls is done."""
    bar = _BAR.get()
    if bar is None or not total:
        yield lambda: None
        return
    with bar(total) as shown:
        yield shown.update


def bounded(function: Callable[[_T], _R], items: Sequence[_T], limit: int) -> list[_R]:
    """The function's result for each item, `limit` of them at a time, in threads."""
    with _counting(len(items)) as done:

        def counted(item: _T) -> _R:
            result = function(item)
            done()
            return result

        if limit == 1 or len(items) < 2:
            return [counted(item) for item in items]
        with ThreadPoolExecutor(min(limit, len(items))) as pool:
            futures = [pool.submit(contextvars.copy_context().run, counted, item) for item in items]
            try:
                return [future.result() for future in futures]
            except BaseException:
                for future in futures:
                    future.cancel()
                raise


async def abounded(
    function: Callable[[_T], Coroutine[Any, Any, _R]], items: Iterable[_T], limit: int
) -> list[_R]:
    """The awaited result for each item, `limit` of them at a time; after an error none goes on."""
    gate, known = asyncio.Semaphore(limit), list(items)
    with _counting(len(known)) as done:

        async def gated(item: _T) -> _R:
            async with gate:
                result = await function(item)
                done()
                return result

        tasks = [asyncio.ensure_future(gated(item)) for item in known]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()


def run_async(awaited: Coroutine[Any, Any, _R]) -> _R:
    """The result of a coroutine, from code that is not async; also inside a running event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(awaited)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, awaited).result()


def sendable(text: str) -> str:
    """The text with U+FFFD for lone surrogates, which no client can encode."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
