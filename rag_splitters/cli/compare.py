"""`rag-splitters compare`: which strategy finds the answers in your documents?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_splitters.chunkers.by_name import chunker_class
from rag_splitters.cli.options import (
    BaseUrlOption,
    EmbeddingsOption,
    LlmOption,
    chunker_from_options,
    models_from_options,
    read_parameters,
)
from rag_splitters.cli.views import console, note_left_out
from rag_splitters.contract.chunker import Chunker
from rag_splitters.errors import FileError, InputError
from rag_splitters.reading.files import find_files, read_text

if TYPE_CHECKING:
    from rich.console import Console

    from rag_splitters.evaluation import Benchmark, IntrinsicReport, Report


def compare(
    paths: Annotated[
        list[Path], typer.Argument(metavar="DOCS...", help="Files and folders of documents.")
    ],
    questions: Annotated[
        Path | None,
        typer.Option(
            "--questions",
            "-q",
            help="JSON lines with question, document, references. Without it, the report "
            "describes the chunks themselves.",
        ),
    ] = None,
    strategies: Annotated[
        list[str] | None,
        typer.Option(
            "--strategy",
            "-s",
            metavar="NAME[:PARAMETER=VALUE,...]",
            help="A strategy to compare; repeatable. Default: recursive, sentence and paragraph, "
            "each with 100, 200 and 400 tokens; without questions these and content_aware, with "
            "200 tokens.",
        ),
    ] = None,
    embeddings: EmbeddingsOption = None,
    llm: LlmOption = None,
    base_url: BaseUrlOption = None,
    k: Annotated[
        int, typer.Option("-k", metavar="N", min=1, help="Number of chunks to retrieve.")
    ] = 5,
    budgets: Annotated[
        list[int],
        typer.Option("--budget", metavar="N", min=1, help="Tokens to retrieve; repeatable."),
    ] = [500, 1000, 1500],  # noqa: B006  (Typer wants a list, and copies it)
    cache: Annotated[
        Path | None, typer.Option(help="Folder that keeps embeddings for the next run.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write the report as an HTML page.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write all values as JSON.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write tables as Markdown.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write the metrics as CSV.")] = None,
) -> None:
    """Compare strategies by how well retrieval finds the answers, and say which one to take.

    The questions name the passages that answer them, as quotations or positions. DOCS may also be
    one folder in the format of Chroma's report, with corpora/ and questions.csv. Without
    --embeddings, the built-in embeddings are used, which match words, not meaning.

    Without questions, the strategies are compared by figures about their chunks, such as how many
    blocks and references they keep whole. Pass --embeddings for the figures about meaning. These
    figures do not say what a search finds.
    """
    formats = {"html": html, "json": json, "markdown": markdown, "csv": csv}
    outputs = {form: path for form, path in formats.items() if path is not None}
    for path in outputs.values():  # before anything is computed
        if path.is_dir() or not path.parent.is_dir():
            raise FileError(f"{path} cannot be written: name a file in a folder that exists")
    from rag_splitters import evaluation
    from rag_splitters.models import HashingEmbeddings

    models = {"embeddings": HashingEmbeddings()} | models_from_options(embeddings, llm, base_url)
    models["embeddings"] = evaluation.CachedEmbeddings(models["embeddings"], cache)
    out = console()
    if questions is None and not _is_benchmark(paths):
        recommendation = evaluation.recommend(
            _documents(paths),
            models["embeddings"] if embeddings else None,
            chunkers=_chunkers(strategies, models) if strategies else None,
        )
        out.print(recommendation.report)
        _write(recommendation.report, outputs, out)
        return
    benchmark = _benchmark(paths, questions)
    report = evaluation.compare(
        _chunkers(strategies, models) if strategies else evaluation.candidates(),
        benchmark.documents,
        benchmark.questions,
        models["embeddings"],
        k=k,
        budgets=budgets,
    )
    out.print(report)
    _write(report, outputs, out)


def _write(report: Report | IntrinsicReport, outputs: Mapping[str, Path], out: Console) -> None:
    for form, path in outputs.items():
        getattr(report, f"to_{form}")(path)
        out.print(f"Written: {path}")


def _chunkers(specifications: Sequence[str], models: Mapping[str, Any]) -> dict[str, Chunker]:
    """The strategies that the options name, with their parameters after a colon."""
    chunkers: dict[str, Chunker] = {}
    for specification in specifications:
        name, _, parameters = specification.partition(":")
        if specification in chunkers:
            raise InputError(f"the strategy {specification!r} is given twice")
        fields = chunker_class(name).model_fields
        own_models = {key: model for key, model in models.items() if key in fields}
        pairs = parameters.split(",") if parameters else []
        values = {**own_models, **read_parameters(name, pairs)}
        chunkers[specification] = chunker_from_options(name, values)
    return chunkers


def _benchmark(paths: Sequence[Path], questions: Path | None) -> Benchmark:
    """The documents and questions that the options name."""
    from rag_splitters.evaluation import read_benchmark, read_questions

    if questions is None:
        return read_benchmark(paths[0])
    return read_questions(questions, _documents(paths))


def _is_benchmark(paths: Sequence[Path]) -> bool:
    """Whether the only path is a folder in the format of Chroma's report."""
    return len(paths) == 1 and (paths[0] / "questions.csv").is_file()


def _documents(paths: Sequence[Path]) -> dict[str, str]:
    files, others = find_files(paths)
    note_left_out(others)
    return {path.as_posix(): read_text(path) for path in files}
