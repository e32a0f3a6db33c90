"""`rag-splitters split`: files in, chunks out."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Annotated

import typer
from rich.text import Text

from rag_splitters.cli.options import (
    BaseUrlOption,
    EmbeddingsOption,
    JsonOption,
    LlmOption,
    ParameterOption,
    StrategyOption,
    chunker_from_options,
    models_from_options,
    read_parameters,
)
from rag_splitters.cli.views import (
    chunk_row,
    chunk_table,
    console,
    note_left_out,
    progress_bar,
    raise_unreadable,
    without_output,
    write_line,
)
from rag_splitters.contract.chunker import Chunker
from rag_splitters.errors import FileError, InputError, RagSplittersError
from rag_splitters.reading.files import file_bytes, find_files, read_bytes, read_sources
from rag_splitters.span import Chunk, Source
from rag_splitters.structure.mails import MAIL_KEYS
from rag_splitters.text.coloured import coloured, number_of, printable, summary

_NOTHING = "nothing to split: name files or folders, or pipe a text in"


def split(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE...]", help="Files and folders; - or nothing for standard input."
        ),
    ] = None,
    strategy: StrategyOption = "auto",
    pairs: ParameterOption = None,
    chunk_size: Annotated[
        int | None, typer.Option(metavar="N", help="Maximum chunk size, overlap included.")
    ] = None,
    chunk_overlap: Annotated[
        str | None,
        typer.Option(
            metavar="N", help="Overlap of neighbouring chunks: units, or a share such as 0.1."
        ),
    ] = None,
    length_function: Annotated[
        str | None,
        typer.Option(
            metavar="UNIT", help="Unit of the sizes: characters, words, tokens or tokens:NAME."
        ),
    ] = None,
    embeddings: EmbeddingsOption = None,
    llm: LlmOption = None,
    base_url: BaseUrlOption = None,
    json: JsonOption = False,
    show: Annotated[
        bool,
        typer.Option(
            "--show",
            help="Show the text with its chunks in alternating colours, overlap underlined.",
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write to this file: JSON lines, unless you pass --show.",
        ),
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Encoding of text files, such as cp1252; default: detected."
        ),
    ] = None,
) -> None:
    """Cut files, or all files of known kinds in folders, into chunks with their positions.

    Without --strategy, each file is cut by the strategy for its kind. --chunk-size and the other
    sizes reach the strategies inside hybrid, titled, contextual and modality. If a file cannot be
    read, the others are cut first."""
    sizes = {
        "chunk_size": chunk_size,
        "chunk_overlap": chunk_overlap,
        "length_function": length_function,
    }
    size_pairs = [f"{key}={each}" for key, each in sizes.items() if each is not None]
    parameters = read_parameters(strategy, [*(pairs or ()), *size_pairs])
    models = models_from_options(embeddings, llm, base_url)
    for key in parameters.keys() & models.keys():
        raise InputError(f"{key} is given twice")
    chunker = chunker_from_options(strategy, {**parameters, **models})
    if show and json:
        raise InputError("--show and --json cannot be used together")
    try:
        "a".encode(encoding or "utf-8")
    except (LookupError, UnicodeError) as error:
        raise InputError(f"unknown encoding {encoding!r}: try utf-8, cp1252 or utf-16") from error
    names = files or ["-"]
    if names.count("-") > 1:
        raise InputError("standard input (-) can be read only once")
    if not files and sys.stdin.isatty():
        raise InputError(_NOTHING)
    named = [Path(name) for name in names if name != "-"]
    missing = [path for path in named if not os.path.exists(path)]
    paths, others = find_files([path for path in named if path not in missing])
    paths = without_output(paths, output, named, b'{"source": ')
    errors = list[str]()
    json = json or (output is not None and not show)
    counts = {"text": 0, "chunk": 0}
    with ExitStack() as stack:
        file = stack.enter_context(_open(output)) if output else None
        shows_results = file is None and sys.stdout.isatty()
        bar = progress_bar("Splitting", hidden=shows_results or len(paths) < 2)
        tracked = stack.enter_context(bar).track(paths)
        standard_input = ["-"] * ("-" in names)
        for source in _sources(chain(standard_input, missing, tracked), encoding, errors):
            if not files and not source.text:
                raise InputError(_NOTHING)
            chunks = chunker.chunk(source.text, metadata=source.metadata)
            _write(source, chunks, chunker, file, json=json, show=show)
            counts["text"] += 1
            counts["chunk"] += len(chunks)
    if output:
        written = (number_of(counts[name], name) for name in ("chunk", "text"))
        typer.echo(f"{output}: {' of '.join(written)} written", err=True)
    note_left_out(others)
    raise_unreadable(errors)


@contextmanager
def _open(path: Path) -> Iterator[IO[str]]:
    try:
        with path.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            yield file
    except RagSplittersError:
        raise
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror or error}") from error


def _write(
    source: Source,
    chunks: Sequence[Chunk],
    chunker: Chunker,
    file: IO[str] | None,
    *,
    json: bool,
    show: bool,
) -> None:
    """Write the chunks of one source to the file or, without one, to standard output."""
    name = str(source.id)
    if json:
        heads = {key: source.metadata[key] for key in MAIL_KEYS if key in source.metadata}
        for chunk in chunks:
            row = chunk_row(name, chunk)
            write_line({**row, "metadata": {**heads, **row["metadata"]}}, file)
        return
    out = console(file=file)
    if show:
        out.print(Text(f"{printable(name)}: {summary(chunks)}", style="bold"), soft_wrap=True)
        out.print(coloured(source.text, chunks, out), soft_wrap=True)
    else:
        out.print(chunk_table(name, chunks, chunker))


def _sources(
    paths: Iterable[str | Path], encoding: str | None, errors: list[str]
) -> Iterator[Source]:
    """Yield the texts of files and of standard input ("-"). What is unreadable goes to `errors`."""
    for path in paths:
        try:
            yield from _read(path, encoding)
        except RagSplittersError as error:
            errors.append(str(error))


def _read(path: str | Path, encoding: str | None) -> Iterable[Source]:
    if isinstance(path, Path) and encoding is None:
        return read_sources(path)
    name = path if isinstance(path, str) else path.as_posix()
    data = sys.stdin.buffer.read() if isinstance(path, str) else file_bytes(path)
    return read_bytes(_as_utf8(data, name, encoding), name)


def _as_utf8(data: bytes, name: str, encoding: str | None) -> bytes:
    """Return the bytes of a text in UTF-8; those of a PDF or an Office file as they are."""
    if encoding is None or data.startswith((b"%PDF-", b"PK\x03\x04")):
        return data
    try:
        return data.decode(encoding).encode()
    except UnicodeError as error:
        raise InputError(f"{name} is not in {encoding}: {error}") from error
