"""Tables: rows of cells with exact positions.

This folder has the tables of Markdown, CSV and TSV, and code that writes and cuts any table. Those
of HTML are read in `structure.html`; `structure.table_finding` finds all of them in a text.
"""

from __future__ import annotations

from rag_splitters.structure.tables.cutting import Cutter
from rag_splitters.structure.tables.model import Cell, Row, Table
from rag_splitters.structure.tables.pipe import PipeTable
from rag_splitters.structure.tables.separated import SeparatedTable
from rag_splitters.structure.tables.writers import Render, Writer, writer
from rag_splitters.text.excerpt import Excerpt, without_data

__all__ = [
    "Cell",
    "Cutter",
    "Excerpt",
    "PipeTable",
    "Render",
    "Row",
    "SeparatedTable",
    "Table",
    "Writer",
    "without_data",
    "writer",
]
