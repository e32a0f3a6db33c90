"""The text of a PDF, with form feeds between its pages."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from threading import Lock
from typing import Any

from rag_splitters.reading.typesetting import join_hyphenated, without_running_heads

logger = logging.getLogger(__name__)

_PDFIUM = Lock()  # the library must not be called from two threads at once


def pdf_text(data: bytes, name: str) -> str:
    """The text of a PDF, with a line break and a form feed between two pages.

    Running heads, running feet and page numbers are dropped where pages repeat them, and words that
    the end of a line divides are in one piece. Pages that hold images and no text are named in a
    warning in the log.

    Parameters:
        data: the PDF.
        name: its name, for error messages.

    Raises: ImportError if pypdfium2 is not installed; ValueError if the PDF is damaged, protected
    by a password, or holds no text.
    """
    try:
        pdfium: Any = import_module("pypdfium2")
    except ImportError as error:
        raise ImportError(
            f"reading {name} needs pypdfium2: pip install 'rag-splitters[pdf]'"
        ) from error
    try:
        with _PDFIUM, closing(pdfium.PdfDocument(data)) as document:
            pages = list(_page_texts(document))
            blank = [number for number, page in enumerate(pages) if not page.strip()]
            image = pdfium.raw.FPDF_PAGEOBJ_IMAGE
            scans = [n + 1 for n in blank if any(document[n].get_objects([image], max_depth=3))]
    except pdfium.PdfiumError as error:
        if error.err_code == pdfium.raw.FPDF_ERR_PASSWORD:
            raise ValueError(
                f"{name} cannot be read: it is protected by a password. Save a copy without one"
            ) from error
        raise ValueError(
            f"{name} cannot be read as PDF: {error} The file may be damaged: download or export it "
            "again"
        ) from error
    advice = "run text recognition over it first, for example with ocrmypdf"
    if not any(map(str.strip, pages)):
        raise ValueError(f"{name} holds no text: its pages are probably scanned; {advice}")
    if scans:
        logger.warning("%s: pages %s hold images and no text; %s", name, scans, advice)
    pages = without_running_heads(pages)
    return join_hyphenated("\n\f".join(page.rstrip() for page in pages))


def _page_texts(document: Any) -> Iterator[str]:
    for page in document:
        text = page.get_textpage().get_text_bounded()
        lines = text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", " ")
        yield lines.replace("\x02", "-\n")  # PDFium's mark for a hyphen at the end of a line
