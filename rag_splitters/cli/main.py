"""The command line: `rag-splitters`, or `python -m rag_splitters`.

Neither framework is imported before a command needs it.
"""

from __future__ import annotations

import inspect
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

from rag_splitters import CATALOGUE, __version__
from rag_splitters.cli.compare import compare
from rag_splitters.cli.models import BaseUrlOption, EmbeddingsOption, LlmOption, models
from rag_splitters.cli.parameters import build, parameter_docs, parse, shown, strategy
from rag_splitters.cli.play import play
from rag_splitters.cli.views import (
    chunk_row,
    chunk_table,
    console,
    passage_row,
    passage_view,
    write_line,
)
from rag_splitters.reading.files import decode, read_text

__all__ = ["CommandError", "Format", "FormatOption", "app", "main"]

_USAGE_ERROR: Any = typer.BadParameter.__base__  # click's, wherever this Typer keeps it


class CommandError(Exception):
    """What the user can put right; its message is all that is shown."""


class _Commands(TyperGroup):
    """The commands, with every error of the user's in one line and exit status 2."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run a command and exit."""
        if not extra.pop("standalone_mode", True):
            return super().main(*args, **{**extra, "standalone_mode": False})
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):  # what an encoding lacks must not stop the output
                stream.reconfigure(errors="backslashreplace")
        try:
            status = super().main(*args, **{**extra, "standalone_mode": False})
        except (CommandError, _USAGE_ERROR) as error:
            told = error.format_message() if hasattr(error, "format_message") else str(error)
            told = " ".join(told.replace("Value error, ", "").splitlines())
            typer.echo(f"Error: {told}", err=True)
            status = 2
        except typer.Abort:
            status = 130
        sys.exit(status if isinstance(status, int) else 0)


app = typer.Typer(
    cls=_Commands, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich"
)


class Format(str, Enum):
    """How results are written."""

    table = "table"
    jsonl = "jsonl"


FormatOption = Annotated[
    Format, typer.Option("--format", help="A table to look at, or one JSON object a line.")
]


def main() -> None:
    """Run the command line."""
    app(prog_name="rag-splitters")


@contextmanager
def _told() -> Iterator[None]:
    """Errors of what is done in here are the user's to put right."""
    try:
        yield
    except (ValueError, TypeError, ImportError, OSError) as error:
        raise CommandError(str(error)) from error


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Cut texts into chunks for retrieval, and search them by parent-child retrieval."""
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # what matters is raised
    if version:
        typer.echo(f"rag-splitters {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())
    else:
        return
    raise typer.Exit


@app.command()
def demo() -> None:
    """Show what it does: three texts, three strategies, three questions; offline, in seconds."""
    from rag_splitters.cli.demo import CHUNK_SIZE, STRATEGIES, answers, split_table

    out = console()
    out.rule(Text("Splitting"))
    out.print(
        f"Three texts, cut by {', '.join(STRATEGIES)} into chunks of at most {CHUNK_SIZE} "
        "characters. Sizes are the shortest, the median and the longest; a bar shows "
        "where a cut falls.\n"
    )
    out.print(split_table(out.width))
    out.rule(Text("Parent-child retrieval"))
    out.print(
        "Small child chunks are searched, the larger parent that holds the best one is returned. "
        "The index is a Chroma in memory. Its default embedding is built in and matches words, "
        "not meaning: hand in a model of your own for real retrieval.\n"
    )
    for question, parent in answers():
        out.print(Text(question, style="bold"))
        out.print(passage_view(parent))
    out.print("Next: rag-splitters split FILE, rag-splitters strategies, rag-splitters --help")


@app.command()
def split(
    files: Annotated[list[str], typer.Argument(help="Files, or - for standard input.")],
    name: Annotated[
        str, typer.Option("--strategy", "-s", help="A strategy's name; see `strategies`.")
    ] = "recursive",
    pairs: Annotated[
        list[str] | None,
        typer.Option("--param", "-p", metavar="NAME=VALUE", help="A parameter; repeat for more."),
    ] = None,
    chunk_size: Annotated[
        int | None, typer.Option(help="The most that a chunk measures, overlap included.")
    ] = None,
    chunk_overlap: Annotated[
        str | None, typer.Option(help="How much chunks repeat: units, or a share such as 0.1.")
    ] = None,
    length_function: Annotated[
        str | None, typer.Option(help="characters, words, tokens or tokens:<name>.")
    ] = None,
    embeddings: EmbeddingsOption = None,
    llm: LlmOption = None,
    base_url: BaseUrlOption = None,
    form: FormatOption = Format.table,
) -> None:
    """Cut files into chunks and show them, with their positions."""
    sizes = (chunk_size, chunk_overlap, length_function)
    named = zip(("chunk_size", "chunk_overlap", "length_function"), sizes, strict=True)
    given = [*(pairs or ()), *(f"{key}={value}" for key, value in named if value is not None)]
    with _told():
        parameters, own = parse(name, given), models(embeddings, llm, base_url)
        for key in parameters.keys() & own.keys():
            raise ValueError(f"{key} is given twice")
        chunker = build(name, {**parameters, **own})
        if files.count("-") > 1:
            raise ValueError("standard input (-) can be read only once")
    for source in files:
        with _told():
            text = decode(sys.stdin.buffer.read(), "-") if source == "-" else read_text(source)
            chunks = chunker.chunk(text, metadata={"source": source})
            table = chunk_table(source, chunks, chunker) if form is Format.table else None
        if table is None:
            for chunk in chunks:
                write_line(chunk_row(source, chunk))
        else:
            console().print(table)


@app.command()
def strategies(
    name: Annotated[str | None, typer.Argument(help="Show this one with its parameters.")] = None,
) -> None:
    """List the strategies, or show one with its parameters."""
    out = console()
    if name is None:
        table = Table("strategy", "what it does to the text", box=box.SIMPLE_HEAD)
        for each, kind in CATALOGUE.items():
            table.add_row(Text(each, style="bold"), Text((kind.__doc__ or "").split("\n")[0]))
        out.print(table)
        return
    with _told():
        kind = strategy(name)
    out.print(Text(f"{name} ({kind.__name__})", style="bold"))
    out.print(Text(inspect.getdoc(kind).split("\n>>> ")[0].rstrip() + "\n"))  # type: ignore[union-attr]
    table = Table("parameter", "default", "meaning", box=box.SIMPLE_HEAD)
    for parameter, (default, meaning) in parameter_docs(kind).items():
        table.add_row(Text(parameter, style="bold"), Text(shown(default)), Text(meaning))
    out.print(table)


@app.command()
def index(
    folder: Annotated[Path, typer.Argument(metavar="INDEX", help="The index's own folder.")],
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files and folders.")],
    embeddings: EmbeddingsOption = None,
    base_url: BaseUrlOption = None,
    child_size: Annotated[
        int, typer.Option(min=1, help="The most characters of a child, which is searched.")
    ] = 400,
    parent_size: Annotated[
        int, typer.Option(min=1, help="The most characters of a parent, which is returned.")
    ] = 2000,
) -> None:
    """Add files and folders to an index on disk; changed files are replaced.

    A file is known by its path, relative to the current folder. Without --embeddings, the built-in
    ones match words, not meaning. An index keeps to the model that it was made with.
    """
    from rag_splitters.cli.index import add_files, text_files

    with _told():
        model = models(embeddings, None, base_url).get("embeddings")
        found = text_files(folder, paths)
        sizes = (child_size, parent_size)
        told = add_files(folder, found, console(error=True), embeddings=model, sizes=sizes)
    typer.echo(told.summary(folder))
    if told.failed:
        raise CommandError(told.failures())


@app.command()
def query(
    folder: Annotated[Path, typer.Argument(metavar="INDEX", help="The index's own folder.")],
    question: Annotated[str, typer.Argument(help="What you want to know.")],
    k: Annotated[int, typer.Option("-k", min=1, help="How many results.")] = 4,
    children: Annotated[bool, typer.Option(help="Show the chunks that match themselves.")] = False,
    embeddings: EmbeddingsOption = None,
    base_url: BaseUrlOption = None,
    form: FormatOption = Format.table,
) -> None:
    """Search an index: the parents whose children match best, with the best child marked.

    Name the same --embeddings as for the index.
    """
    from rag_splitters.cli.index import search

    with _told():
        model = models(embeddings, None, base_url).get("embeddings")
        results = search(folder, question, k, children=children, embeddings=model)
    if form is Format.jsonl:
        for result in results:
            write_line(passage_row(result))
        return
    if not results:
        typer.echo("Nothing found: the index is empty.", err=True)
    for number, result in enumerate(results, 1):
        console().print(passage_view(result, f"{number}. "))


app.command()(_told()(compare))
app.command()(_told()(play))
