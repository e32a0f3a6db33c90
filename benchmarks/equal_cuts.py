"""Compare the cuts of two versions of the package, document by document.

    python -m benchmarks.equal_cuts record FILE [FOLDER ...] [--only recursive auto]
    python -m benchmarks.equal_cuts compare FILE [FOLDER ...] [--only recursive auto]

`record` cuts all documents with every strategy that needs no model service, at eight sizes, without
overlap and with one of a tenth, and writes the chunks to FILE. `compare` cuts them again and prints
which documents differ, with the first chunk of each that does. It ends with status 1 if any differ.
The documents are those of tests/data, and the text files of other folders if you name them.

Before you accept a difference, read it: a cut may change only for the better.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeAlias

import rag_splitters as rs
from rag_splitters.models import HashingEmbeddings

DATA = Path(__file__).parents[1] / "tests" / "data"
SIZES = (40, 80, 150, 300, 500, 800, 1200, 2000)
SUFFIXES = "md txt html rst adoc tex csv json py go rs ts sh toml yaml log srt vtt ipynb mbox 1"

Row: TypeAlias = list[int]
"""The start and the end of a chunk, and a checksum of its text and headings."""


def names(text: str) -> list[tuple[int, int, str]]:
    """Find names in a text, for the strategy that needs a recogniser."""
    return [(*match.span(), "NAME") for match in re.finditer(r"\b[A-Z]\w+ [A-Z]\w+", text)]


STRATEGIES: dict[str, Callable[..., rs.Chunker]] = {
    "auto": rs.AutoChunker,
    "code": rs.CodeChunker,
    "content_aware": rs.ContentAwareChunker,
    "content_aware_merging": lambda **sizes: rs.ContentAwareChunker(
        min_chunk_size=sizes["chunk_size"] // 4, **sizes
    ),
    "entity": lambda **sizes: rs.EntityChunker(ner=names, **sizes),
    "fixed_size": rs.FixedSizeChunker,
    "hierarchical": lambda **sizes: rs.HierarchicalChunker(emit="all", **sizes),
    "json": rs.JsonChunker,
    "keyword": lambda **sizes: rs.KeywordChunker(keywords=("Chapter", "The"), **sizes),
    "modality": lambda **sizes: rs.ModalityChunker(
        text=rs.RecursiveChunker(**sizes), table=rs.TableChunker(**sizes)
    ),
    "paragraph": rs.ParagraphChunker,
    "paragraph_merging": lambda **sizes: rs.ParagraphChunker(
        min_chunk_size=sizes["chunk_size"] // 4, **sizes
    ),
    "recursive": rs.RecursiveChunker,
    "recursive_markdown": lambda **sizes: rs.RecursiveChunker(language="markdown", **sizes),
    "recursive_python": lambda **sizes: rs.RecursiveChunker(language="python", **sizes),
    "semantic": lambda **sizes: rs.SemanticChunker(embeddings=HashingEmbeddings(), **sizes),
    "sentence": rs.SentenceChunker,
    "sentence_window": rs.SentenceWindowChunker,
    "separator": lambda **sizes: rs.SeparatorChunker(separators=("\n\n", ". "), **sizes),
    "sliding_window": rs.SlidingWindowChunker,
    "table": rs.TableChunker,
    "titled": lambda **sizes: rs.TitledChunker(
        chunker=rs.RecursiveChunker(**sizes), include_headings=True
    ),
    "words": lambda **sizes: rs.RecursiveChunker(
        length_function="words", **{name: value // 6 for name, value in sizes.items()}
    ),
}


def documents(folders: list[Path]) -> dict[str, str]:
    """Return the documents to cut, by name."""
    suffixes = {f".{suffix}" for suffix in SUFFIXES.split()}
    paths = [path for path in DATA.rglob("*") if path.suffix in suffixes]
    paths += [path for folder in folders for path in folder.rglob("*") if path.suffix in suffixes]
    texts = {f"{path.parent.name}/{path.name}": path.read_text(encoding="utf-8") for path in paths}
    with gzip.open(DATA / "markdown_spec.json.gz", "rt", encoding="utf-8") as file:
        examples = json.load(file)["examples"]
    texts["spec.md"] = "\n".join(example["markdown"] for example in examples)
    texts["spec.html"] = "\n".join(example["html"] for example in examples)
    return texts


def rows(chunker: rs.Chunker, name: str, text: str) -> list[Row]:
    """Return the chunks of a document, as rows."""
    chunks: list[Row] = []
    for span in next(chunker.split([rs.Source(text, {"source": Path(name).name})])):
        state = f"{span.text_of(text)}\0{'/'.join(span.headings)}".encode(errors="surrogatepass")
        chunks.append([span.start, span.end, zlib.crc32(state)])
    return chunks


def cases(texts: dict[str, str], only: list[str]) -> Iterator[tuple[str, str, list[Row]]]:
    """Yield a document's name, the settings, and the chunks, for each document and settings."""
    for strategy, build in STRATEGIES.items():
        if only and strategy not in only:
            continue
        for size in SIZES:
            for overlap in (0, size // 10):
                chunker = build(chunk_size=size, chunk_overlap=overlap)
                for name, text in texts.items():
                    yield name, f"{strategy} {size}/{overlap}", rows(chunker, name, text)


def first_difference(text: str, before: list[Row], after: list[Row]) -> str:
    """Say where two lists of chunks begin to differ."""
    pairs = enumerate(zip_longest(before, after))
    index, (old, new) = next((index, pair) for index, pair in pairs if pair[0] != pair[1])
    return f"  chunk {index}\n    before {_shown(text, old)}\n    after  {_shown(text, new)}"


def _shown(text: str, row: Row | None) -> str:
    if row is None:
        return "none"
    start, end, _ = row
    head, tail = text[start : start + 50], text[max(start, end - 60) : end]
    return f"{start}-{end} {head!r} ... {tail!r} | {text[end : end + 40]!r}"


def compare(path: Path, texts: dict[str, str], only: list[str], most: int) -> int:
    """Print the differences to a recording; return their number."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        recorded: dict[str, dict[str, list[Row]]] = json.load(file)
    different: Counter[str] = Counter()
    chunks = changed = 0
    for name, settings, after in cases(texts, only):
        before = recorded.get(name, {}).get(settings)
        if before is None:
            continue
        chunks += len(before)
        if before == after:
            continue
        changed += len({tuple(row) for row in before} - {tuple(row) for row in after})
        strategy = settings.split()[0]
        different[strategy] += 1
        if different[strategy] <= most:
            print(f"{name}, {settings}:\n{first_difference(texts[name], before, after)}")
    for strategy, count in different.items():
        print(f"{strategy}: {count} documents and settings differ")
    print(f"{changed:,} of {chunks:,} chunks are gone")
    return sum(different.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("action", choices=["record", "compare"])
    parser.add_argument("file", type=Path, help="the recording, a gzipped JSON file")
    parser.add_argument("folders", type=Path, nargs="*", help="folders with more documents")
    parser.add_argument("--only", nargs="+", default=[], choices=STRATEGIES)
    parser.add_argument("--most", type=int, default=5, help="differences to print per strategy")
    arguments = parser.parse_args()
    texts = documents(arguments.folders)
    if arguments.action == "compare":
        sys.exit(min(compare(arguments.file, texts, arguments.only, arguments.most), 1))
    recording: dict[str, dict[str, Any]] = {}
    for name, settings, chunks in cases(texts, arguments.only):
        recording.setdefault(name, {})[settings] = chunks
    with gzip.open(arguments.file, "wt", encoding="utf-8") as file:
        json.dump(recording, file)


if __name__ == "__main__":
    main()
