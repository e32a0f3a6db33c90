"""The errors of parent-child retrieval that a caller may want to catch, and of a full disk."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rag_splitters.errors import (
    FileError,
    InputError,
    InputTypeError,
    OperationError,
    RagSplittersError,
)

__all__ = [
    "DamagedRowsError",
    "DocstoreInUseError",
    "FolderInUseError",
    "IndexMismatchError",
    "LockLostError",
    "MissingChildrenError",
    "MissingParentsError",
    "RefusedDocumentsError",
    "StoreError",
    "UnreachableStoreError",
]


CLOSED = "this retriever is closed: open the index again with parent_document_retriever"
_LITTLE = 8 << 20  # bytes; a write-ahead log alone may need a few million
_FULL_DISK = ("disk is full", "no space left")


class StoreError(RagSplittersError, OSError):
    """A store failed; the message names the store and contains no password."""


class UnreachableStoreError(StoreError, ConnectionError):
    """A store's server does not answer; the same may succeed when it does."""


class DamagedRowsError(StoreError):
    """Values in a store are not what was written.

    Attributes:
        keys: the keys of the values.
    """

    def __init__(self, message: str, keys: Sequence[str]) -> None:
        super().__init__(message)
        self.keys = list(keys)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (str(self), self.keys)


def damaged_values(store: str, keys: Sequence[str]) -> DamagedRowsError:
    """Return the error that names some of the keys whose values are damaged."""
    names = ", ".join(map(repr, keys[:3])) + (f" and {len(keys) - 3} more" if keys[3:] else "")
    return DamagedRowsError(
        f"{store}: the values of {names} are damaged: restore them from a backup; or, in an index, "
        "call verify(repair=True), and add the documents again that it reports",
        keys,
    )


def wrong_id_key(metadata: Sequence[Mapping[str, Any]], id_key: str) -> InputError:
    """Return the error for children, with these metadata, of which none names its parent."""
    keys = ", ".join(sorted(metadata[0]))
    return InputError(
        f"none of the {len(metadata)} children found names its parent under "
        f"id_key={id_key!r}; the first has {keys}: set id_key to the key that holds the "
        "parent's id (langchain_classic's retriever uses 'doc_id')"
    )


class DocstoreInUseError(OperationError):
    """Another writer did not finish in time, or cannot be waited for."""


class FolderInUseError(OperationError):
    """Another process has the index's folder open."""


class IndexMismatchError(InputError):
    """The stores belong to another index, or were written with another model or version."""


class LockLostError(OperationError):
    """The turn to write was lost: the docstore's connection broke, or the claim was released."""


class MissingChildrenError(OperationError):
    """The vector store lacks children of documents that are in the docstore."""


class MissingParentsError(OperationError):
    """The docstore lacks parents of children that are in the vector store."""


class RefusedDocumentsError(InputTypeError):
    """Some documents of a call cannot be stored. Nothing of them was written; the others were.

    Attributes:
        refusals: what is wrong with each document that was refused.
        result: what the call would have returned for the other documents.
    """

    def __init__(self, refusals: Sequence[str], result: Any) -> None:
        self.refusals, self.result = list(refusals), result
        shown = [*self.refusals[:5], *(["..."] if len(refusals) > 5 else [])]
        super().__init__(
            f"{len(refusals)} of the documents cannot be stored and were left out; all the others "
            f"were added. {'; '.join(shown)}"
        )

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.refusals, self.result)


@contextmanager
def explaining_full_disk(folder: Path | None) -> Iterator[None]:
    """Raise an OSError that says what to do where an error may come from a full disk.

    Parameters:
        folder: the index's folder; None for memory or servers, about whose disks nothing is known.
    """
    try:
        yield
    except (LockLostError, DocstoreInUseError, TypeError, ValueError):
        raise
    except Exception as error:
        if folder is None or not folder.exists():
            raise
        free = shutil.disk_usage(folder).free
        if free > _LITTLE and not any(words in str(error).lower() for words in _FULL_DISK):
            raise
        message = (
            f"the disk is full, or nearly so ({free:,} bytes are free): {type(error).__name__}: "
            f"{error}. Free some space, open the index again in a new process, and add the "
            "documents again or call verify(repair=True). What was finished before is safe"
        )
        raise FileError(errno.ENOSPC, message, str(folder)) from error
