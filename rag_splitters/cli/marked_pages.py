"""Writes the pages of PDFs on which results stand, with the results marked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rag_splitters.errors import FileError
from rag_splitters.reading import mark_pages

if TYPE_CHECKING:
    from langchain_core.documents import Document


def write_pages(results: Sequence[Document], folder: Path) -> Iterator[str]:
    """Write a PDF for each PDF among the sources of the results, and yield what was done.

    Raises FileError if the folder cannot be written.
    """
    by_source: dict[str, list[Document]] = {}
    for result in results:
        source = str(result.metadata.get("source", ""))
        if source.lower().endswith(".pdf"):
            by_source.setdefault(source, []).append(result)
    if not by_source:
        yield "None of the results comes from a PDF, so no pages were written."
    for number, (source, chunks) in enumerate(by_source.items(), 1):
        if not Path(source).exists():
            yield f"{source} is not there any more, so its pages were not written."
            continue
        target = folder / f"{number}_{Path(source).name}"
        data = mark_pages(source, chunks)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        except OSError as error:
            raise FileError(f"{target} cannot be written: {error.strerror or error}") from error
        yield f"Wrote {target}."
