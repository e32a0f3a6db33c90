"""What each strategy asks of models for a megabyte of text, in requests, tokens and money.

    python benchmarks/costs.py TEXT... [--prices 0.15 0.075 0.60 0.02]

TEXTs are files of natural text, each of which is a document; all counts but the last are scaled to
1,000,000 characters. Prices are in dollars for a million tokens: input, input that the provider's
prompt cache has read before, output, embeddings.

No model is asked: the requests are counted, and tokens are those of cl100k_base. It is assumed that
an agentic answer names every seventh sentence, that there is a proposition for each sentence, and
that a context has 56 words. The prompt cache holds prefixes of 1,024 tokens and more, in steps of
128, as OpenAI's does. The last column is what it costs to embed the chunks themselves, as every
index has to.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from rich.console import Console
from rich.table import Table

from rag_splitters import (
    AgenticChunker,
    Chunker,
    ClusterChunker,
    ContextualChunker,
    EmbeddingChunker,
    PropositionChunker,
    RecursiveChunker,
    SemanticChunker,
    TitledChunker,
)
from rag_splitters.models import HashingEmbeddings
from rag_splitters.models.prompts import Prompt
from rag_splitters.span import Source
from rag_splitters.text.encodings import load_encoding

COLUMNS = (
    "requests",
    "read",
    "of these cached",
    "written",
    "embedded",
    "dollars",
    "index, dollars",
)
_CONTEXT = "This chunk stands in the part of the document that tells of the voyage. " * 4


@lru_cache(maxsize=64)
def tokens(text: str) -> int:
    return len(load_encoding("cl100k_base").encode_ordinary(text))


@dataclass
class Bill:
    """What was asked of models."""

    requests: int = 0
    read: int = 0
    cached: int = 0
    written: int = 0
    embedded: int = 0
    seen: set[str] = field(default_factory=set)

    def chat(self, prompt: str) -> str:
        """Answer a prompt, and count it."""
        answer = answer_to(prompt)
        shared, rest = prompt.parts if isinstance(prompt, Prompt) else ("", prompt)
        prefix = tokens(shared)
        self.requests += 1
        self.read += prefix + tokens(rest)
        self.written += tokens(answer)
        if prefix >= 1024 and shared in self.seen:
            self.cached += prefix - prefix % 128
        self.seen.add(shared)
        return answer

    def dollars(self, prices: Sequence[float]) -> float:
        counts = (self.read - self.cached, self.cached, self.written, self.embedded)
        return sum(count * price for count, price in zip(counts, prices, strict=True)) / 1e6


class CountingEmbeddings:
    """An embedding model that sends a thousand texts in a request, as OpenAI's client does."""

    chunk_size = 1000

    def __init__(self, bill: Bill) -> None:
        self.bill, self.model = bill, HashingEmbeddings(dimensions=64)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.bill.requests += -(-len(texts) // self.chunk_size)
        self.bill.embedded += sum(map(tokens, texts))
        return self.model.embed_documents(texts)


def answer_to(prompt: str) -> str:
    lines = prompt.partition("<sentences>\n")[2].partition("\n</sentences>")[0].splitlines()
    if "as propositions" in prompt:
        return "\n".join(line.replace("[", "", 1).replace("]", ":", 1) for line in lines)
    return ", ".join(map(str, range(1, len(lines) + 1, 7))) if lines else _CONTEXT


def chunkers(bill: Bill) -> dict[str, Chunker]:
    llm, embeddings = bill.chat, CountingEmbeddings(bill)
    return {
        "`Recursive` and all others": RecursiveChunker(),
        "`Semantic`": SemanticChunker(embeddings=embeddings),
        "`Embedding`": EmbeddingChunker(embeddings=embeddings),
        "`Cluster`": ClusterChunker(embeddings=embeddings),
        "`Agentic`": AgenticChunker(llm=llm),
        "`Titled`": TitledChunker(),
        "`Contextual`": ContextualChunker(llm=llm, count_context=False),
        "`Contextual(document_window=20000)`": ContextualChunker(
            llm=llm, count_context=False, document_window=20_000
        ),
        "`Proposition`": PropositionChunker(llm=llm),
    }


def rows(texts: Sequence[str], prices: Sequence[float]) -> list[list[str]]:
    scale = 1e6 / sum(map(len, texts))
    result = []
    for name in chunkers(Bill()):
        bill = Bill()
        chunker = chunkers(bill)[name]
        plans = list(chunker.split([Source(text, number=n) for n, text in enumerate(texts)]))
        pairs = zip(texts, plans, strict=True)
        index = sum(tokens(span.text_of(text)) for text, spans in pairs for span in spans)
        counts = (bill.requests, bill.read, bill.cached, bill.written, bill.embedded)
        dollars = (bill.dollars(prices), index * prices[3] / 1e6)
        scaled = [f"{round(count * scale):,}" for count in counts]
        result.append([name, *scaled, *(f"{each * scale:.3f}" for each in dollars)])
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("texts", type=Path, nargs="+", metavar="TEXT")
    parser.add_argument("--prices", type=float, nargs=4, default=[0.15, 0.075, 0.60, 0.02])
    options = parser.parse_args()
    table = Table("strategy", *COLUMNS)
    for row in rows([path.read_text("utf-8") for path in options.texts], options.prices):
        table.add_row(*row)
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
