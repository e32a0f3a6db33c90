"""What the pages share: the template with its styles, the verdict, and tables that always fit."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files


def fill_template(name: str, parts: Mapping[str, str]) -> str:
    """A template of this folder with its parts and the styles, so that it loads nothing else."""
    folder = files(__package__)
    parts = {**parts, "style": (folder / "page.css").read_text(encoding="utf-8")}
    template = (folder / name).read_text(encoding="utf-8")
    page = re.sub(r"{{ (\w+) }}", lambda match: parts[match[1]], template)
    return page.encode("utf-8", "replace").decode()  # lone surrogates become question marks


def verdict_html(headline: str, reasons: str) -> str:
    """The verdict: its headline, and the reasons below."""
    return (
        f'<div class="verdict"><p class="headline">{escape(headline)}</p>'
        f"<p>{escape(reasons)}</p></div>"
    )


def table_html(titles: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]) -> str:
    """A table with a row for each strategy.

    On a narrow page, each row becomes a card, and each cell shows the title of its column. The
    roles keep it a table for screen readers there.

    Parameters:
        titles: the titles of the columns, as HTML.
        rows: each strategy's name as text, and its cells as HTML.
    """
    heads = "".join(f'<th scope="col" role="columnheader">{title}</th>' for title in titles)
    body = []
    for name, cells in rows:
        columns = "".join(
            f'<td role="cell" data-title="{title}">{cell}</td>'
            for title, cell in zip(titles, cells, strict=True)
        )
        body.append(
            f'<tr role="row"><th scope="row" role="rowheader">{escape(name)}</th>{columns}</tr>'
        )
    return (
        '<table class="cards" role="table"><thead role="rowgroup"><tr role="row">'
        f'<th scope="col" role="columnheader">strategy</th>{heads}</tr></thead>'
        f'<tbody role="rowgroup">{"".join(body)}</tbody></table>'
    )
