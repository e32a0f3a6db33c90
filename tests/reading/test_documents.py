"""The documents that cuts are measured on: gold.json stands where it says."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "data" / "documents"
GOLD = json.loads((FOLDER / "gold.json").read_text(encoding="utf-8"))
RULES = ("starts", "headings", "lead_ins")


def places(rows: list[str]) -> list[tuple[int, int, str]]:
    """Line, column and first characters of each place."""
    found = []
    for row in rows:
        words = row.split(" ")
        for place, word in zip(words[::2], words[1::2], strict=True):
            line, column = place.split(":")
            found.append((int(line), int(column), word))
    return found


def test_each_document_has_its_places() -> None:
    about = {"README.md", "LICENSES.txt", "gold.json"}
    assert {path.name for path in FOLDER.iterdir()} - about == set(GOLD)


@pytest.mark.parametrize("name", GOLD)
def test_places_stand_where_gold_says(name: str) -> None:
    lines = (FOLDER / name).read_text(encoding="utf-8").split("\n")
    for rule in RULES:
        found = places(GOLD[name][rule])
        assert found == sorted(set(found)), rule
        for line, column, word in found:
            text = lines[line - 1]
            assert word, (rule, line)
            assert text[column - 1 :].startswith(word), (rule, line, column)
            before = text[: column - 1]
            if rule != "starts" and not name.endswith(".html"):
                assert not before.strip(), (rule, line, column)  # they are lines


@pytest.mark.parametrize("name", [name for name in GOLD if GOLD[name]["kind"] == "prose"])
def test_prose_is_large_enough_and_annotated(name: str) -> None:
    text = (FOLDER / name).read_text(encoding="utf-8")
    assert len(text.encode()) > 2500
    found = places(GOLD[name]["starts"])
    lines = [0]
    for line in text.split("\n"):
        lines.append(lines[-1] + len(line) + 1)
    offsets = sorted(lines[line - 1] + column - 1 for line, column, _ in found)
    gaps = [after - before for before, after in pairwise(offsets)]
    assert max(gaps) < 1500


def test_the_corpus_is_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir() if path.name in GOLD) < 350_000
