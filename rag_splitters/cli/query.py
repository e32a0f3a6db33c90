"""`rag-splitters query`: a question to an index on disk."""

from __future__ import annotations

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


def query(
    folder: Annotated[Path, typer.Argument(metavar="INDEX", help="Folder of the index.")],
    question: Annotated[str, typer.Argument(help="What you want to know.")],
    k: Annotated[int, typer.Option("-k", min=1, help="Number of results.")] = 4,
    children: Annotated[
        bool, typer.Option(help="Show the child chunks that match, not their parents.")
    ] = False,
    embeddings: EmbeddingsOption = None,
    base_url: BaseUrlOption = None,
    form: FormatOption = Format.table,
) -> None:
    """Search an index: the parents whose children match best, with the best child marked.

    Pass the same --embeddings as for `index`.
    """
    model = models_from_options(embeddings, None, base_url).get("embeddings")
    if not question.strip():
        raise ValueError("the question is blank")
    if not is_index(folder):
        raise FileNotFoundError(
            f"{folder} holds no index: make one with rag-splitters index {folder} FILE..."
        )
    with open_index(folder, model, retrieve="children" if children else "parents") as retriever:
        results = retriever.invoke(question, k=k)
    if form is Format.jsonl:
        for result in results:
            write_line(passage_row(result))
        return
    if not results:
        typer.echo("No results: the index is empty.", err=True)
    for number, result in enumerate(results, 1):
        console().print(passage_view(result, f"{number}. "))
