"""`rag-splitters compare`: which strategy finds the answers in your documents?"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_splitters.chunkers.by_name import chunker_class
from rag_splitters.cli.options import (
    BaseUrlOption,
    EmbeddingsOption,
    JsonOption,
    LlmOption,
    chunker_from_options,
    models_from_options,
)
from rag_splitters.cli.views import (
    console,
    note_left_out,
    raise_unreadable,
    without_output,
    write_line,
)
from rag_splitters.errors import FileError, InputError, RagSplittersError
from rag_splitters.reading.files import find_files, join_sources, read_file

PARENT_CHILD = "parent_child"
"""The name of parent-child retrieval among the strategies."""
_REPORT_TITLE = b"<title>Chunking strategies compared</title>"

if TYPE_CHECKING:
    from rag_splitters.evaluation import Benchmark
    from rag_splitters.langchain import ParentDocumentRetriever


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
            "counts the faults of the chunks.",
        ),
    ] = None,
    strategies: Annotated[
        list[str] | None,
        typer.Option(
            "--strategy",
            "-s",
            metavar="NAME[:JSON]",
            help="A strategy to compare, with its parameters as JSON, such as "
            """'recursive:{"chunk_size": 300}'; repeatable. Default: auto, content_aware, """
            "recursive and sentence, each with 200 and 400 tokens, and parent_child.",
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
    json_lines: JsonOption = False,
) -> None:
    """Compare strategies by how well retrieval finds the answers, and say which one to take.

    The questions name the passages that answer them, as quotations or positions. DOCS may also be
    one folder in the format of Chroma's report, with corpora/ and questions.csv. Without
    --embeddings, the built-in embeddings are used, which match words, not meaning.

    Without questions, the report counts the faults of each strategy's chunks, such as chunks that
    start mid-sentence. They do not say what a search finds. If a file cannot be read, the others
    are compared first.
    """
    if html:  # before anything is computed
        place = html if html.is_file() else html.parent
        if html.is_dir() or not html.parent.is_dir() or not os.access(place, os.W_OK):
            raise FileError(
                f"{html} cannot be written: name a file in a folder that exists and is yours"
            )
    files, others = find_files(paths)
    files = without_output(files, html, [*paths, questions], _REPORT_TITLE)
    from rag_splitters import evaluation
    from rag_splitters.models import HashingEmbeddings

    models = {"embeddings": HashingEmbeddings()} | models_from_options(embeddings, llm, base_url)
    models["embeddings"] = evaluation.CachedEmbeddings(models["embeddings"], cache)
    errors: list[str] = []
    try:
        benchmark = _benchmark(paths, questions, files, others, errors)
        report = evaluation.compare(
            _strategies(strategies or (), models, benchmark),
            benchmark.documents,
            benchmark.questions,
            models["embeddings"],
            k=k,
            budgets=budgets,
            metadata=benchmark.metadata,
        )
    except InputError as error:  # such as a question about a document that cannot be read
        raise InputError("\n  ".join([str(error), *errors])) from error
    if json_lines:
        write_line(json.loads(report.to_json()))
    else:
        console().print(report)
    if html:
        report.to_html(html)
        typer.echo(f"Written: {html}", err=True)
    raise_unreadable(errors)


def _strategies(
    specifications: Sequence[str], models: Mapping[str, Any], benchmark: Benchmark
) -> dict[str, Any]:
    """Return the strategies of the options, NAME or NAME:JSON; or those of the documentation."""
    from rag_splitters.evaluation import candidates

    strategies: dict[str, Any] = {}
    if not specifications:
        strategies = dict(candidates())
        specifications = [PARENT_CHILD] if benchmark.questions else []
    for specification in specifications:
        name, _, text = specification.partition(":")
        if specification in strategies:
            raise InputError(f"the strategy {specification!r} is given twice")
        parameters = _read_parameters(name, text)
        if name.lower().replace("-", "_") == PARENT_CHILD:
            parameters = {"embeddings": models["embeddings"]} | parameters
            strategies[specification] = _retriever(benchmark, parameters)
        else:
            fields = chunker_class(name, [PARENT_CHILD]).model_fields
            own_models = {key: model for key, model in models.items() if key in fields}
            strategies[specification] = chunker_from_options(name, own_models | parameters)
    return strategies


def _read_parameters(name: str, text: str) -> dict[str, Any]:
    """Return the parameters of a strategy, written as a JSON object."""
    try:
        parameters = json.loads(text or "{}")
    except (ValueError, RecursionError):
        parameters = None
    if not isinstance(parameters, dict):
        example = f"""{name}:{{"chunk_size": 300}}"""
        raise InputError(
            f"the parameters of {name} must be a JSON object, such as '{example}', got {text!r}"
        )
    return parameters


def _retriever(benchmark: Benchmark, parameters: Mapping[str, Any]) -> ParentDocumentRetriever:
    """Return a parent-child retriever in memory that holds the documents."""
    if "documents" in parameters:
        raise InputError(f"{PARENT_CHILD} holds the documents of the comparison: pass none to it")
    if "max_tokens" in parameters:
        raise InputError(f"{PARENT_CHILD} is asked for each budget: pass --budget, not max_tokens")
    if not benchmark.questions:
        raise InputError(f"{PARENT_CHILD} needs questions: pass --questions, or leave it out")
    from langchain_core.documents import Document

    from rag_splitters.langchain import parent_document_retriever

    documents = [
        Document(text, id=name, metadata={"source": name, **benchmark.metadata.get(name, {})})
        for name, text in benchmark.documents.items()
        if text.strip()
    ]
    return parent_document_retriever(documents, **parameters)


def _benchmark(
    paths: Sequence[Path],
    questions: Path | None,
    files: Sequence[Path],
    others: Sequence[Path],
    errors: list[str],
) -> Benchmark:
    """Return the documents and questions that the options name; there may be no questions.

    Why a file cannot be read goes to `errors`.
    """
    from rag_splitters.evaluation import Benchmark, read_benchmark, read_questions

    if questions is None and len(paths) == 1 and (paths[0] / "questions.csv").is_file():
        return read_benchmark(paths[0])
    note_left_out(others)
    documents, metadata = dict[str, str](), dict[str, Mapping[str, Any]]()
    for path in files:
        name = path.as_posix()
        try:
            documents[name], metadata[name] = join_sources(read_file(path), name)
        except RagSplittersError as error:
            errors.append(str(error))
    benchmark = read_questions(questions, documents) if questions else Benchmark(documents, ())
    return replace(benchmark, metadata=metadata)
