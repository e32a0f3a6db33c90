"""Comparing strategies: from chunkers and retrievers, documents and questions to a report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, count
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel
from rich.console import Console
from rich.progress import track

from rag_splitters.chunkers import (
    AutoChunker,
    ContentAwareChunker,
    RecursiveChunker,
    SentenceChunker,
)
from rag_splitters.contract.chunker import Chunker
from rag_splitters.errors import InputError
from rag_splitters.evaluation.measure.cached_embeddings import CachedEmbeddings
from rag_splitters.evaluation.measure.chunks import (
    ChunkLocator,
    LocatedChunk,
    budget_search,
    locate_chunks,
    locate_results,
    search_method,
)
from rag_splitters.evaluation.measure.faults import DocumentFaults, count_faults
from rag_splitters.evaluation.measure.metrics import measure, rank
from rag_splitters.evaluation.measure.questions import Question, check_question, check_texts
from rag_splitters.evaluation.measure.results import Settings, Strategy
from rag_splitters.evaluation.report.report import Report
from rag_splitters.parameters.checks import check_has, check_list
from rag_splitters.text.sizing import LengthFunction, text_length
from rag_splitters.text.structure import Range

_AT_ONCE = 1024  # texts for one step of the progress bar

_Bar: TypeAlias = Callable[..., Iterable[Any]]
"""Iterates with a progress bar: rich's `track`, with `description=`."""
_Rankings: TypeAlias = Iterable[Iterable[tuple[LocatedChunk, int]]]
"""For each question what was found, the best first, with sizes."""


def compare(
    strategies: Any,
    documents: Mapping[str, str],
    questions: Sequence[Question] = (),
    embeddings: Any = None,
    *,
    k: int = 5,
    budgets: Sequence[int] = (500, 1000, 1500),
    length_function: LengthFunction = "tokens",
    cache: Any = None,
    metadata: Mapping[str, Mapping[str, Any]] | None = None,
    show_progress: bool = True,
) -> Report:
    """Search each strategy's chunks for the answers to all questions, and measure the results.

    The chunks of all documents go into one index, which is searched by exact cosine similarity. A
    retriever searches for itself. Without questions, the report has only the chunks of chunkers and
    their faults.

    Parameters:
        strategies: one strategy, several in a list, or several by their names in the report. A
            strategy is a chunker, a LangChain splitter, a LlamaIndex parser, a function from a text
            to strings, or a retriever that holds the documents. If budgets are in tokens, our
            parent-child retrievers are asked once for each budget, whatever their own `max_tokens`.
            Other retrievers are asked once, and must return twice the largest budget.
        documents: texts by name; documents without questions are searched, too.
        questions: the questions.
        embeddings: a LangChain `Embeddings`, a LlamaIndex `BaseEmbedding` or a function; or a
            `CachedEmbeddings` of one, if strategies embed with it, too. Questions need it, unless
            all strategies are retrievers.
        k: number of chunks to retrieve.
        budgets: numbers of units to retrieve for recall at equal budgets.
        length_function: the unit of budgets and sizes.
        cache: where embeddings are kept, so that an interrupted run continues where it stopped:
            the path of a folder, a LangChain `BaseStore` or a LlamaIndex `BaseKVStore`. None: in
            memory only.
        metadata: metadata of documents by their names, for our own chunkers, which cut a PDF that
            `read_sources` returned by the headings in its metadata. A retriever has its own.
        show_progress: show progress bars if standard error is a terminal.

    Returns: a `Report`, which prints as a table.

    Raises: ValueError if a question does not fit the documents, if a strategy gives no chunks, if
    there are neither questions nor chunkers, or if a number is out of range; TypeError if the
    documents have no names; ModelError if the model fails.

    >>> from rag_splitters.models import HashingEmbeddings
    >>> documents = {"tale": "The lamp is in the hall. The cat is out."}
    >>> questions = [Question("Where is the lamp?", "tale", ((12, 23),))]
    >>> chunkers = {"small": RecursiveChunker(chunk_size=30)}
    >>> report = compare(chunkers, documents, questions, HashingEmbeddings(), k=1)
    >>> report.metric("small", "recall")
    1.0
    """
    check_texts(documents)
    check_has(metadata or {}, "get", "metadata by the names of documents")
    check_list(questions, "questions")
    check_list(budgets, "budgets")
    for question in questions:
        check_question(question, documents)
    if not any(text.strip() for text in documents.values()):
        raise InputError("there are no documents: pass at least one text that is not blank")
    by_name = strategies_by_name(strategies)
    has_chunkers = not all(map(search_method, by_name.values()))
    if not questions and not has_chunkers:
        raise InputError(
            "retrievers need questions: pass questions=...; without them, only the chunks of "
            "chunkers are examined"
        )
    needs_model = bool(questions) and has_chunkers
    model = _model(embeddings, cache) if needs_model else None
    description = model.description if model else ""
    settings = Settings(k, tuple(sorted(set(budgets))), length_function, description)
    console = Console(stderr=True)
    is_shown = show_progress and console.is_terminal
    bar: _Bar = partial(track, console=console, transient=True, disable=not is_shown)
    metadata = {name: {"source": name, **(metadata or {}).get(name, {})} for name in documents}
    faults = {name: DocumentFaults(text, metadata[name]) for name, text in documents.items()}
    results = [
        _cut(name, strategy, documents, metadata, faults, settings, bar)
        for name, strategy in by_name.items()
    ]
    if questions:
        results = [
            replace(each, measurements=_search(each, settings, documents, questions, model, bar))
            for each in results
        ]
    return Report(settings, dict(documents), tuple(questions), tuple(results))


def _model(embeddings: Any, cache: Any) -> CachedEmbeddings:
    if embeddings is None:
        raise InputError("questions need an embedding model: pass embeddings=...")
    is_cached = isinstance(embeddings, CachedEmbeddings) and cache is None
    return embeddings if is_cached else CachedEmbeddings(embeddings, cache)


def _cut(
    name: str,
    strategy: Any,
    documents: Mapping[str, str],
    metadata: Mapping[str, Mapping[str, Any]],
    faults: Mapping[str, DocumentFaults],
    settings: Settings,
    bar: _Bar,
) -> Strategy:
    """Return a strategy with its chunks and their faults; a retriever as it is."""
    if search_method(strategy):
        return Strategy(name, strategy)
    track = partial(bar, description=f"Chunking: {name}")
    chunks = locate_chunks(strategy, documents, track, metadata)
    if not chunks:
        raise InputError(f"{name} gives no chunks for these documents")
    sizes = _sizes(chunks, settings.length_function)
    counts = count_faults(faults, chunks, sizes.tolist())
    return Strategy(name, strategy, tuple(chunks), sizes, counts)


def _search(
    strategy: Strategy,
    settings: Settings,
    documents: Mapping[str, str],
    questions: Sequence[Question],
    model: CachedEmbeddings | None,
    bar: _Bar,
) -> dict[str, NDArray[np.float64]]:
    """Return the metrics of one strategy, by name: a value for each question."""
    chunks, sizes, name = strategy.chunks, strategy.sizes.tolist(), strategy.name
    positions: dict[str, list[Range]] = {each: [] for each in documents}
    passes: Iterable[tuple[Sequence[int], _Rankings]]
    search = search_method(strategy.chunker)
    if search or model is None:
        passes = _ask(strategy, settings, documents, questions)
    else:
        for chunk in chunks:
            if chunk.position is not None:
                positions[chunk.document].append(chunk.position)
        texts = [chunk.text for chunk in chunks]
        vectors = np.concatenate(
            [
                model.embed(texts[start : start + _AT_ONCE])
                for start in bar(range(0, len(texts), _AT_ONCE), description=f"Embedding: {name}")
            ]
        )
        orders = rank(vectors, model.embed_questions([each.text for each in questions]))
        ranked = (((chunks[at], sizes[at]) for at in order) for order in orders)
        passes = [(settings.curve_budgets, ranked)]
    measurements: dict[str, NDArray[np.float64]] = {}
    for budgets, rankings in passes:
        rows = []
        tracked = bar(questions, description=f"Searching: {name}")
        for question, ranking in zip(tracked, rankings, strict=True):
            own = None if search else positions[question.document]
            rows.append(measure(question, ranking, settings.k, budgets, own))
        measurements |= {metric: np.array([row[metric] for row in rows]) for metric in rows[0]}
    return measurements


def _ask(
    strategy: Strategy,
    settings: Settings,
    documents: Mapping[str, str],
    questions: Sequence[Question],
) -> Iterator[tuple[Sequence[int], _Rankings]]:
    """Yield budgets, and what a retriever finds when it is asked for them.

    A parent-child retriever is asked for one budget after the other, the largest last. Its metrics
    at a fixed number of chunks are those of the largest budget.
    """
    locators = {each: ChunkLocator(text) for each, text in documents.items()}
    holds_documents = False

    def rankings(search: Any) -> _Rankings:
        nonlocal holds_documents
        for question in questions:
            results = search(question.text)
            check_list(results, f"texts from {strategy.name}")
            chunks = locate_results(results, locators)
            holds_documents = holds_documents or any(each.position for each in chunks)
            yield zip(chunks, _sizes(chunks, settings.length_function).tolist(), strict=True)

    searches = [(each, budget_search(strategy.chunker, each)) for each in settings.budgets]
    if settings.unit == "tokens" and all(search for _, search in searches):
        for budget, search in searches:
            yield [budget], rankings(search)
    else:
        yield settings.curve_budgets, rankings(search_method(strategy.chunker))
    if not holds_documents:
        raise InputError(
            f"{strategy.name} returned no text of these documents: add them to it first"
        )


def candidates(sizes: Sequence[int] = (200, 400)) -> dict[str, Chunker]:
    """Return the chunkers that the documentation recommends without a model, in these sizes.

    The command line adds parent-child retrieval. In Python, add a retriever that holds the
    documents.

    >>> list(candidates([100]))
    ['auto 100', 'content_aware 100', 'recursive 100', 'sentence 100']
    """
    kinds = (AutoChunker, ContentAwareChunker, RecursiveChunker, SentenceChunker)
    return {
        f"{kind.strategy} {size}": kind(chunk_size=size, length_function="tokens")
        for size in sizes
        for kind in kinds
    }


def strategies_by_name(strategies: Any) -> dict[str, Any]:
    """Return the strategies by name. A list gets names from the classes and their parameters.

    >>> chunkers = [SentenceChunker(chunk_size=90), SentenceChunker(), SentenceChunker()]
    >>> list(strategies_by_name(chunkers))
    ['SentenceChunker(chunk_size=90)', 'SentenceChunker', 'SentenceChunker 2']
    """
    if isinstance(strategies, Mapping):
        by_name = dict(strategies)
    else:
        by_name = {}
        # A pydantic model can be iterated, too; a text is no strategy, which cutting says.
        is_single = isinstance(strategies, str | BaseModel) or not isinstance(strategies, Iterable)
        for strategy in [strategies] if is_single else strategies:
            name = _name(strategy)
            numbered = chain([name], (f"{name} {number}" for number in count(2)))
            by_name[next(each for each in numbered if each not in by_name)] = strategy
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


def _sizes(chunks: Sequence[LocatedChunk], unit: LengthFunction) -> NDArray[np.int64]:
    """Return the size of each chunk's text."""
    return np.array([text_length(chunk.text, unit) for chunk in chunks], dtype=np.int64)
