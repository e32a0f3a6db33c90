"""Chunker: the contract that every strategy keeps, and what the sized ones share."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, TypedDict

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    ValidationInfo,
    model_validator,
)
from typing_extensions import Self

from rag_splitters.calls import arun, run
from rag_splitters.fields import (
    Size,
    Unit,
    add_to_registry,
    describe,
    look_up,
    register_function,
    whole_number,
)
from rag_splitters.span import Chunk, Source, Span
from rag_splitters.text.ids import ChunkIds
from rag_splitters.text.sizing import LengthFunction, sizer

__all__ = [
    "Chunker",
    "MergingChunker",
    "Nested",
    "NestedMany",
    "SizedChunker",
    "Sizes",
    "register",
]

_strategies: dict[str, type[Chunker]] = {}

_GROUP_SOURCES, _GROUP_CHARACTERS = 512, 2_000_000


class Chunker(BaseModel):
    """Cuts a text into chunks and knows where each one stands.

    A strategy is a subclass with its parameters as fields and one of two methods: `spans`, if it
    needs nothing but the text, or `plan`, if it asks a model, reads metadata or contains another
    chunker. `split` and `asplit` run either of them.

    >>> class Halves(Chunker):
    ...     def spans(self, text):
    ...         middle = len(text) // 2
    ...         return [Span(0, middle), Span(middle, len(text))]
    >>> [chunk.text for chunk in Halves().chunk("tick tock")]
    ['tick', ' tock']

    A strategy that asks a model asks it for all texts at once:

    >>> from rag_splitters.models import Llm, ask
    >>> class TwoParts(Chunker):
    ...     llm: Llm
    ...     async def plan(self, sources):
    ...         question = "At which character does the second part of this text begin?\\n\\n"
    ...         answers = await ask(self.llm, [question + source.text for source in sources])
    ...         return [
    ...             [Span(0, int(answer)), Span(int(answer), len(source.text))]
    ...             for source, answer in zip(sources, answers)
    ...         ]
    >>> [chunk.text for chunk in TwoParts(llm=lambda prompt: "5").chunk("tick tock")]
    ['tick ', 'tock']
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Refuse a strategy that has neither method."""
        if not _has_method(cls):
            raise TypeError(f"{cls.__name__} must define spans(text) or plan(sources)")
        return super().__new__(cls)

    def spans(self, text: str) -> list[Span]:
        """The chunks of a text as spans, ordered by position; blank text gives none."""
        return run(self.plan([Source(text)]))[0]

    async def plan(self, sources: Sequence[Source]) -> list[list[Span]]:
        """The spans of each source. It may await `embed`, `ask`, `call` and other plans only."""
        return [self.spans(source.text) for source in sources]

    def split(self, sources: Iterable[Source]) -> Iterator[list[Span]]:
        """The spans of each source in turn.

        Sources are taken in groups of at most 512, or two million characters, so that memory does
        not grow with their number. A strategy that has only `spans` takes one at a time.
        """
        if type(self).plan is Chunker.plan:
            for source in sources:
                yield self.spans(source.text)
            return
        for group in _groups(sources):
            yield from run(self.plan(group))

    async def asplit(self, sources: Iterable[Source]) -> AsyncIterator[list[Span]]:
        """`split` for an event loop: models are awaited, and texts are cut in worker threads."""
        for group in _groups(sources):
            for spans in await arun(self.plan(group)):
                yield spans

    def chunk(
        self, text: str, *, metadata: Mapping[str, Any] | None = None, id: str | None = None
    ) -> list[Chunk]:
        """The chunks of one text, for use without a framework.

        Parameters:
            text: the text.
            metadata: its metadata, for strategies that read them (a title, a page number).
            id: its id. Chunk ids depend on it or, without one, on text and metadata.

        Returns: the chunks with text, start and end (code points), metadata and id.
        """
        source = Source(text, metadata or {}, id)
        new_id = ChunkIds(text, source.metadata, id).of
        chunks: list[Chunk] = []
        for index, span in enumerate(next(self.split([source]))):
            details = span.to_metadata()
            if span.parent is not None:
                details["parent_id"] = chunks[span.parent].id
            details["chunk_index"] = index
            chunk_id = new_id(span.start, span.end, span.content)
            chunks.append(Chunk(span.text_of(text), span.start, span.end, details, chunk_id))
        return chunks

    def fits(self, content: str) -> bool:
        """Whether a chunk with this text is within the strategy's size; True if it has none."""
        return True

    def narrowed(self, prefix: str) -> Chunker:
        """The same strategy with chunks so much smaller that `prefix` fits before each."""
        return self


def _groups(sources: Iterable[Source]) -> Iterator[list[Source]]:
    """The sources in groups that bound what is in memory at once."""
    group: list[Source] = []
    characters = 0
    for source in sources:
        group.append(source)
        characters += len(source.text)
        if len(group) == _GROUP_SOURCES or characters >= _GROUP_CHARACTERS:
            yield group
            group, characters = [], 0
    if group:
        yield group


class Sizes(TypedDict):
    """The sizes of a chunker, as keyword arguments of `packing.pack`."""

    size: int
    overlap: int
    length_function: LengthFunction


class SizedChunker(Chunker):
    """A chunker whose chunks have a maximum size.

    Raises ValueError if the size is below 1, if the overlap is negative or not smaller than the
    size, or if the length function is unknown.
    """

    chunk_size: Size = 1000
    """Maximum chunk size, overlap included, in units of `length_function`."""

    chunk_overlap: int | float = 0
    """How much of a chunk the next one repeats: a count of units, or a share of `chunk_size`."""

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

    Raises ValueError if `min_chunk_size` is larger than `chunk_size`, or as `SizedChunker` does.
    """

    min_chunk_size: int = 0
    """Chunks smaller than this are merged with a neighbour if the result fits."""

    @model_validator(mode="after")
    def _check_min_chunk_size(self) -> Self:
        if whole_number(self.min_chunk_size, "min_chunk_size", 0) > self.chunk_size:
            raise ValueError(
                f"min_chunk_size must not be larger than chunk_size ({self.chunk_size}), "
                f"got {self.min_chunk_size}"
            )
        return self


def register(name: str, value: type[Chunker] | Callable[..., Any]) -> None:
    """Give a chunker class or a function of your own a name in configurations.

    Loading a configuration never imports anything: it finds the strategies of the catalogue, and
    what was registered before.

    Parameters:
        name: letters, digits, "_", "." and "-". A nested chunker is written as
            `{"strategy": name, ...}`, a function as "function:<name>".
        value: a subclass of `Chunker`, or a function.

    Raises TypeError for anything else, and ValueError if the name belongs to another class or
    function already, or if the class or function has another name already.

    >>> from rag_splitters import TitledChunker
    >>> class Halves(Chunker):
    ...     def spans(self, text):
    ...         middle = len(text) // 2
    ...         return [Span(0, middle), Span(middle, len(text))]
    >>> register("halves", Halves)
    >>> TitledChunker(chunker={"strategy": "halves"}).chunker
    Halves()
    """
    if not isinstance(value, type):
        register_function(name, value)
    elif issubclass(value, Chunker):
        add_to_registry(_strategies, name, value)
    else:
        raise TypeError(f"register takes a subclass of Chunker, got the class {value.__qualname__}")


def _dump_chunker(chunker: Chunker) -> dict[str, Any]:
    """The strategy's name and fields; those of a front end belong to its outermost chunker."""
    kind = _core(type(chunker))
    parameters = chunker.model_dump(include=set(kind.model_fields))
    names = {each: name for name, each in _strategies.items()}
    return {
        **{name: value for name, value in parameters.items() if name in kind.model_fields},
        "strategy": names.get(kind) or describe(kind),
    }


def _core(kind: type[Chunker]) -> type[Chunker]:
    """The registered strategy of a front-end class that adds nothing to it; else the class."""
    if kind in _strategies.values() or len(kind.__bases__) != 2:
        return kind
    core, front_end = kind.__bases__
    is_front_end = issubclass(front_end, Chunker) and not _has_method(front_end)
    own = {name for name in vars(kind) if not name.startswith("__")} - {"_abc_impl", "model_config"}
    is_bare = not own and not inspect.get_annotations(kind)
    return core if is_front_end and is_bare and core in _strategies.values() else kind


def _has_method(kind: type[Chunker]) -> bool:
    return kind.spans is not Chunker.spans or kind.plan is not Chunker.plan


def _load_chunker(value: Any, info: ValidationInfo) -> Any:
    """The chunker that `_dump_chunker` described; any other object unchanged."""
    if not isinstance(value, (str, Mapping)):
        return value
    name = value.get("strategy") if isinstance(value, Mapping) else None
    if not isinstance(value, Mapping) or not isinstance(name, str):
        raise ValueError(
            f'{info.field_name or "chunker"} must be a chunker or {{"strategy": name, ...}}, '
            f"got {value!r}"
        )
    kind = look_up(_strategies, name)
    if kind is None:
        raise ValueError(
            f"unknown strategy {name!r}: a configuration can name {', '.join(_strategies)}, or a "
            "class of your own after rag_splitters.register(name, class)"
        )
    skipped = ("class_name", "strategy")
    return kind(**{str(key): part for key, part in value.items() if key not in skipped})


Nested = Annotated[
    Chunker, BeforeValidator(_load_chunker), PlainSerializer(_dump_chunker, return_type=dict)
]
"""A field that holds another chunker, written with the name of its strategy."""

NestedMany = Annotated[Sequence[Nested], AfterValidator(tuple)]
"""A field that holds several chunkers; a list becomes a tuple."""
