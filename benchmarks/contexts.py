"""How much of a document has to be shown to the model that situates a chunk.

    python -m benchmarks.contexts DATA [--cache FOLDER] [--embeddings hashing]

DATA is a folder with `corpora` and `questions.csv`, as for `benchmarks.evaluation`. The model is a
stand-in that quotes: its context is the headings above the chunk, and the two sentences of the
window outside of the chunk that share the most of its rare words. A larger window can only help it
if such sentences stand further away. Chunks have 150 tokens, and contexts count in the budgets.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from functools import lru_cache
from pathlib import Path

from rag_splitters import Chunker, ContextualChunker, RecursiveChunker, SentenceWindowChunker
from rag_splitters.evaluation import CachedEmbeddings, compare, read_benchmark, verdict
from rag_splitters.evaluation.report.tables import format_gap
from rag_splitters.models import HashingEmbeddings
from rag_splitters.text.terms import text_terms
from tests.support.minilm import minilm

BUDGETS = (500, 1000, 1500)
WINDOWS = (20_000, 8_000, 4_000, 2_000)
_SENTENCES = SentenceWindowChunker()


@lru_cache(maxsize=8)
def sentences(text: str) -> list[tuple[str, frozenset[str]]]:
    """The sentences of a window, with their words."""
    texts = [chunk.text for chunk in _SENTENCES.chunk(text)]
    return [(each, frozenset(text_terms(each, {}))) for each in texts]


def between(text: str, tag: str) -> str:
    return text.partition(f"<{tag}>\n")[2].partition(f"\n</{tag}>")[0]


def quote(prompt: str) -> str:
    """The headings, and the two sentences around the chunk that speak most of the same."""
    window, chunk = between(prompt, "document"), between(prompt, "chunk")
    counts = Counter(term for _, terms in sentences(window) for term in terms)
    total = len(sentences(window))
    own = frozenset(text_terms(chunk, {}))
    scored = [
        (sum(math.log(total / counts[term]) for term in terms & own) / math.sqrt(len(terms)), text)
        for text, terms in sentences(window)
        if terms and text not in chunk and len(text) < 400
    ]
    best = [text for score, text in sorted(scored, reverse=True)[:2] if score > 0]
    return "\n".join([between(prompt, "headings"), *best]).strip() + "."


def chunkers() -> dict[str, Chunker]:
    inner = RecursiveChunker(chunk_size=150, length_function="tokens")
    return {
        "no context": inner,
        "headings alone": ContextualChunker(
            chunker=inner,
            llm=lambda prompt: f"{between(prompt, 'headings').strip()}.",
            count_context=False,
        ),
        **{
            f"quotations from {window:,} characters": ContextualChunker(
                chunker=inner, llm=quote, count_context=False, document_window=window
            )
            for window in WINDOWS
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--cache", type=Path, help="folder that keeps embeddings for the next run")
    parser.add_argument("--embeddings", choices=("minilm", "hashing"), default="minilm")
    options = parser.parse_args()
    model = minilm() if options.embeddings == "minilm" else HashingEmbeddings()
    cached = CachedEmbeddings(model, options.cache)
    benchmark = read_benchmark(options.data)
    report = compare(chunkers(), benchmark.documents, benchmark.questions, cached, budgets=BUDGETS)
    print(verdict(report), end="\n\n")
    print("| | " + " | ".join(f"at {budget:,}" for budget in BUDGETS) + " |")
    print("|---|" + "---:|" * len(BUDGETS))
    for name in chunkers():
        cells = []
        for metric in (f"recall@{budget}" for budget in BUDGETS):
            gap = format_gap(report.gap(name, metric))
            cells.append(f"{100 * report.metric(name, metric):.1f}" + (f" ({gap})" if gap else ""))
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
