"""Indexes of other versions of the package."""

from __future__ import annotations

from typing import Any

import pytest

from rag_splitters.parent_child import records
from tests.support.front_ends import FrontEnd, every_front_end, sentence

DOCUMENTS = [
    (f"d{n}", f"# Animals\n\n{sentence(n)}\n\n{sentence(n + 40)}", {"source": f"d{n}"})
    for n in range(3)
]


def older(front: FrontEnd, monkeypatch: pytest.MonkeyPatch, tmp_path: Any, number: int) -> Any:
    """A retriever over an index whose documents say that they have this format."""
    to_row = records.Record.to_row

    def write(record: records.Record) -> Any:
        key, row = to_row(record)
        row.metadata["format"] = number
        return key, row

    with monkeypatch.context() as patch:
        patch.setattr(records.Record, "to_row", write)
        front.build(DOCUMENTS, path=tmp_path).close()
    return front.build(path=tmp_path, retrieve="passages", headings=True)


@every_front_end
@pytest.mark.parametrize("way", ["verify", "add", "sync"])
def test_an_index_of_an_older_version_is_upgraded(
    front: FrontEnd, way: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    retriever = older(front, monkeypatch, tmp_path, records.FORMAT - 1)
    assert sentence(1) in front.find(retriever, sentence(1))[0].text, "it can be searched"
    report = front.do(retriever, "verify")
    assert (sorted(report.outdated), report.damaged) == (["d0", "d1", "d2"], [])
    assert not report.is_sound
    if way == "verify":
        front.do(retriever, "verify", repair=True)
    else:
        name = {"add": "add_documents", "sync": "sync"}[way]
        front.do(retriever, name, front.documents(DOCUMENTS))
    report = front.do(retriever, "verify")
    assert report.is_sound
    assert report.outdated == []
    assert front.find(retriever, sentence(1))[0].metadata["headings"] == ["Animals"]
    retriever.close()


@every_front_end
def test_an_index_of_a_newer_version_is_refused(
    front: FrontEnd, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    newer = records.FORMAT + 1
    retriever = older(front, monkeypatch, tmp_path, newer)
    with pytest.raises(ValueError, match=f"document 'd0' was written by a newer.*format {newer}"):
        front.do(retriever, "add_documents", front.documents(DOCUMENTS))
    retriever.close()
