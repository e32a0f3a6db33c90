"""`rag-splitters query`: a question to an index on disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rag_splitters.cli.options import BaseUrlOption, EmbeddingsOption, JsonOption
from rag_splitters.cli.stored_index import existing_index
from rag_splitters.cli.views import console, passage_row, passage_view, write_line
from rag_splitters.errors import FileError, InputError
from rag_splitters.parameters.descriptions import field_descriptions
from rag_splitters.parent_child.options import QueryOptions, Retrieve
from rag_splitters.reading import mark_pages

if TYPE_CHECKING:
    from langchain_core.documents import Document

_EXCERPT = 400  # characters of a result that are shown
_HELP = {
    name: " ".join(text.split())
    .replace("None:", "Default:")
    .replace("`max_tokens`", "--max-tokens")
    .replace("`", "")
    for name, text in field_descriptions(QueryOptions).items()
}


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
    if not question.strip():
        raise InputError("the question is blank")
    options = {
        "retrieve": retrieve,
        "k": k,
        "max_tokens": max_tokens,
        "score_threshold": min_score or None,
    }
    with existing_index(folder, embeddings, base_url, **options) as retriever:
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
    for line in _write_pages(results, pages) if pages else ():
        typer.echo(line, err=True)


def _write_pages(results: Sequence[Document], folder: Path) -> Iterator[str]:
    """Write a PDF for each PDF among the sources of the results, and yield what was done.

    Raises FileError if the folder cannot be written.
    """
    by_source: dict[str, list[Document]] = {}
    for result in results:
        source = str(result.metadata.get("source", ""))
        if source.lower().endswith(".pdf"):
            by_source.setdefault(source, []).append(result)
    if not by_source:
        yield "None of the results comes from a PDF, so no pages were written."
    for number, (source, chunks) in enumerate(by_source.items(), 1):
        if not Path(source).exists():
            yield f"{source} is not there any more, so its pages were not written."
            continue
        target = folder / f"{number}_{Path(source).name}"
        data = mark_pages(source, chunks)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        except FileExistsError as error:
            raise FileError(f"{folder} is a file: name a folder for the pages") from error
        except OSError as error:
            raise FileError(f"{target} cannot be written: {error.strerror or error}") from error
        yield f"Wrote {target}."
