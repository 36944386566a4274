"""`localagent sessions` as users run it: a process of its own, its exit status, its bytes."""

import json
import os
import subprocess
import sys
from typing import Any

from tests.sessions.kit import House


class Cli:
    """The command line, in a house."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.environ = {**os.environ, "MC_HOME": house.root.path}

    def __call__(self, *arguments: str, status: int = 0, stderr: bytes = b"") -> bytes:
        done = self.run(*arguments)
        assert (done.returncode, done.stderr) == (status, stderr)
        assert b"\x1b" not in done.stdout
        return done.stdout

    def json(self, *arguments: str, status: int = 0, stderr: bytes = b"") -> Any:
        return json.loads(self(*arguments, "--json", status=status, stderr=stderr))

    def refused(self, *arguments: str) -> bytes:
        """What a wrong command line is told; the exit status is 2, and nothing is on stdout."""
        done = self.run(*arguments)
        assert (done.returncode, done.stdout) == (2, b"")
        return done.stderr

    def run(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-m", "localagent", "sessions", *arguments],
            cwd=self.house.cwd,
            env=self.environ,
            capture_output=True,
            timeout=60,
            check=False,
        )


def put(house: House, session_id: str, text: str = "hello", **fields: Any) -> bytes:
    """A whole session of one turn."""
    user = house.line(session_id, "user_input", {"text": text}, **fields)
    answer = house.line(session_id, "assistant_output", {"text": "hi"}, **fields)
    return house.put(session_id, user, answer).read_bytes()
