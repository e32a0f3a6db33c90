"""Real servers on loopback: Redis, PostgreSQL and Chroma, as pytest's fixtures.

Each worker of pytest-xdist starts its own, when a test first asks for it, on a free port and in a
temporary folder. A test that kills a server takes one for itself:

    with PostgresServer() as server:
        server.kill()
        server.start()  # the same port and data
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis
from typing_extensions import Self

with suppress(ImportError):  # Windows has no such module
    import pwd

__all__ = [
    "ChromaServer",
    "PostgresServer",
    "RedisServer",
    "Server",
    "chroma_process",
    "chroma_server",
    "collection_name",
    "postgres_process",
    "postgres_url",
    "redis_process",
    "redis_url",
]

_SECONDS_TO_START = 60


class Server(ABC):
    """A server program with a folder and a port of its own, which a restart keeps."""

    name: str
    user: pwd.struct_passwd | None = None
    """The system's user that it runs as; None: the one who runs the tests."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"{self.name}-"))
        self.password = uuid.uuid4().hex
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def command(self) -> list[str]:
        """The program and its arguments; it stays in the foreground."""

    @abstractmethod
    def ask(self) -> None:
        """Ask the server something; raises until it is there."""

    def start(self) -> None:
        """Start it, on the data that are there, and wait until it answers."""
        is_first, deadline = not self.port, time.monotonic() + _SECONDS_TO_START
        while True:
            if self._process is None or self._process.poll() is not None:
                self.port = _free_port() if is_first else self.port
                self._process = self._run(self.command())
            try:
                self.ask()
                return
            except Exception as error:
                if time.monotonic() > deadline:
                    self.stop()
                    raise RuntimeError(f"{self.name} does not start: {self.log()}") from error
                time.sleep(0.05)

    def signal(self, number: int) -> None:
        """Send its process a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        """End it as kill -9 does: nothing is written any more."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """End it in order."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.kill()

    def log(self) -> str:
        """The end of what it printed."""
        path = self.folder / "log"
        return path.read_text(errors="replace")[-2000:] if path.exists() else ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, command: list[str]) -> subprocess.Popen[bytes]:
        as_user: dict[str, Any] = {}
        if self.user is not None:
            as_user = {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []}
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                **as_user,
            )


class RedisServer(Server):
    """Redis, with a password; what it has acknowledged survives a kill."""

    name = "redis"

    def __init__(self) -> None:
        self._program = _program("redis-server")
        super().__init__()

    @property
    def url(self) -> str:
        """With the password."""
        return f"redis://:{self.password}@127.0.0.1:{self.port}/0"

    def command(self) -> list[str]:
        options = {
            "bind": "127.0.0.1",
            "port": str(self.port),
            "dir": str(self.folder),
            "requirepass": self.password,
            "appendonly": "yes",
            "save": "",
        }
        set_options = [part for key, value in options.items() for part in (f"--{key}", value)]
        return [self._program, *set_options]

    def ask(self) -> None:
        with redis.Redis.from_url(self.url, socket_timeout=5) as client:
            client.ping()


class PostgresServer(Server):
    """PostgreSQL, with a password; it refuses to run as root, and then has a user of its own."""

    name = "postgres"

    def __init__(self) -> None:
        self._program = _program("postgres")
        super().__init__()
        self.user = _unprivileged_user() if os.geteuid() == 0 else None
        (self.folder / "password").write_text(self.password)
        for path in (self.folder, self.folder / "password"):
            if self.user is not None:
                os.chown(path, self.user.pw_uid, self.user.pw_gid)
        initdb = [str(Path(self._program).with_name("initdb")), "--pgdata=data", "--no-sync"]
        access = ["--auth=scram-sha-256", "--username=tester", "--pwfile=password"]
        if self._run([*initdb, *access, "--encoding=UTF8", "--locale=C"]).wait(_SECONDS_TO_START):
            raise RuntimeError(f"initdb failed: {self.log()}")

    @property
    def url(self) -> str:
        """With the password."""
        return f"postgresql://tester:{self.password}@127.0.0.1:{self.port}/postgres"

    def command(self) -> list[str]:
        # Without fsync a commit survives the server's end, if not the machine's.
        options = [
            "fsync=off",
            "listen_addresses=127.0.0.1",
            f"unix_socket_directories={self.folder}",
        ]
        set_options = [part for option in options for part in ("-c", option)]
        return [self._program, "-D", "data", "-p", str(self.port), *set_options]

    def ask(self) -> None:
        psycopg.connect(self.url, connect_timeout=5).close()

    def kill(self) -> None:
        """End it with the processes of its connections, which would go on answering for a while."""
        pids: list[tuple[int]] = []
        with suppress(psycopg.Error), psycopg.connect(self.url, connect_timeout=5) as connection:
            pids = connection.execute("SELECT pid FROM pg_stat_activity").fetchall()
        super().kill()
        for (pid,) in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def stop(self) -> None:
        """End it in order, whoever is still connected."""
        if self._process is not None and self._process.poll() is None:
            self.signal(signal.SIGINT)
        super().stop()


class ChromaServer(Server):
    """Chroma, as `chroma run` starts it."""

    name = "chroma"
    host = "127.0.0.1"

    def command(self) -> list[str]:
        program = [sys.executable, "-c", "from chromadb.cli.cli import app; app()", "run"]
        return [*program, "--path", "data", "--host", self.host, "--port", str(self.port)]

    def ask(self) -> None:
        url = f"http://{self.host}:{self.port}/api/v2/heartbeat"
        urllib.request.urlopen(url, timeout=5).close()


@pytest.fixture(scope="session")
def redis_process() -> Iterator[RedisServer]:
    """The Redis of this session; do not kill it."""
    with RedisServer() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_process() -> Iterator[PostgresServer]:
    """The PostgreSQL of this session; do not kill it."""
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def chroma_process() -> Iterator[ChromaServer]:
    """The Chroma server of this session; do not kill it."""
    with ChromaServer() as server:
        yield server


@pytest.fixture
def redis_url(redis_process: RedisServer) -> str:
    """The URL of an empty Redis database."""
    with redis.Redis.from_url(redis_process.url) as client:
        client.flushall()
    return redis_process.url


@pytest.fixture
def postgres_url(postgres_process: PostgresServer) -> Iterator[str]:
    """The URL of an empty PostgreSQL database, whose tables go to a schema of this test's own."""
    schema = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(postgres_process.url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        connection.execute("SET lock_timeout = '10s'")  # a test that leaves a lock fails
        yield f"{postgres_process.url}?options=-csearch_path%3D{schema}"
        connection.execute(f"DROP SCHEMA {schema} CASCADE")


@pytest.fixture
def chroma_server(chroma_process: ChromaServer) -> tuple[str, int]:
    """Host and port of a Chroma server, which other tests use too: see `collection_name`."""
    return chroma_process.host, chroma_process.port


@pytest.fixture
def collection_name() -> str:
    """A name for a Chroma collection of this test's own."""
    return f"test_{uuid.uuid4().hex}"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _program(name: str) -> str:
    """Where a server's program is; without it the test is skipped, and in CI it fails."""
    found = shutil.which(name) or _in_debian(name)
    if found is None:
        reason = f"{name} is not installed"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found


def _in_debian(name: str) -> str | None:
    """Debian keeps PostgreSQL's programs off the path, one folder for each version."""
    found = Path("/usr/lib/postgresql").glob(f"*/bin/{name}")
    newest_last = sorted(found, key=lambda path: [int(n) for n in re.findall(r"\d+", str(path))])
    return str(newest_last[-1]) if newest_last else None


def _unprivileged_user() -> pwd.struct_passwd:
    users = {user.pw_name: user for user in pwd.getpwall()}
    return users.get("postgres") or users["nobody"]
