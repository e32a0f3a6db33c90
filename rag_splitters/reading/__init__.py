"""Reads files of every kind as texts, with positions and pages.

The front ends' loaders, the command line and the playground all read files here. `samples` holds
three short texts for trying things out.
"""

from rag_splitters.reading.places import Box, locate, mark_pages

__all__ = ["Box", "locate", "mark_pages"]
