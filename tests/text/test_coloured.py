"""Chunks in colours: on their text in a notebook and a terminal, and what `help()` says."""

from __future__ import annotations

import copy
import io
import json
import pickle
import re
from html.parser import HTMLParser
from pydoc import plain, render_doc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from rag_splitters import CATALOGUE, Chunk, Chunks, HierarchicalChunker, SentenceChunker, show
from rag_splitters.langchain import RecursiveTextSplitter
from rag_splitters.llama_index import SentenceNodeParser
from rag_splitters.parameters.descriptions import field_descriptions
from rag_splitters.text.coloured import coloured, pieces, printable

TEXT = "One is here. Two is here. Three is here. Four is here."
OVERLAPPING = SentenceChunker(chunk_size=27, chunk_overlap=13)
HOSTILE = '</div><script>alert(1)</script> & "x" onmouseover="y" $a$ \x1b[31m \u202e \ud800 \0'


class Reader(HTMLParser):
    """The text and the names of the elements of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text, self.elements, self.attributes = "", set[str](), set[str]()
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def chunk_at(start: int, end: int, **metadata: Any) -> Chunk:
    return Chunk("", start, end, metadata, f"{start}-{end}")


def test_chunks_are_a_list() -> None:
    chunks = OVERLAPPING.chunk(TEXT)
    assert isinstance(chunks, list)
    assert type(chunks) is Chunks
    assert chunks == list(chunks)
    for copied in (pickle.loads(pickle.dumps(chunks)), copy.deepcopy(chunks), copy.copy(chunks)):
        assert copied == chunks
        assert copied.text == TEXT


def test_a_notebook_shows_the_whole_text_and_only_our_markup() -> None:
    text = f"{HOSTILE} {TEXT}"
    page = OVERLAPPING.chunk(text)._repr_html_()
    json.dumps(page).encode()
    page.encode()  # no lone surrogate
    read = Reader(page)
    assert read.text.startswith(printable(text))
    assert read.elements == {"div", "span", "small"}
    assert read.attributes == {"class", "style", "title"}
    assert not re.search("[\0\x1b]", page)


def test_a_notebook_shows_the_beginning_of_a_long_text() -> None:
    page = SentenceChunker().chunk("One is here. " * 10_000)._repr_html_()
    assert "and 80,000 more characters" in page
    assert len(page) < 100_000


def test_a_rewritten_chunk_says_what_is_delivered() -> None:
    chunk = Chunk('<b>"new"</b>', 0, 3, {}, "id")
    page = Chunks([chunk], "old")._repr_html_()
    assert 'title="chunk 0: 0-3, rewritten as: &lt;b&gt;&quot;new&quot;&lt;/b&gt;"' in page


@given(places=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=12))
def test_pieces_are_the_text_and_know_their_chunks(places: list[tuple[int, int]]) -> None:
    text = "x" * 25
    chunks = [chunk_at(*sorted(place)) for place in places]
    found = list(pieces(text, chunks))
    assert [each.start for each in found] == [0, *(each.end for each in found[:-1])]
    assert found[-1].end == len(text)
    for piece in found:
        around = {
            (each.start, min(each.end, 25))
            for each in chunks
            if each.start <= piece.start and each.end >= piece.end
        }
        assert piece.overlaps == (len(around) > 1)
        ends = [min(chunk.end, 25) for chunk in chunks]
        places = [{(chunks[n].start, ends[n]) for n in each} for each in piece.chunks]
        assert all(len(each) == 1 for each in places)
        assert [place for each in places for place in each] == sorted(around)
        numbers = [number for each in piece.chunks for number in each]
        assert len(numbers) == len(set(numbers))
        assert piece.begins == any(chunks[number].start == piece.start for number in numbers)


def test_neighbours_have_different_colours_and_parents_are_left_out() -> None:
    found = list(pieces(TEXT, HierarchicalChunker(chunk_size=13).chunk(TEXT)))
    colours = [each.colour for each in found if each.begins]
    assert len(colours) > 2
    assert colours == list(range(len(colours)))
    assert not any(each.overlaps for each in found)


def test_a_terminal_has_colours_and_a_pipe_has_marks() -> None:
    chunks = OVERLAPPING.chunk(TEXT)
    coloured_console = Console(file=io.StringIO(), force_terminal=True, color_system="truecolor")
    in_colours = coloured(TEXT, chunks, coloured_console)
    assert in_colours.plain == TEXT
    assert len({span.style for span in in_colours.spans}) == 3
    marked = coloured(TEXT, chunks, Console(file=io.StringIO())).plain
    assert marked == "|One is here. |>>Two is here.<< Three |>>is here.<< Four is here."
    assert re.sub(r"\||>>|<<", "", marked) == TEXT


def test_show_takes_splitters_and_parsers_and_any_text(capsys: pytest.CaptureFixture[str]) -> None:
    for chunker in (OVERLAPPING, RecursiveTextSplitter(chunk_size=20), SentenceNodeParser()):
        show(HOSTILE, chunker)
        out = capsys.readouterr().out
        assert "<script>" in out
        assert "\x1b" not in out
        assert " characters\n" in out


@pytest.mark.parametrize(
    "kind",
    [*CATALOGUE.values(), RecursiveTextSplitter, SentenceNodeParser],
    ids=lambda k: k.__name__,
)
def test_help_says_what_every_parameter_means(kind: type) -> None:
    text = " ".join(plain(render_doc(kind)).replace("|", " ").split())
    parameters = text.split("Parameters:")[1]
    for name, meaning in field_descriptions(kind).items():  # type: ignore[arg-type]
        assert f"{name}: {' '.join(meaning.split())}" in parameters
        assert meaning or name in ("callback_manager", "id_func")  # LlamaIndex describes neither


def test_help_names_sizes_with_their_unit() -> None:
    text = " ".join((RecursiveTextSplitter.__doc__ or "").split())
    assert (
        "chunk_size: Maximum chunk size, overlap included, in units of `length_function`." in text
    )
    assert RecursiveTextSplitter(chunk_size=5).__doc__ == RecursiveTextSplitter.__doc__
