"""The documents that cuts are measured on: gold.json stands where it says."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

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


def test_places_stand_where_gold_says() -> None:
    for name, rule in product(GOLD, RULES):
        lines = (FOLDER / name).read_text(encoding="utf-8").split("\n")
        found = places(GOLD[name][rule])
        assert found == sorted(set(found)), rule
        for line, column, word in found:
            text = lines[line - 1]
            assert word, (rule, line)
            assert text[column - 1 :].startswith(word), (rule, line, column)
            before = text[: column - 1]
            if rule != "starts" and not name.endswith(".html"):
                assert not before.strip(), (rule, line, column)  # they are lines
