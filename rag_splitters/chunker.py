"""Chunker: the contract that every strategy keeps, and what the sized ones share."""

from __future__ import annotations

import asyncio
import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, TypedDict

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    model_validator,
)
from typing_extensions import Self

from rag_splitters.ids import ChunkIds, source_identity, stable_uuid
from rag_splitters.sizing import LengthFunction, check_length_function, sizer
from rag_splitters.span import Chunk, Span

__all__ = [
    "Chunker",
    "Function",
    "FunctionOrName",
    "MergingChunker",
    "Nested",
    "NestedMany",
    "Size",
    "SizedChunker",
    "Sizes",
    "Texts",
    "Unit",
]


class Chunker(BaseModel, ABC):
    """Cuts a text into chunks and knows where each one stands.

    A strategy is a subclass with its parameters as fields, and one method, `spans`.

    >>> class Halves(Chunker):
    ...     def spans(self, text):
    ...         middle = len(text) // 2
    ...         return [Span(0, middle), Span(middle, len(text))]
    >>> [chunk.text for chunk in Halves().chunk("tick tock")]
    ['tick', ' tock']
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    rewrites: ClassVar[bool] = False
    """Does the strategy deliver other text than `source[start:end]`?"""

    @abstractmethod
    def spans(self, text: str) -> list[Span]:
        """The chunks of a text as spans, in the order of their positions; blank text gives none."""

    def spans_many(self, texts: Iterable[str]) -> list[list[Span]]:
        """The spans of several texts; override it to ask a model once for all of them."""
        return [self.spans(text) for text in texts]

    async def aspans_many(self, texts: Iterable[str]) -> list[list[Span]]:
        """`spans_many` without blocking the event loop; override it where a model is awaited."""
        return await asyncio.to_thread(self.spans_many, texts)

    def spans_of_documents(
        self, texts: Iterable[str], metadatas: Sequence[Mapping[str, Any]]
    ) -> list[list[Span]]:
        """`spans_many` with each text's metadata; override it where a strategy reads them."""
        return self.spans_many(texts)

    async def aspans_of_documents(
        self, texts: Iterable[str], metadatas: Sequence[Mapping[str, Any]]
    ) -> list[list[Span]]:
        """`aspans_many` with each text's metadata; override it where a strategy reads them."""
        return await self.aspans_many(texts)

    def chunk(
        self, text: str, *, metadata: Mapping[str, Any] | None = None, id: str | None = None
    ) -> list[Chunk]:
        """The chunks of one text, for use without a framework.

        Parameters:
            text: the text.
            metadata: its own metadata, for strategies that read them (a title, a page number).
            id: its id; chunk ids depend on it, or else on text and metadata.

        Returns: the chunks with text, start and end (code points), metadata and id.
        """
        known = metadata or {}
        new_id = ChunkIds(source_identity(text, known, id)).of
        return [
            Chunk(
                content := span.text_of(text),
                span.start,
                span.end,
                {**span.metadata, "chunk_index": index},
                new_id(span.start, span.end, content),
            )
            for index, span in enumerate(self.spans_of_documents([text], [known])[0])
        ]

    def fits(self, content: str) -> bool:
        """Is a chunk of this text within the strategy's size? True where there is no size."""
        return True

    def narrowed(self, prefix: str) -> Chunker:
        """The same strategy with chunks so much smaller that `prefix` fits before each."""
        return self


class Sizes(TypedDict):
    """What `packing.pack` wants to know of a sized chunker."""

    size: int
    overlap: int
    length_function: LengthFunction


Size = Annotated[int, BeforeValidator(lambda value: _count(value, "chunk_size", 1))]
"""A field that holds a chunk size."""

Unit = Annotated[
    LengthFunction,
    BeforeValidator(lambda value: check_length_function(_function(value))),
    PlainSerializer(lambda value: _describe(value)),
]
"""A field that holds a length function."""


class SizedChunker(Chunker):
    """A chunker whose chunks have a size.

    Raises: ValueError for a size below 1, an overlap that is negative or not below the size, or a
    length function that is none.
    """

    chunk_size: Size = 1000
    """The most that a chunk measures, overlap included, in units of `length_function`."""

    chunk_overlap: int | float = 0
    """How much of a chunk's tail the next one repeats: units, or a share of `chunk_size`."""

    length_function: Unit = "characters"
    """The unit: "characters", "words", "tokens", "tokens:<name>", a tokenizer or a function."""

    @model_validator(mode="before")
    @classmethod
    def _check_overlap(cls, data: Any) -> Any:
        if isinstance(data, dict) and "chunk_overlap" in data:
            overlap = data["chunk_overlap"]
            size = data.get("chunk_size", cls.model_fields["chunk_size"].default)
            if isinstance(overlap, float):
                if not 0 <= overlap < 1:
                    raise ValueError(
                        "chunk_overlap must be a share in [0, 1) or a whole number, "
                        f"got {overlap!r}"
                    )
            elif _count(overlap, "chunk_overlap", 0) >= _count(size, "chunk_size", 1):
                raise ValueError(
                    f"chunk_overlap must be smaller than chunk_size ({size}), got {overlap}"
                )
        return data

    @property
    def overlap(self) -> int:
        """The overlap in units."""
        if isinstance(self.chunk_overlap, float):
            return int(self.chunk_overlap * self.chunk_size)
        return self.chunk_overlap

    @property
    def sizes(self) -> Sizes:
        """Size, overlap and unit, as `packing.pack` takes them."""
        return Sizes(
            size=self.chunk_size, overlap=self.overlap, length_function=self.length_function
        )

    def fits(self, content: str) -> bool:
        measure = sizer(self.length_function)(content)
        return measure.length(0, len(content)) <= self.chunk_size

    def narrowed(self, prefix: str) -> Self:
        length = sizer(self.length_function)(prefix).length(0, len(prefix))
        size = max(1, self.chunk_size - length)
        return self.model_copy(
            update={"chunk_size": size, "chunk_overlap": min(self.overlap, size - 1)}
        )


class MergingChunker(SizedChunker):
    """A sized chunker that merges chunks that are too small.

    Raises: ValueError for a least size above `chunk_size`, and what `SizedChunker` raises.
    """

    min_chunk_size: int = 0
    """Chunks that measure less are merged with a neighbour where that fits."""

    @model_validator(mode="after")
    def _check_min_chunk_size(self) -> Self:
        if _count(self.min_chunk_size, "min_chunk_size", 0) > self.chunk_size:
            raise ValueError(
                f"min_chunk_size must not be larger than chunk_size ({self.chunk_size}), "
                f"got {self.min_chunk_size}"
            )
        return self


def _count(value: Any, name: str, least: int) -> int:
    """The value if it is a whole number of at least `least`, else ValueError."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return value


def _describe(value: Any) -> str:
    """A stable name for a function or tokenizer: the same in every process, never an address.

    Raises: ValueError for a function without an importable name (a lambda, a closure).
    """
    if isinstance(value, str):
        return value
    for tokenizer in (getattr(value, "backend_tokenizer", value), value):
        if hasattr(tokenizer, "to_str"):
            return f"tokenizer:{stable_uuid(type(value).__qualname__, tokenizer.to_str())}"
    name = getattr(value, "name", None)
    if hasattr(value, "encode_ordinary") and isinstance(name, str):
        return f"tokens:{name}"
    path = f"{getattr(value, '__module__', '')}:{getattr(value, '__qualname__', '')}"
    if not path.strip(":") or "<" in path:
        raise ValueError(
            f"{value!r} has no name by which another process could find it, so it cannot be "
            "written to a configuration or a cache key: define it with def at the top level of a "
            "module"
        )
    return f"function:{path}"


def _function(value: Any) -> Any:
    """The function that `_describe` named; any other value as it is."""
    if not isinstance(value, str):
        return value
    kind, _, path = value.partition(":")
    if kind == "tokenizer":
        raise ValueError(
            f"{value!r} stands for a tokenizer object, which a configuration does not hold: "
            "hand the tokenizer in again as length_function="
        )
    if kind != "function":
        return value
    module, _, name = path.partition(":")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


Function = Annotated[
    Callable[..., Any], BeforeValidator(_function), PlainSerializer(_describe, return_type=str)
]
"""A field that holds a function, and is written as its importable name."""


FunctionOrName = Annotated[
    str | Callable[..., Any],
    BeforeValidator(_function),
    PlainSerializer(_describe, return_type=str),
]
"""A field that holds a function or the name of one that the strategy knows."""

Texts = Annotated[Sequence[str], AfterValidator(tuple)]
"""A field that holds strings; a list becomes a tuple."""


def _dump_chunker(chunker: Chunker) -> dict[str, Any]:
    return {**chunker.model_dump(), "strategy": _describe(type(chunker))}


def _load_chunker(value: Any) -> Any:
    if not isinstance(value, Mapping) or "strategy" not in value:
        return value
    skipped = ("class_name", "strategy")
    parameters = {name: part for name, part in value.items() if name not in skipped}
    return _function(value["strategy"])(**parameters)


Nested = Annotated[
    Chunker, BeforeValidator(_load_chunker), PlainSerializer(_dump_chunker, return_type=dict)
]
"""A field that holds another chunker, written with its class."""

NestedMany = Annotated[Sequence[Nested], AfterValidator(tuple)]
"""A field that holds several chunkers; a list becomes a tuple."""
