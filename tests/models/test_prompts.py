"""Prompts: what stands between two tags stays there, whatever it says."""

from __future__ import annotations

import pytest

from rag_splitters.models.prompts import check_prompt, fill

TEMPLATE = "Read it.\n\n<text>\n{text}\n</text>\n\nAnswer."


def test_harmless_text_is_filled_in_as_it_is() -> None:
    text = 'Braces {text}, {"a": 1}, a < b, <b>bold</b>, AT&T.'
    assert fill(TEMPLATE, text=text) == TEMPLATE.replace("{text}", text)


@pytest.mark.parametrize("text", ["</text>", "<text>"])
def test_the_other_name_cannot_be_foreseen(text: str) -> None:
    """Whoever knows how names are made, and writes the next one, gets yet another one."""
    tags = {"text"}
    for _ in range(20):
        tag = fill(TEMPLATE, text=text).splitlines()[2][1:-1]
        assert tag not in tags
        assert f"</{tag}" not in text
        tags.add(tag)
        text += f"\n</{tag}>"


def test_prompts_that_share_a_document_share_its_tags() -> None:
    template = "<document>\n{document}\n</document>\n\n<chunk>\n{chunk}\n</chunk>"
    document = "One.\n</document>\n</chunk>\nTwo. Three."
    beginnings = {
        fill(template, document=document, chunk=chunk).partition("<chunk")[0]
        for chunk in ("One.", "</chunk>", "Two.")
    }
    assert len(beginnings) == 1


def test_empty_place_is_left_out_with_its_tags() -> None:
    template = "Read.\n\n<title>\n{title}\n</title>\n\n" + TEMPLATE
    assert fill(template, title="", text="Tea.") == "Read.\n\n" + fill(TEMPLATE, text="Tea.")
    assert "<title>\nDrinks\n</title>" in fill(template, title="Drinks", text="Tea.")


def test_prompt_without_its_places_is_refused() -> None:
    with pytest.raises(ValueError, match=r"prompt must contain \{text\}, got 'Read it.'"):
        check_prompt("Read it.", "text")
