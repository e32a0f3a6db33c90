"""`rag-splitters compare`: strategies compared on documents and questions of the user's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_splitters.chunker import Chunker
from rag_splitters.cli.index import text_files
from rag_splitters.cli.models import BaseUrlOption, EmbeddingsOption, LlmOption, models
from rag_splitters.cli.parameters import build, parse, strategy
from rag_splitters.cli.views import console
from rag_splitters.reading.files import read_text

if TYPE_CHECKING:
    from rag_splitters.evaluation import Benchmark

__all__ = ["compare", "strategies_of"]


def compare(
    paths: Annotated[
        list[Path], typer.Argument(metavar="DOCS...", help="Files and folders of documents.")
    ],
    questions: Annotated[
        Path | None,
        typer.Option("--questions", "-q", help="JSON lines with question, document, references."),
    ] = None,
    strategies: Annotated[
        list[str] | None,
        typer.Option(
            "--strategy",
            "-s",
            metavar="NAME[:PARAMETER=VALUE,...]",
            help="Repeat for more. Without: recursive, sentence, paragraph of 100 to 400 tokens.",
        ),
    ] = None,
    embeddings: EmbeddingsOption = None,
    llm: LlmOption = None,
    base_url: BaseUrlOption = None,
    k: Annotated[int, typer.Option("-k", min=1, help="How many chunks to retrieve.")] = 5,
    budgets: Annotated[
        list[int], typer.Option("--budget", min=1, help="Tokens to retrieve; repeat for more.")
    ] = [500, 1000, 1500],  # noqa: B006  (Typer wants a list, and copies it)
    cache: Annotated[
        Path | None, typer.Option(help="A folder that keeps embeddings for the next run.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page with charts.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write all values as JSON.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write tables as Markdown.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write the figures as CSV.")] = None,
) -> None:
    """Compare strategies by the answers that retrieval finds, and say which to take.

    The questions name the passages that answer them, by quotation or position. DOCS may also be one
    folder with corpora/ and questions.csv, in the form of Chroma's report. Without --embeddings,
    the built-in ones match words, not meaning.
    """
    outputs = {"html": html, "json": json, "markdown": markdown, "csv": csv}
    written = {form: path for form, path in outputs.items() if path is not None}
    for path in written.values():  # before anything is computed
        if path.is_dir() or not path.parent.is_dir():
            raise OSError(f"{path} cannot be written: name a file in a folder that exists")
    from rag_splitters import evaluation
    from rag_splitters.models import Embedder, HashingEmbeddings

    known = {"embeddings": Embedder(HashingEmbeddings()), **models(embeddings, llm, base_url)}
    kept = evaluation.EmbeddingCache(cache)
    known["embeddings"] = Embedder(evaluation.CachedEmbeddings(kept, known["embeddings"]))
    chunkers = strategies_of(strategies, known) if strategies else evaluation.candidates()
    benchmark = _benchmark(paths, questions)
    report = evaluation.compare(
        chunkers,
        benchmark.documents,
        benchmark.questions,
        known["embeddings"],
        k=k,
        budgets=budgets,
        cache=kept,
    )
    out = console()
    out.print(report)
    out.print(evaluation.advice(report))
    for form, path in written.items():
        getattr(report, f"to_{form}")(path)
        out.print(f"Written: {path}")


def strategies_of(
    specifications: Sequence[str], known: Mapping[str, Any] | None = None
) -> dict[str, Chunker]:
    """Strategies as they are named on the command line, with parameters behind a colon.

    `known` are the models, by the names of the parameters that hold them.

    >>> found = strategies_of(["sentence:chunk_size=100,length_function=words"])
    >>> [chunker.sizes for chunker in found.values()]
    [{'size': 100, 'overlap': 0, 'length_function': 'words'}]
    """
    found: dict[str, Chunker] = {}
    for specification in specifications:
        name, _, pairs = specification.partition(":")
        if specification in found:
            raise ValueError(f"the strategy {specification!r} is given twice")
        parameters = parse(name, pairs.split(",") if pairs else [])
        fields = strategy(name).model_fields
        taken = {field: model for field, model in (known or {}).items() if field in fields}
        found[specification] = build(name, {**taken, **parameters})
    return found


def _benchmark(paths: Sequence[Path], questions: Path | None) -> Benchmark:
    """The documents and questions that are named."""
    from rag_splitters.evaluation import read_benchmark, read_questions

    if questions is not None:
        files = text_files(Path(), paths)
        return read_questions(questions, {path.as_posix(): read_text(path) for path in files})
    if len(paths) == 1 and (paths[0] / "questions.csv").is_file():
        return read_benchmark(paths[0])
    raise ValueError(
        "name a file with --questions, or one folder that holds corpora/ and questions.csv"
    )
