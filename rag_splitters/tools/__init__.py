"""Tools with which an agent reads an index: search, grep, outline, read and expand.

They are written once, in `tools`, over the index of either framework. `grep` finds lines, and
`answers` fits what a tool says into its budget.
"""

from rag_splitters.tools.tools import Tool, index_tools

__all__ = ["Tool", "index_tools"]
