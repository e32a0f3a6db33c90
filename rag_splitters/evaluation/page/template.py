"""What the pages share: the shell with its styles, the verdict, and tables that always fit."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files


def fill_template(name: str, parts: Mapping[str, str]) -> str:
    """Fill a template of this folder and put it into the shell, which loads nothing else.

    Parameters:
        name: the template of what follows the header.
        parts: the parts of the template, as HTML, and those of the shell: "title", "verdict" and
            "caption". The page may run scripts if there is a "script".
    """
    shell = {
        **parts,
        "style": _read("page.css"),
        "script_policy": "script-src 'unsafe-inline'; " if "script" in parts else "",
        "body": _fill(_read(name), parts),
    }
    page = _fill(_read("shell.html"), shell)
    return page.encode("utf-8", "replace").decode()  # lone surrogates become question marks


def _fill(template: str, parts: Mapping[str, str]) -> str:
    return re.sub(r"{{ (\w+) }}", lambda match: parts[match[1]], template)


def _read(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


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
