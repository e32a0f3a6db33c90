"""Files that are ZIP archives of XML: how they are opened, and their parts."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from xml.etree import ElementTree

from rag_splitters.errors import InputError

_MOST_BYTES = 500_000_000  # of an unpacked file; larger files are attacks
_OLE = bytes.fromhex("D0CF11E0A1B11AE1")  # the beginning of encrypted files and of old formats


@contextmanager
def open_archive(data: bytes, name: str, kind: str) -> Iterator[zipfile.ZipFile]:
    """Open a file that is a ZIP archive, for reading inside the `with` statement.

    Raises InputError if it is protected, damaged, or too large when unpacked, and for every other
    error inside the `with` statement.
    """
    if data.startswith(_OLE):
        raise InputError(
            f"{name} cannot be read as {kind}: it is protected by a password or in the format "
            f"before 2007. Save a copy as {kind} without a password"
        )
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            size = sum(each.file_size for each in archive.infolist())
            if size > _MOST_BYTES:
                raise InputError(
                    f"{name} is too large: it unpacks to {size:,} bytes, and the limit is "
                    f"{_MOST_BYTES:,}"
                )
            yield archive
    except InputError:
        raise
    except Exception as error:  # damaged archives raise many kinds of errors, also in libraries
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(
            f"{name} cannot be read as {kind}: {reason}. The file may be damaged: download or "
            "export it again"
        ) from error


class _Builder(ElementTree.TreeBuilder):
    """Builds elements, and refuses a document type, which could declare harmful entities."""

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise ValueError(f"it has a document type ({name})")


def parse_part(archive: zipfile.ZipFile, path: str) -> ElementTree.Element:
    """Parse a part of an archive."""
    parser = ElementTree.XMLParser(target=_Builder())  # noqa: S314 - see _Builder
    parser.feed(archive.read(path))
    root: ElementTree.Element = parser.close()
    return root


def named_elements(root: ElementTree.Element, name: str) -> Iterator[ElementTree.Element]:
    """Yield the elements with a name in any namespace."""
    return (each for each in root.iter() if local_name(each) == name)


def local_name(element: ElementTree.Element) -> str:
    """Return the name of an element without its namespace."""
    return element.tag.rpartition("}")[2]


def attribute(element: ElementTree.Element, name: str) -> str:
    """Return the value of an attribute in any namespace; "" if there is none."""
    values = (value for key, value in element.items() if key.rpartition("}")[2] == name)
    return next(values, "")
