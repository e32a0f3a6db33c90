"""Recognising a full disk, which Chroma and SQLite each report in their own words."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rag_splitters.errors import FileError

_LITTLE = 8 << 20  # bytes; a write-ahead log alone may need a few million
_WORDS = ("disk is full", "no space left")


@contextmanager
def explaining_full_disk(folder: Path | None) -> Iterator[None]:
    """Raise an OSError that says what to do where an error may come from a full disk.

    Parameters:
        folder: the index's folder; None for memory or servers, about whose disks nothing is known.
    """
    try:
        yield
    except (TypeError, ValueError):
        raise
    except Exception as error:
        if folder is None:
            raise
        free = shutil.disk_usage(folder).free
        if free > _LITTLE and not any(words in str(error).lower() for words in _WORDS):
            raise
        message = (
            f"the disk is full, or nearly so ({free:,} bytes are free): {type(error).__name__}: "
            f"{error}. Free some space, open the index again in a new process, and add the "
            "documents again or call verify(repair=True). What was finished before is safe"
        )
        raise FileError(errno.ENOSPC, message, str(folder)) from error
