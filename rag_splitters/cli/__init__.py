"""The command line, `rag-splitters`: one file for each command.

Options that several commands share stand in `parameters`, what they print in `views`.
"""

from rag_splitters.cli.main import app, main

__all__ = ["app", "main"]
