"""Reads kinds of text that have to be separated from their markup, each with its own reader."""

from __future__ import annotations

from rag_splitters.structure.mails import read_mails
from rag_splitters.structure.notebooks import read_notebook
from rag_splitters.structure.subtitles import read_subtitles
from rag_splitters.text.origin import READ_ALL, Reading, ReadingOptions


def read_kind(
    text: str,
    kind: str,
    options: ReadingOptions = READ_ALL,
    *,
    is_bytes: bool = False,
    name: str = "a mail",
) -> list[Reading]:
    """Read a notebook, subtitles or mails without the markup; mails are several texts.

    Parameters:
        text: the raw text.
        kind: one of `kinds.READ_KINDS`.
        options: what to keep.
        is_bytes: see `read_mails`.
        name: the name of the file, for warnings.

    Returns: the texts; none if the raw text is blank.

    Raises UnreadableError if the text is of another kind.

    >>> read_kind("00:01.000 --> 00:02.000\\nHello.", "subtitles")[0].text
    'Hello.'
    """
    if not text.strip("\ufeff \t\r\n"):
        return []
    if kind == "mail":
        return read_mails(text, options, is_bytes=is_bytes, name=name)
    return [read_notebook(text, options) if kind == "notebook" else read_subtitles(text)]
