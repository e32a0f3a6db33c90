"""`rag-splitters split`: files in, chunks out."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from rag_splitters.cli.options import (
    BaseUrlOption,
    EmbeddingsOption,
    Format,
    FormatOption,
    LlmOption,
    chunker_from_options,
    models_from_options,
    read_parameters,
)
from rag_splitters.cli.views import chunk_row, chunk_table, console, note_left_out, write_line
from rag_splitters.reading.files import find_files, read_bytes, read_file
from rag_splitters.span import Source
from rag_splitters.structure.mails import MAIL_KEYS


def split(
    files: Annotated[list[str], typer.Argument(help="Files and folders, or - for standard input.")],
    strategy: Annotated[
        str, typer.Option("--strategy", "-s", help="Name of the strategy; see `strategies`.")
    ] = "auto",
    pairs: Annotated[
        list[str] | None,
        typer.Option(
            "--param", "-p", metavar="NAME=VALUE", help="A parameter of the strategy; repeatable."
        ),
    ] = None,
    chunk_size: Annotated[
        int | None, typer.Option(help="Maximum chunk size, overlap included.")
    ] = None,
    chunk_overlap: Annotated[
        str | None,
        typer.Option(help="Overlap of neighbouring chunks: units, or a share such as 0.1."),
    ] = None,
    length_function: Annotated[
        str | None,
        typer.Option(help="Unit of the sizes: characters, words, tokens or tokens:<name>."),
    ] = None,
    embeddings: EmbeddingsOption = None,
    llm: LlmOption = None,
    base_url: BaseUrlOption = None,
    form: FormatOption = Format.table,
) -> None:
    """Cut files, or all files of known kinds in folders, into chunks with their positions.

    Without --strategy, each file is cut by the strategy for its kind."""
    sizes = {
        "chunk_size": chunk_size,
        "chunk_overlap": chunk_overlap,
        "length_function": length_function,
    }
    pairs = [*(pairs or ()), *(f"{key}={each}" for key, each in sizes.items() if each is not None)]
    parameters = read_parameters(strategy, pairs)
    models = models_from_options(embeddings, llm, base_url)
    for key in parameters.keys() & models.keys():
        raise ValueError(f"{key} is given twice")
    chunker = chunker_from_options(strategy, {**parameters, **models})
    if files.count("-") > 1:
        raise ValueError("standard input (-) can be read only once")
    paths, others = find_files([Path(name) for name in files if name != "-"])
    for source in _sources(files, paths):
        name, chunks = str(source.id), chunker.chunk(source.text, metadata=source.metadata)
        if form is Format.table:
            console().print(chunk_table(name, chunks, chunker))
        else:
            heads = {key: source.metadata[key] for key in MAIL_KEYS if key in source.metadata}
            for chunk in chunks:
                row = chunk_row(name, chunk)
                write_line({**row, "metadata": {**heads, **row["metadata"]}})
    note_left_out(others)


def _sources(names: Sequence[str], paths: Sequence[Path]) -> Iterator[Source]:
    """Standard input, if it is named, and the files."""
    if "-" in names:
        yield from read_bytes(sys.stdin.buffer.read(), "-")
    for path in paths:
        yield from read_file(path)
