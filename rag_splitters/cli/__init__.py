"""The command line: `rag-splitters`, or `python -m rag_splitters`.

One file for each command, named after it; `options` and `views` hold what several commands share.
No command imports a framework before it needs it.
"""

from rag_splitters.cli.main import app, main

__all__ = ["app", "main"]
