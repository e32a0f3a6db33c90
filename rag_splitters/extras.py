"""How to install an optional dependency, for error messages."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from rag_splitters.errors import MissingExtraError

__all__ = ["install_command", "needs"]


def install_command(extra: str) -> str:
    """Return the command that installs what an extra needs.

    It leaves this package as it is, no matter where that was installed from.

    >>> from rag_splitters.extras import install_command
    >>> install_command("ner")  # in double quotes on Windows
    "pip install 'rag-splitters[ner]'"
    """
    quote = '"' if os.name == "nt" else "'"
    return f"pip install {quote}rag-splitters[{extra}]{quote}"


@contextmanager
def needs(sentence: str, extra: str) -> Iterator[None]:
    """Turn an ImportError into one that says what needs the extra, and how to install it.

    >>> from rag_splitters.extras import needs
    >>> with needs("making tea needs a kettle", "tea"):  # doctest: +ELLIPSIS
    ...     import kettle
    Traceback (most recent call last):
    rag_splitters.errors.MissingExtraError: making tea needs a kettle: pip install ...
    """
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(f"{sentence}: {install_command(extra)}") from error
