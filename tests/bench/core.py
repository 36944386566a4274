"""In process: a status request through the core beside a bare decode and encode, and the explorer's pace."""

import itertools
import json
import statistics
import time
from collections.abc import Callable

import msgspec

from localagent.core import worker
from localagent.core.connection import Connection
from localagent.protocol.results import Selection
from statemachines.explore import SLICES, compile_slice, explore
from statemachines.properties import always, goals

ROUNDS = 7
REQUESTS = 500
SELECTION = Selection(
    effective_effort="default",
    effort_support="supported",
    model="demo",
    permitted_efforts=("default",),
    provider="scripted",
    requested_effort="default",
    revision="r",
)


def _line(number: int, method: str, **params: object) -> bytes:
    request = {
        "protocol": "magi-code.local-agent",
        "version": 1,
        "id": f"r{number}",
        "method": method,
        "params": params,
    }
    return json.dumps(request).encode() + b"\n"


def _ready() -> Connection:
    numbers = itertools.count()
    connection = Connection(lambda: f"00000000-0000-4000-8000-{next(numbers):012x}")
    for _ in connection.receive(_line(0, "initialize", required_capabilities=[]), 0):
        pass
    connection.work(worker.WorkerDone(1, worker.Started("scripted", "demo", "0" * 64, SELECTION)), 0)
    _write(connection)
    return connection


def _write(connection: Connection) -> None:
    while connection.output:
        connection.wrote(len(connection.output.head()), 0)


def _per_item(work: Callable[[], int]) -> float:
    """Microseconds per item: the median of the rounds."""
    taken = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        items = work()
        taken.append((time.perf_counter() - begin) / items * 1e6)
    return statistics.median(taken)


def _core_status() -> int:
    connection = _ready()
    for number in range(1, REQUESTS + 1):
        for _ in connection.receive(_line(number, "status"), 0):
            _write(connection)
    return REQUESTS


def _bare_status() -> int:
    decoder, encoder = msgspec.json.Decoder(), msgspec.json.Encoder()
    connection = _ready()
    for _ in connection.receive(_line(1, "status"), 0):
        answer = msgspec.json.decode(bytes(connection.output.head()))
    for number in range(1, REQUESTS + 1):
        decoder.decode(_line(number, "status"))
        encoder.encode(answer)
    return REQUESTS


def report() -> None:
    """Print the figures."""
    bare, core = _per_item(_bare_status), _per_item(_core_status)
    print(f"status in process   bare {bare:7.1f} us   decode+admit+encode {core:7.1f} us   x{core / bare:.1f}")
    for name in ("lifecycle", "asks", "segments"):
        model = compile_slice(SLICES[name])
        begin = time.perf_counter()
        report = explore(model, always(model), goals(model))
        seconds = time.perf_counter() - begin
        print(
            f"explore {name:<12} {report.states:>7,} states   {report.transitions:>9,} transitions   "
            f"{seconds:5.2f} s   {report.transitions / seconds / 1000:6.0f} k transitions/s"
        )
