"""`rag-splitters query`: a question to an index on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rag_splitters.cli.marked_pages import write_pages
from rag_splitters.cli.options import (
    BaseUrlOption,
    EmbeddingsOption,
    JsonOption,
    models_from_options,
)
from rag_splitters.cli.stored_index import check_is_index, open_index
from rag_splitters.cli.views import console, passage_row, passage_view, write_line
from rag_splitters.errors import InputError
from rag_splitters.parameters.descriptions import field_descriptions
from rag_splitters.parent_child.options import QueryOptions, Retrieve

_EXCERPT = 400  # characters of a result that are shown
_HELP = {name: " ".join(text.split()) for name, text in field_descriptions(QueryOptions).items()}


def query(
    folder: Annotated[Path, typer.Argument(metavar="INDEX", help="Folder of the index.")],
    question: Annotated[str, typer.Argument(help="What you want to know.")],
    k: Annotated[int | None, typer.Option("-k", metavar="N", min=1, help=_HELP["k"])] = None,
    retrieve: Annotated[Retrieve, typer.Option(help=_HELP["retrieve"])] = "passages",
    max_tokens: Annotated[
        int | None, typer.Option(metavar="N", min=1, help=_HELP["max_tokens"])
    ] = None,
    min_score: Annotated[
        float,
        typer.Option(
            metavar="SCORE",
            min=0,
            max=1,
            help="Leave out results with a lower score; 0 shows all of them.",
        ),
    ] = 0.15,
    full: Annotated[
        bool, typer.Option("--full", help="Show whole results instead of excerpts.")
    ] = False,
    pages: Annotated[
        Path | None,
        typer.Option(
            "--pages",
            metavar="FOLDER",
            help="Also write the pages of PDFs on which the results stand, with the results "
            "marked, to this folder.",
        ),
    ] = None,
    embeddings: EmbeddingsOption = None,
    base_url: BaseUrlOption = None,
    json: JsonOption = False,
) -> None:
    """Search an index: excerpts of the passages that match best, with the best chunk marked.

    A score is between 0 (nothing in common with the question) and 1. Pass the same --embeddings as
    for `index`.
    """
    model = models_from_options(embeddings, None, base_url).get("embeddings")
    if not question.strip():
        raise InputError("the question is blank")
    check_is_index(folder)
    options = {
        "retrieve": retrieve,
        "k": k,
        "max_tokens": max_tokens,
        "score_threshold": min_score or None,
    }
    with open_index(folder, model, **options) as retriever:
        results = retriever.invoke(question)
    if not results:
        limit = (
            f" with a score of at least {min_score}: --min-score 0 shows all" if min_score else ""
        )
        typer.echo(f"No results{limit}.", err=True)
    if json:
        for result in results:
            write_line(passage_row(result))
    else:
        for number, result in enumerate(results, 1):
            console().print(passage_view(result, f"{number}. ", None if full else _EXCERPT))
    for line in write_pages(results, pages) if pages else ():
        typer.echo(line, err=True)
