"""What parent-child retrieval asks of the stores, the splitters and the models that it is given.

Every method is `async`. One made for a synchronous call never suspends, so that `run` can drive it
without an event loop; so the order of reads and writes is written once for both.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from rag_splitters.parent_child.passages import Passage

if TYPE_CHECKING:
    from rag_splitters.parent_child.keywords import KeywordIndex

__all__ = [
    "Children",
    "Detail",
    "Found",
    "Level",
    "Rows",
    "Split",
    "Stores",
    "parts",
    "run",
    "threaded",
]

Detail = Literal["id", "metadata", "text"]
"""How much is asked of a child: its id, its metadata too, or its text as well. A store may give
more; each costs time."""
Level = Literal["parents", "children"]
Split = Callable[[Level, list[Passage]], Awaitable["list[list[Passage]] | None"]]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Found:
    """A child that a search found, and its score where the store tells it."""

    child: Passage
    score: float | None


class Rows(Protocol):
    """The docstore: parents, and a record of each source document."""

    async def read(self, keys: Sequence[str]) -> list[Passage | None]:
        """The rows of the keys, in their order; None where there is none."""

    async def write(self, rows: Sequence[tuple[str, Passage]]) -> None:
        """Write rows."""

    async def remove(self, keys: Sequence[str]) -> None:
        """Remove rows; keys that are not there are passed over."""

    def keys(self, prefix: str) -> AsyncIterator[str]:
        """The keys that begin so."""


class Children(Protocol):
    """The vector store."""

    @property
    def merges_metadata(self) -> bool:
        """Whether a rewritten child keeps old metadata keys, except for those set to None."""

    @property
    def smoothing(self) -> float:
        """The width by which neighbours' vectors are mixed, in children; 0 for not at all."""

    async def index(self, documents: Sequence[Sequence[Passage]]) -> None:
        """Embed the children of some documents, in their order, and write them by their ids."""

    async def forget(self, ids: Sequence[str]) -> None:
        """Remove children; those that are not there are passed over."""

    async def read(self, ids: Sequence[str], detail: Detail = "text") -> list[Passage | None]:
        """The children with these ids, in their order; None where there is none."""

    async def allowed(self, ids: Sequence[str]) -> Collection[str]:
        """Those of the ids that a query's filter does not refuse."""

    async def of_parents(self, id_key: str, ids: Sequence[str]) -> list[Passage]:
        """The children of some parents. Raises: NotImplementedError where it cannot be asked."""

    def all(self) -> AsyncIterator[Passage]:
        """Every child. Raises: NotImplementedError where the store cannot be listed."""

    async def find(self, query: str, n: int, detail: Detail = "text") -> list[Found]:
        """The n nearest children, best first; fewer where there are no more."""

    async def find_diverse(self, query: str, n: int, pool: int, balance: float) -> list[Found]:
        """n of the `pool` nearest, by maximal marginal relevance; 1 asks for the nearest alone."""


@dataclass(frozen=True, slots=True)
class Stores:
    """All that one operation works on."""

    rows: Rows
    children: Children
    split: Split
    call: Callable[..., Awaitable[Any]]
    """Calls what blocks; see `threaded`."""
    id_key: str
    headings: bool = False
    """Do title and headings stand before a child's text where that is embedded or indexed?"""
    keywords: KeywordIndex | None = None
    inherited: frozenset[str] | None = None
    """The keys of a parent's metadata that its children keep; None: all."""


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine whose stores never suspend, with or without an event loop around.

    >>> async def answer() -> int:
    ...     return 42
    >>> run(answer())
    42
    """
    try:
        work.send(None)
    except StopIteration as finished:
        result: T = finished.value
        return result
    work.close()
    raise RuntimeError("the stores of a synchronous call must not suspend")


def threaded(asynchronous: bool) -> Callable[..., Awaitable[Any]]:
    """How to call what blocks: in a thread or, for a synchronous operation, just so."""
    if asynchronous:
        return asyncio.to_thread

    async def called(function: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
        return function(*args, **kwargs)

    return called


def parts(items: Sequence[T], size: int) -> list[Sequence[T]]:
    """The items in slices of at most `size`.

    >>> parts("abcde", 2)
    ['ab', 'cd', 'e']
    """
    return [items[start : start + size] for start in range(0, len(items), size)]
