"""One call from strategies, documents and questions to a report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from rag_splitters.chunker import Chunker
from rag_splitters.evaluation.cache import EmbeddingCache
from rag_splitters.evaluation.locating import LocatedChunk, located_chunks
from rag_splitters.evaluation.measuring import ChunkIndex, measured
from rag_splitters.evaluation.questions import Question, check_question
from rag_splitters.evaluation.report import Report, Settings, Strategy
from rag_splitters.models import Embedder, describe_model
from rag_splitters.text.sizing import LengthFunction, sizer

__all__ = ["compare", "named"]


def compare(
    chunkers: Mapping[str, Any] | Sequence[Any],
    documents: Mapping[str, str],
    questions: Sequence[Question],
    embeddings: Any,
    *,
    k: int = 5,
    budgets: Sequence[int] = (500, 1000, 1500),
    length_function: LengthFunction = "tokens",
    cache: EmbeddingCache | None = None,
    resamples: int = 2000,
    seed: int = 0,
    show_progress: bool = True,
) -> Report:
    """Retrieve the answers to all questions from the chunks of each strategy, and measure it.

    The chunks of all documents go into one index, which is searched by exact cosine similarity.

    Parameters:
        chunkers: strategies by the names that the report gives them, or without names: chunkers,
            LangChain splitters, LlamaIndex parsers, functions from a text to strings.
        documents: texts by name; those without questions are searched too.
        questions: the questions.
        embeddings: a LangChain `Embeddings`, a LlamaIndex `BaseEmbedding` or a callable.
        k: how many chunks to retrieve.
        budgets: how many units to retrieve for recall at equal budgets.
        length_function: the unit that budgets and sizes are counted in.
        cache: where embeddings are kept; None for this call only. With a folder, a run that was
            interrupted goes on where it stopped.
        resamples: how many bootstrap resamples the intervals come from.
        seed: that of the resamples; the same seed gives the same report.
        show_progress: show progress bars where standard error is a terminal.

    Returns: a `Report`, which prints as a table.

    Raises: ValueError for questions that do not fit the documents, for strategies that give no
    chunks and for numbers that make no sense; ModelError for a model that fails.

    >>> from rag_splitters import RecursiveChunker
    >>> from rag_splitters.models import HashingEmbeddings
    >>> documents = {"tale": "The lamp is in the hall. The cat is out."}
    >>> questions = [Question("Where is the lamp?", "tale", ((12, 23),))]
    >>> chunkers = {"small": RecursiveChunker(chunk_size=30)}
    >>> report = compare(chunkers, documents, questions, HashingEmbeddings(), k=1)
    >>> report.figure("small", "recall").mean
    1.0
    """
    settings = Settings(
        k, tuple(sorted(set(budgets))), length_function, describe_model(embeddings), resamples, seed
    )
    _check(documents, questions)
    strategies, bar = named(chunkers), partial(_track, shown=show_progress)
    cut = {
        name: _chunks(name, chunker, documents, bar(f"Chunking: {name}"))
        for name, chunker in strategies.items()
    }
    known = cache or EmbeddingCache()
    embedder = embeddings if isinstance(embeddings, Embedder) else Embedder(embeddings)
    texts = list(dict.fromkeys(chunk.text for chunks in cut.values() for chunk in chunks))
    rows = {text: row for row, text in enumerate(texts)}
    vectors = known.embed(embedder, texts, bar("Embedding chunks"))
    asked = known.embed_questions(
        embedder, [question.text for question in questions], bar("Embedding questions")
    )
    found = []
    for name, chunks in cut.items():
        own = vectors[[rows[chunk.text] for chunk in chunks]]
        index = ChunkIndex(chunks, _sizes(chunks, length_function), own)
        answers = measured(
            index, questions, asked, k, settings.curve_budgets, bar(f"Measuring: {name}")
        )
        found.append(Strategy(name, strategies[name], tuple(chunks), index.sizes, own, answers))
    return Report(settings, dict(documents), tuple(questions), tuple(found))


def named(chunkers: Mapping[str, Any] | Iterable[Any]) -> dict[str, Any]:
    """The strategies by name; without names, by their class and the parameters that were given.

    >>> from rag_splitters import SentenceChunker
    >>> list(named([SentenceChunker(chunk_size=90), SentenceChunker(), SentenceChunker()]))
    ['SentenceChunker(chunk_size=90)', 'SentenceChunker', 'SentenceChunker 2']
    """
    if isinstance(chunkers, Mapping):
        found = dict(chunkers)
    else:
        found = {}
        for chunker in chunkers:
            name = first = _name(chunker)
            count = 1
            while name in found:
                count += 1
                name = f"{first} {count}"
            found[name] = chunker
    if not found:
        raise ValueError("there are no strategies to compare: hand in at least one chunker")
    return found


def _name(chunker: Any) -> str:
    kind = getattr(chunker, "__qualname__", type(chunker).__name__)
    if not isinstance(chunker, Chunker):
        return str(kind)
    given = [
        f"{field}={value!r}"
        for field in type(chunker).model_fields
        if field in chunker.model_fields_set
        and isinstance(value := getattr(chunker, field), (str, int, float))
    ]
    return f"{kind}({', '.join(given)})" if given else str(kind)


def _check(documents: Mapping[str, str], questions: Sequence[Question]) -> None:
    if not questions:
        raise ValueError("there are no questions: a comparison needs at least one")
    for question in questions:
        check_question(question, documents)


def _chunks(
    name: str,
    chunker: Any,
    documents: Mapping[str, str],
    bar: Callable[[Iterable[Any]], Iterable[Any]],
) -> list[LocatedChunk]:
    chunks = located_chunks(chunker, documents, bar)
    if not chunks:
        raise ValueError(f"{name} gives no chunks for these documents")
    return chunks


def _sizes(chunks: Sequence[LocatedChunk], unit: LengthFunction) -> NDArray[np.int64]:
    measure = sizer(unit)
    return np.array([measure(chunk.text).length(0, len(chunk.text)) for chunk in chunks])


def _track(description: str, shown: bool) -> Callable[[Any], Iterable[Any]]:
    """What iterates with a progress bar on standard error, where that is a terminal."""
    console = Console(stderr=True)
    return partial(
        track,
        description=description,
        console=console,
        transient=True,
        disable=not (shown and console.is_terminal),
    )
