"""How models are called: several at once within a limit, and again after a passing failure."""

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

from rag_splitters.calls import Call, arun, run

_LOG = logging.getLogger(__name__)
_MAX_WAIT = 120.0  # seconds

_T = TypeVar("_T")
_R = TypeVar("_R")

_TRANSIENT = frozenset(
    "RateLimitError TooManyRequests TooManyRequestsError ResourceExhausted ThrottlingException "
    "APITimeoutError TimeoutError Timeout TimeoutException ReadTimeout ConnectTimeout "
    "APIConnectionError ConnectionError ConnectError TransportError RemoteProtocolError "
    "ServiceUnavailable ServiceUnavailableError InternalServerError OverloadedError".split()
)
"""Names of exceptions, from many clients, after which another attempt may succeed."""


def client_retries(model: Any) -> bool:
    """Whether the model's client retries by itself; if we retried too, attempts would multiply."""
    if getattr(model, "max_attempt_number", 0):  # LangChain's with_retry()
        return True
    model = getattr(model, "bound", model)
    return hasattr(model, "max_retries") and model.max_retries != 0


def is_transient(error: BaseException) -> bool:
    """Whether it is a rate limit, a time-out, a lost connection or a failure of the server."""
    response = getattr(error, "response", None)
    for status in (getattr(error, "status_code", None), getattr(response, "status_code", None)):
        if isinstance(status, int):
            return status in (408, 409, 429) or status >= 500
    if isinstance(error, (TimeoutError, ConnectionError)):
        return True
    if str(error) == "Already borrowed":  # Hugging Face's tokenizers, used by two threads at once
        return True
    return any(kind.__name__ in _TRANSIENT for kind in type(error).__mro__)


def retry_after(error: BaseException) -> float | None:
    """The seconds that the server asks to wait (header Retry-After, a number or a date)."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    value = headers.get("retry-after") if headers is not None else None
    value = getattr(error, "retry_after", None) if value is None else value
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(str(value)).timestamp() - time.time()
        except ValueError:
            return None
    return min(max(seconds, 0.0), _MAX_WAIT) if seconds == seconds else None


def retrying(
    function: Callable[..., _R],
    async_function: Callable[..., Awaitable[_R]],
    argument: Any,
    *,
    retries: int,
) -> Call[_R]:
    """A call that is repeated after a transient error, at most `retries` times."""

    async def await_once() -> _R:  # tenacity awaits only what was defined with async
        return await async_function(argument)

    def result() -> _R:
        if not retries:
            return function(argument)
        from tenacity import Retrying

        return Retrying(**_policy(retries))(function, argument)

    async def async_result() -> _R:
        if not retries:
            return await await_once()
        from tenacity import AsyncRetrying

        return await AsyncRetrying(**_policy(retries))(await_once)

    return Call(result, async_result)


def _policy(retries: int) -> dict[str, Any]:
    """Tenacity's arguments: wait as the server asks, else back off exponentially with jitter."""
    from tenacity import (
        before_sleep_log,
        retry_if_exception,
        stop_after_attempt,
        wait_random,
        wait_random_exponential,
    )

    backoff, jitter = wait_random_exponential(multiplier=0.5, max=30), wait_random(0, 0.2)

    def wait(state: Any) -> float:
        seconds = retry_after(state.outcome.exception())
        return backoff(state) if seconds is None else seconds + jitter(state)

    return {
        "stop": stop_after_attempt(retries + 1),
        "wait": wait,
        "retry": retry_if_exception(is_transient),
        "reraise": True,
        "before_sleep": before_sleep_log(_LOG, logging.DEBUG),
    }


_BAR: contextvars.ContextVar[Callable[[int], Any] | None] = contextvars.ContextVar(
    "bar", default=None
)


@contextmanager
def showing(bar: Callable[[int], Any]) -> Iterator[None]:
    """Show the progress of model calls in this block.

    Parameters:
        bar: makes a progress bar like tqdm's for a number of calls.
    """
    token = _BAR.set(bar)
    try:
        yield
    finally:
        _BAR.reset(token)


@contextmanager
def _counting(total: int) -> Iterator[Callable[[], object]]:
    """A function to call after each of `total` calls."""
    bar = _BAR.get()
    if bar is None or not total:
        yield lambda: None
        return
    with bar(total) as shown:
        yield shown.update


def for_each(
    function: Callable[[_T], Coroutine[Any, Any, _R]], items: Iterable[_T], limit: int
) -> Call[list[_R]]:
    """A call that runs a coroutine function for each item, at most `limit` at once.

    The coroutines await only calls, see `rag_splitters.calls`. After an error no further one is
    started.
    """
    items = list(items)
    return Call(
        lambda: bounded(lambda item: run(function(item)), items, limit),
        lambda: abounded(lambda item: arun(function(item)), items, limit),
    )


def bounded(function: Callable[[_T], _R], items: Sequence[_T], limit: int) -> list[_R]:
    """The function's result for each item, `limit` of them at a time in threads."""
    with _counting(len(items)) as count_one:

        def counted(item: _T) -> _R:
            result = function(item)
            count_one()
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
    function: Callable[[_T], Coroutine[Any, Any, _R]], items: Sequence[_T], limit: int
) -> list[_R]:
    """`bounded` for a coroutine function, on the event loop; an error cancels the others."""
    semaphore = asyncio.Semaphore(limit)
    with _counting(len(items)) as count_one:

        async def counted(item: _T) -> _R:
            async with semaphore:
                result = await function(item)
                count_one()
                return result

        tasks = [asyncio.ensure_future(counted(item)) for item in items]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()


def run_async(work: Coroutine[Any, Any, _R]) -> _R:
    """The result of a coroutine, for synchronous code; also inside a running event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()
