"""A huge text that is cut from a file handle has the chunks of the whole text."""

from __future__ import annotations

import tracemalloc
from io import BytesIO, StringIO

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rag_splitters import CATALOGUE, Chunker, FixedSizeChunker, RecursiveChunker, Span
from rag_splitters.contract.streams import STREAMING
from rag_splitters.errors import InputError
from rag_splitters.langchain import FixedSizeTextSplitter
from rag_splitters.testing import hostile_texts
from rag_splitters.text.origin import line_range
from tests.contract.test_contract import VIOLATIONS
from tests.support.cases import CASES
from tests.support.processes import run_python


def streams(chunker: Chunker) -> bool:
    """Whether the parameters of a chunker let it cut a stream."""
    try:
        chunker.chunk_stream(StringIO(), id="")
    except InputError as error:
        return "cannot cut a stream" not in str(error)
    return True


STREAMS = {name: [case for case in CASES[name] if streams(case)] for name in STREAMING}


class ShortReads(StringIO):
    """A handle that returns fewer characters than it is asked for."""

    def __init__(self, text: str, longest: int) -> None:
        super().__init__(text, newline="")
        self.longest = longest

    def read(self, size: int | None = -1, /) -> str:
        return super().read(min(size or 0, self.longest))


@st.composite
def long_texts(draw: st.DrawFn) -> str:
    """Hostile texts, each repeated, with ordinary lines of all lengths between them."""
    part = st.tuples(hostile_texts(max_pieces=12), st.integers(1, 40))
    parts = draw(st.lists(part, min_size=1, max_size=6))
    line = "A line of some words, which goes on and on. It ends. "
    return "".join(
        f"{text * count}{line * (count % 9)}{chr(10) * (count % 3)}" for text, count in parts
    )


@pytest.mark.slow
@pytest.mark.parametrize("cases", STREAMS.values(), ids=STREAMS)
@settings(max_examples=3)
@given(
    text=long_texts(),
    block_size=st.sampled_from([1, 7, 500, 6000]),
    longest=st.sampled_from([3, 997, 9000]),
)
@example(text="".join(each * 4 for each in VIOLATIONS), block_size=500, longest=997)
@example(
    text="\n".join(f"{number} {'x y. Z' * (number % 50)}" for number in range(100)),
    block_size=1,
    longest=9,
)
def test_a_stream_has_the_chunks_of_the_whole_text(
    cases: list[Chunker], text: str, block_size: int, longest: int
) -> None:
    text = text.replace("\ud83d\ude00", "")  # no decoder returns a pair of surrogates
    for chunker in cases:
        whole = chunker.chunk(text, id="a.log", metadata=line_range(text))
        stream = chunker.chunk_stream(ShortReads(text, longest), id="a.log", block_size=block_size)
        try:
            chunks = list(stream)
        except InputError as error:
            is_right = "newline=None" in str(error) and "\r" in text.replace("\r\n", "")
            chunks = list(whole) if is_right else []
        assert chunks == list(whole)


def test_the_strategies_that_cut_a_stream_are_listed() -> None:
    assert [name for name in sorted(CASES) if any(map(streams, CASES[name]))] == sorted(STREAMING)
    assert set(STREAMING) <= set(CATALOGUE)


def test_other_strategies_are_refused_by_name_before_anything_is_read() -> None:
    for chunker, problem in [
        (CASES["sentence"][0], "SentenceChunker cannot cut a stream because its rules may look"),
        (RecursiveChunker(min_chunk_size=5), "cannot cut a stream with min_chunk_size"),
        (RecursiveChunker(separators=["x"]), "cannot cut a stream with separators"),
        (FixedSizeChunker(length_function=lambda text: 1), "a length_function or tokenizer"),
    ]:
        with pytest.raises(ValueError, match=problem) as error:
            chunker.chunk_stream(StringIO("text"), id="a")
        assert "use one of fixed_size, recursive, separator" in str(error.value)


def test_a_subclass_with_rules_of_its_own_is_refused() -> None:
    class Halves(FixedSizeChunker):
        def spans(self, text: str) -> list[Span]:
            return []

    with pytest.raises(ValueError, match="Halves cannot cut a stream"):
        Halves().chunk_stream(StringIO("text"), id="a")


def test_a_front_end_with_a_split_text_of_its_own_is_refused() -> None:
    class Loud(FixedSizeTextSplitter):
        def split_text(self, text: str) -> list[str]:
            return [text.upper()]

    with pytest.raises(ValueError, match="Loud cannot cut a stream with a split_text of its own"):
        Loud().chunk_stream(StringIO("text"), id="a")
    with pytest.raises(ValueError, match="cannot cut a stream with page_break"):
        FixedSizeTextSplitter(page_break="x").chunk_stream(StringIO("text"), id="a")
    assert [each.text for each in FixedSizeTextSplitter().chunk_stream(StringIO("a"), id="a")]


def test_bytes_are_refused() -> None:
    with pytest.raises(TypeError, match='open\\(path, newline=""\\)'):
        next(FixedSizeChunker().chunk_stream(BytesIO(b"text"), id="a"))  # type: ignore[arg-type]


class Log:
    """A handle with lines of a log, which are made when they are read."""

    def __init__(self, size: int) -> None:
        self.missing = size

    def read(self, size: int, /) -> str:
        line = "2026-11-24T02:10:16 INFO The request took 31 ms. It was cached.\n"
        size = min(size, self.missing)
        self.missing -= size
        return (line * (size // len(line) + 1))[:size]


def peak_of(chunker: Chunker, size: int) -> int:
    """The bytes that Python needs at most to cut a stream of this size."""
    tracemalloc.start()
    count = sum(1 for _ in chunker.chunk_stream(Log(size), id="a", block_size=200_000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count >= size // 1000
    return peak


@pytest.mark.slow
@pytest.mark.parametrize("chunker", ["RecursiveChunker(chunk_overlap=100)", "FixedSizeChunker()"])
def test_memory_does_not_grow_with_the_stream(chunker: str) -> None:
    code = f"from tests.contract.test_streams import *; chunker = {chunker}\n"
    code += "for size in (1_000_000, 2_500_000): print(peak_of(chunker, size))"
    short, long = map(int, run_python(code).split())  # where no other thread needs memory
    assert max(short, long) < 25 * 200_000
    assert long < 1.2 * short


def test_no_part_of_the_stream_is_cut_often() -> None:
    lengths = []

    class Counting(RecursiveChunker):
        def spans_after(self, text: str, last: Span | None) -> list[Span]:
            lengths.append(len(text))
            return super().spans_after(text, last)

    for block_size, chunk_size in ((25_000, 1000), (1, 12_000)):
        lengths.clear()
        list(
            Counting(chunk_size=chunk_size).chunk_stream(
                Log(500_000), id="a", block_size=block_size
            )
        )
        assert sum(lengths) < 4 * 500_000
