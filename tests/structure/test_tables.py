"""Tables: read from every format, cut by rows, cells and inside cells, written in every way."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest
import regex
from hypothesis import given, strategies
from markdown_it import MarkdownIt

from rag_splitters import ContentAwareChunker
from rag_splitters.chunkers.recursive import RecursiveChunker
from rag_splitters.chunkers.table import TableChunker
from rag_splitters.span import Chunk
from rag_splitters.structure.blocks import detect_format, read_blocks
from rag_splitters.structure.text_tables import find_tables
from rag_splitters.testing import HOSTILE_PIECES
from tests.structure.test_blocks import HTML_PIECES, check_kept, many, texts_of
from tests.support.checks import check_chunker

Rows = list[list[str]]


def read_pipes(text: str) -> Rows:
    """The rows of a pipe table, header first, by markdown-it."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    assert tokens, text
    assert tokens[0].type == "table_open", text
    assert tokens[-1].type == "table_close", text
    rows: Rows = []
    for index, token in enumerate(tokens):
        if token.type == "tr_open":
            rows.append([])
        elif token.type in ("th_open", "td_open"):
            rows[-1].append(tokens[index + 1].content)
    return rows


class TableReader(HTMLParser):
    """The rows of an HTML table; fails where markup is not closed in its order."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: Rows = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data


def read_html(text: str) -> Rows:
    """The rows of a whole HTML table, or of a part of one, which is in Markdown."""
    if not text.startswith("<"):
        return read_pipes(text)
    reader = TableReader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    assert text.startswith("<table")
    assert text.endswith("</table>")
    return reader.rows


def read_csv(text: str) -> Rows:
    return list(csv.reader(io.StringIO(text, newline="")))


def read_json(text: str) -> Rows:
    records = json.loads(text)
    assert all(list(record) == list(records[0]) for record in records)
    return [list(records[0]), *(list(record.values()) for record in records)]


def pipes(rows: Rows) -> str:
    lines = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]]) + "\n"


def markup(rows: Rows) -> str:
    def line(row: list[str], tag: str) -> str:
        cells = [each.replace("&", "&amp;").replace("<", "&lt;") for each in row]
        return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in cells) + "</tr>"

    body = "\n".join(line(row, "td") for row in rows[1:])
    return f"<table><thead>{line(rows[0], 'th')}</thead>\n<tbody>{body}</tbody></table>"


def records(rows: Rows) -> str:
    target = io.StringIO(newline="")
    csv.writer(target, lineterminator="\n").writerows(rows)
    return target.getvalue()


WRITE: dict[str, Callable[[Rows], str]] = {"markdown": pipes, "html": markup, "csv": records}
READ = {"markdown": read_pipes, "html": read_html, "csv": read_csv}


def values(text: str, format: Any = "auto") -> tuple[list[str], Rows]:
    """The labels and the rows of the only table of a text."""
    (table,) = find_tables(text, format)
    return table.labels, [table.values(row) for row in table.rows]


# Reading


@pytest.mark.parametrize(
    ("text", "labels", "rows"),
    [
        (r"| a\|b | c |" "\n|---|---|\n| 1 | x\\|y |\n", ["a|b", "c"], [["1", "x|y"]]),
        ("| a | `x\\|y` |\n|:--|--:|\n| `p\\|q` | 2 |\n", ["a", "`x|y`"], [["`p|q`", "2"]]),
        ("| a | b |\n|---|---|\n| `p|q` | 2 |\n", ["a", "b"], [["`p", "q`", "2"]]),
        ("| a | b |\n|---|---|\n| 1 |\n| 1 | 2 | 3 |\n", ["a", "b"], [["1"], ["1", "2", "3"]]),
        ("a | b\n:-:|---\n1 | 2\n", ["a", "b"], [["1", "2"]]),
        ("| a |\r\n|---|\r\n| 1 |\r\n| 2 |\r\n", ["a"], [["1"], ["2"]]),
        ("| a | b |\n|---|---|\n", ["a", "b"], []),
        ("|  | b |\n|---|---|\n|  | 2 |\n|  |  |\n", ["", "b"], [["", "2"], ["", ""]]),
        ("- | a | b |\n  |---|---|\n  | 1 | 2 |\n", ["a", "b"], [["1", "2"]]),
        ("# T\n\n> | a | b |\n> |---|---|\n> | 1 | 2 |\n", ["a", "b"], [["1", "2"]]),
    ],
)
def test_pipe_table_reads_cells(text: str, labels: list[str], rows: Rows) -> None:
    assert values(text, "markdown") == (labels, rows)


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    ("text", "format"),
    [
        ("Tea:\n\na,b,c\n1,2,3\n4,5,6", "markdown"),
        ("Tea:\n\n| a | b | c |\n|---|---|---|\n| 1 | 2 | 3 |\n| 4 | 5 | 6 |", "text"),
        ("a;b;c\n1,0;2,0,0;3,0\n", "csv"),
    ],
)
def test_tables_are_found_with_any_line_break(text: str, format: Any, line_break: str) -> None:
    (table,) = find_tables(text.replace("\n", line_break), format)
    assert table.labels == ["a", "b", "c"]


def test_pipe_table_in_code_is_none() -> None:
    assert find_tables("# T\n\n```\n| a |\n|---|\n| 1 |\n```\n") == []


def test_pipe_table_in_a_quotation_is_written_without_its_marks() -> None:
    chunk = TableChunker(format="markdown").chunk("> | a | b |\n> |---|---|\n> | 1 | 2 |")[0]
    assert chunk.text == "| a | b |\n|---|---|\n| 1 | 2 |"


def test_pipe_table_cells_are_where_they_say() -> None:
    text = "text\n\n| a | b |\n|---|---|\n|  x  | y\\|z |\n"
    (table,) = find_tables(text)
    cells = table.cells(table.rows[0])
    assert [text[cell.start : cell.end] for cell in cells] == ["x", "y\\|z"]
    assert text[table.start : table.end] == text[6:-1]


@pytest.mark.parametrize(
    ("inner", "labels", "rows"),
    [
        ("<tr><th>a<th>b<tr><td>1<td>2", ["a", "b"], [["1", "2"]]),
        ("<tr><td>1<td>2</tr><tr><td>3<td>4", [], [["1", "2"], ["3", "4"]]),
        (
            "<thead><tr><th rowspan=2>A<th colspan=2>B</tr><tr><th>x<th>y</tr></thead>"
            "<tr><td rowspan=2>1<td>2<td>3</tr><tr><td>4<td>5</tr>",
            ["A", "B / x", "B / y"],
            [["1", "2", "3"], ["1", "4", "5"]],
        ),
        ("<tr><th>k</th><td colspan=2>v &amp; <b>w</b></td></tr>", [], [["k", "v & w", "v & w"]]),
        ("<tr><th>a<tr><td><img src=x alt='A cat'> 1<br>2", ["a"], [["A cat 1\n2"]]),
        ("<tr><th>a<tr><td><section>1</section><address>2</address>", ["a"], [["1\n\n2"]]),
        ("<td>no<td>row</td>", [], [["no", "row"]]),
    ],
)
def test_html_table_reads_cells(inner: str, labels: list[str], rows: Rows) -> None:
    text = f"<html><body><table>{inner}</table></body></html>"
    found, cells = values(text)
    assert found == labels
    assert [[" ".join(c.split()) for c in row] for row in cells] == [
        [" ".join(c.split()) for c in row] for row in rows
    ]


def test_html_table_in_markdown_may_hold_blank_lines() -> None:
    text = "# T\n\n<table>\n<tr><th>a</th></tr>\n\n<tr><td>1</td></tr>\n\n</table>\n\nend\n"
    assert values(text) == (["a"], [["1"]])
    assert [chunk.text for chunk in TableChunker().chunk(text)][-1] == "end"


def test_html_table_knows_its_caption() -> None:
    text = "<html><table><caption>All <i>of</i> it</caption><tr><th>1</table>"
    assert TableChunker().chunk(text)[0].metadata["caption"] == "All of it"


@pytest.mark.parametrize(
    ("text", "labels", "rows"),
    [
        ("a,b\n1,2\n3,4\n", ["a", "b"], [["1", "2"], ["3", "4"]]),
        ('a,b\r\n1,"x\r\ny, ""z"""\r\n3,4\r\n', ["a", "b"], [["1", 'x\r\ny, "z"'], ["3", "4"]]),
        ("a\tb\n1\t2 and more, yes.\n", ["a", "b"], [["1", "2 and more, yes."]]),
        ("a;b\n1,5;2\n3;4,5\n", ["a", "b"], [["1,5", "2"], ["3", "4,5"]]),
        ("1,2\n3,4\n5,6\n", [], [["1", "2"], ["3", "4"], ["5", "6"]]),
        ("See here:\n\na,b\n1,2\n3,4\n\nThat was it.", ["a", "b"], [["1", "2"], ["3", "4"]]),
    ],
)
def test_separated_table_reads_cells(text: str, labels: list[str], rows: Rows) -> None:
    assert values(text) == (labels, rows)


@pytest.mark.parametrize(
    "text",
    [
        "Roses are red, violets blue\nSugar is sweet, and so are you\nSo it is, and so it was\n",
        "First, we went home.\nThen, we ate.\nLater, we slept.\n",
        "a,b\n1,2\n",
        "one\ntwo\nthree\n",
        "    f(a,b)\n    g(c,d)\n    h(e,f)\n",
        "Tea, milk, sugar.\nBread, butter, jam.\nEggs, ham, salt.\n",
    ],
)
def test_prose_is_no_table(text: str) -> None:
    assert find_tables(text) == []


@given(
    strategies.lists(
        strategies.lists(strategies.text(alphabet='ab ,"\n', max_size=6), min_size=3, max_size=3),
        min_size=2,
        max_size=6,
    )
)
def test_separated_table_reads_as_the_standard_library_does(rows: Rows) -> None:
    text = records([["x", "y", "z"], *rows])
    assert values(text, "csv") == (["x", "y", "z"], read_csv(text)[1:])


# Cutting


ROWS = [["id", "name", "note"]] + [
    [str(n), f"name | {n}", f"a, note < {n} & more"] for n in range(1, 401)
]


@pytest.mark.parametrize("format", WRITE)
@pytest.mark.parametrize("render", ["source", "markdown", "json"])
def test_long_table_is_whole_again(format: str, render: Any) -> None:
    text = WRITE[format](ROWS)
    unit, most = ("tokens", 120) if render == "markdown" else ("characters", 400)
    chunker = TableChunker(chunk_size=most, length_function=unit, render=render, text=None)
    chunks = chunker.chunk(text)
    read = READ[format] if render == "source" else read_pipes if render == "markdown" else read_json
    found: Rows = []
    for chunk in chunks:
        header, *rows = read(chunk.text)
        assert header == ROWS[0]
        assert chunk.metadata["row_start"] == len(found) + 1
        found += rows
        assert chunk.metadata["row_end"] == len(found)
        assert chunker.fits(chunk.text)
        last = chunk.metadata["row_end"]
        assert "more" in text[chunk.start : chunk.end]
        assert text[chunk.start : chunk.end].count("note") == last - chunk.metadata["row_start"] + (
            2 if chunk is chunks[0] else 1
        )
    assert found == ROWS[1:]
    assert len(chunks) > 20


CELL = strategies.lists(
    strategies.sampled_from([*(p for p in HOSTILE_PIECES if p.isprintable()), "|", "\\", "`", '"'])
    | strategies.characters(codec="utf-8", categories=("L", "N", "P", "S")),
    max_size=6,
).map(lambda pieces: "".join(pieces).strip())


def tables(cell: strategies.SearchStrategy[str]) -> strategies.SearchStrategy[Rows]:
    row = strategies.lists(cell, min_size=2, max_size=2)
    return strategies.lists(row, min_size=1, max_size=8).map(lambda rows: [["key", "value"], *rows])


@many
@given(
    format=strategies.sampled_from(list(WRITE)),
    render=strategies.sampled_from(["source", "markdown", "json"]),
    rows=tables(CELL),
    size=strategies.sampled_from([60, 100, 200]),
)
def test_hostile_cells_come_back(format: str, render: Any, rows: Rows, size: int) -> None:
    text = WRITE[format](rows)
    chunker = TableChunker(chunk_size=size, render=render, text=None, format=format)
    read = READ[format] if render == "source" else read_pipes if render == "markdown" else read_json
    expected = read(text) if render == "source" and format != "html" else None
    table = find_tables(text, format)[0]  # type: ignore[arg-type]
    assert table.labels == ["key", "value"]
    assert [table.values(row) for row in table.rows] == [
        [" ".join(c.split()) for c in row] if format == "html" else row for row in rows[1:]
    ]
    whole: Rows = []
    for chunk in chunker.chunk(text):
        assert chunker.fits(chunk.text)
        if chunk.metadata.get("columns") == ["key", "value"] and "row_start" in chunk.metadata:
            header, *found = read(chunk.text)
            assert header == ["key", "value"]
            assert len(found) == chunk.metadata["row_end"] - chunk.metadata["row_start"] + 1
            whole += found
            if expected:
                assert (
                    found == expected[chunk.metadata["row_start"] : chunk.metadata["row_end"] + 1]
                )


PIECES = (
    *("| a | b |\n|---|---|\n", "| 1 | 2 |\n", "| \\| x | `c|d` | e |\n", "> ", "- ", "\n\n"),
    *("<table>", "</table>", "<tr>", "<td>", "<td rowspan=3 colspan=2>", "<th>", "</tr>", "</td>"),
    *("<thead>", "</thead><tbody>", "<caption>cap</caption>", "<!--", "a\tb\nc\td\n"),
    *("a,b,c\n1,2,3\nx,y,z\n", '"q, ""r""\nnext",2,3\n'),
)
TEXTS = strategies.lists(
    strategies.sampled_from((*HOSTILE_PIECES, *PIECES, *PIECES)) | strategies.characters(),
    max_size=25,
).map("".join)
CHUNKERS = [
    TableChunker(),
    *(
        TableChunker(chunk_size=size, render=render, format=written)
        for size in (1, 30, 70)
        for render, written in (
            *(("source", "markdown"), ("source", "html"), ("markdown", "markdown")),
            *(("json", "html"), ("json", "auto")),
        )
    ),
    TableChunker(chunk_size=40, format="csv"),
    TableChunker(chunk_size=40, format="tsv", render="json"),
    TableChunker(chunk_size=14, length_function="tokens", format="markdown"),
    TableChunker(chunk_size=70, format="markdown", rows_per_chunk=1),
]


@many
@given(chunker=strategies.sampled_from(CHUNKERS), text=TEXTS)
def test_table_chunker_keeps_the_guarantees(chunker: TableChunker, text: str) -> None:
    written = detect_format(text) if chunker.format == "auto" else chunker.format
    if written == "html" and any(b.kind == "dropped" for b in read_blocks(text, written)):
        check_kept(text, chunker.spans(text))
    else:
        check_chunker(chunker, text)


@given(text=texts_of((*HTML_PIECES, "<tr>", "<td rowspan=2>", "</td>")))
def test_html_loses_nothing_but_what_is_dropped(text: str) -> None:
    for render in ("source", "json"):
        chunker = TableChunker(format="html", chunk_size=40, render=render)
        spans = chunker.spans(text)
        check_kept(text, spans)
        for span in spans:
            content = span.text_of(text)
            assert chunker.fits(content) or len(regex.findall(r"\X", content, regex.DOTALL)) == 1


def rows_of(chunk: Chunk) -> tuple[int, int]:
    return chunk.metadata["row_start"], chunk.metadata["row_end"]


def test_overlap_repeats_whole_rows() -> None:
    text = pipes([["a", "b"], *([str(n), "x"] for n in range(10))])
    chunker = TableChunker(chunk_size=65, chunk_overlap=12, text=None)
    chunks = chunker.chunk(text)
    assert [rows_of(chunk) for chunk in chunks] == [(1, 4), (4, 7), (7, 10)]
    assert [read_pipes(chunk.text)[1][0] for chunk in chunks] == ["0", "3", "6"]
    assert all(chunker.fits(chunk.text) for chunk in chunks)
    assert text[chunks[1].start : chunks[1].end].startswith("| 3 | x |")
    text = pipes([["a", "b"], *([str(n), "x" * n] for n in range(10))])
    chunks = TableChunker(chunk_size=65, chunk_overlap=30, text=None).chunk(text)
    rows = [(1, 4), (3, 5), (4, 6), (5, 7), (6, 8), (8, 9), (9, 10)]
    assert [rows_of(chunk) for chunk in chunks] == rows  # fewer where they are longer


@pytest.mark.parametrize("format", WRITE)
@pytest.mark.parametrize("render", ["source", "markdown", "json"])
def test_cell_that_is_too_big_is_cut_inside(format: str, render: Any) -> None:
    long = " ".join(f"word{n}" for n in range(300))
    text = WRITE[format]([["key", "value"], ["k", long]])
    chunker = TableChunker(chunk_size=150, render=render, format=format)
    read = READ[format] if render == "source" else read_pipes if render == "markdown" else read_json
    pieces = []
    for chunk in chunker.chunk(text):
        assert chunker.fits(chunk.text)
        (labels, row) = read(chunk.text)
        if labels == ["value"]:
            pieces.append(row[0])
            assert row[0] in text[chunk.start : chunk.end]
    assert " ".join(pieces) == long


def test_rowspan_over_the_edge_of_a_chunk_is_carried_on() -> None:
    rows = "".join(f"<tr><td>{n}</td></tr>" for n in range(2, 7))
    head = "<tr><th>g</th><th>n</th></tr><tr><td rowspan=6>G</td><td>1</td></tr>"
    text = f"<html><table>{head}{rows}</table>"
    chunks = TableChunker(chunk_size=60, rows_per_chunk=3).chunk(text)
    assert [rows_of(chunk) for chunk in chunks] == [(1, 3), (4, 6)]
    assert "| G | 4 |" in chunks[1].text
    assert read_html(chunks[1].text)[0] == ["g", "n"]


@pytest.mark.parametrize(
    ("size", "second"),
    [
        (40, ("a", "b", "big", "2")),
        (32, ("b", "2")),  # both cells fit under their labels, but not beside each other
    ],
)
def test_rowspan_stands_in_rows_that_are_cut_by_cells(size: int, second: tuple[str, ...]) -> None:
    rows = "<tr><td rowspan=2>big</td><td>1</td></tr><tr><td>2</td></tr>"
    text = f"<table><tr><th>a</th><th>b</th></tr>{rows}</table>"
    spans = check_chunker(TableChunker(chunk_size=size, format="html"), text)
    header, values = read_html(spans[-1].text_of(text))
    assert (*header, *values) == second
    assert text[spans[-1].start : spans[-1].end] == "<tr><td>2</td></tr></table>"


def test_rowspan_that_is_too_big_is_cut_once() -> None:
    rows = f"<tr><td rowspan=3>{'word ' * 40}</td><td>1</td></tr><tr><td>2</td></tr><tr><td>3</td>"
    text = f"<table><tr><th>a</th><th>b</th></tr>{rows}</tr></table>"
    chunks = TableChunker(chunk_size=90, format="html").chunk(text)
    assert sum(chunk.text.count("word") for chunk in chunks) == 40
    assert [read_html(chunk.text)[1] for chunk in chunks[-2:]] == [["2"], ["3"]]


def test_rows_that_can_only_be_cut_as_text_are_cut_together() -> None:
    text = (
        "| a long label | b |\n|---|---|\n| one two | three four |\n| five six | seven |\n| 8 | 9 |"
    )
    spans = check_chunker(TableChunker(chunk_size=15, format="markdown"), text)
    assert [span.text_of(text) for span in spans][-5:] == [
        *("| one two |", "three four |", "| five six |", "seven |", "| 8 | 9 |")
    ]


def test_header_that_does_not_fit_is_a_chunk_of_its_own() -> None:
    text = pipes([["a long label of many words", "b"], ["1", "2"]])
    chunker = TableChunker(chunk_size=30)
    check_chunker(chunker, text)
    joined = " ".join(chunk.text for chunk in chunker.chunk(text))
    assert all(word in joined for word in "a long label of many words".split())


def test_data_of_images_is_not_in_a_table() -> None:
    data = "data:image/png;base64," + "iVBORw0" * 50
    text = pipes([["a", "b"], [f"![x]({data})", "2"]])
    assert (
        TableChunker().chunk(text)[0].text
        == pipes([["a", "b"], ["![x](data:image/png;base64,)", "2"]]).strip()
    )


def test_json_keys_are_all_different() -> None:
    text = "# T\n\n| a | a |  |\n|---|---|---|\n| 1 | 2 | 3 | 4 |\n"
    chunk = TableChunker(render="json", text=None).chunk(text)[0]
    assert json.loads(chunk.text) == [{"a": "1", "a_2": "2", "column_3": "3", "column_4": "4"}]


def test_markdown_breaks_lines_in_cells() -> None:
    chunk = TableChunker(render="markdown").chunk('a,b\n1,"x\ny|z"\n3,4\n')[0]
    assert read_pipes(chunk.text) == [["a", "b"], ["1", "x<br>y|z"], ["3", "4"]]


def test_cell_of_tags_alone_is_a_chunk() -> None:
    text = "<html><table><tr><th>a</th></tr><tr><td>" + "<b></b>" * 50 + "</td></tr></table>"
    chunks = TableChunker(chunk_size=100).chunk(text)
    assert [read_html(chunk.text) for chunk in chunks] == [[["a"], [""]]]


# The chunker's parameters


def test_text_between_goes_to_another_chunker_or_is_dropped() -> None:
    text = "One two.\n\n| a |\n|---|\n| 1 |\n\nThree four.\n"
    cut = TableChunker(text=RecursiveChunker(chunk_size=6)).chunk(text)
    assert [chunk.text for chunk in cut if chunk.metadata["modality"] == "text"] == [
        *("One", "two.", "Three", "four.")
    ]
    assert [chunk.metadata["modality"] for chunk in TableChunker(text=None).chunk(text)] == [
        "table"
    ]


def test_text_has_the_sizes_of_the_tables_if_not_given() -> None:
    text, sizes = "One two three. " * 9, {"chunk_size": 50, "chunk_overlap": 15}
    cuts = [(span.start, span.end) for span in RecursiveChunker(**sizes).spans(text)]
    chunker = TableChunker(**sizes)
    assert [(span.start, span.end) for span in chunker.spans(text)] == cuts
    assert TableChunker(**chunker.model_dump()) == chunker
    assert TableChunker(**TableChunker(text=None).model_dump()).text is None


@pytest.mark.parametrize("format", WRITE)
def test_work_grows_with_the_table(format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = 0

    def count(text: str) -> int:
        nonlocal measured
        measured += len(text)
        return len(text)

    text = WRITE[format](ROWS)
    TableChunker(chunk_size=500, length_function=count, text=None).spans(text)
    assert measured < 12 * len(text)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "<html><table>" + "<tr><td colspan=1000 rowspan=9999>x" * 3000 + "</table>",
        "<html>" + "<table><tr><td>" * 5000 + "</table>" * 5000,
        "# T\n\n" + "<table>\n\ntext\n\n" * 5000,
        "# T\n\n| a |\n|---|\n|" + " b |" * 5000 + "\n" + "| c |\n" * 5000,
        'a,"b\n' * 10_000,
    ],
)
@pytest.mark.parametrize("render", ["source", "json"])
def test_broken_tables_take_linear_time(text: str, render: Any) -> None:
    """Quadratic work would take minutes here."""
    assert TableChunker(render=render).spans(text)


def test_quotation_marks_in_a_header_of_html_stay_as_they_are() -> None:
    row = f"<tr><td>{'copper ' * 60}</td></tr>"
    text = f'<table><tr><th>5" pipe &amp; "cap"</th></tr>{row}</table>'
    chunks = TableChunker(chunk_size=150, format="html").chunk(text)
    assert len(chunks) > 2
    assert all('| 5" pipe & "cap" |' in chunk.text for chunk in chunks)


def test_text_after_a_table_that_fits_shares_its_chunk() -> None:
    text = "tea,price per pound\n" + "green tea,three dollars\n" * 5 + "\nIt ends here."
    chunker = ContentAwareChunker(chunk_size=60, length_function="words")
    assert len(chunker.spans(text)) == 1
