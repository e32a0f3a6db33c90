"""Modalities: parted exactly, each handled as asked, nothing else lost."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from rag_splitters.chunkers.hierarchical import HierarchicalChunker
from rag_splitters.chunkers.modality import ModalityChunker
from rag_splitters.chunkers.recursive import RecursiveChunker
from rag_splitters.structure.images import find_images
from tests.support.checks import check_chunker

PIXEL = base64.b64encode(bytes(range(90))).decode()
DATA = f"data:image/png;base64,{PIXEL}"
DOCUMENT = f"""# Report

Press the ![gear](gear.png "Settings") to begin, then `![no](x)`.

![A chart](chart.png)

[![build](badge.svg)](https://ci.example)

![inline data]({DATA})

```python
print("| a |")

print(2)
```

$$
E = mc^2
$$

| a | b |
|---|---|
| 1 | 2 |

<figure><img src="f.png" alt="A fig"><figcaption>Figure &amp; caption</figcaption></figure>

The end, $x$.
"""


def parts(text: str, chunker: ModalityChunker | None = None) -> list[tuple[str, str]]:
    chunks = (chunker or ModalityChunker()).chunk(text)
    return [(chunk.metadata["modality"], chunk.text) for chunk in chunks]


def test_every_kind_is_a_chunk_of_its_own() -> None:
    assert parts(DOCUMENT) == [
        ("text", "# Report\n\nPress the gear to begin, then `![no](x)`."),
        ("image", "gear\nSettings\ngear.png"),
        ("image", "A chart\nchart.png"),
        ("image", "build\nbadge.svg"),
        ("image", "inline data"),
        ("code", '```python\nprint("| a |")\n\nprint(2)\n```'),
        ("formula", "$$\nE = mc^2\n$$"),
        ("table", "| a | b |\n|---|---|\n| 1 | 2 |"),
        ("image", "A fig\nFigure & caption\nf.png"),
        ("text", "The end, $x$."),
    ]


def test_positions_are_those_of_the_markup() -> None:
    chunks = ModalityChunker().chunk(DOCUMENT)
    found = [DOCUMENT[chunk.start : chunk.end] for chunk in chunks]
    assert found[0] == DOCUMENT[: DOCUMENT.index("\n\n![A chart")]
    assert found[1:4] == [
        '![gear](gear.png "Settings")',
        "![A chart](chart.png)",
        "[![build](badge.svg)](https://ci.example)",
    ]
    assert found[8].startswith("<figure>")
    assert found[8].endswith("</figure>")


def test_images_beside_each_other_are_each_read() -> None:
    images = [("image", "a\nu.png"), ("image", "b\nv.png")]
    assert parts("See ![a](u.png)![b](v.png) there.") == [("text", "See ab there."), *images]


def test_images_carry_what_an_image_node_needs() -> None:
    gear, chart, _, inline, figure = (
        chunk.metadata
        for chunk in ModalityChunker().chunk(DOCUMENT)
        if chunk.metadata["modality"] == "image"
    )
    assert (gear["image_url"], gear["alt"], gear["caption"]) == ("gear.png", "gear", "Settings")
    assert chart == {
        "modality": "image",
        "image_url": "chart.png",
        "alt": "A chart",
        "chunk_index": 2,
    }
    assert (inline["image_data"], inline["image_mimetype"]) == (PIXEL, "image/png")
    assert "image_url" not in inline
    assert figure["caption"] == "Figure & caption"


def test_anything_fits_where_something_is_kept_as_it_is() -> None:
    dropped: dict[str, Any] = dict.fromkeys(("table", "image", "code", "formula"), "drop")
    assert ModalityChunker(chunk_size=10, **dropped).fits("Tea.")
    assert not ModalityChunker(chunk_size=10, **dropped).fits("Tea. " * 9)
    assert ModalityChunker(chunk_size=10, **{**dropped, "code": "keep"}).fits("Tea. " * 9)


@pytest.mark.parametrize("modality", ["text", "table", "image", "code", "formula"])
def test_drop_drops_that_and_nothing_else(modality: str) -> None:
    rest = [part for part in parts(DOCUMENT) if part[0] != modality]
    assert parts(DOCUMENT, ModalityChunker(**{modality: "drop"})) == rest


@pytest.mark.parametrize("modality", ["table", "code"])
def test_keep_keeps_it_as_it_is(modality: str) -> None:
    text = (
        "# T\n\n"
        + {
            "table": "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 500,
            "code": "```\n" + "line\n\n" * 500 + "```\n",
        }[modality]
    )
    assert parts(text, ModalityChunker(**{modality: "keep"})) == [
        ("text", "# T"),
        (modality, text[5:].strip()),
    ]
    assert len(parts(text)) > 3


def test_table_in_a_quote_goes_to_another_chunker_too() -> None:
    text = "# T\n\n> | a |\n> |---|\n> | 1 |\n"
    chunker = ModalityChunker(table=RecursiveChunker(chunk_size=100))
    assert parts(text, chunker)[1] == ("table", "> | a |\n> |---|\n> | 1 |")
    assert parts(text)[1] == ("table", "| a |\n|---|\n| 1 |")


@pytest.mark.parametrize(
    ("text", "alt", "url", "caption"),
    [
        ("![a](b)", "a", "b", ""),
        ("![](b)", "", "b", ""),
        ("![a](<b c> 't')", "a", "b c", "t"),
        ("![a](b_(c).png (t))", "a", "b_(c).png", "t"),
        (r"![a \] \* b](c)", "a ] * b", "c", ""),
        ("![a [b] c](d)", "a [b] c", "d", ""),
        ("![a][R 1]", "a", "u.png", "T"),
        ("![r  1][]", "r  1", "u.png", "T"),
        ("![R 1]", "R 1", "u.png", "T"),
        ("<img src=b alt='a'>", "a", "b", ""),
        ('<IMG ALT="a &lt; b" SRC="b?x&amp;y" title="t"/>', "a < b", "b?x&y", "t"),
    ],
)
def test_image_is_read(text: str, alt: str, url: str, caption: str) -> None:
    known = {"r 1": ("u.png", "T")}
    (image,) = find_images(f"x {text} y", 0, len(text) + 4, known)
    assert (image.alt, image.url, image.caption) == (alt, url, caption)
    assert (image.start, image.end) == (2, 2 + len(text))


@pytest.mark.parametrize(
    "text", ["`![a](b)`", r"\![a](b)", "![a]", "![a][r]", "[a](b)", "<img", "!"]
)
def test_image_is_none(text: str) -> None:
    assert find_images(text, 0, len(text), {}) == []


def test_reference_images_find_their_definitions() -> None:
    text = f'# T\n\n![one][a]\n\n![two][b]\n\n[a]: one.png "One"\n[b]: {DATA}\n'
    images = [c for c in ModalityChunker().chunk(text) if c.metadata["modality"] == "image"]
    assert images[0].metadata["image_url"] == "one.png"
    assert images[1].metadata["image_data"] == PIXEL


@pytest.mark.parametrize(
    "text",
    [
        DOCUMENT,
        f"# T\n\nA [file]({DATA}) and a ![b]({DATA}) in a sentence.\n\n[c]: {DATA}\n",
        f"# T\n\n| a |\n|---|\n| ![b]({DATA}) |\n",
        f"<html><p>x<img src='{DATA}'></p><table><tr><td><img src='{DATA}'></td></tr></table>",
    ],
)
def test_data_is_in_no_text(text: str) -> None:
    assert DATA in text
    assert not any(PIXEL[:40] in chunk.text for chunk in ModalityChunker().chunk(text))


@pytest.mark.parametrize("data", ["A", "QQ==", "R0lGODlhAQABAAAAACw="])
@pytest.mark.parametrize(
    "text",
    [
        "# T\n\nA [file](data:text/plain;base64,{}) and `data:;base64,{}`.",
        "# T\n\nSee <data:a/b;base64,{}>.",
        "# T\n\nA [file][f].\n\n[f]: data:text/plain;charset=utf-8;base64,{}\n",
        "# T\n\n![data:a/b;base64,{}](x.png 'DATA:a/b;BASE64,{}')\n",
        "# T\n\n| a |\n|---|\n| [b](data:a/b;base64,{}) |\n",
    ],
)
def test_short_data_is_in_no_text(text: str, data: str) -> None:
    whole = text.replace("{}", data)
    chunks = ModalityChunker().chunk(whole)
    assert not any(f"64,{data}" in chunk.text for chunk in chunks)
    assert sum(chunk.text.lower().count("base64,") for chunk in chunks) >= 1


def test_short_data_in_code_is_code() -> None:
    text = f"# T\n\n```\nx = 'data:a/b;base64,QQ=='\ny = '{DATA}'\n```\n"
    code = ModalityChunker().chunk(text)[1]
    assert code.text == text[5:].strip().replace(PIXEL, "")


def test_what_is_dropped_of_html_is_in_no_chunk() -> None:
    text = (
        "<html><head><title>no</title><noscript><img src=no></noscript></head><body><!-- no -->"
        "<p>One.</p><script>no('<img src=no>')</script><p>Two <img src=b> end.</p><pre>x</pre>"
        "<style>no</style><p>Three.</p><!-- no -->"
    )
    expected = [("text", "One.\n\nTwo end."), ("image", "b"), ("code", "x"), ("text", "Three.")]
    assert parts(text) == expected
    assert parts(text, ModalityChunker(text="keep")) == expected


def test_parents_in_a_part_are_counted_from_the_first_part() -> None:
    hierarchy = HierarchicalChunker(chunk_sizes=[80, 30], emit="all")
    prose = "One two three. " * 5
    spans = check_chunker(ModalityChunker(text=hierarchy), f"{prose}\n\n|a|\n|-|\n|1|\n\n{prose}")
    assert [span.modality for span in spans if span.parent is None] == ["text", "table", "text"]


def test_percent_encoded_data_become_base64() -> None:
    text = "# T\n\n![s](data:image/svg+xml,%3Csvg%3E)\n"
    known = ModalityChunker().chunk(text)[1].metadata
    assert base64.b64decode(known["image_data"]) == b"<svg>"
    assert known["image_mimetype"] == "image/svg+xml"


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    ["![", "![a](", "![a](b 't", "<img ", "<figure>", "<figure><img>", "`", "[a]:", "![[", "(("],
)
def test_broken_images_take_linear_time(piece: str) -> None:
    """A quadratic pattern would take minutes here."""
    count = 300_000 // len(piece)
    text = "# T\n\n" + piece * count
    assert len(find_images(text, 0, len(text), {})) == (count if "<img>" in piece else 0)
