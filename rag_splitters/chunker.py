"""Chunker, the base class of every strategy, and the base classes of strategies with a size."""

from __future__ import annotations

import inspect
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from operator import or_
from textwrap import fill
from types import FunctionType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Protocol,
    SupportsIndex,
    TypedDict,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    ValidationInfo,
)
from typing_extensions import Self

from rag_splitters.calls import arun, run
from rag_splitters.fields import (
    Overlap,
    Size,
    Unit,
    add_to_registry,
    check_overlap,
    describe,
    did_you_mean,
    field_descriptions,
    look_up,
    plain_errors,
    register_function,
    unknown_parameter,
    whole_number,
)
from rag_splitters.models.failures import collect_failures, raise_or_collect
from rag_splitters.span import Chunk, Source, Span
from rag_splitters.text.coloured import Chunks
from rag_splitters.text.ids import ChunkIds
from rag_splitters.text.origin import add_places
from rag_splitters.text.sizing import LengthFunction, sizer

_strategies: dict[str, type[Chunker]] = {}

_GROUP_SOURCES, _GROUP_CHARACTERS = 512, 2_000_000


class _WithText(Protocol):
    @property
    def text(self) -> str: ...


T = TypeVar("T", bound=_WithText)


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

    positional: ClassVar[tuple[str, ...]] = ()
    """The parameters that may be passed by position, in this order."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Refuse a strategy that has neither method."""
        if not _has_method(cls):
            raise TypeError(f"{cls.__name__} must define spans(text) or plan(sources)")
        return super().__new__(cls)

    def __init__(self, *args: Any, **parameters: Any) -> None:
        if not type(self).__pydantic_complete__:  # pydantic's own attempt counts on its own frames
            type(self).model_rebuild(_parent_namespace_depth=3)
        parameters = self.translate_parameters(_by_name(type(self), args, parameters))
        implied = _missing(self.implied_parameters(parameters), parameters)
        with plain_errors(type(self)):
            super().__init__(**parameters, **implied)
        self.model_fields_set.difference_update(implied)
        self.check_parameters()

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        type.__setattr__(cls, "__signature__", _Signature())
        if cls.__doc__:
            type.__setattr__(cls, "__doc__", _Docstring(cls.__doc__, cls))

    @classmethod
    def model_validate(cls, obj: Any, **kwargs: Any) -> Self:
        with plain_errors(cls):
            return super().model_validate(obj, **kwargs)

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **kwargs: Any) -> Self:
        with plain_errors(cls):
            return super().model_validate_json(json_data, **kwargs)

    @classmethod
    def model_validate_strings(cls, obj: Any, **kwargs: Any) -> Self:
        with plain_errors(cls):
            return super().model_validate_strings(obj, **kwargs)

    def __setattr__(self, name: str, value: Any) -> None:
        with plain_errors(type(self)):
            super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        with plain_errors(type(self)):
            super().__delattr__(name)

    def __hash__(self) -> int:
        values = self.__dict__
        return hash((type(self), *(values[name] for name in type(self).model_fields)))

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
        return run(self.plan([Source(text)]))[0]

    async def plan(self, sources: Sequence[Source]) -> list[list[Span]]:
        """Cut several sources. It may await only `embed`, `ask`, `call` and other plans."""
        return [self.spans(source.text) for source in sources]

    def split(self, sources: Iterable[Source]) -> Iterator[list[Span]]:
        """Yield the spans of each source, in order.

        Sources are read in groups, so that memory use does not grow with their number: a group
        ends after 512 sources or two million characters. A strategy that defines only `spans`
        reads one source at a time.
        """
        if type(self).plan is Chunker.plan:
            for source in sources:
                yield add_places(self.spans(source.text), source.text, source.metadata)
            return
        for group in _numbered_groups(sources):
            with collect_failures() as failures:
                results = run(_plan_with_places(self, group))
            raise_or_collect(failures, group, results)
            yield from results

    async def asplit(self, sources: Iterable[Source]) -> AsyncIterator[list[Span]]:
        """Asynchronous `split`: models are awaited, and texts are cut in worker threads."""
        for group in _numbered_groups(sources):
            with collect_failures() as failures:
                results = await arun(_plan_with_places(self, group))
            raise_or_collect(failures, group, results)
            for spans in results:
                yield spans

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
        source = Source(text, metadata or {}, id)
        new_id = ChunkIds(text, source.metadata, id).of
        chunks = Chunks(text=text)
        for index, span in enumerate(next(self.split([source]))):
            details = span.to_metadata()
            if span.parent is not None:
                details["parent_id"] = chunks[span.parent].id
            details["chunk_index"] = index
            chunk_id = new_id(span.start, span.end, span.content)
            chunks.append(Chunk(span.text_of(text), span.start, span.end, details, chunk_id))
        return chunks

    def fits(self, content: str) -> bool:
        """Whether a chunk with this text is within the maximum size; True if there is none."""
        return True

    def narrowed(self, prefix: str) -> Chunker:
        """Return the same strategy with smaller chunks, so that `prefix` fits before each."""
        return self


def _by_name(
    kind: type[Chunker], args: Sequence[Any], parameters: dict[str, Any]
) -> dict[str, Any]:
    """Merge the arguments that were passed by position into the named parameters.

    Raises TypeError if there are too many of them, or if a parameter was passed twice.
    """
    names = kind.positional
    if len(args) > len(names):
        allowed = f"only {', '.join(names)} by position" if names else "its parameters by name"
        raise TypeError(f"{kind.__name__} takes {allowed}, got {len(args)} by position")
    by_position = dict(zip(names, args, strict=False))
    if twice := by_position.keys() & parameters.keys():
        raise TypeError(f"{kind.__name__} got {', '.join(sorted(twice))} twice")
    return by_position | parameters


_COMPUTED = type("Computed", (), {"__repr__": lambda self: "..."})()


class _Signature:
    """The signature that `help()` shows: positional parameters first, and plain types."""

    def __get__(self, instance: Chunker | None, kind: type[Chunker]) -> inspect.Signature:
        if instance is not None:
            raise AttributeError("__signature__")
        names = dict.fromkeys([*kind.positional, *kind.model_fields])
        return inspect.Signature([_as_parameter(kind, name) for name in names])


class _Docstring(str):
    """A class docstring that ends with the description of each parameter.

    The descriptions are read from the source code when somebody asks for the docstring, because
    reading them at import would be slow. `pydoc` takes the string from the class's dictionary,
    without `__get__`, and calls `expandtabs` first.
    """

    kind: type[Chunker]

    def __new__(cls, text: str, kind: type[Chunker]) -> Self:
        docstring = super().__new__(cls, inspect.cleandoc(text))
        docstring.kind = kind
        return docstring

    def __get__(self, instance: Chunker | None, kind: type[Chunker]) -> str:
        lines = [str(self), "", "Parameters:"]
        for name, meaning in field_descriptions(self.kind).items():
            words = f"{name}: {' '.join(meaning.split())}"
            lines.append(fill(words, 96, initial_indent=" " * 4, subsequent_indent=" " * 8))
        return "\n".join(lines)

    def expandtabs(self, tabsize: SupportsIndex = 8) -> str:
        return self.__get__(None, self.kind).expandtabs(tabsize)

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)


def _as_parameter(kind: type[Chunker], name: str) -> inspect.Parameter:
    field, ways = kind.model_fields.get(name), inspect.Parameter
    how = ways.POSITIONAL_OR_KEYWORD if name in kind.positional else ways.KEYWORD_ONLY
    if field is None:  # a framework's own name for one of our parameters
        return inspect.Parameter(name, how, default=None)
    default = inspect.Parameter.empty if field.is_required() else field.default
    if field.default_factory is not None:
        default = _COMPUTED
    return inspect.Parameter(name, how, default=default, annotation=_plain_type(field.annotation))


def _plain_type(annotation: Any) -> Any:
    """Remove the annotations for pydantic from a type."""
    if get_origin(annotation) is Annotated:
        return _plain_type(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return reduce(or_, map(_plain_type, get_args(annotation)))
    if get_origin(annotation) is Mapping:
        return Mapping[tuple(map(_plain_type, get_args(annotation)))]  # type: ignore[misc]
    return annotation


def grouped(sources: Iterable[T]) -> Iterator[list[T]]:
    """Yield sources in groups that end after 512 sources or two million characters."""
    group: list[T] = []
    characters = 0
    for source in sources:
        group.append(source)
        characters += len(source.text)
        if len(group) == _GROUP_SOURCES or characters >= _GROUP_CHARACTERS:
            yield group
            group, characters = [], 0
    if group:
        yield group


def _numbered_groups(sources: Iterable[Source]) -> Iterator[list[Source]]:
    """Yield groups of sources, numbered in their order if they have no numbers yet."""
    first = 0
    for group in grouped(sources):
        has_numbers = any(source.number for source in group)
        yield (
            group
            if has_numbers or first + len(group) == 1
            else [replace(source, number=number) for number, source in enumerate(group, first)]
        )
        first += len(group)


async def _plan_with_places(chunker: Chunker, sources: Sequence[Source]) -> list[list[Span]]:
    results = zip(sources, await chunker.plan(sources), strict=True)
    return [add_places(spans, each.text, each.metadata) for each, spans in results]


class FrontEnd(Chunker):
    """Lets users assign a chunker's parameters, as they expect of both frameworks.

    Each value is checked when it is assigned, and a failed assignment changes nothing. Parameters
    that depend on each other are checked when the front end splits, so that they can be assigned in
    any order. Front ends with equal parameters are equal; the hash depends on the class alone.

    Raises ValueError for an unknown parameter or an invalid value.
    """

    model_config = ConfigDict(frozen=False, validate_assignment=True)

    def __setattr__(self, name: str, value: Any) -> None:
        kind = type(self)
        if name not in kind.model_fields:
            self._assign_other(name, value)
            return
        trial = self.model_copy()
        with plain_errors(kind):
            BaseModel.__setattr__(trial, name, value)
        self.model_fields_set.add(name)
        values = {**trial.__dict__}
        values |= _missing(kind.implied_parameters({name: values[name]}), self.model_fields_set)
        self.__dict__.update(values)
        self._compute_defaults()

    def _assign_other(self, name: str, value: Any) -> None:
        """Assign to a name that is no field: a framework's name of one, or a private name."""
        kind = type(self)
        parameters = kind.translate_parameters({name: value})
        if name not in parameters:
            for parameter, each in parameters.items():
                setattr(self, parameter, each)
        elif name.startswith("_") or isinstance(getattr(kind, name, None), property):
            super().__setattr__(name, value)
        else:
            raise unknown_parameter(kind.__name__, name, kind.model_fields)

    def _compute_defaults(self) -> None:
        """Recompute the defaults that depend on other parameters."""
        for name, field in type(self).model_fields.items():
            if field.default_factory_takes_validated_data and name not in self.model_fields_set:
                with suppress(ValueError):  # sizes may contradict each other meanwhile
                    self.__dict__[name] = field.get_default(
                        call_default_factory=True, validated_data=self.__dict__
                    )

    def __hash__(self) -> int:
        return hash(type(self))

    def split(self, sources: Iterable[Source]) -> Iterator[list[Span]]:
        self.check_parameters()
        return super().split(sources)

    def asplit(self, sources: Iterable[Source]) -> AsyncIterator[list[Span]]:
        self.check_parameters()
        return super().asplit(sources)


def _missing(values: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


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

    chunk_overlap: Overlap = 0
    """How much of the end of a chunk the next one repeats: a number of units (an int), or a share
    of `chunk_size` (a float below 1). Whole sentences are repeated if at least one fits, otherwise
    whole words."""

    length_function: Unit = "characters"
    """Unit of all sizes: "characters", "words", "tokens" (cl100k_base),
    "tokens:<encoding or model>", a tokenizer, or a function from text to length."""

    exact_overlap: ClassVar[bool] = False
    """Whether a chunk repeats exactly `chunk_overlap` units instead of whole sentences or words."""

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
        overlap, size = check_overlap(self.chunk_overlap), self.chunk_size
        if isinstance(overlap, float):
            return int(overlap * size)
        if overlap >= size:
            raise ValueError(
                f"chunk_overlap must be smaller than chunk_size ({size}), got {overlap}"
            )
        return overlap

    @property
    def sizes(self) -> Sizes:
        """Size, overlap and unit, as keyword arguments of `packing.pack`."""
        return Sizes(
            size=self.chunk_size, overlap=self.overlap, length_function=self.length_function
        )

    def fits(self, content: str) -> bool:
        measure = sizer(self.length_function)(content)
        return measure.length(0, len(content)) <= self.chunk_size

    def narrowed(self, prefix: str) -> Self:
        length = sizer(self.length_function)(prefix).length(0, len(prefix))
        size = max(1, self.chunk_size - length)
        overlap = min(self.overlap, max(size // 2, self.overlap * size // self.chunk_size))
        return self.model_copy(update={"chunk_size": size, "chunk_overlap": overlap})


class MergingChunker(SizedChunker):
    """A sized chunker that merges chunks that are too small.

    Raises ValueError if `min_chunk_size` is larger than `chunk_size`, or as `SizedChunker` does.
    """

    min_chunk_size: int = 0
    """Chunks smaller than this are merged with a neighbour if the result fits; in units of
    `length_function`, and 0 merges none."""

    def check_parameters(self) -> None:
        super().check_parameters()
        if whole_number(self.min_chunk_size, "min_chunk_size", 0) > self.chunk_size:
            raise ValueError(
                f"min_chunk_size must not be larger than chunk_size ({self.chunk_size}), "
                f"got {self.min_chunk_size}"
            )


def register(name: str, value: type[Chunker] | Callable[..., Any]) -> None:
    """Register a chunker class or a function of your own, so that configurations can name it.

    Loading a configuration never imports anything: it finds only the built-in strategies and what
    has been registered.

    Parameters:
        name: letters, digits, "_", "." and "-". A nested chunker is written as
            `{"strategy": name, ...}`, a function as "function:<name>".
        value: a subclass of `Chunker`, or a function.

    Raises TypeError for any other value, and ValueError if the name is already taken by another
    class or function, or if the class or function is already registered under another name.

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


def registered_strategy(name: str) -> type[Chunker]:
    """Return the built-in or registered strategy of this name.

    Raises ValueError if there is none.
    """
    kind = look_up(_strategies, name)
    if kind is None:
        raise ValueError(
            f"unknown strategy {name!r}: {did_you_mean(name, _strategies)}; register your own "
            "classes first, with rag_splitters.register(name, class)"
        )
    return kind


def registered_name_of(chunker: Chunker) -> str:
    """Return the name under which a chunker's strategy is registered, else its class name."""
    kind = _core(type(chunker))
    return next((name for name, each in _strategies.items() if each is kind), kind.__name__)


def _dump_chunker(chunker: Chunker) -> dict[str, Any]:
    """Return the strategy's name and parameters, without those that only a front end has."""
    kind = _core(type(chunker))
    parameters = chunker.model_dump(include=set(kind.model_fields))
    names = {each: name for name, each in _strategies.items()}
    return {
        **{name: value for name, value in parameters.items() if name in kind.model_fields},
        "strategy": names.get(kind) or describe(kind),
    }


def _core(kind: type[Chunker]) -> type[Chunker]:
    """Return the registered strategy that a front-end class only adapts; else the class itself.

    Such a class may change defaults and constructors, but overrides no method of the strategy.
    """
    if kind in _strategies.values() or len(kind.__bases__) < 2:
        return kind
    core, front_end = kind.__bases__[-2:]
    is_front_end = issubclass(front_end, FrontEnd) and not _has_method(front_end)
    if core not in _strategies.values() or not is_front_end:
        return kind
    own = kind.__mro__[: kind.__mro__.index(core)]
    return kind if any(_overrides_methods(each, core) for each in own) else core


def _overrides_methods(kind: type[Chunker], core: type[Chunker]) -> bool:
    """Whether a class overrides a method of its strategy, and so may cut in another way."""
    return any(
        isinstance(value, (FunctionType, property, staticmethod)) and hasattr(core, name)
        for name, value in vars(kind).items()
        if not name.startswith("__")
    )


def _has_method(kind: type[Chunker]) -> bool:
    return kind.spans is not Chunker.spans or kind.plan is not Chunker.plan


def _load_chunker(value: Any, info: ValidationInfo) -> Any:
    """Build the chunker that `_dump_chunker` described; return any other object unchanged."""
    if not isinstance(value, Mapping):
        return value
    name = value.get("strategy")
    if not isinstance(name, str):
        raise ValueError(
            f'{info.field_name or "chunker"} must be a chunker or {{"strategy": name, ...}}, '
            f"got {value!r}"
        )
    skipped = ("class_name", "strategy")
    parameters = {str(key): part for key, part in value.items() if key not in skipped}
    return registered_strategy(name)(**parameters)


Nested = Annotated[
    Chunker, BeforeValidator(_load_chunker), PlainSerializer(_dump_chunker, return_type=dict)
]
"""A field that holds another chunker, written with the name of its strategy."""

NestedMany = Annotated[Sequence[Nested], AfterValidator(tuple)]
"""A field that holds several chunkers; a list becomes a tuple."""
