"""`rag-splitters delete`: files out of an index on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rag_splitters.cli.index import document_name
from rag_splitters.cli.options import BaseUrlOption, EmbeddingsOption, JsonOption
from rag_splitters.cli.stored_index import existing_index
from rag_splitters.cli.views import write_line
from rag_splitters.errors import InputError
from rag_splitters.text.coloured import number_of


def delete(
    folder: Annotated[Path, typer.Argument(metavar="INDEX", help="Folder of the index.")],
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Files as they were indexed; they need not exist."),
    ],
    embeddings: EmbeddingsOption = None,
    base_url: BaseUrlOption = None,
    json: JsonOption = False,
) -> None:
    """Remove files from an index on disk, with everything that was made of them.

    The files themselves stay. Pass the same --embeddings as for `index`.
    """
    names = dict.fromkeys(map(document_name, files))
    with existing_index(folder, embeddings, base_url) as retriever:
        counts = {name: retriever.delete(source=name)["num_deleted"] for name in names}
    removed = sum(counts.values())
    unknown = [name for name, count in counts.items() if not count]
    if json:
        write_line({"index": str(folder), "removed": removed, "unknown": unknown})
    else:
        typer.echo(f"{folder}: {number_of(removed, 'document')} removed")
    if unknown:
        raise InputError(f"not in the index: {', '.join(unknown)}")
