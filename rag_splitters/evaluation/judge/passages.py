"""The passages about which a model writes facts and questions, and an account of what it wrote."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from rag_splitters.chunkers.recursive import RecursiveChunker
from rag_splitters.contract.chunker import Chunker
from rag_splitters.errors import InputError
from rag_splitters.evaluation.judge.judge import (
    Failure,
    Judgement,
    Row,
    Task,
    as_judge,
    count_reasons,
)
from rag_splitters.meaning.situating import heading_contexts
from rag_splitters.models.prompts import Form, fill
from rag_splitters.parameters.checks import whole_number
from rag_splitters.span import Source

Verdict = TypeVar("Verdict")


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a document.

    Parameters:
        item_count: how many items the model has to write about it.
        headings: the title and the headings that it stands under.
    """

    document: str
    start: int
    end: int
    text: str
    item_count: int
    headings: str = ""


@dataclass(frozen=True, slots=True)
class Rejected(Row):
    """An item that a model wrote, or a passage on which it failed, and why it is not used.

    Parameters:
        document: the document's name.
        start: where the passage begins.
        end: where the passage ends.
        text: the item; empty if the model failed on the whole passage.
        failure: why it is not used.
    """

    document: str
    start: int
    end: int
    text: str
    failure: Failure

    @classmethod
    def of(cls, passage: Passage, text: str, failure: Failure) -> Rejected:
        """An item about a passage."""
        return cls(passage.document, passage.start, passage.end, text, failure)


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """An account of what a model wrote about passages.

    Parameters:
        rejected: the items that cannot be used, and why.
        passages: number of passages that the model was shown.
        requested: number of items that it was asked for.
    """

    rejected: tuple[Rejected, ...]
    passages: int
    requested: int

    @property
    def reasons(self) -> dict[str, int]:
        """The number of rejected items and passages, by reason."""
        return count_reasons(each.failure for each in self.rejected)

    def account(self) -> dict[str, Any]:
        """The account for JSON."""
        return {
            "passages": self.passages,
            "requested": self.requested,
            "reasons": self.reasons,
            "rejected": [each.as_dict() for each in self.rejected],
        }


Every: TypeAlias = "int | Callable[[str], int]"
"""How much to write about a passage: one item for this many characters, and at least one; or a
function from the passage to the number of items."""


async def write_items(
    documents: Mapping[str, str],
    judge: Any,
    chunker: Chunker | None,
    every: Every,
    *,
    prompt: str,
    form: Form,
    task: Task[Verdict],
) -> list[tuple[Passage, Judgement[Verdict]]]:
    """Let a model write about each passage.

    The prompt has the places {count}, {headings}, {passage} and {form}.
    """
    judge = as_judge(judge)
    passages = await _find_passages(documents, chunker, every)
    prompts = [
        fill(
            prompt,
            count=str(each.item_count),
            headings=each.headings,
            passage=each.text,
            form=judge.form(form),
        )
        for each in passages
    ]
    return list(zip(passages, await judge.judge(task, prompts), strict=True))


def labelled_lines(answer: str, *labels: str) -> list[tuple[str, str]]:
    """The lines of an answer in plain text, each as its label and what follows it.

    Raises ValueError for a line without one of the labels. The answer "none" has no lines.

    >>> labelled_lines("- True: it is.\\n\\nfalse: not.", "true", "false")
    [('true', 'it is.'), ('false', 'not.')]
    """
    pairs: list[tuple[str, str]] = []
    if answer.strip().rstrip(".").lower() == "none":
        return pairs
    pattern = rf"(?:[-*•][ \t]+)?({'|'.join(labels)})[ \t]*:[ \t]*(\S.*)"
    for line in re.split(r"\r\n|\n|\r", answer):
        if not line.strip() or line.strip().startswith("```"):
            continue
        match = re.fullmatch(pattern, line.strip(), re.IGNORECASE)
        if not match:
            forms = " or ".join(f'"{label}: ..."' for label in labels)
            raise InputError(f"{line[:40]!r} is not a line like {forms}")
        pairs.append((match.group(1).lower(), match.group(2)))
    return pairs


async def _find_passages(
    documents: Mapping[str, str], chunker: Chunker | None, every: Every
) -> list[Passage]:
    """The passages of documents, by position. Passages about which nothing is wanted are left out.

    Parameters:
        chunker: None: at paragraphs, into 2,000 characters. If it rewrites its chunks, a passage is
            still the original text between a chunk's positions.

    >>> from rag_splitters.calls import run
    >>> passages = run(_find_passages({"a": "x" * 2500}, None, 500))
    >>> [(each.start, each.item_count) for each in passages]
    [(0, 4), (2000, 1)]
    """
    if not callable(every):
        whole_number(every, "every", 1)
    chunker = chunker or RecursiveChunker(chunk_size=2000, chunk_overlap=0)
    sources = [Source(text, number=number) for number, text in enumerate(documents.values())]
    spans = await chunker.plan(sources)
    passages = []
    for (name, text), document_spans in zip(documents.items(), spans, strict=True):
        headings = heading_contexts(text, {}, document_spans)
        for span, path in zip(document_spans, headings, strict=True):
            passage = text[span.start : span.end]
            count = every(passage) if callable(every) else max(1, len(passage) // every)
            if count > 0 and passage.strip():
                passages.append(Passage(name, span.start, span.end, passage, count, path))
    return passages
