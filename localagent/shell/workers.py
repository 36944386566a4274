"""Worker threads: one startup, then one session worker or one turn at a time, as the core asks.

Plain daemon threads: the process ends by ``os._exit``, so a thread that hangs cannot hold it up. One that is done
waits for the next job, because starting a thread costs as much as a small request. Each job has a token to stop it
and says its last word into the inbox, whatever happens inside it; a job that finds no thread and cannot start one
counts as one that left without a word.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol

from localagent.core import worker
from localagent.core.commands import CancelWorker, ReleaseLeases, ResolveApproval, StartWorker, WorkerKind

from .turn import Clock, Turn
from .wake import Wake


class Token:
    """Tells a startup or session worker that it should stop."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def cancelled(self) -> bool:
        """True once the job was told to stop."""
        return self._event.is_set()

    def stop(self) -> None:
        """Tell it."""
        self._event.set()


class Backend(Protocol):
    """What the jobs do. Every method runs in a worker thread and may block."""

    def startup(self, command: StartWorker, token: Token) -> worker.LastWord:
        """Prepare everything; Started or StartFailed."""
        ...

    def warm_up(self) -> None:
        """Called once after a startup, when the client has its answer: load what later jobs need."""
        ...

    def session(self, command: StartWorker, token: Token) -> worker.LastWord:
        """Carry out a session request."""
        ...

    def turn(self, command: StartWorker, sink: Turn) -> worker.TurnEnded | None:
        """Run a turn; its last word."""
        ...

    def release(self, which: ReleaseLeases) -> None:
        """Let leases go."""
        ...

    def close(self) -> None:
        """Tear everything down; leases stay until :meth:`release`."""
        ...


class _Hands:
    """Threads that do one thing after the other; as many as there were things to do at once."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[Callable[[], None]] = deque()
        self._idle = 0
        self._busy = 0

    def do(self, body: Callable[[], None]) -> None:
        """Have ``body`` done by a thread that waits, or by a new one. Raises RuntimeError where none can be had."""
        with self._changed:
            self._busy += 1
            if self._idle > len(self._waiting):
                self._waiting.append(body)
                self._changed.notify_all()
                return
        try:
            threading.Thread(target=self._work, args=(body,), name="worker", daemon=True).start()
        except RuntimeError:
            self._done()
            raise

    def wait(self) -> None:
        """Wait until nothing is being done."""
        with self._changed:
            self._changed.wait_for(lambda: not self._busy)

    def _work(self, body: Callable[[], None]) -> None:
        while True:
            try:
                body()
            finally:
                self._done()
            with self._changed:
                self._idle += 1
                self._changed.wait_for(lambda: bool(self._waiting))
                self._idle -= 1
                body = self._waiting.popleft()

    def _done(self) -> None:
        with self._changed:
            self._busy -= 1
            self._changed.notify_all()


class Workers:
    """Starts jobs, stops them, and collects what they say."""

    def __init__(self, backend: Backend, wake: Wake, clock: Clock, fresh_id: Callable[[], str]) -> None:
        self._backend, self._wake, self._clock, self._fresh_id = backend, wake, clock, fresh_id
        self._lock = threading.Lock()
        self._inbox: deque[worker.WorkerMessage] = deque()
        self._tokens: dict[int, Token | Turn] = {}
        self._hands = _Hands()
        self._turn: Turn | None = None
        self._cleaned = threading.Event()

    def start(self, command: StartWorker) -> None:
        """Start the worker of a job."""
        if command.kind is WorkerKind.TURN:
            turn = self._turn = Turn(command.job, self._clock, self._wake.ring, self._fresh_id)
            self._tokens[command.job] = turn
            self._spawn(command.job, lambda: self._run_turn(command, turn))
        else:
            token = Token()
            self._tokens[command.job] = token
            self._spawn(command.job, lambda: self._run(command, token))

    def cancel(self, command: CancelWorker) -> None:
        """Set a job's token."""
        self._tokens[command.job].stop()

    def resolve(self, command: ResolveApproval) -> None:
        """Hand an answer to the turn that asked."""
        if self._turn is not None and self._turn.job == command.job:
            self._turn.resolve(command)

    def urgent(self) -> worker.WorkerMessage | None:
        """The next message that does not wait for the pipe: of startup and session workers, or of a run given up."""
        with self._lock:
            if self._inbox:
                return self._inbox.popleft()
        return self._turn.urgent() if self._turn else None

    def next_event(self) -> worker.WorkerMessage | None:
        """The next message of the run; asked only while no frame is pending."""
        return self._turn.take() if self._turn else None

    def taken(self, message: worker.WorkerMessage) -> None:
        """The core has had a message of the run."""
        if self._turn is not None:
            self._turn.taken(message)

    def clean_up(self) -> None:
        """Tear down off the loop: wait for the workers, close the backend, then ring (FLOW-25)."""
        thread = threading.Thread(target=self._clean_up, name="cleanup", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return  # no thread to be had: the cleanup wait passes and resources go with the process (FLOW-29)

    @property
    def cleaned(self) -> bool:
        """True when teardown has finished."""
        return self._cleaned.is_set()

    def release(self, command: ReleaseLeases) -> None:
        """Let leases go."""
        self._backend.release(command)

    def _spawn(self, job: int, body: Callable[[], None]) -> None:
        try:
            self._hands.do(body)
        except RuntimeError:
            self._say(worker.WorkerGone(job))

    def _run(self, command: StartWorker, token: Token) -> None:
        work = self._backend.startup if command.kind is WorkerKind.STARTUP else self._backend.session
        try:
            word = work(command, token)
            self._say(worker.WorkerDone(command.job, word))
            if isinstance(word, worker.Started):
                self._backend.warm_up()
        finally:
            self._say(worker.WorkerGone(command.job))

    def _run_turn(self, command: StartWorker, turn: Turn) -> None:
        word: worker.TurnEnded | None = None
        try:
            word = self._backend.turn(command, turn)
        finally:
            turn.leave(word)

    def _say(self, message: worker.WorkerMessage) -> None:
        with self._lock:
            self._inbox.append(message)
        self._wake.ring()

    def _clean_up(self) -> None:
        self._hands.wait()
        self._backend.close()
        self._cleaned.set()
        self._wake.ring()
