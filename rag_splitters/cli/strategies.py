"""`rag-splitters strategies`: which strategies there are, and their parameters."""

from __future__ import annotations

from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rag_splitters.chunkers import CATALOGUE
from rag_splitters.chunkers.by_name import (
    chunker_class,
    default_as_python,
    describe_strategy,
    parameter_docs,
)
from rag_splitters.cli.options import JsonOption, complete_strategy
from rag_splitters.cli.views import console, unwrap, write_line
from rag_splitters.contract.chunker import Chunker


def strategies(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="Show this strategy and its parameters.",
            autocompletion=complete_strategy,
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the strategies, or show one with its parameters."""
    if json:
        kinds = CATALOGUE.values() if name is None else [chunker_class(name)]
        for kind in kinds:
            write_line(_row(kind))
    elif name is None:
        table = Table("strategy", "what it does to the text", box=box.SIMPLE_HEAD)
        for each, kind in CATALOGUE.items():
            table.add_row(Text(each, style="bold"), Text((kind.__doc__ or "").split("\n")[0]))
        console().print(table)
    else:
        _show_strategy(console(), chunker_class(name))


def _row(kind: type[Chunker]) -> dict[str, object]:
    """Return a strategy as JSON."""
    return {
        "strategy": kind.strategy,
        "class": kind.__name__,
        "description": unwrap(describe_strategy(kind)),
        "parameters": {
            parameter: {"default": default_as_python(default), "meaning": meaning}
            for parameter, (default, meaning) in parameter_docs(kind).items()
        },
    }


def _show_strategy(out: Console, kind: type[Chunker]) -> None:
    out.print(Text(f"{kind.strategy} ({kind.__name__})", style="bold"))
    out.print(Text(unwrap(describe_strategy(kind)) + "\n"))
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("parameter", "default", "meaning"):
        table.add_column(heading, overflow="fold")
    for parameter, (default, meaning) in parameter_docs(kind).items():
        table.add_row(
            Text(parameter, style="bold"), Text(default_as_python(default)), Text(meaning)
        )
    out.print(table)
