"""Code that is written once for synchronous and asynchronous callers.

Code that has to wait (for a model, a store, a file) is a coroutine that awaits `Call` objects and
nothing else. `run` drives it for a synchronous caller and makes each call directly; `arun` drives
the same coroutine inside an event loop: it awaits each call, and runs the code between two calls
in a worker thread, so that nothing heavy ever runs on the loop's own thread.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, wraps
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Call(Generic[T]):
    """Something to wait for, in a synchronous and an asynchronous form.

    Parameters:
        function: makes the call and returns its result; it may block.
        async_function: the same as a coroutine function; None runs `function` in a thread.
        is_write: whether the call changes something, so that it must never be left half done.
        undo: takes a result back that nobody gets, because the caller was cancelled meanwhile; such
            as a lock, which nobody else could release.

    >>> async def double() -> int:
    ...     return 2 * await Call(lambda: 21)
    >>> run(double()), asyncio.run(arun(double()))
    (42, 42)
    """

    __slots__ = ("async_function", "function", "is_write", "undo")

    def __init__(
        self,
        function: Callable[[], T],
        async_function: Callable[[], Awaitable[T]] | None = None,
        *,
        is_write: bool = False,
        undo: Callable[[T], Coroutine[Any, Any, object]] | None = None,
    ) -> None:
        self.function = function
        self.async_function = async_function
        self.is_write = is_write
        self.undo = undo

    def __await__(self) -> Generator[Call[T], Any, T]:
        result: T = yield self
        return result

    async def result(self) -> T:
        """Make the call without blocking the event loop."""
        if self.async_function is None:
            return await asyncio.to_thread(self.function)
        return await self.async_function()


class Batch(Call[Any]):
    """A call over several items, which `together` may merge with others that have its key.

    Parameters:
        key: equal for calls that one call can answer, such as those to one model.
        items: what the call is about.
        function: takes a list of items and returns a sequence with a result for each.
        async_function: the same as a coroutine function; None runs `function` in a thread.
    """

    __slots__ = ("batch_async_function", "batch_function", "items", "key")

    def __init__(
        self,
        key: Hashable,
        items: Sequence[Any],
        function: Callable[[Sequence[Any]], Any],
        async_function: Callable[[Sequence[Any]], Awaitable[Any]] | None = None,
    ) -> None:
        bound = None if async_function is None else partial(async_function, items)
        super().__init__(partial(function, items), bound)
        self.key, self.items = key, items
        self.batch_function, self.batch_async_function = function, async_function


def call(function: Callable[..., T], /, *args: Any, **kwargs: Any) -> Call[T]:
    """Return a call of a blocking function; `run` makes it directly, `arun` in a thread."""
    return Call(partial(function, *args, **kwargs))


def call_method(
    target: Any, name: str, /, *args: Any, is_write: bool = False, **kwargs: Any
) -> Call[Any]:
    """Return a call of a method; in asynchronous use, of its counterpart "a" + name, if any."""
    twin = getattr(target, f"a{name}", None)
    return Call(
        partial(getattr(target, name), *args, **kwargs),
        partial(twin, *args, **kwargs) if inspect.iscoroutinefunction(twin) else None,
        is_write=is_write,
    )


def sleep(seconds: float) -> Call[None]:
    """Return a call that waits."""
    return Call(partial(time.sleep, seconds), partial(asyncio.sleep, seconds))


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that awaits only calls, from synchronous code.

    Raises: RuntimeError if the coroutine awaits anything other than a `Call`.
    """
    resume: Callable[[Any], Any] = work.send
    value: Any = None
    while True:
        try:
            request = _check_request(work, resume(value))
        except StopIteration as finished:
            result: T = finished.value
            return result
        try:
            resume, value = work.send, request.function()
        except BaseException as error:
            resume, value = work.throw, error


async def arun(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that awaits only calls inside the running event loop.

    Cancelling it cancels the call that is under way and runs the coroutine's clean-up. A call in a
    thread cannot be interrupted, and one that writes must not be: the cancellation takes effect
    when that call has ended.

    Raises: RuntimeError if the coroutine awaits anything other than a `Call`.
    """
    advance: Callable[[], Any] = partial(work.send, None)
    while True:
        request, results = await _in_thread(work, advance)
        if results:
            result: T = results[0]
            return result
        request = _check_request(work, request)
        try:
            advance = partial(work.send, await _result_of(request))
        except BaseException as error:
            advance = partial(work.throw, error)


async def _result_of(request: Call[T]) -> T:
    """Make a call, and let a cancellation interrupt only what may be interrupted."""
    if request.async_function is not None and not request.is_write:
        return await request.async_function()
    task = asyncio.ensure_future(request.result())
    cancelled = await _finish(task)
    if cancelled is None:
        return task.result()
    has_result = not task.cancelled() and task.exception() is None
    if has_result and request.undo is not None:
        await _finish(asyncio.ensure_future(arun(request.undo(task.result()))))
    raise cancelled  # which says more than an error of the call


async def _finish(task: asyncio.Future[Any]) -> asyncio.CancelledError | None:
    """Wait until a task has ended, also while being cancelled; return the cancellation."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
        except BaseException:  # the task's own error, which its result raises
            break
    return cancelled


async def _in_thread(
    work: Coroutine[Any, Any, T], advance: Callable[[], Any]
) -> tuple[Any, list[T]]:
    """Run the coroutine up to its next call.

    A thread cannot be interrupted. If the caller is cancelled meanwhile, the step is finished
    first, and then the coroutine gets the cancellation.

    Returns: (the call, []), or (None, [the result]) if the coroutine has finished.
    """
    step = asyncio.ensure_future(asyncio.to_thread(_step, advance))
    cancelled = await _finish(step)
    if cancelled is None:
        return step.result()
    if step.exception() is None and not step.result()[1]:
        return await _in_thread(work, partial(work.throw, cancelled))
    raise cancelled


def _step(advance: Callable[[], Any]) -> tuple[Any, list[Any]]:
    try:
        return advance(), []
    except StopIteration as finished:  # a future cannot hold a StopIteration
        return None, [finished.value]


def _check_request(work: Coroutine[Any, Any, Any], request: Any) -> Call[Any]:
    if isinstance(request, Call):
        return request
    work.close()
    raise RuntimeError(
        f"{getattr(work, '__qualname__', work)} may await only calls of rag_splitters, such as "
        f"call(function), but it awaited {request!r}"
    )


async def together(works: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Run several coroutines that await only calls concurrently, and return their results.

    Batches with the same key that they await at the same time become one call: fifty documents
    that are planned one by one need as many requests to a model as one plan for all fifty.
    """
    advances = {index: partial(work.send, None) for index, work in enumerate(works)}
    results: dict[int, T] = {}
    try:
        while advances:
            requests: dict[int, Call[Any]] = {}
            for index, advance in advances.items():
                try:
                    requests[index] = _check_request(works[index], advance())
                except StopIteration as finished:
                    results[index] = finished.value
            advances = {}
            for request, parts in _merge_requests(requests):
                try:
                    answer = await request
                except Exception as error:
                    advances |= {i: partial(works[i].throw, error) for i in parts}
                else:
                    advances |= {
                        index: partial(works[index].send, answer if part is None else answer[part])
                        for index, part in parts.items()
                    }
    finally:
        for work in works:
            work.close()
    return [results[index] for index in range(len(works))]


def _merge_requests(
    requests: dict[int, Call[Any]],
) -> Iterator[tuple[Call[Any], dict[int, slice | None]]]:
    """Yield the calls to make, and which part of the answer each coroutine gets (None: all)."""
    batches: dict[Hashable, dict[int, Batch]] = {}
    for index, request in requests.items():
        if isinstance(request, Batch):
            batches.setdefault(request.key, {})[index] = request
        else:
            yield request, {index: None}
    for group in batches.values():
        items: list[Any] = []
        parts: dict[int, slice | None] = {}
        for index, batch in group.items():
            parts[index] = slice(len(items), len(items) + len(batch.items))
            items += batch.items
        yield Batch(batch.key, items, batch.batch_function, batch.batch_async_function), parts


@contextmanager
def with_value(variable: ContextVar[T], value: T) -> Iterator[None]:
    """Set a context variable inside the `with` statement, also for calls in threads."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def in_both_forms(
    function: Callable[P, Coroutine[Any, Any, T]],
) -> tuple[Callable[P, T], Callable[P, Coroutine[Any, Any, T]]]:
    """Return a coroutine function that awaits only calls as a blocking and as an async function.

    Both have its signature and docstring. Its name begins with an underscore; theirs do not, and
    that of the async one begins with "a".

    >>> async def _double(number: int) -> int:
    ...     return 2 * await call(lambda: number)
    >>> double, adouble = in_both_forms(_double)
    >>> double(21), asyncio.run(adouble(number=21)), adouble.__name__
    (42, 42, 'adouble')
    """

    @wraps(function)
    def blocking(*args: P.args, **kwargs: P.kwargs) -> T:
        return run(function(*args, **kwargs))

    @wraps(function)
    async def asynchronous(*args: P.args, **kwargs: P.kwargs) -> T:
        return await arun(function(*args, **kwargs))

    name = function.__name__.lstrip("_")
    blocking.__name__ = blocking.__qualname__ = name
    asynchronous.__name__ = asynchronous.__qualname__ = f"a{name}"
    return blocking, asynchronous
