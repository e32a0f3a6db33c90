"""Chunker, the base class of every strategy."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict
from typing_extensions import Self

from rag_splitters.calls import arun, run, together, with_value
from rag_splitters.contract.groups import numbered_groups
from rag_splitters.contract.help_texts import Docstring, Signature
from rag_splitters.contract.line_breaks import plan_with_line_feeds
from rag_splitters.contract.own_methods import checked_plan
from rag_splitters.contract.own_texts import chunk_key
from rag_splitters.contract.streams import Handle, check_streams, stream_chunks
from rag_splitters.errors import InputTypeError
from rag_splitters.ids import ChunkIds
from rag_splitters.models.failures import collect_failures, raise_or_collect
from rag_splitters.models.pickling import forget_answers
from rag_splitters.parameters.checks import check_has, whole_number
from rag_splitters.parameters.messages import plain_errors
from rag_splitters.span import Chunk, Source, Span
from rag_splitters.text.coloured import Chunks
from rag_splitters.text.origin import add_places

validating: ContextVar[Any] = ContextVar("validating", default=None)
"""The object whose validators, which a subclass may have added, are running."""


class Chunker(BaseModel):
    """Cuts a text into chunks whose exact positions are known.

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

    strategy: ClassVar[str] = ""
    """The name under which the strategy is registered; "" if it is not. A class that defines
    another `spans`, `plan` or, in a front end, `split_text` is another strategy, which `register`
    gives a name."""

    positional: ClassVar[tuple[str, ...]] = ()
    """The parameters that may be passed by position, in this order."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Refuse a strategy that has neither method."""
        if cls.plan is Chunker.plan:
            raise InputTypeError(f"{cls.__name__} must define spans(text) or plan(sources)")
        return super().__new__(cls)

    def __init__(self, *args: Any, **parameters: Any) -> None:
        if not type(self).__pydantic_complete__:  # pydantic's own attempt counts on its own frames
            type(self).model_rebuild(_parent_namespace_depth=3)
        attributes = dict(self.__dict__)  # of a subclass, which may have set them already
        parameters = self.translate_parameters(_by_name(type(self), args, parameters))
        implied = without(self.implied_parameters(parameters), parameters)
        with plain_errors(type(self)), with_value(validating, self):
            super().__init__(**parameters, **implied)
        self.model_fields_set.difference_update(implied)
        self.__dict__.update(without(attributes, self.__dict__))
        self.check_parameters()

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        _pair_methods(cls)
        type.__setattr__(cls, "__signature__", Signature())
        if cls.__doc__:
            type.__setattr__(cls, "__doc__", Docstring(cls.__doc__, cls))

    @classmethod
    def model_validate(cls, obj: Any, **kwargs: Any) -> Self:
        with plain_errors(cls):
            return super().model_validate(obj, **kwargs)

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **kwargs: Any) -> Self:
        with plain_errors(cls):
            return super().model_validate_json(json_data, **kwargs)

    def __setattr__(self, name: str, value: Any) -> None:
        if self._owns(name):
            object.__setattr__(self, name, value)
            return
        with plain_errors(type(self)):
            super().__setattr__(name, value)

    def _owns(self, name: str) -> bool:
        """Whether a name is an attribute of a user's subclass: any that is not a parameter.

        Before `Chunker.__init__` has run, a subclass may set any.
        """
        kind = type(self)
        is_parameter = name in kind.model_fields and self._is_initialised
        is_declared = is_parameter or name in kind.__private_attributes__
        return not is_declared and not is_ours(kind)

    @property
    def _is_initialised(self) -> bool:
        return getattr(self, "__pydantic_fields_set__", None) is not None

    def __hash__(self) -> int:
        return hash(type(self))  # not all parameters can be hashed, and those of front ends change

    @classmethod
    def translate_parameters(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        """Translate a framework's names of parameters into ours."""
        return parameters

    @classmethod
    def implied_parameters(cls, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return better defaults for other parameters, depending on the ones that were passed.

        They are used only for parameters that were not passed. The parameters that were passed
        have not been checked yet.
        """
        return {}

    def check_parameters(self) -> None:
        """Raise ValueError if parameters contradict each other.

        It is called at the end of construction and, in a front end, before every split. A subclass
        that overrides it calls `super().check_parameters()` first.
        """

    def spans(self, text: str) -> list[Span]:
        """Cut a text into spans, in order of their positions; blank text gives none."""
        raise NotImplementedError

    async def plan(self, sources: Sequence[Source]) -> list[list[Span]]:
        """Cut several sources. It may await only `embed`, `ask`, `call` and other plans."""
        raise NotImplementedError

    def split(self, sources: Iterable[Source]) -> Iterator[list[Span]]:
        """Yield the spans of each source, in order.

        Sources are read in groups, so that memory use does not grow with their number: a group
        ends after 512 sources or two million characters.
        """
        for group in numbered_groups(sources):
            with collect_failures() as failures:
                results = run(_plan_with_places(self, group))
            raise_or_collect(failures, group, results)
            yield from results
        forget_answers(self)

    async def asplit(self, sources: Iterable[Source]) -> AsyncIterator[list[Span]]:
        """Asynchronous `split`: models are awaited, and texts are cut in worker threads."""
        for group in numbered_groups(sources):
            with collect_failures() as failures:
                results = await arun(_plan_with_places(self, group))
            raise_or_collect(failures, group, results)
            for spans in results:
                yield spans
        forget_answers(self)

    def with_places(self, spans: list[Span], source: Source) -> list[Span]:
        """Return the spans of a source with their places in the file that it was read from."""
        return add_places(spans, source.text, source.metadata)

    def chunk(
        self, text: str, *, metadata: Mapping[str, Any] | None = None, id: str | None = None
    ) -> Chunks:
        """Cut one text into chunks, for use without a framework.

        Parameters:
            text: the text.
            metadata: its metadata, for strategies that read it (a title, a page number).
            id: its id. Chunk ids are made from it or, without one, from the text and its metadata.

        Returns: a list of the chunks with text, start and end (code points), metadata and id. A
        notebook displays it as coloured text; `rag_splitters.show` does the same in a terminal.
        """
        source = _source(text, metadata, id)
        return _make_chunks(source, next(self.split([source])))

    async def achunk(
        self, text: str, *, metadata: Mapping[str, Any] | None = None, id: str | None = None
    ) -> Chunks:
        """Asynchronous `chunk`: models are awaited, and the text is cut in a worker thread.

        >>> import asyncio
        >>> from rag_splitters import SentenceChunker
        >>> chunks = asyncio.run(SentenceChunker(chunk_size=8).achunk("One. Two. Three."))
        >>> [chunk.text for chunk in chunks]
        ['One.', 'Two.', 'Three.']
        """
        source = _source(text, metadata, id)
        (spans,) = [spans async for spans in self.asplit([source])]
        return await to_thread(_make_chunks, source, spans)

    def chunk_stream(
        self, handle: Handle, *, id: str, block_size: int = 1_000_000
    ) -> Iterator[Chunk]:
        """Cut a huge text, such as a log, from a file handle, in bounded memory.

        The chunks are those of `chunk(text, id=id, metadata=line_range(text))`: with the same
        texts, positions, lines and ids. This works with strategies that look only at a limited
        part of the text around each chunk: "fixed_size", "sliding_window" and "token"; "recursive"
        without `separators`, `language` and `min_chunk_size`; and "separator" without `chunk_size`
        and regular expressions.

        Parameters:
            handle: a file that is open for reading text. With `newline=""`, positions are those in
                the file; otherwise, Python reads any line break as one character.
            id: the id of the document, from which the ids of the chunks are made.
            block_size: how many characters to read at once. Memory use grows with this number and
                with the size of chunks, not with the text, unless the text has longer white space.

        Raises ValueError, before it reads anything, if the strategy or its parameters are not among
        these.

        >>> from io import StringIO
        >>> from rag_splitters import RecursiveChunker
        >>> chunks = RecursiveChunker(chunk_size=8).chunk_stream(StringIO("One. Two."), id="a.log")
        >>> [(chunk.start, chunk.text, chunk.metadata["line_start"]) for chunk in chunks]
        [(0, 'One.', 1), (5, 'Two.', 1)]
        """
        self.check_parameters()
        self.spans_after("", None)
        check_has(handle, "read", "a file that is open for reading text")
        check_has(id, "encode", "id as a string")
        return stream_chunks(self, handle, id, whole_number(block_size, "block_size", 1))

    def spans_after(self, text: str, last: Span | None) -> list[Span]:
        """Cut the rest of a text after the chunk `last`, or all of it, as `spans` cuts it.

        Strategies that can cut a stream override it.
        """
        check_streams(self, "because its rules may look at all of the text")
        return []

    def fits(self, content: str) -> bool:
        """Whether a chunk with this text is within the maximum size; True if there is none."""
        return True

    def has_room_after(self, prefix: str) -> bool:
        """Whether every chunk has room for text after a prefix, such as its metadata."""
        return self.fits(f"{prefix} x")

    @property
    def counts_context(self) -> bool:
        """Whether chunks may have a `context` that counts towards their size.

        LlamaIndex embeds a context with a label, for which room is left.
        """
        return False

    def spans_fit(self, spans: Sequence[Span], text: str) -> bool:
        """Whether all of these spans of a text are within their maximum size and overlap."""
        return all(self.fits(span.text_of(text)) for span in spans)


def is_ours(kind: type[Any]) -> bool:
    """Whether a class belongs to this package, and is not a user's."""
    return kind.__module__.partition(".")[0] == __package__.partition(".")[0]


def _source(text: str, metadata: Mapping[str, Any] | None, id: str | None) -> Source:
    return Source(text, metadata or {}, id)


def _make_chunks(source: Source, spans: Iterable[Span]) -> Chunks:
    text, new_id = source.text, ChunkIds(source.text, source.metadata, source.id).of
    chunks = Chunks(text=text)
    for index, span in enumerate(spans):
        details = span.to_metadata()
        if span.parent is not None:
            details["parent_id"] = chunks[span.parent].id
        details["chunk_index"] = index
        chunk_id = new_id(*chunk_key(span, index))
        chunks.append(Chunk(span.text_of(text), span.start, span.end, details, chunk_id))
    return chunks


def drop_name_of_base(kind: type[Chunker], owner: type) -> bool:
    """Drop the name of the base strategy from a class that cuts in another way.

    Parameters:
        owner: the class that defines how it cuts: itself, a mix-in, or its base.

    Returns: whether it cuts in another way.
    """
    is_another = owner is kind or not issubclass(owner, Chunker)
    if is_another and "strategy" not in vars(kind):
        kind.strategy = ""
    return is_another


def _pair_methods(kind: type[Chunker]) -> None:
    """Derive `plan` from `spans`, or `spans` from `plan`, whichever was defined last.

    A class that defines both, such as one that was paired before, keeps both.
    """
    owner = next(each for each in kind.__mro__ if vars(each).keys() & {"spans", "plan"})
    methods = {name: vars(owner)[name] for name in ("spans", "plan") if name in vars(owner)}
    if drop_name_of_base(kind, owner) and "spans_after" not in vars(kind):
        kind.spans_after = Chunker.spans_after  # type: ignore[method-assign]
    if len(methods) == 1:
        plan = methods.get("plan") or _plan_from_spans(methods["spans"])
        plan = plan_with_line_feeds(plan) if is_ours(kind) else checked_plan(plan, *methods)
        kind.plan, kind.spans = plan, _spans_from_plan(plan)  # type: ignore[method-assign]


def _plan_from_spans(spans: Any) -> Any:
    """Return the `plan` of a class that defines `spans`."""

    async def plan(self: Chunker, sources: Sequence[Source]) -> list[list[Span]]:
        """Cut several sources, each by its text alone."""
        cut = spans.__get__(self, type(self))
        return [cut(source.text) for source in sources]

    return plan


def _spans_from_plan(plan: Any) -> Any:
    """Return the `spans` of a class that defines `plan`."""

    def spans(self: Chunker, text: str) -> list[Span]:
        """Cut a text into spans, in order of their positions; blank text gives none."""
        results: list[list[Span]] = run(plan(self, [Source(text)]))
        return results[0]

    return spans


def _by_name(
    kind: type[Chunker], args: Sequence[Any], parameters: dict[str, Any]
) -> dict[str, Any]:
    """Merge the arguments that were passed by position into the named parameters.

    Raises TypeError if there are too many of them, or if a parameter was passed twice.
    """
    names = kind.positional
    if len(args) > len(names):
        allowed = f"only {', '.join(names)} by position" if names else "its parameters by name"
        raise InputTypeError(f"{kind.__name__} takes {allowed}, got {len(args)} by position")
    by_position = dict(zip(names, args, strict=False))
    if twice := by_position.keys() & parameters.keys():
        raise InputTypeError(f"{kind.__name__} got {', '.join(sorted(twice))} twice")
    return by_position | parameters


async def _plan_with_places(chunker: Chunker, sources: Sequence[Source]) -> list[list[Span]]:
    results = zip(sources, await chunker.plan(sources), strict=True)
    return [chunker.with_places(spans, source) for source, spans in results]


async def plan_each(chunkers: Sequence[Chunker], sources: Sequence[Source]) -> list[list[Span]]:
    """Cut each source with the chunker at its place; a chunker plans all its sources at once."""
    groups: dict[int, list[int]] = {}
    for index, chunker in enumerate(chunkers):
        groups.setdefault(id(chunker), []).append(index)
    plans = await together(
        [chunkers[own[0]].plan([sources[index] for index in own]) for own in groups.values()]
    )
    places = [index for own in groups.values() for index in own]
    results = dict(zip(places, (spans for plan in plans for spans in plan), strict=True))
    return [results[index] for index in range(len(sources))]


def without(values: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return the values whose names are not among these."""
    return {name: value for name, value in values.items() if name not in names}
