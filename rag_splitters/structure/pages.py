"""HTML and XML as plain text, with positions in the source."""

from __future__ import annotations

from rag_splitters.structure.html.text import Stripped, plain_page
from rag_splitters.structure.kinds import TextFormat
from rag_splitters.structure.xml import xml_page


def read_as_text(
    text: str, text_format: TextFormat, main_content_only: bool = True
) -> Stripped | None:
    """Convert HTML or XML to text with blocks; None for any other format.

    Parameters:
        text: the source.
        text_format: its format.
        main_content_only: whether to leave out what is around the main content of HTML.

    >>> page = read_as_text("<p>Tea &amp; milk</p>", "html")
    >>> page.text if page else ""
    'Tea & milk'
    """
    if text_format == "html":
        return plain_page(text, main_content_only)
    return xml_page(text) if text_format == "xml" else None
