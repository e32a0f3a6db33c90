"""The base classes of strategies whose chunks have a maximum size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from itertools import pairwise
from typing import Any, ClassVar, TypeVar

from typing_extensions import Self

from rag_splitters.contract.chunker import Chunker, plan_each
from rag_splitters.errors import InputError
from rag_splitters.parameters.checks import count_or_share
from rag_splitters.parameters.fields import Least, Overlap, Size, Unit
from rag_splitters.span import Source, Span
from rag_splitters.text.sizing import LengthFunction, Sizes, sizer, text_length

SIZES = ("chunk_size", "chunk_overlap", "length_function")
"""The names of the sizes that most strategies have."""

Strategy = TypeVar("Strategy", bound=Chunker)


class SizedChunker(Chunker):
    """A chunker whose chunks have a maximum size.

    Raises ValueError if the size is below 1, if the overlap is negative or not smaller than the
    size, or if the length function is unknown.
    """

    chunk_size: Size = 1000
    """Maximum chunk size, overlap included, in units of `length_function`."""

    chunk_overlap: Overlap = 0
    """How much of the end of a chunk the next one repeats: a number of units (an int), or a share
    of `chunk_size` (a float below 1). Whole sentences are repeated if at least one fits, otherwise
    whole lines, otherwise clauses, otherwise words."""

    length_function: Unit = "characters"
    """Unit of all sizes: "characters", "words", "tokens" (cl100k_base),
    "tokens:<encoding or model>", a tokenizer, or a function from text to length."""

    hands_prefix_on: ClassVar[bool] = False
    """Whether `plan` gets the prefixes of its sources, because the strategies inside make room."""

    @classmethod
    def implied_parameters(cls, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """No overlap if only the size is passed, unless the default is a share of the size."""
        is_share = isinstance(cls.model_fields["chunk_overlap"].default, float)
        return {} if is_share or "chunk_size" not in parameters else {"chunk_overlap": 0}

    def check_parameters(self) -> None:
        super().check_parameters()
        self.overlap  # noqa: B018  (it raises the error)

    @property
    def overlap(self) -> int:
        """The overlap in units. Raises ValueError if it is not smaller than `chunk_size`."""
        overlap, size = self.chunk_overlap, self.chunk_size
        if type(overlap) is not int or overlap < 0:
            overlap = count_or_share(overlap, "chunk_overlap", includes_one=False)
        if isinstance(overlap, float):
            return int(overlap * size)
        if overlap >= size:
            raise InputError(
                f"chunk_overlap must be smaller than chunk_size ({size}), got {overlap}"
            )
        return overlap

    @property
    def sizes(self) -> Sizes:
        """Size, overlap and unit, for `packing.pack`."""
        return Sizes(self.chunk_size, self.overlap, self.length_function)

    def fits(self, content: str) -> bool:
        return text_length(content, self.length_function) <= self.chunk_size

    def spans_fit(self, spans: Sequence[Span], text: str) -> bool:
        return super().spans_fit(spans, text) and not self._repeats_more(spans, text)

    def _repeats_more(self, spans: Sequence[Span], text: str) -> bool:
        """Whether an overlap between two of these spans is bigger than `overlap`."""
        if not self.overlap:
            return False
        length = sizer(self.length_function)(text).length
        return any(
            other.start < one.end and length(other.start, one.end) > self.overlap
            for one, other in pairwise(spans)
            if not (one.is_rewritten or other.is_rewritten)
        )

    def with_room_for(self, prefix: str) -> Self:
        """Return the same strategy with smaller chunks, so that `prefix` fits before each.

        `plan` uses it for sources that have a prefix. A subclass with other sizes overrides it.
        """
        measure = sizer(self.length_function)(prefix)
        length = measure.length(0, len(prefix)) + (not measure.is_monotone)  # it may round down
        size = max(1, self.chunk_size - length)
        overlap = min(self.overlap, max(size // 2, self.overlap * size // self.chunk_size))
        return self.model_copy(update={"chunk_size": size, "chunk_overlap": overlap})

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        plan = vars(cls).get("plan")
        if plan is not None and not (cls.hands_prefix_on or hasattr(plan, "makes_room")):
            cls.plan = _plan_with_room(plan)  # type: ignore[method-assign]


def _plan_with_room(plan: Any) -> Any:
    """Return a `plan` that leaves room for the prefix of each source."""

    @wraps(plan)
    async def with_room(self: SizedChunker, sources: Sequence[Source]) -> list[list[Span]]:
        if not any(source.prefix for source in sources):
            plans: list[list[Span]] = await plan(self, sources)
            return plans
        prefixes = dict.fromkeys(source.prefix for source in sources)
        chunkers = {each: self.with_room_for(each) if each else self for each in prefixes}
        bare = [replace(source, prefix="") for source in sources]
        return await plan_each([chunkers[source.prefix] for source in sources], bare)

    with_room.makes_room = True  # type: ignore[attr-defined]
    return with_room


class CompositeChunker(Chunker):
    """A chunker that cuts with the strategies inside it, and can give them its sizes.

    Raises ValueError if the sizes are inconsistent with the other parameters of a strategy inside,
    or if no strategy inside has sizes.
    """

    chunk_size: Size | None = None
    """Maximum chunk size of all strategies inside, overlap included; None: each has its own."""

    chunk_overlap: Overlap | None = None
    """Overlap of all strategies inside; None: each has its own."""

    length_function: Unit | None = None
    """Unit of the sizes of all strategies inside; None: each has its own."""

    def check_parameters(self) -> None:
        super().check_parameters()
        if not (sizes := self.given_sizes):
            return
        inside = list(chunkers_in(self.resized()))[1:]
        for each in inside:
            each.check_parameters()
        if not any("chunk_size" in type(each).model_fields for each in inside):
            raise InputError(f"no strategy inside has sizes: leave out {', '.join(sizes)}")

    @property
    def given_sizes(self) -> dict[str, Any]:
        """The sizes that are not None."""
        return {name: size for name in SIZES if (size := getattr(self, name)) is not None}

    def resized(self) -> Self:
        """Return the same strategy without sizes, which the strategies inside have instead."""
        return with_sizes(self, {}) if self.given_sizes else self

    def makers(self) -> list[Chunker]:
        """Return the strategies inside that make the chunks, with their sizes."""
        return _chunkers_inside(self.resized())

    def fits(self, content: str) -> bool:
        makers = self.makers()
        return not makers or any(each.fits(content) for each in makers)

    def has_room_after(self, prefix: str) -> bool:
        return all(each.has_room_after(prefix) for each in self.makers())


def chunkers_in(chunker: Chunker) -> Iterator[Chunker]:
    """Yield a chunker and all those inside it, the outer one first."""
    yield chunker
    for each in _chunkers_inside(chunker):
        yield from chunkers_in(each)


def _chunkers_inside(chunker: Chunker) -> list[Chunker]:
    """Return the chunkers in the parameters of a chunker."""
    return [each for _, value in chunker for each in _chunkers_of(value)]


def _chunkers_of(value: Any) -> list[Chunker]:
    """Return the chunkers in the value of a parameter."""
    several = value.values() if isinstance(value, Mapping) else value
    values = several if isinstance(value, list | tuple | Mapping) else (value,)
    return [each for each in values if isinstance(each, Chunker)]


def replace_inside(chunker: Chunker, change: Callable[[Chunker], Chunker]) -> dict[str, Any]:
    """Return the parameters that hold chunkers, each of which is replaced by its `change`."""

    def replace_in(value: Any) -> Any:
        if isinstance(value, Mapping):
            kind: Any = type(value)
            return kind({key: replace_in(each) for key, each in value.items()})
        if isinstance(value, list | tuple):
            return tuple(map(replace_in, value))
        return change(value) if isinstance(value, Chunker) else value

    return {name: replace_in(value) for name, value in chunker if _chunkers_of(value)}


def with_sizes(chunker: Strategy, sizes: Mapping[str, Any]) -> Strategy:
    """Return a strategy with other sizes, which the strategies inside it have, too.

    Parameters:
        sizes: `chunk_size`, `chunk_overlap` and `length_function`, or some of these.
    """
    own = {name: size for name, size in sizes.items() if name in type(chunker).model_fields}
    if isinstance(chunker, CompositeChunker):
        sizes, own = {**chunker.given_sizes, **sizes}, dict.fromkeys(SIZES)
    inside = replace_inside(chunker, lambda each: with_sizes(each, sizes))
    return chunker.model_copy(update={**inside, **own})


def unit_of(chunker: Chunker) -> LengthFunction:
    """Return the unit in which a strategy measures, or that of the last one inside it."""
    inside = _chunkers_inside(chunker)
    own = getattr(chunker, "length_function", None)
    return own or (unit_of(inside[-1]) if inside else "characters")


class MergingChunker(SizedChunker):
    """A sized chunker that merges chunks that are too small.

    Raises ValueError if `min_chunk_size` is larger than `chunk_size`, or as `SizedChunker` does.
    """

    min_chunk_size: Least = 0
    """Chunks smaller than this are merged with a neighbour if the result fits: a number of units
    (an int), or a share of `chunk_size` (a float)."""

    def check_parameters(self) -> None:
        super().check_parameters()
        least = self.min_chunk_size
        if not isinstance(least, float) and least > self.chunk_size:
            raise InputError(
                f"min_chunk_size must not be larger than chunk_size ({self.chunk_size}), "
                f"got {least}"
            )

    @property
    def min_size(self) -> int:
        """`min_chunk_size` in units."""
        least = self.min_chunk_size
        if isinstance(least, float):
            return int(least * self.chunk_size)
        return min(least, self.chunk_size)

    @property
    def sizes(self) -> Sizes:
        return Sizes(self.chunk_size, self.overlap, self.length_function, self.min_size)
