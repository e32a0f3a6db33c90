"""The command line as a whole: its commands, and one line for every error of the user's."""

from __future__ import annotations

import errno
import os
import re
import sys
from contextlib import suppress
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from rag_splitters import __version__
from rag_splitters.cli.compare import compare
from rag_splitters.cli.delete import delete
from rag_splitters.cli.demo import demo
from rag_splitters.cli.index import index
from rag_splitters.cli.mcp import mcp
from rag_splitters.cli.play import play
from rag_splitters.cli.query import query
from rag_splitters.cli.serve_skill import serve_skill
from rag_splitters.cli.split import split
from rag_splitters.cli.strategies import strategies
from rag_splitters.cli.views import unwrap
from rag_splitters.errors import InputError, RagSplittersError
from rag_splitters.interrupts import EXIT_CODE, raise_from_now_on
from rag_splitters.text.coloured import printable

_LINE_BREAK = re.compile(r"\s*\n(?!  \S)\s*")
"""A line break that is not before an item of a list."""

_REFUSALS = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.ENAMETOOLONG)
"""What the system refuses is nobody's bug: to write to a full disk, say, or to read a folder."""

_USAGE_ERROR: Any = typer.BadParameter.__base__  # click's, wherever this Typer keeps it


class _Commands(TyperGroup):
    """The commands. An error of ours is one line on standard error, with exit status 2.

    An error that lists what is wrong with a file has one line for each. What the system refuses is
    one line, too. Any other exception is a bug, and keeps its traceback.
    """

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run a command and exit."""
        for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
            if getattr(sys, name) is None:  # it was closed, as by >&- in a shell
                setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):  # show characters that the encoding lacks as escapes
                stream.reconfigure(errors="backslashreplace")
        if os.environ.get("COLUMNS") == "0":  # the width is not known; Rich would print nothing
            del os.environ["COLUMNS"]
        try:
            raise_from_now_on()
            status = super().main(*args, **{**extra, "standalone_mode": False})
        except (RagSplittersError, _USAGE_ERROR) as error:
            message = error.format_message() if hasattr(error, "format_message") else str(error)
            typer.echo(f"Error: {printable(_LINE_BREAK.sub(' ', message.strip()))}", err=True)
            status = 2
        except OSError as error:
            if error.errno not in _REFUSALS:
                raise
            name = f"{error.filename}: " if error.filename else ""
            typer.echo(f"Error: {printable(name)}{error.strerror}", err=True)
            status = 2
        except (typer.Abort, KeyboardInterrupt):
            status = EXIT_CODE
        sys.exit(status if isinstance(status, int) else 0)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse empty arguments: as a path, one would be the current folder."""
        if "" in args and not ctx.resilient_parsing:
            raise InputError(
                'an argument is empty (""): leave it out, or check the variable that should fill it'
            )
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that the first argument names."""
        if args[0] not in self.commands:
            raise InputError(f"unknown command {args[0]!r}: choose {', '.join(self.commands)}")
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=_Commands,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line. After Ctrl-C, it does not wait for threads, such as a server's."""
    try:
        app(prog_name="rag-splitters")
    except SystemExit as end:
        if end.code != EXIT_CODE:
            raise
        with suppress(OSError):  # the pipe may be broken
            sys.stdout.flush()
        os._exit(EXIT_CODE)


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Cut texts into chunks for retrieval, and search them by parent-child retrieval."""
    if version:
        typer.echo(f"rag-splitters {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())
    else:
        return
    raise typer.Exit


for _command in (demo, split, strategies, index, delete, query, compare, play, mcp, serve_skill):
    app.command(help=unwrap(_command.__doc__))(_command)
