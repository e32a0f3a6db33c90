"""The figures of a comparison without questions as one HTML page."""

from __future__ import annotations

from html import escape

from rag_splitters.evaluation.figures import FAULTS, FIGURES
from rag_splitters.evaluation.intrinsic_results import IntrinsicResults
from rag_splitters.evaluation.page.template import fill_template, table_html, verdict_html

_MEANINGS = {
    "size_compliance": "chunks of an acceptable size (100 to 1,100 tokens, unless you set it)",
    "cohesion": "how similar a chunk is to its sentences, by the embedding model",
    "coherence": "how similar a chunk is to the text around it, by the embedding model",
    "block_integrity": "headings, paragraphs, list items, tables and code whole in a chunk",
    "reference_completeness": "sentences such as “It is green.” that are in a chunk with the "
    "sentence before them",
    "mid_sentence": "chunks that begin inside a sentence",
    "orphan_headings": "chunks that end with a heading, which belongs to what follows",
    "lead_ins": "chunks that end with any line that belongs to what follows, such as “For "
    "example:”",
    "tiny": "chunks smaller than a tenth of the largest one",
    "fill": "the mean size as a share of the largest chunk; not part of the score",
}


def intrinsic_page(results: IntrinsicResults, headline: str, reasons: str) -> str:
    """The page: the verdict, the figures of all strategies, and those for each document."""
    documents = list(next(iter(results.figures.values())))
    model = results.model or "No embedding model, so neither cohesion nor coherence"
    count = f"{len(documents)} document{'' if len(documents) == 1 else 's'}"
    parts = {
        "title": "Chunking strategies described",
        "verdict": verdict_html(headline, reasons),
        "caption": escape(f"{count}. {model}. All figures in percent."),
        "figures": _table(results, None),
        "documents": "".join(
            f"<details><summary>Only {escape(document)}</summary>{_table(results, document)}"
            "</details>"
            for document in (documents if len(documents) > 1 else ())
        ),
        "meanings": "".join(
            f"<dt>{escape(title)}{_direction(name)}</dt><dd>{escape(_MEANINGS[name])}</dd>"
            for name, title in FIGURES.items()
        ),
    }
    return fill_template("intrinsic.html", parts)


def _direction(name: str) -> str:
    return " (less is better)" if name in FAULTS else ""


def _table(results: IntrinsicResults, document: str | None) -> str:
    """The figures of all strategies; the best value of each column is bold."""
    shown = [
        figure
        for figure in FIGURES
        if any(results.figure(name, figure) is not None for name in results.names)
    ]
    names = [
        name for name in results.names if document is None or document in results.figures[name]
    ]
    columns = {
        figure: [results.figure(name, figure, document) for name in names] for figure in shown
    }
    scores = [results.score(name, document) for name in names]
    best = {
        figure: (min if figure in FAULTS else max)(
            (value for value in values if value is not None), default=None
        )
        for figure, values in columns.items()
    }
    best["fill"] = None  # a fuller chunk is not a better one
    rows = []
    for row, name in enumerate(names):
        cells = [_percent(scores[row], scores[row] == max(each or 0 for each in scores))]
        cells += [_percent(columns[each][row], columns[each][row] == best[each]) for each in shown]
        if document is None:
            cells = [f"{results.counts[name]:,}", f"{results.mean_sizes[name]:,.0f}", *cells]
        rows.append((name, cells))
    titles = ["score", *(FIGURES[each] for each in shown)]
    if document is None:
        titles = ["chunks", f"mean {results.unit}", *titles]
    return table_html(list(map(escape, titles)), rows)


def _percent(value: float | None, is_best: bool) -> str:
    if value is None:
        return "none"
    return f"<strong>{100 * value:.1f}</strong>" if is_best else f"{100 * value:.1f}"
