"""Comparing strategies without questions, and recommending one."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.table import Table
from rich.text import Text

from rag_splitters.chunkers import (
    ContentAwareChunker,
    ParagraphChunker,
    RecursiveChunker,
    SentenceChunker,
)
from rag_splitters.contract.sized import SizedChunker
from rag_splitters.errors import InputError
from rag_splitters.evaluation.cached_embeddings import CachedEmbeddings
from rag_splitters.evaluation.comparing import named, progress, sizes_of
from rag_splitters.evaluation.figures import (
    FAULTS,
    FIGURES,
    DocumentFigures,
    References,
    coherence,
    cohesion,
    context_windows,
    fill,
    nearest_windows,
    size_compliance,
    tiny,
)
from rag_splitters.evaluation.intrinsic_results import Figures, IntrinsicResults
from rag_splitters.evaluation.locating import LocatedChunk, locate_chunks
from rag_splitters.evaluation.metrics import Range
from rag_splitters.evaluation.page.intrinsic_page import intrinsic_page
from rag_splitters.evaluation.printing import plain_text, write
from rag_splitters.evaluation.tables import rich_verdict
from rag_splitters.parameters.checks import whole_number
from rag_splitters.text.sentences import sentence_spans
from rag_splitters.text.sizing import LengthFunction

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

_NARROW_FIRST = (
    "block_integrity",
    "mid_sentence",
    "reference_completeness",
    "orphan_headings",
    "tiny",
    "size_compliance",
    "lead_ins",
    "cohesion",
    "coherence",
    "fill",
)
"""The figures in the order in which a terminal shows them while there is room."""

_Embed = Callable[[Sequence[str]], NDArray[np.float32]]


@dataclass(frozen=True, eq=False, repr=False)
class IntrinsicReport(IntrinsicResults):
    """The figures of each strategy in each document, which print as a verdict and a table."""

    def to_html(self, path: str | Path | None = None) -> str:
        """One page with the verdict and all figures; written to `path` if one is given."""
        verdict = recommendation(self)
        return write(intrinsic_page(self, verdict.headline, verdict.reasons), path)

    def to_markdown(self, path: str | Path | None = None) -> str:
        """The figures as a table of Markdown; written to `path` if one is given."""
        titles = ["strategy", "chunks", f"mean {self.unit}", "score", *FIGURES.values()]
        lines = [f"| {' | '.join(titles)} |", "|---|" + "---:|" * (len(titles) - 1)]
        for name in self.names:
            cells = " | ".join(self._cells(name))
            lines.append(f"| {name.replace('|', chr(92) + '|')} | {cells} |")
        return write("\n".join(lines) + "\n", path)

    def to_json(self, path: str | Path | None = None) -> str:
        """All figures by strategy and document; written to `path` if one is given."""
        strategies = [
            {
                "name": name,
                "chunks": self.counts[name],
                "mean_size": self.mean_sizes[name],
                "score": self.score(name),
                "figures": {figure: self.figure(name, figure) for figure in FIGURES},
                "documents": self.figures[name],
            }
            for name in self.names
        ]
        whole = {"unit": self.unit, "model": self.model, "strategies": strategies}
        return write(json.dumps(whole, indent=1) + "\n", path)

    def to_csv(self, path: str | Path | None = None) -> str:
        """One line for each strategy, document and figure; no document means all of them."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("strategy", "document", "figure", "value"))
        for name in self.names:
            for document in (None, *self.figures[name]):
                for figure in FIGURES:
                    value = self.figure(name, figure, document)
                    writer.writerow((name, document or "", figure, "" if value is None else value))
        return write(file.getvalue(), path)

    def _cells(self, name: str) -> list[str]:
        values = [self.score(name), *(self.figure(name, figure) for figure in FIGURES)]
        return [
            f"{self.counts[name]:,}",
            f"{self.mean_sizes[name]:,.0f}",
            *("" if value is None else f"{100 * value:.1f}" for value in values),
        ]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(strategies={self.names})"

    __str__ = plain_text

    def _repr_markdown_(self) -> str:
        """What a notebook displays."""
        return self.to_markdown()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        verdict = recommendation(self)
        yield rich_verdict(verdict.headline, verdict.reasons)
        count = len(next(iter(self.figures.values())))
        caption = (
            f"Means over {count} document{'' if count == 1 else 's'}, in percent. Less is better "
            f"in: {', '.join(FIGURES[each] for each in FAULTS)}. "
            + (self.model or "No embedding model, so neither cohesion nor coherence.")
        )
        table = Table(box=box.SIMPLE_HEAD, caption=caption, caption_justify="left")
        name_width = min(24, max(map(len, self.names)))
        table.add_column("strategy", overflow="fold", min_width=name_width)
        titles = ["chunks", f"mean {self.unit}", "score", *FIGURES.values()]
        rows = {name: self._cells(name) for name in self.names}
        columns = self._columns(titles, rows, options.max_width - name_width - 4)
        for column in columns:
            table.add_column(titles[column].replace(" ", "\n"), justify="right", no_wrap=True)
        for name, cells in rows.items():
            table.add_row(Text(name, style="bold"), *(cells[column] for column in columns))
        yield table

    def _columns(
        self, titles: Sequence[str], rows: Mapping[str, Sequence[str]], room: int
    ) -> list[int]:
        """The columns for which there is room, in their order in the table."""
        counts = len(titles) - len(FIGURES)
        order = [*range(counts), *(counts + list(FIGURES).index(name) for name in _NARROW_FIRST)]
        columns = []
        for column in order:
            cells = [cells[column] for cells in rows.values()]
            width = 3 + max(map(len, (*titles[column].split(), *cells)))
            if any(cells) and width <= room:
                columns.append(column)
                room -= width
        return sorted(columns)


@dataclass(frozen=True)
class Recommendation:
    """The strategy to take without questions, and why; it prints as a few sentences.

    Parameters:
        name: the strategy's name in the report.
        chunker: the strategy.
        score: its mean figure.
        runner_up: the second best strategy; None if there is only one.
        best_for: for each document, the strategy with the best score there.
        report: the figures.
    """

    name: str
    chunker: Any
    score: float
    runner_up: str | None
    best_for: Mapping[str, str]
    report: IntrinsicReport

    @property
    def headline(self) -> str:
        """Which strategy has the best figures, in one sentence."""
        if self.runner_up is None:
            return f"Only {self.name} was described, so there is nothing to choose from."
        if self._lead < _SMALL_LEAD:
            return f"No clear winner: {self.name} and {self.runner_up} have about the same figures."
        return f"Best figures: {self.name}."

    @property
    def reasons(self) -> str:
        """What to take, why, and how far to trust it, in a few sentences."""
        parts = [f"Its score, the mean of its figures, is {self.score:.1%}."]
        if self.runner_up is not None:
            wins = sum(name == self.name for name in self.best_for.values())
            anyway = " anyway" if self._lead < _SMALL_LEAD else ""
            parts = [
                f"Take {self.name}{anyway}: its score, the mean of its figures, is "
                f"{self.score:.1%}, against {self.score - self._lead:.1%} for {self.runner_up}. It "
                f"has the best score in {wins} of {len(self.best_for)} documents.",
                self._differences(self.runner_up),
            ]
        return " ".join([*filter(None, parts), _LIMITS])

    def __str__(self) -> str:
        return f"{self.headline} {self.reasons}"

    @property
    def _lead(self) -> float:
        """The lead over the runner-up."""
        return self.score - (self.report.score(self.runner_up or self.name) or 0.0)

    def _differences(self, other: str) -> str:
        """The figures in which it is better and worse than another strategy, in words."""
        differences: list[tuple[float, str]] = []
        for figure, title in FIGURES.items():
            own, others = self.report.figure(self.name, figure), self.report.figure(other, figure)
            if own is not None and others is not None and figure != "fill":
                lead = (others - own) if figure in FAULTS else (own - others)
                differences.append((lead, f"{title} ({own:.1%} against {others:.1%})"))
        differences.sort(key=lambda each: -abs(each[0]))
        better = [words for lead, words in differences if lead >= _SMALL_LEAD][:4]
        worse = [words for lead, words in differences if lead <= -_SMALL_LEAD][:4]
        if not better and not worse:
            return "No figure differs by half a point, so take the one that costs less."
        sides = [("better", better), ("worse", worse)]
        listed = [f"{word} in {_listed(figures)}" for word, figures in sides if figures]
        return f"It is {', and '.join(listed)}."


_SMALL_LEAD = 0.005
"""Differences below half a point are not worth a sentence."""

_LIMITS = (
    "These figures describe the chunks. They do not say what a search finds: write some questions "
    "and compare by them before you rely on this."
)


def intrinsic(
    chunkers: Mapping[str, Any] | Sequence[Any],
    documents: Mapping[str, str],
    embeddings: Any = None,
    *,
    sizes: tuple[int, int] = (100, 1100),
    context_size: int = 3000,
    length_function: LengthFunction = "tokens",
    references: References | None = None,
    cache: Any = None,
    show_progress: bool = True,
) -> IntrinsicReport:
    """Describe the chunks of each strategy by figures that need no questions.

    The first five figures are those of "Adaptive Chunking" (de Moura Junior, Lelong and Blangero,
    2026, arXiv 2603.25333), after the authors' published code. The functions in
    `rag_splitters.evaluation.figures` define each figure and say where they differ from that code:

    - `size_compliance`: the share of chunks of 100 to 1,100 tokens.
    - `cohesion`: mean cosine similarity between a chunk and its sentences.
    - `coherence`: mean cosine similarity between a chunk and the text around it.
    - `block_integrity`: the share of headings, paragraphs, list items, tables and code blocks that
      are whole in a chunk.
    - `reference_completeness`: the share of references that are whole in a chunk: sentences such
      as "It is green." with the sentence before them, in English.

    The others are ours: the shares of chunks that begin inside a sentence (`mid_sentence`), that
    end with a heading (`orphan_headings`) or with any line that belongs to what follows it
    (`lead_ins`), that are smaller than a tenth of the largest one (`tiny`), and the mean size as a
    share of the largest one (`fill`).

    Compare strategies of about the same size: larger chunks have better figures by their size
    alone, and retrieve less of the answers for the same number of tokens.

    Parameters:
        chunkers: strategies, as for `compare`.
        documents: texts by name.
        embeddings: an embedding model, as for `compare`; None: no cohesion and no coherence.
        sizes: the smallest and the largest acceptable size, for `size_compliance`.
        context_size: size of the text around a chunk, for `coherence`. If the model reads less, it
            compares the chunk with the beginning of that text.
        length_function: the unit of these sizes.
        references: a function from a text to ranges (start, end) that a reader needs together, for
            example by a coreference model; None: `figures.referring_sentences`, for English.
        cache: where to store embeddings, as for `compare`.
        show_progress: show progress bars if standard error is a terminal.

    Returns: an `IntrinsicReport`, which prints as a table.

    Raises: ValueError if there are no documents or strategies, if a strategy gives no chunks, or if
    a number is out of range; ModelError if the model fails.

    >>> from rag_splitters import SentenceChunker
    >>> documents = {"tale": "The lamp is in the hall. It is old. The cat is out."}
    >>> chunkers = {"small": SentenceChunker(chunk_size=25), "large": SentenceChunker()}
    >>> report = intrinsic(chunkers, documents, sizes=(5, 20))
    >>> report.figure("small", "reference_completeness"), report.names
    (0.0, ['large', 'small'])
    """
    least, most = whole_number(sizes[0], "the smallest size", 0), whole_number(sizes[1], "sizes", 1)
    if least > most:
        raise InputError(f"sizes must be (smallest, largest), got {sizes}")
    whole_number(context_size, "context_size", 1)
    if not any(text.strip() for text in documents.values()):
        raise InputError("there are no documents: pass at least one text that is not blank")
    by_name, bar = named(chunkers), partial(progress, show=show_progress)
    is_cached = isinstance(embeddings, CachedEmbeddings) and cache is None
    model = embeddings if is_cached or embeddings is None else CachedEmbeddings(embeddings, cache)
    texts = {name: DocumentFigures(text, references) for name, text in documents.items()}
    figures: dict[str, dict[str, Figures]] = {}
    counts, mean_sizes = dict[str, int](), dict[str, float]()
    for name, chunker in by_name.items():
        chunks = locate_chunks(chunker, documents, bar(f"Chunking: {name}"))
        if not chunks:
            raise InputError(f"{name} gives no chunks for these documents")
        lengths = sizes_of(chunks, length_function).tolist()
        counts[name], mean_sizes[name] = len(chunks), sum(lengths) / len(lengths)
        by_document = _by_document(chunks, lengths)
        embed = None if model is None else partial(_unit_vectors, model, bar(f"Embedding: {name}"))
        figures[name] = {}
        for document, base in texts.items():
            if document in by_document:
                parts, their_sizes = by_document[document]
                row = _without_model(base, parts, their_sizes, (least, most))
                row |= _with_model(base.text, parts, embed, context_size, length_function)
                figures[name][document] = {figure: row[figure] for figure in FIGURES}
    unit = length_function.partition(":")[0] if isinstance(length_function, str) else "units"
    return IntrinsicReport(
        by_name, figures, counts, mean_sizes, unit, None if model is None else model.description
    )


def recommend(
    documents: Mapping[str, str],
    embeddings: Any = None,
    *,
    chunkers: Mapping[str, Any] | Sequence[Any] | None = None,
    chunk_size: int = 200,
    **options: Any,
) -> Recommendation:
    """Recommend a strategy for documents without questions, and say why.

    It is the strategy with the best mean of the figures of `intrinsic`, so the one that cuts your
    documents with the fewest faults. Which strategy finds the answers is another matter: on public
    data the two did not agree (see the documentation's page on evaluation). Use `compare` with
    questions for that.

    Parameters:
        documents: texts by name.
        embeddings: an embedding model, for cohesion and coherence; None: without these two.
        chunkers: the strategies to choose from; None: recursive, sentence, paragraph and
            content-aware, all with `chunk_size` tokens, because figures of chunks of different
            sizes cannot be compared.
        chunk_size: the size of these default strategies.
        options: further options of `intrinsic`.

    Returns: a `Recommendation`, which prints as a few sentences.

    Raises: whatever `intrinsic` raises.

    >>> documents = {"note": "# Tea\\n\\nBoil water. It sings.\\n\\n# Milk\\n\\nKeep it cold."}
    >>> print(recommend(documents, chunk_size=10, sizes=(2, 10)).name)
    content_aware
    """
    if chunkers is None:
        kinds: dict[str, type[SizedChunker]] = {
            "content_aware": ContentAwareChunker,
            "recursive": RecursiveChunker,
            "sentence": SentenceChunker,
            "paragraph": ParagraphChunker,
        }
        chunkers = {
            name: kind(chunk_size=chunk_size, length_function="tokens")
            for name, kind in kinds.items()
        }
    return recommendation(intrinsic(chunkers, documents, embeddings, **options))


def recommendation(report: IntrinsicReport) -> Recommendation:
    """The strategy of a report with the best mean figure."""
    best, *others = report.names
    best_for = {
        document: max(
            (name for name in report.names if document in report.figures[name]),
            key=lambda name: report.score(name, document) or 0.0,
        )
        for document in report.figures[best]
    }
    return Recommendation(
        name=best,
        chunker=report.chunkers[best],
        score=report.score(best) or 0.0,
        runner_up=others[0] if others else None,
        best_for=best_for,
        report=report,
    )


def _by_document(
    chunks: Sequence[LocatedChunk], sizes: Sequence[int]
) -> dict[str, tuple[list[LocatedChunk], list[int]]]:
    groups: dict[str, tuple[list[LocatedChunk], list[int]]] = {}
    for chunk, size in zip(chunks, sizes, strict=True):
        members, member_sizes = groups.setdefault(chunk.document, ([], []))
        members.append(chunk)
        member_sizes.append(size)
    return groups


def _without_model(
    document: DocumentFigures,
    chunks: Sequence[LocatedChunk],
    sizes: Sequence[int],
    limits: tuple[int, int],
) -> Figures:
    positions = [chunk.position for chunk in chunks if chunk.position is not None]
    return {
        "size_compliance": size_compliance(sizes, *limits),
        "block_integrity": document.block_integrity(positions),
        "reference_completeness": document.reference_completeness(positions),
        "mid_sentence": document.mid_sentence(positions),
        "orphan_headings": document.orphan_headings(positions),
        "lead_ins": document.lead_ins(positions),
        "tiny": tiny(sizes),
        "fill": fill(sizes),
    }


def _with_model(
    text: str,
    chunks: Sequence[LocatedChunk],
    embed: _Embed | None,
    context_size: int,
    unit: LengthFunction,
) -> Figures:
    if embed is None:
        return {"cohesion": None, "coherence": None}
    located = [(chunk, chunk.position) for chunk in chunks if chunk.position is not None]
    windows = context_windows(text, context_size, unit)
    sentences = [[chunk.text[a:b] for a, b in sentence_spans(chunk.text)] for chunk in chunks]
    texts = [chunk.text for chunk in chunks] + [each for part in sentences for each in part]
    texts += [text[start:end] for start, end in windows]
    vectors = embed(texts)
    ends = np.cumsum([len(chunks), *map(len, sentences)])
    parts = np.split(vectors, ends)  # the chunks, the sentences of each, and the windows
    rows = [row for row, chunk in enumerate(chunks) if chunk.position is not None]
    positions: list[Range] = [position for _, position in located]
    nearest = nearest_windows(windows, positions)
    return {
        "cohesion": cohesion(parts[0], parts[1:-1]),
        "coherence": coherence(parts[0][rows], parts[-1], nearest),
    }


def _unit_vectors(
    model: CachedEmbeddings, track: Callable[[Any], Iterable[Any]], texts: Sequence[str]
) -> NDArray[np.float32]:
    vectors = model.embed(texts, track)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), dtype=np.float32)


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
