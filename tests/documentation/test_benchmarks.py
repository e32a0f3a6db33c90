"""What docs/benchmarks.md says of our structure strategies."""

from __future__ import annotations

import pytest

from benchmarks.structures import HTML_CASES, MARKDOWN_CASES, Case, of_ours


@pytest.mark.parametrize("case", MARKDOWN_CASES + HTML_CASES, ids=lambda case: case.title)
def test_difficult_case_is_right_in_ours(case: Case) -> None:
    assert case.judge(case.text, of_ours(case.chunker)(case.text)) == "right"
