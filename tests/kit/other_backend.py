"""A second backend of magi-code.local-agent v1, written from the contract alone: `other_backend.py serve --stdio`.

It shares no code and no structure with the backend of this repository, so that a check that fails here encodes a
habit and not the contract. One file, threads, blocking reads, blocking writes and a watchdog beside the writer.
Where the contract or the decisions page leave a choice, this file takes another one on purpose.

Words in capitals in a prompt choose the canned turn: APPROVAL, PARALLEL, TOOL, STALL, FAIL, THINK, DEGRADED, LONG.
Without MC_HOME sessions live in memory for the life of the child; with it they are JSONL files below
`$MC_HOME/other-sessions`. OTHER_CATALOG=1 stands for settings that enable the canned models; the default enables none.
OTHER_WAYS=1 takes the choices that are left: other check orders and codes, capabilities in no order, empty requirements
refused, words on stderr, pages of one entry, late answers, silent degradation, runs without a terminal revision.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import signal
import stat
import sys
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable
from typing import Any, NoReturn

PROTOCOL = "magi-code.local-agent"
FRAME = 65_536
PENDING = 32
SECONDS = 2.0  # output deadline, closing deadline, wait of a critical event
LIVE, PART, PAGE, PAGE_TEXT = 4_000, 12_000, 32_768, 24_000
ID, SESSION_ID = re.compile(r"[A-Za-z0-9._-]{1,64}"), re.compile(r"[A-Za-z0-9_-]{1,64}")
TOKEN = re.compile(r'\\.|["\[\]{}]')
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
SECRET = re.compile(r"(?:\b(?:sk-|gh[pousr]_|xox[abp]-|AKIA)|\bBearer +)[A-Za-z0-9_.-]{12,}")
EFFORTS = ("low", "medium", "high", "xhigh", "max")
OPTIONAL = ("session.discover", "model.catalog.status", "model.refresh", "operation.cancel")
WORKED = ("history.page", "model.catalog", "selection.set", "session.create", "session.list", "session.open")
METHODS = (*OPTIONAL, *WORKED, "approval.answer", "turn.cancel", "turn.start", "shutdown", "status", "initialize")
LIMITS = {
    name: int(value)
    for name, value in re.findall(
        r"(\w+)=(\d+)",
        """
        discovery_page_bytes=32768 discovery_page_entries=100 discovery_directory_entries=4096 discovery_sessions=256
        discovery_session_bytes=8388608 discovery_session_lines=10000 discovery_scan_bytes=67108864
        discovery_scan_lines=100000 discovery_scan_ms=2000 discovery_title_bytes=256
        catalog_page_bytes=32768 catalog_page_entries=100 catalog_providers=32 catalog_models=2048
        catalog_file_bytes=1048576 catalog_scan_bytes=8388608 catalog_snapshot_bytes=1048576 catalog_string_bytes=256
        catalog_scan_ms=2000 selection_append_bytes=4096
        input_frame_max=65536 output_frame_max=65536 nesting_max=32 identifier_max=64 prompt_max=16384
        history_chunk_max=16384 live_chunk_max=4000 history_page_max=32768 history_entries_max=100
        output_frames_max=32 output_deadline=2000 request_ids_max=4096 approval_expiry=60000
        """,
    )
}
DISCOVER: dict[str, object] = {"consistency": "provisional_until_complete", "ordering": "directory"}
DISCOVER |= {"step_directory_entries": 256, "step_lines": 10_000, "step_bytes": 8_388_608, "step_ms": 2000}
DISCOVER |= {"record_bytes": 8_388_608, "page_entries": 100, "page_bytes": PAGE}
REFRESH = {"providers_per_request": 1, "cache_bytes": 1_048_576, "models": 2048, "preferences": "unchanged"}
# (provider, model): shown name, authentication ready, effort support, permitted efforts
MODELS: dict[tuple[str, str], tuple[str | None, bool, str, list[str]]] = {
    ("lumen", "lumen-mini"): (None, True, "unknown", ["default"]),
    ("lumen", "lumen-pro"): ("Lumen für alle", True, "supported", ["high", "low", "default"]),
    ("lumen", "lumen-fixed"): ("Lumen fixed", True, "unsupported", []),
    ("quarry", "slab-1"): ("Slab", False, "supported", ["max", "default"]),
}
STARTUP = ("lumen", "lumen-mini")
WAYS = os.environ.get("OTHER_WAYS") == "1"


class FaultError(Exception):
    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class CancelledError(Exception):
    pass


class Parsed(dict[str, Any]):
    """A JSON object that remembers which of its keys came twice."""

    twice: frozenset[str] = frozenset()


def parsed(pairs: list[tuple[str, Any]]) -> Parsed:
    value = Parsed(pairs)
    if len(value) < len(pairs):
        seen: set[str] = set()
        value.twice = frozenset(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
    return value


def refuse_constant(_: str) -> NoReturn:
    raise ValueError


def walk(value: Any) -> list[Any]:
    found, todo = [], [value]
    while todo:
        item = todo.pop()
        found.append(item)
        if isinstance(item, dict):
            todo += item.values()
            todo += item.keys()
        elif isinstance(item, list):
            todo += item
    return found


def broken_structure(text: str) -> bool:
    """More than 32 containers, brackets that do not match, or a string without an end."""
    stack: list[str] = []
    inside = False
    for match in TOKEN.finditer(text):
        token = match.group()
        if inside:
            inside = token != '"'
            continue
        token = token[-1]
        if token == '"':
            inside = True
        elif token in "[{":
            stack.append("]" if token == "[" else "}")
            if len(stack) > 32:
                return True
        elif token in "]}" and (not stack or stack.pop() != token):
            return True
    return inside or bool(stack)


def flipped(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: flipped(value[key]) for key in sorted(value, reverse=True)}
    return [flipped(item) for item in value] if isinstance(value, (list, tuple)) else value


def dump(value: Any) -> str:
    return json.dumps(flipped(value), ensure_ascii=True, separators=(" , ", ":\t"))


def clean(text: str) -> str:
    return SECRET.sub("[redacted]", CONTROL.sub("\ufffd", text))


def pieces(text: str, raw: int, escaped: int) -> list[str]:
    """Cut between characters: at most `raw` UTF-8 bytes and `escaped` bytes of our JSON in each piece."""
    found, start, size, written = [], 0, 0, 0
    for index, char in enumerate(text):
        bytes_, chars = len(char.encode()), len(json.dumps(char)) - 2
        if size + bytes_ > raw or written + chars > escaped:
            found.append(text[start:index])
            start, size, written = index, 0, 0
        size, written = size + bytes_, written + chars
    return [*found, text[start:]]


def long_id(kind: str) -> str:
    return (f"{kind}_" + uuid.uuid4().hex + uuid.uuid4().hex)[:64]


def moment() -> str:
    now = time.time_ns() // 1000
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now // 1_000_000)) + f".{now % 1_000_000:06d}+00:00"


WRITING = threading.Lock()  # held while a record is written, so that leaving never cuts one


def leave(code: int) -> NoReturn:
    WRITING.acquire(timeout=0.5)
    os._exit(code)


def only(params: Any, required: dict[str, type], optional: dict[str, type] | None = None) -> Parsed:
    """Params with these fields and no others, nowhere a key twice; optional fields may also be null."""
    optional = optional or {}
    if not isinstance(params, Parsed) or any(isinstance(item, Parsed) and item.twice for item in walk(params)):
        raise FaultError("invalid_params")
    if not required.keys() <= params.keys() <= required.keys() | optional.keys():
        raise FaultError("invalid_params")
    for key, value in params.items():
        if key in optional and value is None:
            continue
        if type(value) is not (required | optional)[key]:
            raise FaultError("invalid_params")
    return params


def identifier(value: str) -> None:
    if not ID.fullmatch(value):
        raise FaultError("invalid_params")


class Output:
    """One queue, one writer thread that blocks in write, and a watchdog that knows no mercy."""

    def __init__(self) -> None:
        self.cv = threading.Condition()
        self.pending: deque[tuple[float, bytes]] = deque()
        self.instance = str(uuid.uuid4()).upper()
        self.seq = 0
        self.muted = False

    def put(self, frame: dict[str, Any]) -> None:
        with self.cv:
            if self.muted:
                return
            # A moment for the writer thread to run: a pipe that takes everything at once never overflows.
            if len(self.pending) >= PENDING and not self.cv.wait_for(lambda: len(self.pending) < PENDING, 0.08):
                leave(1)
            self.seq += 1 + self.seq % 3
            frame |= {"protocol": PROTOCOL, "version": 1, "instance_id": self.instance, "seq": self.seq}
            line = dump(frame).encode("ascii") + b" \n"
            if len(line) > FRAME:
                leave(1)
            self.pending.append((time.monotonic(), line))
            self.cv.notify_all()

    def room(self) -> bool:
        with self.cv:
            return self.cv.wait_for(lambda: self.muted or len(self.pending) < PENDING // 2, SECONDS)

    def drained(self, seconds: float) -> bool:
        with self.cv:
            return self.cv.wait_for(lambda: not self.pending, max(seconds, 0))

    def mute(self) -> None:
        with self.cv:
            self.muted = True
            self.cv.notify_all()

    def write_loop(self) -> None:
        while True:
            with self.cv:
                self.cv.wait_for(lambda: bool(self.pending))
                left = memoryview(self.pending[0][1])
            try:
                while left:
                    left = left[os.write(1, left) :]
            except OSError:
                leave(1)
            with self.cv:
                self.pending.popleft()
                self.cv.notify_all()

    def watch_loop(self) -> None:
        with self.cv:
            while True:
                left = self.pending[0][0] + SECONDS - time.monotonic() if self.pending else None
                if left is not None and left <= 0:
                    leave(1)
                self.cv.wait(left)


class Store:
    """Session records as JSON lines: in files below MC_HOME, or in memory when there is none."""

    def __init__(self) -> None:
        self.root: str | None = None
        self.memory: dict[str, bytes] = {}
        self.locks: dict[str, int] = {}

    def prepare(self) -> None:
        home = os.environ.get("MC_HOME")
        if home:
            self.root = os.path.join(os.path.realpath(home), "other-sessions")
            os.makedirs(self.root, mode=0o700, exist_ok=True)
            os.listdir(self.root)

    def path(self, name: str) -> str:
        return os.path.join(self.root or "", name)

    def names(self) -> list[str]:
        if self.root is None:
            return [f"{name}.jsonl" for name in reversed(self.memory)]
        try:
            return os.listdir(self.root)
        except OSError as error:
            raise FaultError("discovery_unavailable") from error

    def stamp(self, session_id: str) -> tuple[int, ...] | None:
        if self.root is None:
            data = self.memory.get(session_id)
            return None if data is None else (len(data),)
        try:
            info = os.stat(self.path(session_id + ".jsonl"), follow_symlinks=False)
        except OSError:
            return None
        return (info.st_ino, info.st_mode, info.st_size, info.st_mtime_ns, info.st_ctime_ns)

    def read(self, session_id: str, bound: int, over: str) -> bytes:
        if self.root is None:
            if session_id not in self.memory:
                raise FaultError("session_missing")
            return self.memory[session_id]
        try:
            handle = os.open(self.path(session_id + ".jsonl"), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError as error:
            raise FaultError("session_missing") from error
        except OSError as error:
            raise FaultError("session_invalid") from error
        try:
            info = os.fstat(handle)
            if not stat.S_ISREG(info.st_mode):
                raise FaultError("session_invalid")
            if info.st_size > bound:
                raise FaultError(over)
            chunks = []
            while chunk := os.read(handle, 1 << 20):
                chunks.append(chunk)
        finally:
            os.close(handle)
        return b"".join(chunks)

    def append(self, session_id: str, data: bytes, first: bool) -> None:
        with WRITING:
            if self.root is None:
                self.memory[session_id] = self.memory.get(session_id, b"") + data
                return
            flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | (os.O_CREAT | os.O_EXCL if first else 0)
            handle = os.open(self.path(session_id + ".jsonl"), flags, 0o600)
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(handle, view) :]
                os.fsync(handle)
            finally:
                os.close(handle)
            if first:
                folder = os.open(self.root, os.O_RDONLY)
                os.fsync(folder)
                os.close(folder)

    def hold(self, session_id: str) -> None:
        if self.root is None or session_id in self.locks:
            return
        handle = os.open(self.path(session_id + ".lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            os.lockf(handle, os.F_TLOCK, 0)
        except OSError as error:
            os.close(handle)
            raise FaultError("session_busy") from error
        self.locks[session_id] = handle

    def release(self, session_id: str) -> None:
        if session_id in self.locks:
            os.close(self.locks.pop(session_id))

    def held_elsewhere(self, session_id: str) -> bool:
        if self.root is None or session_id in self.locks:
            return False
        try:
            handle = os.open(self.path(session_id + ".lock"), os.O_RDWR | os.O_NOFOLLOW)
        except OSError:
            return False
        try:
            os.lockf(handle, os.F_TEST, 0)
        except OSError:
            return True
        finally:
            os.close(handle)
        return False


class History:
    """One unchanging projection of the records, cut into parts and small pages."""

    def __init__(self, records: list[dict[str, Any]], stamp: tuple[int, ...] | None) -> None:
        self.revision = long_id("h.r")
        self.stamp = stamp
        self.stale = False
        self.complete = True
        parts: list[dict[str, Any]] = []
        turn: list[tuple[str, str, bool]] = []
        is_open = False
        for record in [*records, {"type": "close"}]:
            kind, text = record["type"], record.get("text", "")
            if kind in ("user", "close"):
                if is_open:
                    self.complete = False
                    turn.append(("diagnostic", "The turn was interrupted before it was complete.", True))
                parts += [part for item in turn for part in self.cut(*item)]
                turn, is_open = [("user", text, False)], kind == "user"
            elif kind == "end":
                is_open = False
                if record["outcome"] != "completed":
                    turn = [(k, t, p or k == "assistant") for k, t, p in turn]
                    turn.append(("diagnostic", f"The turn ended: {record['outcome']}.", True))
            elif kind == "reasoning_summary":
                if record.get("provider_summary") is True:
                    turn.append((kind, text, False))
            elif kind in ("assistant", "activity"):
                turn.append((kind, text, False))
        sizes = [len(dump(part)) for part in parts]
        if len(parts) > 10_000 or sum(sizes) > 8_388_608:
            raise FaultError("history_limit")
        self.pages: list[list[dict[str, Any]]] = [[]]
        filled = 0
        for part, size in zip(parts, sizes, strict=True):
            if len(self.pages[-1]) == 3 or filled + size > PAGE - 2_000:
                self.pages.append([])
                filled = 0
            self.pages[-1].append(part)
            filled += size + 3
        self.cursors = [None, *(long_id("h.c") for _ in self.pages[1:])]

    @staticmethod
    def cut(kind: str, text: str, partial: bool) -> list[dict[str, Any]]:
        message_id = long_id("m")
        found = pieces(clean(text), PART, PAGE_TEXT) if text else []
        return [
            {
                "message_id": message_id,
                "kind": kind,
                "text": piece,
                "partial": partial,
                "part": number,
                "last_part": number == len(found) - 1,
            }
            for number, piece in enumerate(found)
        ]


class Session:
    def __init__(self, session_id: str) -> None:
        self.id = session_id
        self.durable = False
        self.records: list[dict[str, Any]] = []


class Approval:
    def __init__(self) -> None:
        self.id = str(uuid.uuid4()).upper()
        self.deadline = time.monotonic() + 60
        self.answer: bool | None = None


class Run:
    def __init__(self, session: Session, prompt: str) -> None:
        self.id = str(uuid.uuid4()).upper()
        self.session = session
        self.prompt = prompt
        self.cancelled = False
        self.approvals: dict[str, Approval] = {}
        self.segments: list[tuple[str, str]] = []
        self.notes: list[dict[str, Any]] = []


class Work:
    """The one request that the startup worker or the session worker has in hand."""

    def __init__(self, request_id: str, method: str) -> None:
        self.id = request_id
        self.method = method
        self.cancelled = False


class Backend:
    def __init__(self) -> None:
        self.cv = threading.Condition(threading.RLock())
        self.out = Output()
        self.store = Store()
        self.seen: set[str] = set()
        self.phase = "new"
        self.failure = ""
        self.stopping = False
        self.negotiated: frozenset[str] = frozenset()
        self.cwd = ""
        self.context: str | None = None
        self.work: Work | None = None
        self.run: Run | None = None
        self.session: Session | None = None
        self.lazy: dict[str, Session] = {}
        self.history: History | None = None
        self.chosen: dict[str, Any] = {}
        self.issued: set[str] = set()
        self.listing: dict[str, Any] = {}
        self.scan: dict[str, Any] = {}
        self.catalog: dict[str, Any] = {}
        self.enabled = sorted(MODELS) if os.environ.get("OTHER_CATALOG") == "1" else []

    # Input

    def read_loop(self) -> None:
        buffer = bytearray()
        while True:
            try:
                chunk = os.read(0, 4096)
            except OSError:
                chunk = b""
            if not chunk:
                break
            buffer += chunk
            while not self.stopping:
                end = buffer.find(b"\n")
                if end > FRAME or (end < 0 and len(buffer) > FRAME):
                    self.close("frame_too_large", None)
                elif end < 0:
                    break
                else:
                    line = bytes(buffer[:end])
                    del buffer[: end + 1]
                    self.handle(line)
            if self.stopping:
                buffer.clear()
        self.end_of_input(bool(buffer.strip()))

    def end_of_input(self, partial: bool) -> None:
        with self.cv:
            if self.stopping:
                return
            if partial:
                self.respond(None, error="incomplete_frame")
            self.stopping = True
            self.out.mute()  # what was queued is delivered; cancelled work says nothing more
            self.cancel_work()
            self.cancel_run()
        threading.Thread(target=self.close_down, daemon=True).start()

    def close(self, code: str | None, request_id: str | None) -> None:
        """Shut down (no code) or close with an error; cancelled operations answer before."""
        with self.cv:
            self.stopping = True
            self.cancel_work()
            self.cv.wait_for(lambda: self.work is None, 1.0)
            if code is None:
                self.respond(request_id, {"state": "stopping", "by": "other"})
            else:
                self.respond(request_id, error=code)
            self.cancel_run()
        threading.Thread(target=self.close_down, daemon=True).start()

    def close_down(self) -> None:
        started = time.monotonic()
        with self.cv:
            calm = self.cv.wait_for(lambda: self.work is None and self.run is None, SECONDS)
        drained = self.out.drained(started + SECONDS - time.monotonic())
        time.sleep(0.12)
        leave(0 if calm and drained else 1)

    def cancel_work(self) -> None:
        if self.work:
            self.work.cancelled = True
            self.cv.notify_all()

    def cancel_run(self) -> None:
        if self.run:
            self.run.cancelled = True
            self.cv.notify_all()

    def handle(self, line: bytes) -> None:
        if len(self.seen) < 300:
            time.sleep(0.002)
        request_id: str | None = None
        try:
            try:
                text = line.decode("utf-8")
                if text.strip(" \t\r")[:1] != "{":
                    raise ValueError
                if broken_structure(text):
                    raise FaultError("invalid_frame")
                frame = json.loads(text, object_pairs_hook=parsed, parse_constant=refuse_constant)
            except (ValueError, RecursionError) as error:
                raise FaultError("invalid_request") from error
            known = frame.get("id")
            if "id" not in frame.twice and isinstance(known, str) and ID.fullmatch(known):
                request_id = known
            if frame.twice or frame.keys() != {"protocol", "version", "id", "method", "params"}:
                raise FaultError("invalid_request")
            for item in walk(frame):
                if isinstance(item, str) and any("\ud800" <= char <= "\udfff" for char in item):
                    raise FaultError("invalid_request")
            protocol, version, method = frame["protocol"], frame["version"], frame["method"]
            if not isinstance(protocol, str) or not isinstance(version, (int, float, str)):
                raise FaultError("invalid_request")
            if protocol != PROTOCOL or type(version) is not int or version != 1:
                self.close("protocol_mismatch", request_id)
                return
            if request_id is None or not isinstance(method, str) or not ID.fullmatch(method):
                raise FaultError("invalid_request")
            if request_id in self.seen:
                raise FaultError("duplicate_id")
            if len(self.seen) == 4096:
                self.close("request_limit", request_id)
                return
            self.seen.add(request_id)
            with self.cv:
                self.dispatch(request_id, method, frame["params"])
        except FaultError as fault:
            with self.cv:
                self.respond(request_id, error=fault.code)

    def respond(self, request_id: str | None, result: dict[str, Any] | None = None, error: str = "") -> None:
        body: dict[str, Any] = {"result": result} if result is not None else {"error": {"code": error}}
        self.out.put({"type": "response", "id": request_id, **body})

    # Methods

    def ready(self) -> None:
        if self.phase in ("new", "starting"):
            raise FaultError("not_initialized")
        if self.phase == "failed":
            raise FaultError(self.failure)

    def dispatch(self, request_id: str, method: str, params: Any) -> None:
        if method not in METHODS:
            raise FaultError("not_initialized" if self.phase == "new" else "unsupported_method")
        if method == "initialize":
            self.initialize(request_id, params)
        elif method == "status":
            only(params, {})
            if self.phase == "new":
                raise FaultError("not_initialized")
            self.respond(request_id, self.status())
        elif method == "shutdown":
            only(params, {})
            self.close(None, request_id)
        elif method == "operation.cancel":
            self.operation_cancel(request_id, params)
        elif method == "turn.start":
            self.turn_start(request_id, params)
        elif method == "turn.cancel":
            if not WAYS:
                self.ready()
            only(params, {"session_id": str, "run_id": str})
            run = self.run
            if run is None or run.id != params["run_id"] or run.session.id != params["session_id"]:
                raise FaultError("stale_run")
            self.respond(request_id, {"cancellation_requested": True, "by": "other"})
            self.cancel_run()
        elif method == "approval.answer":
            if not WAYS:
                self.ready()
            only(params, {"session_id": str, "run_id": str, "approval_id": str, "allow": bool})
            self.approval_answer(params)
            self.respond(request_id, {"recorded": True, "by": "other"})
            self.cv.notify_all()
        else:
            self.operation(request_id, method, params)

    def initialize(self, request_id: str, params: Any) -> None:
        only(params, {"required_capabilities": list}, {"client_tools": list})
        names: list[Any] = params["required_capabilities"]
        if WAYS:
            os.write(2, b"other: told to start\n")
            if not names:
                raise FaultError("invalid_params")
        if not all(isinstance(name, str) for name in names):
            raise FaultError("invalid_params")
        if "client_tools" in params and ("client.tools" not in names or params["client_tools"] is None):
            raise FaultError("invalid_params")
        if self.phase != "new":
            raise FaultError("already_initialized")
        if any(name not in METHODS for name in names):
            raise FaultError("unsupported_capability")
        if len(names) > 16:
            raise FaultError("invalid_params")
        self.negotiated = frozenset(names)
        self.phase = "starting"
        self.begin(request_id, "initialize", self.startup, 0.09)

    def startup(self) -> dict[str, Any]:
        try:
            self.store.prepare()
            self.cwd = os.path.realpath(os.getcwd())
        except OSError as error:
            raise FaultError("startup_failed") from error
        root = "in memory" if self.store.root is None else self.store.root
        self.context = hashlib.sha256(os.fsencode(f"{self.cwd}\0{root}")).hexdigest().upper()
        self.phase = "ready"
        self.choose(STARTUP, "default")
        offered = sorted(METHODS, key=lambda _: uuid.uuid4().int) if WAYS else list(METHODS)
        result = {"capabilities": offered, "limits": LIMITS, "status": self.status(), "by": "other"}
        extensions: dict[str, dict[str, object]] = {"session.discover": DISCOVER, "model.refresh": REFRESH}
        if WAYS:
            extensions |= {"operation.cancel": {"workers": 1}, "model.catalog.status": {}}
        wanted = {name: value for name, value in extensions.items() if name in self.negotiated}
        return result | ({"extensions": wanted} if wanted else {})

    def status(self) -> dict[str, Any]:
        ready = self.phase == "ready"
        return {
            "state": ("running" if self.run else "idle") if ready else self.phase,
            "readiness": {"ready": "ready", "starting": "initializing"}.get(self.phase, self.failure),
            "provider": self.chosen["provider"] if ready else None,
            "model": self.chosen["model"] if ready else None,
            "context_id": self.context,
            "session_id": self.session.id if self.session else None,
            "run_id": self.run.id if self.run else None,
            "selection": self.chosen if ready else None,
        }

    def choose(self, pair: tuple[str, str], requested: str) -> None:
        _, _, support, efforts = MODELS[pair]
        effective: str | None = None
        if support == "supported":
            unknown = None if WAYS else "default"
            effective = unknown if requested not in efforts else efforts[0] if requested == "default" else requested
        self.chosen = {
            "revision": long_id("s.r"),
            "provider": pair[0],
            "model": pair[1],
            "requested_effort": requested,
            "effective_effort": effective,
            "effort_support": support,
            "permitted_efforts": efforts,
        }

    def operation_cancel(self, request_id: str, params: Any) -> None:
        if "operation.cancel" not in self.negotiated:
            raise FaultError("unsupported_capability")
        only(params, {"request_id": str})
        identifier(params["request_id"])
        if self.work is None or self.work.id != params["request_id"] or self.work.method == "initialize":
            raise FaultError("operation_missing")
        self.cancel_work()
        self.cv.wait_for(lambda: self.work is None, 1.0)  # its own answer comes first
        self.respond(request_id, {"state": "cancelling", "request_id": params["request_id"]})

    def approval_answer(self, params: Any) -> None:
        run = self.run
        if run is None or run.cancelled or run.id != params["run_id"] or run.session.id != params["session_id"]:
            raise FaultError("stale_approval")
        approval = run.approvals.get(params["approval_id"])
        if approval is None or approval.answer is not None or time.monotonic() >= approval.deadline:
            raise FaultError("stale_approval")
        approval.answer = params["allow"]

    # The session worker

    def operation(self, request_id: str, method: str, params: Any) -> None:
        if method in OPTIONAL and method not in self.negotiated:
            raise FaultError("unsupported_capability")
        if WAYS and method in ("session.list", "model.catalog", "selection.set") and method not in self.negotiated:
            raise FaultError("unsupported_capability")
        job = self.check(method, params)  # params before the state
        if self.phase == "starting" and method in ("selection.set", "model.refresh"):
            raise FaultError("busy")
        self.ready()
        if self.work or self.run:
            raise FaultError("busy")
        if method == "model.refresh":
            self.catalog = {}
        self.begin(request_id, method, job, 0.01 + 0.007 * (len(self.seen) % 5))

    def check(self, method: str, params: Any) -> Callable[[], dict[str, Any]]:
        if method == "session.create":
            only(params, {})
            return self.session_create
        if method == "session.open":
            only(params, {"session_id": str})
            return lambda: self.session_open(params["session_id"])
        if method == "history.page":
            only(params, {"session_id": str, "revision": str}, {"cursor": str})
            return lambda: self.history_page(params["session_id"], params["revision"], params.get("cursor"))
        if method == "model.refresh":
            only(params, {"provider": str})
            if params["provider"] not in {provider for provider, _ in MODELS}:
                raise FaultError("invalid_params")
            return lambda: self.model_refresh(params["provider"])
        if method == "selection.set":
            return self.check_selection(params)
        only(params, {}, {"revision": str, "cursor": str, "limit": int})
        revision, cursor, limit = params.get("revision"), params.get("cursor"), params.get("limit", 100)
        if limit is None or not 1 <= limit <= 100 or (revision is None) != (cursor is None):
            raise FaultError("invalid_params")
        for value in (revision, cursor):
            if value is not None:
                identifier(value)
        pager = {"session.list": self.session_list, "session.discover": self.session_discover}.get(method)
        if pager:
            return lambda: pager(revision, cursor, limit)
        return lambda: self.model_catalog(revision, cursor, limit, method == "model.catalog.status")

    def check_selection(self, params: Any) -> Callable[[], dict[str, Any]]:
        strings = ("session_id", "selection_revision", "catalog_revision", "provider", "model")
        only(params, dict.fromkeys(strings, str), {"effort": Parsed})
        identifier(params["selection_revision"])
        identifier(params["catalog_revision"])
        effort = params.get("effort", {"mode": "keep"})
        simple = effort in ({"mode": "keep"}, {"mode": "default"})
        explicit = bool(effort) and effort.keys() == {"mode", "value"} and effort["mode"] == "set"
        names = (params["provider"], params["model"])
        if (
            not SESSION_ID.fullmatch(params["session_id"])
            or any(
                not 1 <= len(name.encode()) <= 256 or clean(name) != name or set(name) & set("\t\r\n") for name in names
            )
            or not (simple or (explicit and effort["value"] in EFFORTS))
        ):
            raise FaultError("invalid_params")
        return lambda: self.selection_set(params, effort)

    def begin(self, request_id: str, method: str, job: Callable[[], dict[str, Any]], delay: float) -> None:
        self.work = Work(request_id, method)
        threading.Thread(target=self.carry_out, args=(self.work, job, delay), daemon=True).start()

    def carry_out(self, work: Work, job: Callable[[], dict[str, Any]], delay: float) -> None:
        with self.cv:
            self.cv.wait_for(lambda: work.cancelled, delay)
            result, code = None, ""
            try:
                if work.cancelled:
                    raise FaultError("startup_cancelled" if work.method == "initialize" else "operation_cancelled")
                result = job()
            except FaultError as fault:
                code = fault.code
                if work.method == "initialize":
                    self.phase, self.failure = "failed", code
                elif work.method == "session.discover" and code != "invalid_params":
                    self.scan = {}
            except OSError:
                code = "persistence_failed" if work.method == "selection.set" else "session_invalid"
            if WAYS:  # what is done shows before it is answered
                self.cv.wait_for(lambda: False, 0.01)
            self.work = None
            self.respond(work.id, result, code)
            self.cv.notify_all()

    def attach(self, session: Session, history: History) -> None:
        if self.session and self.session.id != session.id:
            self.store.release(self.session.id)
        self.session, self.history = session, history

    def session_create(self) -> dict[str, Any]:
        session = Session(long_id("other-session"))
        self.lazy[session.id] = session
        self.attach(session, History([], None))
        self.choose(STARTUP, "default")
        return self.attached([])

    def attached(self, notices: list[str]) -> dict[str, Any]:
        assert self.session
        assert self.history
        body = {"session_id": self.session.id, "durable": self.session.durable, "by": "other"}
        return {**body, "revision": self.history.revision, "notices": notices}

    def session_open(self, session_id: str) -> dict[str, Any]:
        pair, effort = STARTUP, "default"
        notices: list[str] = []
        if session_id in self.lazy:
            session = self.lazy[session_id]
            self.attach(session, History([], None))
        else:
            if not SESSION_ID.fullmatch(session_id):
                raise FaultError("session_missing")
            stamp = self.store.stamp(session_id)
            session = Session(session_id)
            session.durable = True
            session.records, notices, _ = self.load(session_id, 67_108_864, 100_000, "history_limit")
            history = History(session.records, stamp)
            self.store.hold(session_id)
            for record in session.records:
                if record["type"] == "preferences":
                    pair, effort = (record["provider"], record["model"]), record["effort"]
            if pair != STARTUP and (pair not in self.enabled or not MODELS[pair][1]):
                pair = STARTUP
                notices = [*notices, "saved_selection_unavailable"]
            self.attach(session, history)
        self.choose(pair, effort)
        return self.attached(notices)

    def load(self, session_id: str, size: int, lines: int, over: str) -> tuple[list[dict[str, Any]], list[str], int]:
        """The records of a stored session, its notices and its size."""
        data = self.store.read(session_id, size, over)
        rows = data.split(b"\n")
        if len(rows) - 1 > lines:
            raise FaultError(over)
        records: list[dict[str, Any]] = []
        try:
            if rows.pop():
                raise ValueError  # a record without its end
            for row in rows:
                record = json.loads(row)
                texts = [record[key] for key in ("session", "cwd", "at", "type")]
                texts += [record[key] for key in ("text", "outcome", "provider", "model", "effort") if key in record]
                if record["session"] != session_id or not all(isinstance(text, str) for text in texts):
                    raise ValueError
                if record["type"] == "preferences" and not {"provider", "model", "effort"} <= record.keys():
                    raise ValueError
                records.append(record)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise FaultError("session_invalid") from error
        places = {record["cwd"] for record in records if record["cwd"]}
        if any(not os.path.isabs(place) or os.path.realpath(place) != self.cwd for place in places):
            raise FaultError("cwd_mismatch")
        return records, [] if places else ["cwd_unverified"], len(data)

    def append(self, session: Session, records: list[dict[str, Any]]) -> None:
        common = {"session": session.id, "cwd": self.cwd, "at": moment()}
        records = [{**common, **record} for record in records]
        try:
            self.store.hold(session.id)
            lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
            self.store.append(session.id, lines.encode(), first=not session.durable)
        except (OSError, FaultError) as error:
            raise FaultError("persistence_failed") from error
        session.durable = True
        session.records += records
        self.lazy.pop(session.id, None)

    def history_page(self, session_id: str, revision: str, cursor: str | None) -> dict[str, Any]:
        session, history = self.session, self.history
        if session is None:
            raise FaultError("session_missing")
        if history is None or history.revision != revision:
            raise FaultError("stale_session" if session.id != session_id and history is None else "stale_revision")
        if session.id != session_id:
            raise FaultError("stale_session")
        if self.store.stamp(session_id) != history.stamp:
            history.stale = True
        if history.stale or cursor not in history.cursors:
            raise FaultError("stale_revision")
        number = history.cursors.index(cursor)
        last = number == len(history.pages) - 1
        return {
            "session_id": session_id,
            "revision": revision,
            "entries": history.pages[number],
            "next_cursor": None if last else history.cursors[number + 1],
            "complete": last and history.complete,
        }

    # Listings

    def fingerprint(self) -> list[Any]:
        names = sorted(name for name in self.store.names() if name.endswith(".jsonl"))
        marks = [(name, self.store.stamp(name[:-6]), self.store.held_elsewhere(name[:-6])) for name in names]
        return [self.session.id if self.session else None, *marks]

    def entry(self, session_id: str, size: int, lines: int) -> tuple[dict[str, Any] | None, bool, int, int]:
        """An entry or None, whether it was left out as invalid, and what reading it cost."""
        try:
            records, notices, used = self.load(session_id, size, lines, "discovery_limit")
        except FaultError as fault:
            if fault.code == "discovery_limit":
                raise
            if fault.code == "session_missing":
                raise FaultError("stale_revision") from fault
            return None, fault.code != "cwd_mismatch", size, lines
        eligibility = "cwd_unverified" if notices else "available"
        if self.store.held_elsewhere(session_id):
            eligibility = "busy"
        times = [record["at"] for record in records]
        shown = {"session_id": session_id, "title": None, "updated_at": max(times) if times else None}
        return {**shown, "eligibility": eligibility, "notices": notices}, False, used, len(records)

    def candidates(self) -> list[str]:
        found = [name[:-6] for name in self.store.names() if name.endswith(".jsonl")]
        if not all(SESSION_ID.fullmatch(name) for name in found):
            raise FaultError("discovery_unavailable")
        return found

    def session_list(self, revision: str | None, cursor: str | None, limit: int) -> dict[str, Any]:
        if revision is None:
            self.listing = {}
            started, mark, left_bytes, left_lines = time.monotonic(), self.fingerprint(), 67_108_864, 100_000
            if len(self.store.names()) > 4096:
                raise FaultError("discovery_limit")
            entries, omitted = [], False
            for name in sorted(self.candidates()):
                shown, invalid, used, lines = self.entry(name, 8_388_608, 10_000)
                left_bytes, left_lines = left_bytes - used, left_lines - lines
                omitted = omitted or invalid
                entries += [shown] if shown else []
                late = time.monotonic() - started > 2
                if left_bytes < 0 or left_lines < 0 or late or len(entries) > 256:
                    raise FaultError("discovery_limit")
            if self.fingerprint() != mark:
                raise FaultError("stale_revision")
            notices = ["sessions_omitted_invalid"] if omitted else []
            self.listing = {"revision": self.issue("l.r"), "entries": entries, "notices": notices, "mark": mark}
            position = 0
        else:
            self.continued(self.listing, revision, "stale_revision")
            if self.listing["mark"] != self.fingerprint():
                self.listing["mark"] = None  # sticky
            if self.listing["mark"] is None or self.listing["cursor"] != cursor:
                raise FaultError("stale_revision")
            position = self.listing["position"]
        entries = self.listing["entries"]
        stop = min(position + min(limit, 1 if WAYS else 2), len(entries))
        done = stop == len(entries)
        self.listing |= {"position": stop, "cursor": None if done else long_id("l.c")}
        return {
            "revision": self.listing["revision"],
            "sessions": entries[position:stop],
            "next_cursor": self.listing["cursor"],
            "complete": done,
            "notices": self.listing["notices"],
        }

    def issue(self, kind: str) -> str:
        revision = long_id(kind)
        self.issued.add(revision)
        return revision

    def continued(self, snapshot: dict[str, Any], revision: str, stale: str) -> None:
        if revision not in self.issued:
            raise FaultError("invalid_params")
        if snapshot.get("revision") != revision:
            raise FaultError("invalid_params" if WAYS and stale == "stale_revision" else stale)

    def session_discover(self, revision: str | None, cursor: str | None, limit: int) -> dict[str, Any]:
        scan, progress = self.scan, "directory_work"
        shown: list[dict[str, Any]] = []
        if revision is None:  # the first page is always empty: it has looked at the directory only
            self.scan = {}
            scan = {"revision": self.issue("d.r"), "mark": self.fingerprint(), "omitted": False}
            scan["names"] = self.candidates()
        else:
            self.continued(scan, revision, "stale_revision")
            if scan["cursor"] != cursor or scan["mark"] != self.fingerprint():
                raise FaultError("stale_revision")  # the scan is lost
            progress = "history_work" if scan["names"] else "complete"
            while scan["names"] and len(shown) < min(limit, 2):
                entry, invalid, _, _ = self.entry(scan["names"].pop(0), 67_108_864, 100_000)
                scan["omitted"] = scan["omitted"] or invalid
                shown += [entry] if entry else []
            if len(shown) == limit and progress != "complete":
                progress = "page_entries"
        done = progress == "complete"
        scan["cursor"] = None if done else long_id("d.c")
        self.scan = scan
        return {
            "revision": scan["revision"],
            "sessions": shown,
            "next_cursor": scan["cursor"],
            "complete": done,
            "notices": ["sessions_omitted_invalid"] if scan["omitted"] else [],
            "consistency": "provisional_until_complete",
            "progress": progress,
            "recovery": "none" if done else "continue_cursor",
        }

    # Models

    def model_catalog(self, revision: str | None, cursor: str | None, limit: int, status: bool) -> dict[str, Any]:
        if revision is None:
            self.catalog = {"revision": self.issue("c.r"), "cursors": {}}
            start = 0
        else:
            self.continued(self.catalog, revision, "stale_catalog")
            if cursor not in self.catalog["cursors"]:
                raise FaultError("stale_catalog")
            start = self.catalog["cursors"][cursor]
        stop = min(start + min(limit, 2), len(self.enabled))
        following = None if stop == len(self.enabled) else long_id("c.c")
        if following:
            self.catalog["cursors"][following] = stop
        result: dict[str, Any] = {
            "revision": self.catalog["revision"],
            "choices": [self.choice(pair) for pair in self.enabled[start:stop]],
            "next_cursor": following,
            "complete": following is None,
            "notices": [],
            "source": "cache_only",
        }
        if status:
            used = {provider for provider, _ in self.enabled} | {self.chosen["provider"]}
            names = {provider: ready for (provider, _), (_, ready, _, _) in MODELS.items()}
            providers = []
            for provider, ready in sorted(names.items()):
                shown = {"provider": provider, "catalog_status": "available", "relevant": provider in used}
                authentication = "ready" if ready else "authentication_unavailable"
                recovery = "none" if ready else "configure_authentication"
                if provider not in used:
                    authentication, recovery = "not_checked", "enable_models_and_restart"
                providers.append({**shown, "authentication": authentication, "recovery": recovery})
            result |= {"configuration_reload": "restart_child", "providers": providers}
        return result

    def choice(self, pair: tuple[str, str]) -> dict[str, Any]:
        name, ready, support, efforts = MODELS[pair]
        return {
            "selection_id": hashlib.sha256("\0".join(pair).encode()).hexdigest(),
            "provider": pair[0],
            "model": pair[1],
            "provider_name": None,
            "model_name": name,
            "availability": "available" if ready else "authentication_unavailable",
            "effort_support": support,
            "permitted_efforts": efforts,
        }

    def model_refresh(self, provider: str) -> dict[str, Any]:
        ready = any(entry[1] for pair, entry in MODELS.items() if pair[0] == provider)
        self.catalog = {"revision": self.issue("c.r"), "cursors": {}}
        return {
            "provider": provider,
            "outcome": "failed",
            "reason": "remote_unavailable" if ready else "authentication_unavailable",
            "catalog_revision": self.catalog["revision"],
            "catalog_error": None,
            "recovery": "reload_catalog",
            "configuration_reload": "restart_child",
            "selection_unchanged": True,
        }

    def selection_set(self, params: dict[str, Any], effort: dict[str, str]) -> dict[str, Any]:
        session, pair = self.session, (params["provider"], params["model"])
        if session is None:
            raise FaultError("session_missing")
        if self.catalog.get("revision") != params["catalog_revision"]:
            raise FaultError("stale_catalog")
        if self.chosen["revision"] != params["selection_revision"]:
            raise FaultError("stale_selection")
        if session.id != params["session_id"]:
            raise FaultError("stale_session")
        if pair not in self.enabled:
            raise FaultError("selection_invalid")
        if not MODELS[pair][1]:
            raise FaultError("provider_unavailable")
        kept = self.chosen["requested_effort"]
        requested = {"keep": kept, "default": "default"}.get(effort["mode"]) or effort["value"]
        if requested != "default" and requested not in MODELS[pair][3]:
            raise FaultError("effort_unsupported")
        record = {"type": "preferences", "provider": pair[0], "model": pair[1], "effort": requested}
        self.append(session, [record])
        self.choose(pair, requested)
        self.history = History(session.records, self.store.stamp(session.id))
        return {
            "session_id": session.id,
            "selection": self.chosen,
            "catalog_revision": params["catalog_revision"],
            "scope": "session",
            "durable": True,
            "history_revision": self.history.revision,
            "notices": [],
        }

    # Turns

    def turn_start(self, request_id: str, params: Any) -> None:
        only(params, {"session_id": str, "prompt": str})
        if not params["prompt"].strip(" \t\r\n\f\v") or len(params["prompt"].encode()) > 16_384:
            raise FaultError("content_limit" if WAYS else "invalid_params")
        if not WAYS or self.phase != "new":
            self.ready()
        if self.session is None:
            raise FaultError("busy" if self.work else "session_missing")
        if self.work is None and self.session.id != params["session_id"]:
            raise FaultError("stale_session")
        if self.work or self.run:
            raise FaultError("busy")
        self.run = Run(self.session, params["prompt"])
        accepted = {"run_id": self.run.id, "accepted": True, "by": "other"}
        threading.Thread(target=self.turn, args=(self.run, request_id, accepted), daemon=True).start()

    def event(self, run: Run, name: str, /, **data: Any) -> None:
        if not self.out.room():
            raise FaultError("output_unavailable")
        with self.cv:
            self.out.put(
                {"type": "event", "event": name, "data": {"session_id": run.session.id, "run_id": run.id, **data}}
            )

    def pause(self, run: Run, seconds: float | None) -> None:
        with self.cv:
            if self.cv.wait_for(lambda: run.cancelled, seconds):
                raise CancelledError

    def turn(self, run: Run, request_id: str, accepted: dict[str, Any]) -> None:
        if WAYS:  # a busy refusal may overtake the admission
            time.sleep(0.01)
        with self.cv:
            self.respond(request_id, accepted)
        outcome, code, persistence = "completed", None, "not_started"
        try:
            self.pause(run, 0.005)
            with self.cv:
                self.append(run.session, [{"type": "user", "text": run.prompt}])
            persistence = "durable"
            self.event(run, "input.persisted", message_id=long_id("u"), durable=True, revision=long_id("h.r"))
            self.play(run, set(re.findall("[A-Z]+", run.prompt)))
        except CancelledError:
            outcome, code = "cancelled", "operation_cancelled"
        except FaultError as fault:
            outcome = "cancelled" if fault.code == "output_unavailable" else "failed"
            code = fault.code
        if persistence == "durable" and not self.conclude(run, outcome, code):
            persistence = "degraded"
        with contextlib.suppress(FaultError):
            if persistence == "degraded" and not WAYS:
                self.event(run, "diagnostic", code="history.degraded", summary="The reply could not be stored.")
            self.settle(run, outcome)
            self.out.room()
        with self.cv:
            self.history = None  # and no revision: the client has to open the session again
            if persistence == "durable" and not WAYS:
                with contextlib.suppress(FaultError):
                    self.history = History(run.session.records, self.store.stamp(run.session.id))
            data: dict[str, Any] = {"session_id": run.session.id, "run_id": run.id}
            data |= {"outcome": outcome, "persistence": persistence}
            data |= {"revision": self.history.revision if self.history else None, "error_code": code}
            self.run = None
            self.out.put({"type": "event", "event": "run.finished", "data": data})
            self.cv.notify_all()

    def conclude(self, run: Run, outcome: str, code: str | None) -> bool:
        """Store the replies and the end of the turn."""
        with self.cv, contextlib.suppress(FaultError):
            if code != "persistence_failed":
                self.append(run.session, [*run.notes, {"type": "end", "outcome": outcome}])
                return True
        return False

    def settle(self, run: Run, outcome: str) -> None:
        """The last reconciliations: parts of the segments interleaved, and all of it twice."""
        cut = {message_id: pieces(text, LIVE, PAGE_TEXT) for message_id, text in run.segments}
        for _ in range(2):
            for number in range(max(map(len, cut.values()), default=0)):
                for message_id, parts in cut.items():
                    if number < len(parts):
                        self.reconcile(run, message_id, parts, number, outcome != "completed")

    def reconcile(self, run: Run, message_id: str, parts: list[str], number: int, partial: bool) -> None:
        data = {"part": number, "text": parts[number], "last_part": number == len(parts) - 1, "partial": partial}
        self.event(run, "message.reconcile", message_id=message_id, **data)

    def say(self, run: Run, text: str, deltas: bool = True) -> None:
        message_id = long_id("a")
        run.segments.append((message_id, text))
        run.notes.append({"type": "assistant", "text": text})
        if deltas and len(text) >= 12:  # two deltas; what lay between them was dropped
            self.event(run, "message.delta", message_id=message_id, part=0, text=text[:4])
            self.pause(run, 0.003)
            self.event(run, "message.delta", message_id=message_id, part=3, text=text[8:12])
        parts = pieces(text, 40 if len(text) < 400 else LIVE - 7, PAGE_TEXT)
        for number in range(len(parts)):
            self.reconcile(run, message_id, parts, number, True)

    def tool(self, run: Run, name: str) -> None:
        activity_id = long_id("tool")
        for state in ("started", "completed"):
            note = f"{name} is {state}"
            self.event(run, "activity", activity_id=activity_id, kind="tool", state=state, name=name, summary=note)
            self.pause(run, 0.008)
        run.notes.append({"type": "activity", "text": f"{name}: completed"})

    def ask(self, run: Run, names: list[str]) -> None:
        """Ask for all of them at once; the first denial fails the run and voids the others."""
        with self.cv:
            asked = [Approval() for _ in names]
            run.approvals = {approval.id: approval for approval in asked}
        for approval, name in zip(asked, names, strict=True):
            left = max(1, int((approval.deadline - time.monotonic()) * 1000))
            summary = f"May {name} run? (ä, not a)"
            self.event(run, "approval.requested", approval_id=approval.id, summary=summary, expires_in_ms=left)
        with self.cv:
            last = min(approval.deadline for approval in asked)

            def settled() -> bool:
                answers = [approval.answer for approval in asked]
                return run.cancelled or False in answers or None not in answers

            self.cv.wait_for(settled, max(last - time.monotonic(), 0))
            run.approvals = {}
            if run.cancelled:
                raise FaultError("execution_failed") if WAYS else CancelledError
            denied = [approval for approval in asked if approval.answer is not True]
        if denied:
            run.notes.append({"type": "activity", "text": f"{names[0]}: not allowed, failed"})
            self.event(run, "diagnostic", code="approval-denied", summary="A tool was not allowed; the run ends.")
            raise FaultError("execution_failed")
        for name in names:
            self.tool(run, name)

    def play(self, run: Run, words: set[str]) -> None:
        if "THINK" in words:
            summary = {"type": "reasoning_summary", "text": "Weighed both sides.", "provider_summary": True}
            run.notes.append(summary)
            self.pause(run, 0.02)
        self.say(run, "Zuerst ein Satz mit Umlauten: größer, schöner ✓.", deltas=False)
        self.pause(run, 0.006)
        if "APPROVAL" in words:
            self.ask(run, ["chisel granite.txt"])
        elif "PARALLEL" in words:
            self.ask(run, ["chisel left.txt", "chisel right.txt"])
        elif "TOOL" in words:
            self.tool(run, "survey .")
        elif "STALL" in words:
            self.pause(run, None)
        elif "FAIL" in words:
            raise FaultError("execution_failed")
        elif "DEGRADED" in words:
            raise FaultError("persistence_failed")
        elif "LONG" in words:
            self.say(run, "Eine längere Antwort — " * 1500)
        if WAYS:  # opened, and nothing but white space to say in it
            self.event(run, "message.delta", message_id=long_id("a"), part=0, text="\n\n")
        self.say(run, "Second segment: all done, \U0001f30d included.\n")
        self.pause(run, 0.004)


def main(arguments: list[str]) -> None:
    if arguments != ["serve", "--stdio"]:
        os.write(2, b"usage: other_backend.py serve --stdio\n")
        os._exit(2)
    try:
        if not all(stat.S_ISFIFO(os.fstat(end).st_mode) for end in (0, 1)):
            os._exit(1)
    except OSError:
        os._exit(1)
    if WAYS:
        os.write(2, b"other: 3 skills loaded\n")
    os.set_blocking(0, True)
    os.set_blocking(1, True)
    threading.excepthook = lambda _: leave(1)
    backend = Backend()

    def stop(*_: Any) -> None:
        threading.Thread(target=backend.end_of_input, args=(False,), daemon=True).start()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    for loop in (backend.out.write_loop, backend.out.watch_loop, backend.read_loop):
        threading.Thread(target=loop, daemon=True).start()
    threading.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1:])
