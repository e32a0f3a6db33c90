"""PDFs for tests, written by reportlab."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest


def make_pdf(path: Path, pages: Sequence[str], **options: Any) -> bytes:
    """Write a PDF with the lines of each page, from the top, and return it."""
    canvas = pytest.importorskip("reportlab.pdfgen.canvas").Canvas(str(path), **options)
    for page in pages:
        for number, line in enumerate(page.split("\n")):
            canvas.drawString(72, 780 - 14 * number, line)
        canvas.showPage()
    canvas.save()
    return path.read_bytes()
