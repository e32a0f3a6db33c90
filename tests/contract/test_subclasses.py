"""Users' subclasses of our strategies and front ends: methods of their own, and attributes."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from llama_index.core.schema import Document
from pydantic import PrivateAttr, computed_field, model_validator

from rag_splitters import (
    CATALOGUE,
    Chunker,
    HybridChunker,
    RagSplittersError,
    RecursiveChunker,
    SentenceChunker,
    Source,
    Span,
    TitledChunker,
)
from rag_splitters.langchain import RecursiveTextSplitter, SentenceTextSplitter
from rag_splitters.llama_index import RecursiveNodeParser, SentenceNodeParser
from tests.support.cases import CASES
from tests.support.splitting import split_either

TEXT = "One sentence. Another one, with more words.\n\nA paragraph."


# `spans` and `plan`: the one that a class defines last counts


def whole(self: Chunker, text: str) -> list[Span]:
    return [Span(0, len(text))]


async def whole_of_each(self: Chunker, sources: Sequence[Source]) -> list[list[Span]]:
    return [[Span(0, len(source.text))] for source in sources]


@pytest.mark.parametrize("method", [{"spans": whole}, {"plan": whole_of_each}], ids=list)
@pytest.mark.parametrize("name", CATALOGUE)
def test_the_method_of_a_subclass_is_used_everywhere(name: str, method: dict[str, Any]) -> None:
    chunker: Any = type("Whole", (CATALOGUE[name],), method)(**CASES[name][0].__dict__)
    expected = [Span(0, len(TEXT))]
    assert chunker.spans(TEXT) == expected
    assert [chunk.text for chunk in chunker.chunk(TEXT)] == [TEXT]
    assert split_either(chunker, [TEXT], is_async=False) == [expected]
    assert split_either(chunker, [TEXT], is_async=True) == [expected]
    nested = TitledChunker(chunker=chunker).chunk(TEXT)
    assert [(chunk.start, chunk.end) for chunk in nested] == [(0, len(TEXT))]


class FirstHalf(RecursiveChunker):
    """Calls the method that its base does not define itself."""

    def spans(self, text: str) -> list[Span]:
        spans = super().spans(text)
        return spans[: (len(spans) + 1) // 2]


class Planned(FirstHalf):
    """Defines the other method, below one that defines the first."""

    async def plan(self, sources: Sequence[Source]) -> list[list[Span]]:
        return [spans[:1] for spans in await super().plan(sources)]


def test_both_methods_call_those_of_their_base() -> None:
    whole = RecursiveChunker(chunk_size=20).spans(TEXT)
    assert len(whole) > 3
    assert FirstHalf(chunk_size=20).spans(TEXT) == whole[: (len(whole) + 1) // 2]
    assert Planned(chunk_size=20).spans(TEXT) == whole[:1]
    assert next(Planned(chunk_size=20).split([Source(TEXT)])) == whole[:1]


class Mixed:
    """A class that is no chunker, and comes first."""

    def spans(self, text: str) -> list[Span]:
        return [Span(0, 3)]


def test_methods_may_come_from_a_plain_class() -> None:
    class Front(Mixed, RecursiveTextSplitter):
        pass

    class Below(Front):
        pass

    for kind in (Front, Below):
        assert kind().split_text(TEXT) == ["One"]
        assert kind.strategy == ""
        assert [c.text for c in TitledChunker(chunker=kind()).chunk(TEXT)] == ["One"]


def test_class_without_either_method_is_refused() -> None:
    class Neither(Chunker):
        pass

    with pytest.raises(TypeError, match=r"Neither must define spans\(text\) or plan\(sources\)"):
        Neither()


def test_strategy_is_named_by_the_class_that_defines_it() -> None:
    class Smaller(RecursiveTextSplitter):
        chunk_size: int = 10

    assert RecursiveChunker.strategy == RecursiveNodeParser.strategy == Smaller.strategy
    assert FirstHalf.strategy == Planned.strategy == ""
    assert all(kind.strategy == name for name, kind in CATALOGUE.items())


# Attributes


FRONT_ENDS = [
    RecursiveTextSplitter,
    SentenceTextSplitter,
    RecursiveNodeParser,
    SentenceNodeParser,
    RecursiveChunker,
    SentenceChunker,
]


def with_attributes(base: Any) -> Any:
    class WithAttributes(base):  # type: ignore[misc]
        def __init__(self, lang: str, **parameters: Any) -> None:
            self._early = [lang]
            self.chunk = 3  # even the name of a method
            self.headers_to_split_on = ["#"]
            super().__init__(**parameters)
            self.lang = lang
            self._late = lang
            self.chunksize = 1  # whoever has a subclass may take any name that is no parameter
            self.tokens_per_chunk = 2  # also of a framework's parameter that we lack

    WithAttributes.__qualname__ = "WithAttributes"
    return WithAttributes


@pytest.mark.parametrize("base", FRONT_ENDS)
def test_subclass_has_attributes_of_its_own(base: Any) -> None:
    one = with_attributes(base)("de", chunk_size=40)
    copies = [one, copy.copy(one), copy.deepcopy(one), one.model_copy()]
    for each in copies:
        values = (each.lang, each._early, each._late, each.chunksize, each.headers_to_split_on)
        assert values == ("de", ["de"], "de", 1, ["#"])
        assert each.tokens_per_chunk == 2
        assert (each.chunk_size, each.chunk) == (40, 3)
        assert set(each.model_dump()) >= set(base.model_fields) - {"callback_manager", "id_func"}
        assert "lang" not in each.model_dump()
    one.lang = "fr"
    assert [each.lang for each in copies] == ["fr", "de", "de", "de"]
    assert copies[2]._early is not one._early


class Pickled(RecursiveTextSplitter):
    """A subclass that can be pickled."""

    def __init__(self, **parameters: Any) -> None:
        self.lang = "de"
        super().__init__(**parameters)


class PickledParser(RecursiveNodeParser):
    """A subclass that can be pickled."""

    def __init__(self, **parameters: Any) -> None:
        self.lang = "de"
        super().__init__(**parameters)


@pytest.mark.parametrize("kind", [Pickled, PickledParser])
def test_attributes_are_pickled(kind: Any) -> None:
    again = pickle.loads(pickle.dumps(kind(chunk_size=30)))
    assert (again.lang, again.chunk_size) == ("de", 30)
    again.chunk_size = 40
    assert (again.lang, again.chunk_size) == ("de", 40)


@pytest.mark.parametrize("base", FRONT_ENDS)
def test_fields_and_private_attributes_may_be_declared(base: Any) -> None:
    class Declared(base):  # type: ignore[misc]
        factor: int = 2
        version: int = 1
        _counts: dict[str, int] = PrivateAttr(default_factory=dict)

        @computed_field  # type: ignore[prop-decorator]
        @property
        def double(self) -> int:
            return 2 * self.factor

    one = Declared(factor=3, version=4)
    one._counts["a"] = 1
    again = copy.deepcopy(one)
    one._counts = {}
    assert (again.factor, again._counts, one._counts, Declared()._counts) == (3, {"a": 1}, {}, {})
    assert (one.model_dump()["factor"], one.version) == (3, 4)
    if isinstance(one, RecursiveNodeParser):
        assert (one.to_dict()["version"], one.to_dict()["double"]) == (4, 6)
        assert Declared.from_dict(one.to_dict()) == one
    with pytest.raises(ValueError, match="factor must be a whole number"):
        Declared(factor="x")


@pytest.mark.parametrize("base", FRONT_ENDS[:4])  # a core chunker cannot be changed
def test_validators_of_a_subclass_may_assign(base: Any) -> None:
    class Validated(base):  # type: ignore[misc]
        label: str = ""

        @model_validator(mode="after")
        def derive(self) -> Any:
            self.label = f"{self.chunk_size} {self.length_function}"
            self.chunk_overlap = min(self.chunk_overlap, 5)
            return self

    one = Validated(chunk_size=30, length_function="words", chunk_overlap=9)
    assert (one.label, one.chunk_overlap) == ("30 words", 5)
    one.chunk_size = 40
    assert (one.label, one.chunk_overlap) == ("40 words", 5)
    one.chunk_overlap = 7
    assert one.chunk_overlap == 5
    with pytest.raises(ValueError, match="chunk_size must be a whole number"):
        one.chunk_size = "x"
    plain = base(chunk_size=40, length_function="words", chunk_overlap=5)
    assert one.split_text(TEXT) == plain.split_text(TEXT)


@pytest.mark.parametrize("base", FRONT_ENDS)
def test_parameters_of_a_subclass_are_still_checked(base: Any) -> None:
    kind = with_attributes(base)
    with pytest.raises(ValueError, match="unknown parameter 'chunksize'"):
        kind("de", chunksize=3)
    one = kind("de", chunk_size=30)
    with pytest.raises(ValueError, match=r"chunk_size must be|cannot be changed"):
        one.chunk_size = -3
    assert one.chunk_size == 30


# What they return


@pytest.mark.parametrize("base", [Chunker, RecursiveTextSplitter, RecursiveNodeParser])
def test_spans_may_be_yielded_at_positions_of_numpy(base: Any) -> None:
    class Fives(base):  # type: ignore[misc]
        def spans(self, text: str) -> Any:
            for start in np.arange(0, len(text) - 4, 5):
                yield Span(start, start + 5)

    chunks = HybridChunker(stages=[Fives(), Fives()]).chunk("Tea. Hot. ")
    assert [(chunk.start, type(chunk.start)) for chunk in chunks] == [(0, int), (5, int)]
    if base is RecursiveNodeParser:
        nodes = Fives().get_nodes_from_documents([Document(text="Tea. Hot. ")])
        assert [(node.text, type(node.start_char_idx)) for node in nodes] == [
            ("Tea. ", int),
            ("Hot. ", int),
        ]


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (None, "must return a list of spans, such as [Span(0, 5)], got None"),
        ([(0, 3)], "must return a list of spans, such as [Span(0, 5)], got [(0, 3)]"),
        ([Span(0, 2.5)], "returned a span from 0 to 2.5: positions must be whole numbers"),  # type: ignore[arg-type]
    ],
)
def test_what_they_must_not_return_is_named(result: Any, message: str) -> None:
    class BySpans(Chunker):
        def spans(self, text: str) -> Any:
            return result

    class ByPlan(Chunker):
        async def plan(self, sources: Sequence[Source]) -> Any:
            return [result]

    for kind, method in ((BySpans, "spans"), (ByPlan, "plan")):
        for chunker in (kind(), TitledChunker(chunker=kind(), title="T")):
            with pytest.raises(RagSplittersError) as caught:
                chunker.chunk("Tea.")
            assert str(caught.value) == f"{kind.__name__}.{method} {message}"


def test_plan_is_asynchronous_and_returns_spans_for_each_source() -> None:
    class Short(Chunker):
        async def plan(self, sources: Sequence[Source]) -> Any:
            return []

    class Synchronous(Chunker):
        def plan(self, sources: Sequence[Source]) -> Any:
            return [[]]

    with pytest.raises(RagSplittersError, match=r"^Short.plan must return a list of"):
        Short().chunk("Tea.")
    with pytest.raises(RagSplittersError, match=r"^Synchronous.plan must be defined with"):
        Synchronous().chunk("Tea.")
