"""The checkpoint between splitting and embedding: a folder of Parquet files with all documents.

The files have a row for each document of the dataset, with its parents and children if it has to be
written. Another file holds the state of the run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_splitters.distributed.columns import arrow
from rag_splitters.errors import InputError
from rag_splitters.parent_child.drafts import Draft
from rag_splitters.parent_child.records import Entry
from rag_splitters.text.surrogates import without_surrogates

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.fs import FileSystem

_STATE = "run.json"
_CHUNKS = "chunks"
_READ_BATCH = 256  # rows


class Checkpoint:
    """The folder of one run; workers and driver must all see it under the same path.

    Parameters:
        path: a local path, or a URI that Arrow reads, such as `s3://bucket/run`.
    """

    def __init__(self, path: str | Path) -> None:
        text = str(path)
        self.path = text.rstrip("/") if "://" in text else str(Path(text).absolute())

    @property
    def chunks(self) -> str:
        """The path of the Parquet files."""
        return f"{self.path}/{_CHUNKS}"

    def read_state(self) -> dict[str, Any] | None:
        """Return the last state that `write_state` wrote; None if there is no checkpoint."""
        system, root = self._open()
        try:
            with system.open_input_stream(f"{root}/{_STATE}") as file:
                state: dict[str, Any] = json.loads(file.read())
        except FileNotFoundError:
            return None
        return state

    def write_state(self, state: Mapping[str, Any]) -> None:
        """Write the state of the run."""
        system, root = self._open()
        with system.open_output_stream(f"{root}/{_STATE}") as file:
            file.write(json.dumps(state).encode())

    def clear(self) -> None:
        """Remove the chunks of an earlier run.

        Raises ValueError for a folder that holds anything else.
        """
        from pyarrow.fs import FileSelector, FileType

        system, root = self._open()
        system.create_dir(root, recursive=True)
        others = [each.path for each in system.get_file_info(FileSelector(root))]
        if others and self.read_state() is None:
            raise InputError(
                f"checkpoint={self.path!r} is not the folder of a checkpoint, because it holds "
                f"{Path(others[0]).name!r}: pass a new folder"
            )
        if system.get_file_info(f"{root}/{_CHUNKS}").type is FileType.Directory:
            system.delete_dir(f"{root}/{_CHUNKS}")

    def list_files(self) -> dict[str, int]:
        """Return the Parquet files, with the number of documents in each."""
        from pyarrow import dataset

        system, root = self._open()
        try:
            files = dataset.dataset(f"{root}/{_CHUNKS}", filesystem=system, format="parquet")
        except FileNotFoundError:  # Ray writes no file if there are no rows
            return {}
        return {each.path: each.count_rows() for each in files.get_fragments()}

    def read_rows(self, columns: Sequence[str], files: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Return the rows of some files."""
        from pyarrow.parquet import ParquetFile

        system, _ = self._open()
        for path in files:
            with system.open_input_file(path) as source, ParquetFile(source) as file:
                for batch in file.iter_batches(_READ_BATCH, columns=list(columns)):
                    yield from batch.to_pylist()

    def _open(self) -> tuple[FileSystem, str]:
        from pyarrow.fs import FileSystem, LocalFileSystem

        if "://" not in self.path:
            return LocalFileSystem(), self.path
        # Spark uses the scheme s3a.
        system, root = FileSystem.from_uri(self.path.replace("s3a://", "s3://"))
        return system, root


def document_schema() -> pa.Schema:
    """Return the columns of the Parquet files.

    - `document_id`; `key`, the end of the key of its record in the docstore;
    - `status`: "added", "changed", "unchanged" or "failed", at the time when the document was cut;
    - `digest`, a hash of this version of the document; null if it failed;
    - `parents` and `children`: the number of its parents and children;
    - `draft`: the document with its parents and children as JSON, if it has to be written;
    - `error`: why it failed.
    """
    pa = arrow()
    text, number = pa.string(), pa.int64()
    return pa.schema(
        [
            ("document_id", text),
            ("key", text),
            ("status", text),
            ("digest", text),
            ("parents", number),
            ("children", number),
            ("draft", text),
            ("error", text),
        ]
    )


def draft_to_json(draft: Draft) -> str:
    """Write a draft as JSON; lone surrogates become escapes, because Arrow cannot hold them.

    Raises TypeError if a splitter adds metadata that JSON cannot represent.

    >>> draft = Draft("a", Entry("Tea.", {}, "a"), [Entry("Tea.", {}, "p")], [])
    >>> draft_from_json("a", draft_to_json(draft)) == draft
    True
    """
    parts = [[draft.source], draft.parents, draft.children]
    rows = [[(e.text, e.metadata, e.id, e.context) for e in entries] for entries in parts]
    text = json.dumps(rows, ensure_ascii=False)
    return text if without_surrogates(text) == text else json.dumps(rows)


def draft_from_json(identity: str, text: str) -> Draft:
    """Read a draft that `draft_to_json` wrote."""
    (source,), parents, children = ([Entry(*row) for row in rows] for rows in json.loads(text))
    return Draft(identity, source, parents, children)
