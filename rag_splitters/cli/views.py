"""Output of the command line: tables, passages with the match marked, and JSON lines."""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from rag_splitters.contract.chunker import Chunker
from rag_splitters.contract.sized import unit_of
from rag_splitters.errors import FileError, InputError
from rag_splitters.parent_child.results import HEADER_KEY, MATCHES_KEY, SCORE_KEY, own_key
from rag_splitters.reading.files import describe_files, file_bytes
from rag_splitters.span import Chunk
from rag_splitters.text.coloured import number_of, printable
from rag_splitters.text.sizing import text_length, unit_name

_HIGHLIGHT = "bold black on yellow"
_HEAD = 2000  # bytes
"""How much of an earlier output is looked at."""
_PLACES = ("page", "line")
"""What a chunk's place in its file is counted in; the metadata has the first and last of them."""


def console(*, error: bool = False, file: IO[str] | None = None) -> Console:
    """Return a console that adds no colours or markup of its own."""
    return Console(stderr=error, file=file, highlight=False, markup=False, emoji=False)


def unwrap(docstring: str | None) -> str:
    """Return a docstring with each paragraph on one line, for a terminal of any width."""
    return re.sub(r"(?<=\S)\n(?=[^\s*>-]|--)", " ", inspect.cleandoc(docstring or ""))


def progress_bar(label: str, *, hidden: bool = False) -> Progress:
    """Return a bar on standard error with the files done and the time left, only at a terminal."""
    out = console(error=True)
    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(
        *columns,
        console=out,
        transient=True,
        disable=hidden or not out.is_terminal,
        redirect_stdout=False,  # or results that go to a file would appear on standard error
    )


def note_left_out(files: Sequence[Path]) -> None:
    """Say how many files of the named folders are not read, and of which kinds, on stderr."""
    if files:
        names = ", ".join(printable(file.as_posix()) for file in files[:3])
        more = ", ..." if len(files) > 3 else ""
        console(error=True).print(
            f"Skipped {printable(describe_files(files))} ({names}{more}). Name a file to read "
            "it, whatever its kind."
        )


def without_output(
    files: Sequence[Path], output: Path | None, named: Sequence[Path | None], mark: bytes
) -> list[Path]:
    """Return the files to read without the output of an earlier run, which begins with a mark.

    Raises FileError if the output would overwrite any other file to read, or one that is named.
    """
    if output is None:
        return list(files)
    target = os.path.realpath(output)
    others = [each for each in files if os.path.realpath(each) != target]
    is_named = target in [os.path.realpath(each) for each in named if each]
    if is_named or (len(others) < len(files) and mark not in file_bytes(output)[:_HEAD]):
        raise FileError(f"{output} is a file to read: write to another one")
    return others


def raise_unreadable(errors: Sequence[str]) -> None:
    """Raise an error that says why files cannot be read, if there are any."""
    if errors:
        count = f"{len(errors)} files cannot be read: " if len(errors) > 1 else ""
        raise InputError(f"{count}{'; '.join(errors)}")


def write_line(row: Mapping[str, Any], file: IO[str] | None = None) -> None:
    """Write one line of JSON, in ASCII, which every terminal can show."""
    (file or sys.stdout).write(json.dumps(row, default=str) + "\n")


def chunk_row(source: str, chunk: Chunk) -> dict[str, Any]:
    """Return a chunk as one JSON line."""
    return {
        "source": source,
        "text": chunk.text,
        "start": chunk.start,
        "end": chunk.end,
        "id": chunk.id,
        "metadata": dict(chunk.metadata),
    }


def chunk_table(source: str, chunks: Sequence[Chunk], chunker: Chunker) -> Table:
    """Return one row for each chunk: its position, its length and its beginning."""
    unit = unit_of(chunker)
    title = Text(printable(source), style="bold", overflow="fold")
    caption = Text(f"{number_of(len(chunks), 'chunk')}, length in {unit_name(unit)}")
    table = Table(title=title, caption=caption, box=box.SIMPLE_HEAD, title_justify="left")
    table.caption_justify, table.expand = "left", True
    places = [
        name for name in _PLACES if any(f"{name}_start" in chunk.metadata for chunk in chunks)
    ]
    for heading in ("#", *places, "start", "end", "length"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("text", no_wrap=True, overflow="ellipsis", ratio=1)
    for number, chunk in enumerate(chunks):
        length = text_length(chunk.text, unit)
        ranges = [_range(chunk.metadata, name) for name in places]
        figures = (number, *ranges, chunk.start, chunk.end, length)
        table.add_row(*map(str, figures), Text(" ".join(printable(chunk.text[:500]).split())))
    return table


def passage_row(result: Any) -> dict[str, Any]:
    """Return a result of a query, which is a LangChain document, as one JSON line."""
    metadata = dict(result.metadata)
    row = {
        "source": metadata.pop("source", None),
        "score": metadata.pop(own_key(metadata, SCORE_KEY), None),
        "text": result.page_content,
        "start": metadata.pop("start_index", None),
        "end": metadata.pop("end_index", None),
        "id": result.id,
    }
    if (key := own_key(metadata, MATCHES_KEY)) in metadata:
        row["matches"] = json.loads(metadata.pop(key))
    return row | {"metadata": metadata}


def passage_view(result: Any, number: str = "", limit: int | None = None) -> RenderableType:
    """Return a result with its source, position, score and title, and its best match marked.

    Parameters:
        limit: how many characters of its text to show, around the best match; None: all.
    """
    row = passage_row(result)
    score = "" if row["score"] is None else f"  score {row['score']:.3f}"
    place = "" if row["start"] is None else f"  {row['start']}-{row['end']}"
    for name in _PLACES:
        if numbers := _range(row["metadata"], name):
            place = f"  {name}{'s' if '-' in numbers else ''} {numbers}{place}"
    heading = Text(f"{number}{printable(str(row['source']))}{place}{score}", style="bold cyan")
    titles = [row["metadata"].get("title"), *(row["metadata"].get("headings") or ())]
    if title := " > ".join(dict.fromkeys(str(each) for each in titles if each)):
        heading.append(f"\n{' ' * len(number)}{' '.join(printable(title).split())}", "bold")
    before, match, after = _parts(row, limit)
    body = Text.assemble(before, *_highlight(match), after)
    return Group(heading, Panel(body, box=box.HORIZONTALS, border_style="dim"))


def excerpt(result: Any, limit: int) -> Text:
    """Return a result in one paragraph: its source and position, and the text around the match.

    Parameters:
        limit: how many characters of its text to show.
    """
    row = passage_row(result)
    before, match, after = (re.sub(r"\s+", " ", part) for part in _parts(row, limit))
    place = f"{printable(str(row['source']))} {row['start']}-{row['end']}: "
    return Text.assemble((place, "bold"), before, *_highlight(match.strip()), after)


def _highlight(match: str) -> list[tuple[str, str]]:
    """Return a match in colour, and between `>>` and `<<` for terminals without colours."""
    return [(f">>{match}<<", _HIGHLIGHT)] if match else []


def _parts(row: Mapping[str, Any], limit: int | None) -> tuple[str, str, str]:
    """Return the text before its best match, the match and the text after it, cut to the limit."""
    body, start = printable(row["text"]), row["start"]
    best: Mapping[str, Any] = next(iter(row.get("matches") or ()), {})
    if start is None or "start_index" not in best:
        return (body if limit is None else _cut_after(body, limit)), "", ""
    header = row["metadata"].get(own_key(row["metadata"], HEADER_KEY), "")
    added = len(header) if isinstance(header, str) and row["text"].startswith(header) else 0
    header, body = body[:added], body[added:]
    first, last = max(0, best["start_index"] - start), best["end_index"] - start
    before, match, after = body[:first], body[first:last], body[last:]
    if limit is not None:
        match = _cut_after(match, limit)
        room = max(0, limit - len(match))
        before, after = _cut_before(before, room // 2), _cut_after(after, room // 2)
    return header + before, match, after


def _cut_after(text: str, limit: int) -> str:
    """Return the first whole words of a text, and dots if there are more."""
    if len(text) <= limit:
        return text
    return f"{text[:limit].rpartition(' ')[0] or text[:limit]} ..."


def _cut_before(text: str, limit: int) -> str:
    """Return the last whole words of a text, and dots if there are more."""
    if len(text) <= limit:
        return text
    end = text[len(text) - limit :]
    return f"... {end.partition(' ')[2] or end}"


def _range(metadata: Mapping[str, Any], name: str) -> str:
    """Return the pages or lines of a chunk, such as "7" or "7-8", or "" if they are not known."""
    first, last = metadata.get(f"{name}_start", ""), metadata.get(f"{name}_end", "")
    return str(first) if first == last else f"{first}-{last}"
