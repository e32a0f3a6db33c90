"""Comparing strategies: from chunkers, documents and questions to a report or a suggestion."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from rag_splitters.chunkers import ParagraphChunker, RecursiveChunker, SentenceChunker
from rag_splitters.contract.chunker import Chunker
from rag_splitters.contract.sized import SizedChunker
from rag_splitters.errors import InputError
from rag_splitters.evaluation.cached_embeddings import CachedEmbeddings
from rag_splitters.evaluation.locating import LocatedChunk, locate_chunks
from rag_splitters.evaluation.measuring import ChunkIndex, measure_questions
from rag_splitters.evaluation.questions import Question, check_question
from rag_splitters.evaluation.report import Report
from rag_splitters.evaluation.results import Settings, Strategy
from rag_splitters.evaluation.suggestion import Suggestion, suggestion
from rag_splitters.text.sizing import LengthFunction, sizer


def compare(
    chunkers: Mapping[str, Any] | Sequence[Any],
    documents: Mapping[str, str],
    questions: Sequence[Question],
    embeddings: Any,
    *,
    k: int = 5,
    budgets: Sequence[int] = (500, 1000, 1500),
    length_function: LengthFunction = "tokens",
    cache: Any = None,
    resamples: int = 2000,
    seed: int = 0,
    show_progress: bool = True,
) -> Report:
    """Search each strategy's chunks for the answers to all questions, and measure the results.

    The chunks of all documents go into one index, which is searched by exact cosine similarity.

    Parameters:
        chunkers: strategies, by their names in the report or as a plain list: chunkers, LangChain
            splitters, LlamaIndex parsers, or functions from a text to strings.
        documents: texts by name; documents without questions are searched, too.
        questions: the questions.
        embeddings: a LangChain `Embeddings`, a LlamaIndex `BaseEmbedding` or a function; or a
            `CachedEmbeddings` of one, if strategies embed with it, too.
        k: number of chunks to retrieve.
        budgets: numbers of units to retrieve for recall at equal budgets.
        length_function: the unit of budgets and sizes.
        cache: where embeddings are kept, so that an interrupted run continues where it stopped:
            the path of a folder, a LangChain `BaseStore` or a LlamaIndex `BaseKVStore`. None: in
            memory only.
        resamples: number of bootstrap resamples for the intervals.
        seed: seed of the resamples; the same seed gives the same report.
        show_progress: show progress bars if standard error is a terminal.

    Returns: a `Report`, which prints as a table.

    Raises: ValueError if a question does not fit the documents, if a strategy gives no chunks, or
    if a number is out of range; ModelError if the model fails.

    >>> from rag_splitters import RecursiveChunker
    >>> from rag_splitters.models import HashingEmbeddings
    >>> documents = {"tale": "The lamp is in the hall. The cat is out."}
    >>> questions = [Question("Where is the lamp?", "tale", ((12, 23),))]
    >>> chunkers = {"small": RecursiveChunker(chunk_size=30)}
    >>> report = compare(chunkers, documents, questions, HashingEmbeddings(), k=1)
    >>> report.metric("small", "recall").mean
    1.0
    """
    is_cached = isinstance(embeddings, CachedEmbeddings) and cache is None
    model = embeddings if is_cached else CachedEmbeddings(embeddings, cache)
    settings = Settings(
        k, tuple(sorted(set(budgets))), length_function, model.description, resamples, seed
    )
    _check(documents, questions)
    chunkers, bar = named(chunkers), partial(progress, show=show_progress)
    chunks = {
        name: _chunks(name, chunker, documents, bar(f"Chunking: {name}"))
        for name, chunker in chunkers.items()
    }
    texts = list(dict.fromkeys(chunk.text for each in chunks.values() for chunk in each))
    rows = {text: row for row, text in enumerate(texts)}
    vectors = model.embed(texts, bar("Embedding chunks"))
    question_vectors = model.embed_questions(
        [question.text for question in questions], bar("Embedding questions")
    )
    strategies = []
    for name, own_chunks in chunks.items():
        own_vectors = vectors[[rows[chunk.text] for chunk in own_chunks]]
        index = ChunkIndex(own_chunks, sizes_of(own_chunks, length_function), own_vectors)
        measurements = measure_questions(
            index, questions, question_vectors, k, settings.curve_budgets, bar(f"Measuring: {name}")
        )
        strategies.append(
            Strategy(
                name, chunkers[name], tuple(own_chunks), index.sizes, own_vectors, measurements
            )
        )
    return Report(settings, dict(documents), tuple(questions), tuple(strategies))


def suggest(
    documents: Mapping[str, str],
    questions: Sequence[Question],
    embeddings: Any,
    *,
    chunkers: Mapping[str, Any] | Sequence[Any] | None = None,
    metric: str | None = None,
    folds: int = 5,
    **options: Any,
) -> Suggestion:
    """Compare strategies on your documents and questions, and choose one by cross-validation.

    Parameters:
        documents: texts by name.
        questions: questions about them.
        embeddings: the embedding model that you will use for retrieval.
        chunkers: the strategies to choose from; None: `candidates()`.
        metric: the metric that decides; None: recall at the middle budget, so that no strategy
            wins by retrieving more text.
        folds: number of folds of the cross-validation.
        options: further options of `compare`.

    Raises: whatever `compare` and `suggestion` raise.
    """
    chunkers = candidates() if chunkers is None else chunkers
    report = compare(chunkers, documents, questions, embeddings, **options)
    return suggestion(report, metric, folds=folds)


def candidates(sizes: Sequence[int] = (100, 200, 400)) -> dict[str, Chunker]:
    """Strategies that need no model, with these sizes in tokens.

    >>> list(candidates([100]))
    ['recursive 100', 'sentence 100', 'paragraph 100']
    """
    kinds: dict[str, type[SizedChunker]] = {
        "recursive": RecursiveChunker,
        "sentence": SentenceChunker,
        "paragraph": ParagraphChunker,
    }
    return {
        f"{name} {size}": kind(chunk_size=size, length_function="tokens")
        for size in sizes
        for name, kind in kinds.items()
    }


def named(chunkers: Mapping[str, Any] | Iterable[Any]) -> dict[str, Any]:
    """The strategies by name. A list gets names from the classes and the parameters that were set.

    >>> from rag_splitters import SentenceChunker
    >>> list(named([SentenceChunker(chunk_size=90), SentenceChunker(), SentenceChunker()]))
    ['SentenceChunker(chunk_size=90)', 'SentenceChunker', 'SentenceChunker 2']
    """
    if isinstance(chunkers, Mapping):
        by_name = dict(chunkers)
    else:
        by_name = {}
        for chunker in chunkers:
            name = base_name = _name(chunker)
            count = 1
            while name in by_name:
                count += 1
                name = f"{base_name} {count}"
            by_name[name] = chunker
    if not by_name:
        raise InputError("there are no strategies to compare: pass at least one chunker")
    return by_name


def _name(chunker: Any) -> str:
    kind = getattr(chunker, "__qualname__", type(chunker).__name__)
    if not isinstance(chunker, Chunker):
        return str(kind)
    parameters = [
        f"{field}={value!r}"
        for field in type(chunker).model_fields
        if field in chunker.model_fields_set
        and isinstance(value := getattr(chunker, field), (str, int, float))
    ]
    return f"{kind}({', '.join(parameters)})" if parameters else str(kind)


def _check(documents: Mapping[str, str], questions: Sequence[Question]) -> None:
    if not questions:
        raise InputError("there are no questions: a comparison needs at least one")
    for question in questions:
        check_question(question, documents)


def _chunks(
    name: str,
    chunker: Any,
    documents: Mapping[str, str],
    bar: Callable[[Iterable[Any]], Iterable[Any]],
) -> list[LocatedChunk]:
    chunks = locate_chunks(chunker, documents, bar)
    if not chunks:
        raise InputError(f"{name} gives no chunks for these documents")
    return chunks


def sizes_of(chunks: Sequence[LocatedChunk], unit: LengthFunction) -> NDArray[np.int64]:
    """The size of each chunk's text."""
    measure = sizer(unit)
    return np.array([measure(chunk.text).length(0, len(chunk.text)) for chunk in chunks])


def progress(description: str, show: bool) -> Callable[[Any], Iterable[Any]]:
    """A wrapper that iterates with a progress bar, if standard error is a terminal."""
    console = Console(stderr=True)
    return partial(
        track,
        description=description,
        console=console,
        transient=True,
        disable=not (show and console.is_terminal),
    )
