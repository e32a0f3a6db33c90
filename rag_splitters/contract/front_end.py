"""FrontEnd: what both frameworks expect of a splitter or parser, and a chunker does not do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from inspect import getattr_static
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict
from typing_extensions import Self

from rag_splitters.calls import with_value
from rag_splitters.contract.chunker import Chunker, drop_name_of_base, is_ours, validating, without
from rag_splitters.contract.own_texts import base_texts, plan_by_split_text
from rag_splitters.contract.streams import Handle, check_streams
from rag_splitters.errors import InputError, InputTypeError
from rag_splitters.parameters.messages import plain_errors, unknown_parameter
from rag_splitters.span import Chunk, Source, Span
from rag_splitters.text.pages import check_page_break, first_page, page_breaks, with_pages

_WAYS_TO_CUT = ("split_text", "spans", "plan", "split_text_metadata_aware", "_parse_nodes")
"""The methods by which a subclass may cut in its own way."""


class FrontEnd(Chunker):
    """Lets users assign a chunker's parameters, as they expect of both frameworks.

    Each value is checked when it is assigned, and a failed assignment changes nothing. Parameters
    that depend on each other are checked when the front end splits, so that they can be assigned in
    any order.

    Raises ValueError for an unknown parameter or an invalid value.
    """

    model_config = ConfigDict(frozen=False, validate_assignment=True)

    page_break: Annotated[str | None, AfterValidator(check_page_break)] = None
    """Regular expression for the break between two pages, to add `page_start` and `page_end` to the
    metadata; None: no pages."""

    unused_methods: ClassVar[tuple[str, ...]] = ()
    """Methods by which the framework's own classes cut, and which are not called here."""

    _unused: ClassVar[str] = ""  # one that the class defines

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Refuse a class that cuts by a method that nothing would call."""
        if cls._unused:
            raise InputTypeError(
                f"{cls.__name__}.{cls._unused} would never be called: the framework's own classes "
                "cut with this method, and ours do not; override split_text instead"
            )
        return super().__new__(cls, *args, **kwargs)

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        if is_ours(cls):
            return
        own = cls.__mro__[: cls.__mro__.index(cls._front_end())]  # a later base overrides nothing
        unused = [name for name in cls.unused_methods if any(name in vars(kind) for kind in own)]
        # Its own way to cut may call them.
        cls._unused = "" if not unused or cls.overrides(*_WAYS_TO_CUT) else unused[0]
        if cls.plan is Chunker.plan or not cls.overrides("split_text"):
            return
        drop_name_of_base(cls, next(kind for kind in cls.__mro__ if "split_text" in vars(kind)))
        if not hasattr(cls.plan, "by_split_text"):
            # Both methods, so that no subclass derives one of them from the other.
            cls.plan, cls.spans = plan_by_split_text(cls.plan), cls.spans  # type: ignore[method-assign]

    def __setattr__(self, name: str, value: Any) -> None:
        kind = type(self)
        if name not in kind.model_fields or not self._is_initialised:
            self._assign_other(name, value)
            return
        values = {name: value}
        if validating.get() is not self:  # in a validator, pydantic would call that again
            trial = self.model_copy()
            with plain_errors(kind), with_value(validating, trial):
                BaseModel.__setattr__(trial, name, value)
            values = {**trial.__dict__}
        self.model_fields_set.add(name)
        values |= without(kind.implied_parameters({name: values[name]}), self.model_fields_set)
        self.__dict__.update(values)

    def _assign_other(self, name: str, value: Any) -> None:
        """Assign to a name that is no field: a framework's name of one, or the user's own."""
        kind = type(self)
        is_private = name.startswith("_") or isinstance(getattr(kind, name, None), property)
        if is_private or not self._is_initialised:
            super().__setattr__(name, value)
            return
        try:
            parameters = kind.translate_parameters({name: value})
        except InputError:
            if not self._owns(name):
                raise
            parameters = {name: value}
        if parameters and name not in parameters:
            for parameter, each in parameters.items():
                setattr(self, parameter, each)
        elif self._owns(name):
            super().__setattr__(name, value)
        elif parameters:  # without any, the value has no effect
            raise unknown_parameter(kind.__name__, name, kind.model_fields)

    def split_text(self, text: str) -> list[str]:
        """Return the texts of the chunks of one text."""
        self.check_parameters()
        cut = super().split
        return base_texts(self, text, lambda source: next(cut([source])))

    def split(self, sources: Iterable[Source]) -> Iterator[list[Span]]:
        """Yield the spans of each source, as `split_text` cuts it if a subclass overrides that."""
        self.check_parameters()
        return super().split(sources)

    async def asplit(self, sources: Iterable[Source]) -> AsyncIterator[list[Span]]:
        """Asynchronous `split`."""
        self.check_parameters()
        async for spans in super().asplit(sources):
            yield spans

    def with_places(self, spans: list[Span], source: Source) -> list[Span]:
        spans = super().with_places(spans, source)
        if self.page_break is None:
            return spans
        breaks = page_breaks(source.text, self.page_break)
        return with_pages(spans, breaks, first_page(source.metadata))

    def chunk_stream(
        self, handle: Handle, *, id: str, block_size: int = 1_000_000
    ) -> Iterator[Chunk]:
        """Cut a huge text from a file handle; see `Chunker.chunk_stream`."""
        if self.overrides("split_text"):
            check_streams(self, "with a split_text of its own")
        check_streams(self, "with page_break" if self.page_break else None)
        return super().chunk_stream(handle, id=id, block_size=block_size)

    @classmethod
    def _front_end(cls) -> type[FrontEnd]:
        """Return the class of this package that a user's class extends."""
        return next(kind for kind in cls.__mro__ if is_ours(kind) and issubclass(kind, FrontEnd))

    @classmethod
    def overrides(cls, *names: str) -> bool:
        """Whether a user's class defines one of these methods of the front end anew."""
        ours = cls._front_end()
        return any(
            getattr_static(cls, name, None) is not getattr_static(ours, name, None)
            for name in names
        )
