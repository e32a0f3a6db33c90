"""Chunker: the contract that every strategy keeps, and what the sized ones share."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
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

from rag_splitters.fields import Size, Unit, describe, restore, whole_number
from rag_splitters.span import Chunk, Span
from rag_splitters.text.ids import ChunkIds
from rag_splitters.text.sizing import LengthFunction, sizer

__all__ = [
    "Chunker",
    "MergingChunker",
    "Nested",
    "NestedMany",
    "SizedChunker",
    "Sizes",
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
        new_id = ChunkIds(text, known, id).of
        return [
            Chunk(
                span.text_of(text),
                span.start,
                span.end,
                {**span.metadata, "chunk_index": index},
                new_id(span.start, span.end, span.content),
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
            elif whole_number(overlap, "chunk_overlap", 0) >= whole_number(size, "chunk_size", 1):
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
        if whole_number(self.min_chunk_size, "min_chunk_size", 0) > self.chunk_size:
            raise ValueError(
                f"min_chunk_size must not be larger than chunk_size ({self.chunk_size}), "
                f"got {self.min_chunk_size}"
            )
        return self


def _dump_chunker(chunker: Chunker) -> dict[str, Any]:
    return {**chunker.model_dump(), "strategy": describe(type(chunker))}


def _load_chunker(value: Any) -> Any:
    if not isinstance(value, Mapping) or "strategy" not in value:
        return value
    skipped = ("class_name", "strategy")
    parameters = {name: part for name, part in value.items() if name not in skipped}
    return restore(value["strategy"], "strategy")(**parameters)


Nested = Annotated[
    Chunker, BeforeValidator(_load_chunker), PlainSerializer(_dump_chunker, return_type=dict)
]
"""A field that holds another chunker, written with its class."""

NestedMany = Annotated[Sequence[Nested], AfterValidator(tuple)]
"""A field that holds several chunkers; a list becomes a tuple."""
