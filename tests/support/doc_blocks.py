"""The Python blocks of a page of the documentation: find them, and run them in one process.

`tests/documentation/test_docs.py` describes what a page may say. From the command line this writes
what the blocks print into the page, for you to read before you commit it:

    python -m tests.support.doc_blocks docs/strategies/sentence.md
"""

from __future__ import annotations

import ast
import asyncio
import doctest
import inspect
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from typing_extensions import Self

from tests.support.openai_server import OpenAIServer
from tests.support.processes import ROOT, do_jobs, tell

_PART = re.compile(
    r"^[ ]*<!-- not run: ?(?P<reason>.*?) ?-->"
    r"|^(?P<indent>[ ]*)(?P<fence>`{3,}|~{3,})(?P<info>[^\n`]*)\n(?P<body>.*?)^[ ]*(?P=fence)[ ]*$",
    re.DOTALL | re.MULTILINE,
)
_SECONDS = 120
_AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT

_QUESTION = re.compile(r"^(?:Question|Query): ", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A Python block of a page.

    Parameters:
        code: its code.
        line: the number of its first line in the page, counted from 1.
        output: what the page says that it prints; None if it does not say so.
        output_place: where that stands in the page.
        not_run: why the tests do not run it; None if they do.
    """

    code: str
    line: int
    output: str | None = None
    output_place: tuple[int, int] | None = None
    not_run: str | None = None


def python_blocks(page: str) -> list[Block]:
    """The Python blocks of a page in Markdown."""
    blocks: list[Block] = []
    previous, end = (
        "",
        0,
    )  # what stood directly before: a Python block, or the reason not to run one
    for match in _PART.finditer(page):
        before = previous if not page[end : match.start()].strip() else ""
        previous, end = "", match.end()
        info = (match["info"] or "").split()
        if match["reason"] is not None:
            previous = f"reason:{match['reason']}"
        elif info[:1] == ["python"]:
            reason = before.removeprefix("reason:") if before.startswith("reason:") else None
            code = textwrap.dedent(match["body"])
            blocks.append(Block(code, _line(page, match.start("body")), not_run=reason))
            previous = "python"
        elif info[:1] == ["text"] and before == "python":
            last = blocks.pop()
            output = textwrap.dedent(match["body"])
            blocks.append(Block(last.code, last.line, output, match.span("body"), last.not_run))
    return blocks


def _line(page: str, offset: int) -> int:
    return page.count("\n", 0, offset) + 1


def quote_or_shout(prompt: str) -> str:
    """Answer as a model does that quotes: with the sentence that has most words of the question.

    A prompt without passages is answered in capitals.
    """
    passages, question = _QUESTION.split(prompt)[:2] if _QUESTION.search(prompt) else ("", "")
    words = set(re.findall(r"\w+", question.lower()))
    best = (0, "", "")
    for part in re.split(r"(?m)^(?=\[\d+\])", passages):
        number = part.partition("]")[0] + "]" if part.startswith("[") else ""
        for sentence in re.findall(r"[A-Z][^.\n]*\.", part):
            shared = len(words.intersection(re.findall(r"\w+", sentence.lower())))
            best = max(best, (shared, sentence, number), key=lambda each: each[0])
    _, sentence, number = best
    return f'"{sentence}" {number}'.strip() if sentence else prompt.upper()


class PageRunner:
    """A process that has imported the frameworks, and forks one process for each page.

    Beside it runs the server of `tests/support/openai_server.py`, where OpenAI's classes lead to.
    """

    def __init__(self) -> None:
        self._server = OpenAIServer(quote_or_shout)

    def __enter__(self) -> Self:
        self._server.__enter__()
        core = find_spec("llama_index.core")
        assert core is not None
        assert core.origin is not None
        environment = {
            "COLUMNS": "100",
            "OPENAI_API_BASE": self._server.url,
            "OPENAI_API_KEY": "any",
            "OPENAI_BASE_URL": self._server.url,
            "PYTHONPATH": str(ROOT),
            "TIKTOKEN_CACHE_DIR": str(Path(core.origin).parent / "_static" / "tiktoken_cache"),
        }
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from tests.support.doc_blocks import serve; serve()"],
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()
        self._server.__exit__()

    def run(self, name: str, blocks: list[Block], folder: Path) -> list[str]:
        """What each block prints, all of them in one new process.

        Parameters:
            name: the page's name, for tracebacks.
            blocks: the blocks.
            folder: the process's working directory.

        Raises AssertionError with the traceback if a block fails or a doctest differs.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        job = {"name": name, "folder": str(folder), "blocks": [asdict(each) for each in blocks]}
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = {}
        for line in self._process.stdout:
            if line.startswith("{"):  # other lines come from programs that a page starts
                answer |= json.loads(line)
            if "ended" in answer:
                break
        assert "error" not in answer, answer["error"]
        assert "outputs" in answer, f"{name} did not finish: its process ended {answer['ended']}"
        outputs: list[str] = answer["outputs"]
        return outputs


def differs(block: Block, printed: str) -> str | None:
    """How what a block printed differs from what the page says; None if it does not.

    `...` in the page stands for anything, and white space at the ends of lines does not count.
    """
    if block.output is None:
        return None
    expected, actual = _without_trailing(block.output), _without_trailing(printed)
    if doctest.OutputChecker().check_output(expected, actual, doctest.ELLIPSIS):
        return None
    return f"line {block.line} prints\n{actual}\nbut the page says\n{expected}"


def _without_trailing(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.rstrip().splitlines()) + "\n"


def serve() -> None:
    """Import what most pages import, and fork a process for each page that comes on stdin."""
    for module in ("langchain_openai", "rag_splitters.langchain", "rag_splitters.llama_index"):
        import_module(module)
    settings.register_profile(
        "page", suppress_health_check=list(HealthCheck), derandomize=True, database=None
    )
    settings.load_profile("page")
    do_jobs(_run_page)


def _run_page(job: dict[str, Any]) -> None:
    os.chdir(job["folder"])
    signal.alarm(_SECONDS)
    names: dict[str, Any] = {"__name__": "__main__"}
    loop = asyncio.new_event_loop()
    outputs = []
    for block in job["blocks"]:
        out = io.StringIO()
        with redirect_stdout(out):
            if block["code"].lstrip().startswith(">>>"):
                _run_doctest(block["code"], names, job["name"], block["line"])
            else:
                source = "\n" * (block["line"] - 1) + block["code"]
                code = compile(source, job["name"], "exec", flags=_AWAIT)
                result = eval(code, names)
                if inspect.iscoroutine(result):
                    loop.run_until_complete(result)
        outputs.append(out.getvalue())
    loop.close()
    tell(outputs=outputs)


def _run_doctest(code: str, names: dict[str, Any], name: str, line: int) -> None:
    test = doctest.DocTestParser().get_doctest(code, {}, name, name, line - 1)
    test.globs = names
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    if runner.run(test, out=report.append, clear_globs=False).failed:
        raise AssertionError("".join(report))


def update(path: Path, runner: PageRunner) -> None:
    """Write what the blocks of a page print into the page, where it says so."""
    page = path.read_text(encoding="utf-8")
    blocks = [block for block in python_blocks(page) if block.not_run is None]
    with tempfile.TemporaryDirectory() as folder:
        outputs = runner.run(str(path), blocks, Path(folder))
    for block, printed in reversed(list(zip(blocks, outputs, strict=True))):
        if block.output_place is not None and differs(block, printed):
            start, end = block.output_place
            page = page[:start] + _without_trailing(printed) + page[end:]
    path.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    with PageRunner() as page_runner:
        for argument in sys.argv[1:]:
            update(Path(argument), page_runner)
