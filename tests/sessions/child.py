"""Real processes that use the store, forked from a nursery that has imported everything already.

The nursery (``python -m tests.sessions.child <socket>``) forks a child for each pair of pipes it is sent, and waits for
one when asked. A child takes a command a line and answers each by one line. Told to ``stop <step> <before|after>``, it
says ``at`` there and waits to be killed; nothing in the store knows about that but ``disk.watch``.
"""

import os
import resource
import signal
import socket
import sys
import time
from typing import TextIO

from localagent.sessions import disk, inspect, paths, repair
from localagent.sessions.compaction import Checkpoint
from localagent.sessions.disk import Step
from localagent.sessions.errors import AppendFailed, StoreError
from localagent.sessions.handle import Handle
from localagent.sessions.paths import Root
from localagent.sessions.records import Draft
from localagent.sessions.store import Store

NOBODY = 65534


class Child:
    """One process. Its commands are the methods named ``do_``."""

    def __init__(self, commands: TextIO, answers: TextIO) -> None:
        self.commands, self.answers = commands, answers
        self.store: Store | None = None
        self.handle: Handle | None = None
        self.failing: Step | None = None

    def serve(self) -> None:
        for line in self.commands:
            command, *words = line.split()
            self.say(self.run(command, words))

    def say(self, text: str) -> None:
        self.answers.write(text + "\n")
        self.answers.flush()

    def run(self, command: str, words: list[str]) -> str:
        try:
            return str(getattr(self, f"do_{command}")(*words))
        except StoreError as fault:
            return fault.code
        except AppendFailed as fault:
            return fault.outcome.name

    def do_use(self, root: str, cwd: str) -> str:
        self.root = Root(root)
        self.store = Store(self.root, cwd)
        return "ready"

    def do_drop(self) -> str:
        """Become nobody in particular: what root may do proves nothing."""
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        return "dropped"

    def do_create(self) -> str:
        assert self.store is not None
        self.handle = self.store.create()
        return self.handle.session_id

    def do_open(self, session_id: str) -> str:
        assert self.store is not None
        self.handle = self.store.open(session_id)
        return "opened"

    def do_append(self, number: str) -> str:
        assert self.handle is not None
        prompt = Draft("user_input", {"origin": "user", "text": f"prompt {number}"})
        piece = Draft("assistant_chunk", {"text": "an"})
        answer = Draft("assistant_output", {"text": f"answer {number}", "usage": None})
        return f"receipt {','.join(self.handle.append([prompt, piece, answer]).event_ids)}"

    def do_compact(self, keep: str) -> str:
        assert self.handle is not None
        mark = self.handle.mark(int(keep))
        return f"compacted {self.handle.compact(Checkpoint(mark, 'The gist.', 'p', 'm')).generation}"

    def do_release(self) -> str:
        assert self.handle is not None
        self.handle.release()
        return "released"

    def do_renew(self) -> str:
        assert self.store is not None
        self.store.renew(time.time_ns())
        return "renewed"

    def do_repair(self, session_id: str) -> str:
        return f"repaired {repair.apply(self.root, session_id).salvage}"

    def do_check(self, session_id: str) -> str:
        return str(inspect.examine(self.root, session_id).code)

    def do_prepare(self, path: str) -> str:
        return paths.prepare(path).path

    def do_limit(self, name: str, most: str) -> str:
        number = getattr(resource, f"RLIMIT_{name}")
        resource.setrlimit(number, (int(most), resource.getrlimit(number)[1]))
        return "limited"

    def do_stop(self, name: str, moment: str) -> str:
        """``fail <step>`` before it lets that step fail first."""

        def wait(step: Step, done: bool) -> None:
            if step is self.failing and not done:
                raise OSError(5, "Input/output error")
            if step is Step[name] and done == (moment == "after"):
                self.say("at")
                self.commands.readline()  # for ever: what comes is a kill

        disk.watch = wait
        return "will stop"

    def do_fail(self, name: str) -> str:
        self.failing = Step[name]
        return "will fail"


def nursery(parent: socket.socket) -> None:
    while True:
        order, descriptors, _, _ = socket.recv_fds(parent, 64, 2)
        if not order:
            return
        if order == b"fork":
            pid = os.fork()
            if pid == 0:
                parent.close()
                with open(descriptors[0]) as commands, open(descriptors[1], "w") as answers:
                    Child(commands, answers).serve()
                os._exit(0)
            for descriptor in descriptors:
                os.close(descriptor)
            parent.send(str(pid).encode())
        else:
            os.waitpid(int(order), 0)
            parent.send(b"gone")


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=int(sys.argv[1])) as end:
        nursery(end)
