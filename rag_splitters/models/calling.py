"""Concurrent model calls, with retries, that stop once no other call can succeed."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import random
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, TypeVar

from rag_splitters.calls import Call, arun, run, sleep, with_value
from rag_splitters.models.errors import ModelError
from rag_splitters.models.faults import is_transient, retry_after, was_retried
from rag_splitters.models.secrets import without_secrets

_LOG = logging.getLogger(__name__)
_LONGEST_WAIT = 30.0  # seconds before another attempt, unless the server says otherwise

_T = TypeVar("_T")
_R = TypeVar("_R")


async def with_retries(
    function: Callable[[_T], _R],
    async_function: Callable[[_T], Awaitable[_R]],
    argument: _T,
    retries: int,
) -> _R:
    """Call a function, and repeat the call after a transient error, at most `retries` times.

    It is not repeated if the client has already repeated the request: attempts would multiply. The
    wait is as long as the server says, else random, and longer from one attempt to the next.
    """
    call = Call(partial(function, argument), partial(async_function, argument))
    for attempt in range(retries):
        try:
            return await call
        except Exception as error:
            if not is_transient(error) or was_retried(error):
                raise
            _LOG.debug("retrying after %s", without_secrets(f"{type(error).__name__}: {error}"))
            seconds = retry_after(error)
        if seconds is None:  # tenacity keeps its state by thread, and this may go on in another one
            await sleep(random.uniform(0, min(_LONGEST_WAIT, 0.5 * 2**attempt)))  # noqa: S311
        else:
            await sleep(seconds + random.uniform(0, 0.2))  # noqa: S311
    return await call


class Stop:
    """Decides when to stop sending requests: after an error that would affect all of them.

    Parameters:
        limit: maximum number of concurrent requests. The server counts as down if twice as many
            requests in a row fail in spite of retries, and at least 8.
    """

    def __init__(self, limit: int) -> None:
        self._limit = max(8, 2 * limit)
        self._in_a_row = 0
        self.error: ModelError | None = None
        """The error because of which no more requests are sent, or None."""

    def count(self, error: ModelError | None) -> None:
        """Record a failure, or a success (None)."""
        self._in_a_row = self._in_a_row + 1 if error is not None and error.transient else 0
        if error is not None and (error.fatal or self._in_a_row >= self._limit):
            self.error = self.error or error


_BAR: contextvars.ContextVar[Callable[[int], Any] | None] = contextvars.ContextVar(
    "bar", default=None
)


def showing(bar: Callable[[int], Any]) -> AbstractContextManager[None]:
    """Show the progress of model calls in this block.

    Parameters:
        bar: creates a progress bar, like that of tqdm, for a number of calls.
    """
    return with_value(_BAR, bar)


@contextmanager
def _counting(total: int) -> Iterator[Callable[[], object]]:
    """Yield a function to call after each of `total` calls."""
    bar = _BAR.get()
    if bar is None or not total:
        yield lambda: None
        return
    with bar(total) as shown:
        yield shown.update


def for_each(
    function: Callable[[_T], Coroutine[Any, Any, _R]], items: Iterable[_T], limit: int
) -> Call[list[_R]]:
    """Return a call that runs a coroutine function for each item, at most `limit` at a time.

    The coroutines await only calls, see `rag_splitters.calls`. After an error, no more are started.
    """
    items = list(items)
    return Call(
        lambda: bounded(lambda item: run(function(item)), items, limit),
        lambda: abounded(lambda item: arun(function(item)), items, limit),
    )


def bounded(function: Callable[[_T], _R], items: Sequence[_T], limit: int) -> list[_R]:
    """Return the function's result for each item, `limit` of them at a time in threads."""
    with _counting(len(items)) as count_one:

        def counted(item: _T) -> _R:
            result = function(item)
            count_one()
            return result

        if limit == 1 or len(items) < 2:
            return [counted(item) for item in items]
        contexts = [contextvars.copy_context() for _ in items]
        with ThreadPoolExecutor(min(limit, len(items))) as pool:  # after an error, `map` cancels
            return list(pool.map(lambda own, item: own.run(counted, item), contexts, items))


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
