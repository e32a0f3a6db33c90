"""Three short texts for trying things out, with questions that they answer.

The demo and the playground use them. The museum, the tram line and the bakery are invented.
"""

from __future__ import annotations

from importlib.resources import files

__all__ = ["SAMPLE_ANSWERS", "SAMPLE_QUESTIONS", "sample_texts"]

SAMPLE_QUESTIONS = (
    "When is the foghorn sounded?",
    "Why are the trams painted green?",
    "How long do the rye loaves bake?",
)
"""One question about each text."""

SAMPLE_ANSWERS = (
    "The foghorn is sounded on the first Saturday of each month at noon",
    "the workshop had bought forty barrels of that colour from a bankrupt boatyard",
    "The loaves bake for fifty-five minutes",
)
"""The words of the texts that answer the questions, in the same order."""


def sample_texts() -> dict[str, str]:
    """Return the texts by their file names."""
    folder = files(__name__)
    names = ("lighthouse.md", "tram.md", "bakery.md")
    return {name: (folder / name).read_text(encoding="utf-8") for name in names}
