"""`rag-splitters query`: a question to an index on disk."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from rag_splitters.cli.options import (
    BaseUrlOption,
    EmbeddingsOption,
    Format,
    FormatOption,
    models_from_options,
)
from rag_splitters.cli.stored_index import is_index, open_index
from rag_splitters.cli.views import console, passage_row, passage_view, write_line


class Retrieve(str, Enum):
    """What a query returns."""

    passages = "passages"
    parents = "parents"
    children = "children"


def query(
    folder: Annotated[Path, typer.Argument(metavar="INDEX", help="Folder of the index.")],
    question: Annotated[str, typer.Argument(help="What you want to know.")],
    k: Annotated[
        int | None,
        typer.Option(
            "-k",
            metavar="N",
            min=1,
            help="Number of results; default: 4, or as many as --max-tokens allows.",
        ),
    ] = None,
    retrieve: Annotated[
        Retrieve,
        typer.Option(
            help="Show the best child chunks with what matches around them (passages), "
            "their whole parents, or the children alone."
        ),
    ] = Retrieve.passages,
    max_tokens: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Budget for all results together, in tokens."),
    ] = None,
    embeddings: EmbeddingsOption = None,
    base_url: BaseUrlOption = None,
    form: FormatOption = None,
) -> None:
    """Search an index: the passages that match best, with the best chunk marked in each.

    Pass the same --embeddings as for `index`.
    """
    model = models_from_options(embeddings, None, base_url).get("embeddings")
    if not question.strip():
        raise ValueError("the question is blank")
    if not is_index(folder):
        raise FileNotFoundError(
            f"{folder} holds no index: make one with rag-splitters index {folder} FILE..."
        )
    options = {"retrieve": retrieve.value, "k": k, "max_tokens": max_tokens}
    with open_index(folder, model, **options) as retriever:
        results = retriever.invoke(question)
    if form is Format.jsonl:
        for result in results:
            write_line(passage_row(result))
        return
    if not results:
        typer.echo("No results: the index is empty.", err=True)
    for number, result in enumerate(results, 1):
        console().print(passage_view(result, f"{number}. "))
