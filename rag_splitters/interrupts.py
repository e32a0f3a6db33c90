"""Ctrl-C while the command line starts: it ends quietly, with exit code 130, during imports, too.

This module is imported before all others of the package, because loading those takes a moment. For
the same reason, it imports only what Python has loaded by then, or loads fast.
"""

from __future__ import annotations

import os
import signal
import sys

__all__ = ["EXIT_CODE", "end_quietly_while_starting", "raise_from_now_on"]

EXIT_CODE = 130
"""What a shell reports for a program that was ended by Ctrl-C."""


def end_quietly_while_starting() -> None:
    """Let Ctrl-C end the process at once, if this process is our command line."""
    program = os.path.basename(sys.argv[0]) if getattr(sys, "argv", None) else ""
    is_module = program == "-m" and "rag_splitters" in sys.orig_argv
    is_command = is_module or os.path.splitext(program)[0] == "rag-splitters"
    if is_command and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        try:  # noqa: SIM105  (contextlib takes a moment to load)
            signal.signal(signal.SIGINT, _end)
        except ValueError:  # this is not the main thread
            pass


def raise_from_now_on() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again, which the commands handle."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(number: int, frame: object) -> None:
    os._exit(EXIT_CODE)
