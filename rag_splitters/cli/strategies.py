"""`rag-splitters strategies`: which strategies there are, and their parameters."""

from __future__ import annotations

import inspect
import json
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rag_splitters.chunker import Chunker
from rag_splitters.chunkers import CATALOGUE
from rag_splitters.chunkers.by_name import chunker_class, parameter_docs, strategy_name
from rag_splitters.cli.views import console, unwrapped


def strategies(
    name: Annotated[
        str | None, typer.Argument(help="Show this strategy and its parameters.")
    ] = None,
) -> None:
    """List the strategies, or show one with its parameters."""
    if name is None:
        table = Table("strategy", "what it does to the text", box=box.SIMPLE_HEAD)
        for each, kind in CATALOGUE.items():
            table.add_row(Text(each, style="bold"), Text((kind.__doc__ or "").split("\n")[0]))
        console().print(table)
    else:
        _show_strategy(console(), name, chunker_class(name))


def _show_strategy(out: Console, name: str, kind: type[Chunker]) -> None:
    out.print(Text(f"{name} ({kind.__name__})", style="bold"))
    description = unwrapped(inspect.getdoc(kind)).split("\n>>> ")[0].rstrip()
    out.print(Text(description + "\n"))
    table = Table("parameter", "default", "meaning", box=box.SIMPLE_HEAD)
    for parameter, (default, meaning) in parameter_docs(kind).items():
        table.add_row(Text(parameter, style="bold"), Text(_default(default)), Text(meaning))
    out.print(table)


def _default(value: Any) -> str:
    """A default as one would type it: strings as JSON, chunkers by their names."""
    if isinstance(value, Chunker):
        return json.dumps(strategy_name(value))
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_default, value))}]"
    return json.dumps(value, default=repr)
