"""Tokens and calls until an agent has read the evidence for a question.

    python benchmarks/agents.py FOLDER [--minilm] [--questions N]

FOLDER holds `corpora/*.md` and `questions.csv`, as for `benchmarks/retrieval.py`. No model decides:
the agent follows a script, and stops when all characters of the evidence have been shown to it.
With our tools it searches, expands the first passages, one after the other and twice, searches once
more for four times as much, and at last reads the document. Without them it greps for the words of
the question, and reads whole files, beginning with the one that has most of the words.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import mean, median

from langchain_core.documents import Document

sys.path.insert(0, str(Path(__file__).parent.parent))

from rag_splitters.evaluation import read_benchmark
from rag_splitters.evaluation.measure.questions import Question
from rag_splitters.langchain import parent_document_retriever
from rag_splitters.parent_child.budget import count_tokens
from rag_splitters.text.terms import find_words, word_terms
from rag_splitters.tools import index_tools
from tests.support.minilm import minilm

SEARCHED, EXPANDED, PASSAGES = 1000, 500, 3  # tokens, tokens, passages that are expanded
PLACE = re.compile(r'\(document="([^"]+)", start=(\d+), end=(\d+)')
MORE = re.compile(r"read\(.*start=(\d+), end=(\d+)\)\]\Z")
Step = tuple[str, list[tuple[str, int, int]]]
"""What a tool answers, and the places whose text it shows."""


def places(answer: str) -> list[tuple[str, int, int]]:
    return [(name, int(start), int(end)) for name, start, end in PLACE.findall(answer)]


def with_tools(ask: dict[str, Callable[..., str]], question: Question) -> Iterator[Step]:
    """The steps of an agent that has our tools."""
    answer = ask["search"](question.text, max_tokens=SEARCHED)
    passages = places(answer)
    yield answer, passages
    expanded = passages[:PASSAGES]
    for _ in range(2):
        for number, (name, start, end) in enumerate(expanded):
            answer = ask["expand"](name, start, end, EXPANDED)
            expanded[number : number + 1] = places(answer)
            yield answer, places(answer)
    answer = ask["search"](question.text, max_tokens=4 * SEARCHED)
    yield answer, places(answer)
    names = dict.fromkeys([*(name for name, _, _ in passages), question.document])
    for name in names:
        start: int | None = 1
        while start is not None:
            answer = ask["read"](name, start=start, max_tokens=8000)
            more = MORE.search(answer)
            start = int(more[1]) if more else None
            yield answer, places(answer)


def with_grep(documents: dict[str, str], question: Question) -> Iterator[Step]:
    """The steps of an agent that has `grep -ci` and `cat`."""
    words = [word for word in find_words(question.text) if word_terms(word)]
    lowered = {name: text.lower() for name, text in documents.items()}
    counts = {name: sum(word in text for word in words) for name, text in lowered.items()}
    ordered = sorted(counts, key=lambda name: (-counts[name], name))
    yield "\n".join(f"{name}:{counts[name]}" for name in ordered), []
    for name in ordered:
        yield documents[name], [(name, 0, len(documents[name]))]


def cost(text: str, question: Question, steps: Iterator[Step]) -> tuple[int, int]:
    """The tokens and calls until all the evidence, without white space, has been shown."""
    needed = {place for span in question.references for place in range(*span)}
    missing = {place for place in needed if not text[place].isspace()}
    tokens = calls = 0
    for answer, shown in steps:
        tokens, calls = tokens + count_tokens(answer), calls + 1
        for name, start, end in shown:
            if name == question.document:
                missing = {place for place in missing if not start <= place < end}
        if not missing:
            return tokens, calls
    raise AssertionError(f"the evidence of {question.text!r} was never shown")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--minilm", action="store_true", help="embed with all-MiniLM-L6-v2")
    parser.add_argument("--questions", type=int, help="ask only so many, evenly spread")
    options = parser.parse_args()
    benchmark = read_benchmark(options.folder)
    texts = dict(benchmark.documents)
    step = max(1, len(benchmark.questions) // (options.questions or len(benchmark.questions)))
    questions = benchmark.questions[::step]
    documents = [Document(text, id=name) for name, text in texts.items()]
    model = minilm() if options.minilm else None
    with parent_document_retriever(documents, embeddings=model) as retriever:
        ask = {tool.name: tool.function for tool in index_tools(retriever)}
        ours = [cost(texts[q.document], q, with_tools(ask, q)) for q in questions]
    theirs = [cost(texts[q.document], q, with_grep(texts, q)) for q in questions]
    print(f"{len(questions)} questions, {len(texts)} documents\n")
    print("| | tokens: median | mean | calls: mean | done in one |\n|---|---|---|---|---|")
    for name, rows in (("search, expand, read", ours), ("grep, whole files", theirs)):
        tokens, calls = zip(*rows, strict=True)
        figures = f"{median(tokens):,.0f} | {mean(tokens):,.0f} | {mean(calls):.1f}"
        print(f"| {name} | {figures} | {100 * mean(each == 1 for each in calls):.0f} % |")


if __name__ == "__main__":
    main()
