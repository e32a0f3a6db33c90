"""The results of a comparison without questions: figures by strategy and document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rag_splitters.errors import InputError
from rag_splitters.evaluation.figures import FIGURES, mean_of, score

Figures = dict[str, float | None]


@dataclass(frozen=True, eq=False, repr=False)
class IntrinsicResults:
    """The figures of each strategy in each document.

    Parameters:
        chunkers: the strategies by name.
        figures: by strategy, then by document: the figures named in
            `rag_splitters.evaluation.figures.FIGURES`, None where a figure is not defined.
        counts: the number of chunks that each strategy makes of all documents.
        mean_sizes: the mean size of the chunks of each strategy.
        unit: the unit of sizes.
        model: the embedding model, or None if there was none.
    """

    chunkers: Mapping[str, Any]
    figures: Mapping[str, Mapping[str, Figures]]
    counts: Mapping[str, int]
    mean_sizes: Mapping[str, float]
    unit: str
    model: str | None

    @property
    def names(self) -> list[str]:
        """The names of the strategies, the best score first."""
        return sorted(self.chunkers, key=lambda name: -(self.score(name) or 0.0))

    def figure(self, name: str, figure: str, document: str | None = None) -> float | None:
        """A figure of a strategy in one document, or its mean over all documents that have it.

        Raises ValueError if there is no such strategy, figure or document.
        """
        for value, values in ((name, self.figures), (figure, FIGURES)):
            if value not in values:
                raise InputError(f"there is no {value!r}: there are {', '.join(values)}")
        documents = self.figures[name]
        if document is None:
            return mean_of(each[figure] for each in documents.values())
        if document not in documents:
            raise InputError(f"there is no document {document!r}")
        return documents[document][figure]

    def score(self, name: str, document: str | None = None) -> float | None:
        """The mean of the figures; see `rag_splitters.evaluation.figures.score`."""
        return score({figure: self.figure(name, figure, document) for figure in FIGURES})
