"""The errors that this package raises on purpose; any other exception is a bug or a framework's."""

from __future__ import annotations

__all__ = [
    "FileError",
    "InputError",
    "InputTypeError",
    "MissingExtraError",
    "MissingFileError",
    "OperationError",
    "RagSplittersError",
]


class RagSplittersError(Exception):
    """The base class of all errors that the package raises on purpose.

    Each is also an error of Python's: a parameter that makes no sense raises an `InputError`, which
    is a ValueError. The command line, the playground and the Azure skill show these errors in one
    line, and let any other exception through with its traceback.

    >>> from rag_splitters import RecursiveChunker
    >>> try:
    ...     RecursiveChunker(chunk_size=0)
    ... except ValueError as error:
    ...     print(isinstance(error, RagSplittersError), error)
    True chunk_size must be a whole number of at least 1, got 0
    """


class InputError(RagSplittersError, ValueError):
    """A parameter, text, file or question that the user passed cannot be used."""


class InputTypeError(RagSplittersError, TypeError):
    """A value that the user passed has a type that cannot be used."""


class MissingExtraError(RagSplittersError, ImportError):
    """An optional dependency is not installed; the message says how to install it."""


class FileError(RagSplittersError, OSError):
    """A file, folder or address that the user named cannot be used."""


class MissingFileError(FileError, FileNotFoundError):
    """A file or folder that the user named does not exist."""


class OperationError(RagSplittersError, RuntimeError):
    """An operation is not possible as things stand; the message says what to do first."""
