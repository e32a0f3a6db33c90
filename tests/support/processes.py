"""Python code in a process of its own, and processes that fork one for each job."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def run_python(
    code: str, *, cwd: Path = ROOT, stdin: str | None = None, **environment: str | None
) -> str:
    """What a process prints that must succeed; None removes a variable from its environment."""
    merged = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=cwd,
        input=stdin,
        env={name: value for name, value in merged.items() if value is not None},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def running(code: str, *arguments: str, says: str) -> Iterator[subprocess.Popen[str]]:
    """A process of some code that has said something; it is killed in the end."""
    command = [sys.executable, "-c", code, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"{says}\n"
        yield process
        process.kill()


def do_jobs(do: Callable[[dict[str, Any]], None]) -> None:
    """Fork a process for each line of JSON on stdin; when it has ended, however, tell how."""
    for line in sys.stdin:
        job = json.loads(line)
        process = os.fork()
        if process == 0:
            try:
                do(job)
            except BaseException:
                tell(error=traceback.format_exc())
            finally:
                sys.stdout.flush()
                os._exit(0)
        tell(process=process)
        _, status = os.waitpid(process, 0)
        tell(ended=os.waitstatus_to_exitcode(status))


class JobProcess:
    """A process of a module that calls `do_jobs`."""

    def __init__(self, module: str) -> None:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        command = [sys.executable, "-m", module]
        self._process: subprocess.Popen[str] = subprocess.Popen(command, cwd=ROOT, **pipes)

    def begin(self, **job: Any) -> int:
        """Hand a job over, and return the number of the process that does it."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return int(self.read()["process"])

    def read(self) -> dict[str, Any]:
        """Wait for what is told next."""
        assert self._process.stdout is not None
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)


def tell(**facts: Any) -> None:
    """Write a line of JSON on stdout."""
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()
