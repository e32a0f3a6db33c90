"""Reads files of every kind as texts, with positions and pages.

The front ends' loaders, the command line and the playground all read files here. `samples` holds
three short texts for trying things out.
"""

from rag_splitters.reading.places import Box, locate, mark_pages
from rag_splitters.text.origin import line_range

__all__ = ["Box", "line_range", "locate", "mark_pages"]
