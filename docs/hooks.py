"""What MkDocs does to the pages of this folder.

A comment in a page is replaced by what the package itself says:

- `<!-- parameters: RecursiveChunker -->`: a table of the strategy's parameters.
- `<!-- strategies -->`: a table of all strategies, with links to their pages.
- `<!-- reference: rag_splitters.testing -->`: the reference of all public names of a module; with
  names behind it, of these only.
- `<!-- picture: {"strategy": "sentence", "chunk_size": 200} -->`: the text in `sample.txt` in
  colours, as this strategy cuts it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from griffe import Extension, Object

import rag_splitters
from rag_splitters.chunker import Chunker
from rag_splitters.chunkers import CATALOGUE
from rag_splitters.chunkers.by_name import build_chunker, default_as_python, parameter_docs

_DIRECTIVE = re.compile(r"^<!-- (parameters|strategies|reference|picture)(?:: (.*?))? -->$", re.MULTILINE)
_DOCTEST = re.compile(r"^>>> .*(?:\n(?!\n).*)*", re.MULTILINE)
_LONGEST_DEFAULT = 60
_SAMPLE = Path(__file__).parent / "sample.txt"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the comments."""
    return _DIRECTIVE.sub(lambda match: _DIRECTIVES[match[1]](match[2] or ""), markdown)


def parameter_table(name: str) -> str:
    """A strategy's parameters in Markdown, and below them the defaults that are too long."""
    kind: type[Chunker] = getattr(rag_splitters, name)
    rows, long_defaults = ["| parameter | default | meaning |", "|---|---|---|"], []
    for parameter, (default, meaning) in parameter_docs(kind).items():
        is_required = kind.model_fields[parameter].is_required()
        shown = "required" if is_required else f"`{default_as_python(default)}`"
        if isinstance(default, str) and len(shown) > _LONGEST_DEFAULT:
            long_defaults.append(f"\n??? note \"Default of `{parameter}`\"\n\n{_fenced(default)}")
            shown = "see below"
        rows.append(f"| `{parameter}` | {_cell(shown)} | {_cell(' '.join(meaning.split()))} |")
    return "\n".join([*rows, *long_defaults])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _fenced(text: str) -> str:
    lines = ["```text", *text.splitlines(), "```"]
    return "\n".join(f"    {line}".rstrip() for line in lines)


def strategy_table(_: str = "") -> str:
    """All strategies with the first sentence of their documentation."""
    rows = ["| strategy | what it does |", "|---|---|"]
    for name, kind in CATALOGUE.items():
        summary = str(kind.__doc__).split("\n\n")[0]
        stem = kind.__name__.removesuffix("Chunker")
        rows.append(f"| [{stem}]({name}.md) | {_cell(' '.join(summary.split()))} |")
    return "\n".join(rows)


def reference(argument: str) -> str:
    """A heading and the documentation of each public name of a module."""
    module, *names = argument.split()
    return "\n\n".join(f"::: {module}.{name}" for name in names or import_module(module).__all__)


def picture(argument: str) -> str:
    """The sample in colours, as a notebook shows it."""
    parameters = json.loads(argument)
    chunker = build_chunker(parameters.pop("strategy"), parameters)
    shown = chunker.chunk(_SAMPLE.read_text(encoding="utf-8").rstrip())._repr_html_()
    shown = shown.replace("\n", "<br>")  # Markdown must not read the text
    return f'<div class="picture">{shown}</div>'


_DIRECTIVES: dict[str, Callable[[str], str]] = {
    "parameters": parameter_table,
    "strategies": strategy_table,
    "reference": reference,
    "picture": picture,
}


class Doctests(Extension):
    """Shows the examples in docstrings as code; Markdown takes `>>>` for a quotation."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = _DOCTEST.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)
