"""Tables: rows of cells with exact positions, read from Markdown, HTML, CSV and TSV.

This folder has a class for each kind of table, and code that finds, writes and cuts all of them.
"""

from __future__ import annotations

from rag_splitters.structure.tables.cutting import Cutter
from rag_splitters.structure.tables.finding import find_tables
from rag_splitters.structure.tables.html_tables import HtmlTable
from rag_splitters.structure.tables.model import Cell, Row, Table
from rag_splitters.structure.tables.pipe import PipeTable
from rag_splitters.structure.tables.separated import SeparatedTable
from rag_splitters.structure.tables.writers import Render, Writer, writer
from rag_splitters.text.excerpt import Excerpt, without_data

__all__ = [
    "Cell",
    "Cutter",
    "Excerpt",
    "HtmlTable",
    "PipeTable",
    "Render",
    "Row",
    "SeparatedTable",
    "Table",
    "Writer",
    "find_tables",
    "without_data",
    "writer",
]
