"""Faults of writing: envelopes, numbering, lines."""

import json
from collections.abc import Callable
from itertools import count
from typing import Any

from .mutant import fault
from .tools import around

Frame = dict[str, Any]


def rewriting(change: Callable[[Frame], None]) -> None:
    """Let ``change`` alter every frame before it is queued."""
    from localagent.core import connection

    @around(connection, "encode")
    def encode(original: Any, frame: Any) -> bytes:
        value = json.loads(original(frame))
        change(value)
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _spelling(change: Callable[[bytes], bytes], *, errors_only: bool = True) -> None:
    """Let ``change`` spell error responses, or all frames, differently."""
    from localagent.core import connection

    @around(connection, "encode")
    def encode(original: Any, frame: Any) -> bytes:
        line: bytes = original(frame)
        return change(line) if not errors_only or b'"error":{' in line else line


@fault
def wrong_id() -> None:
    """A refusal bears another id than its request."""

    def change(frame: Frame) -> None:
        if "error" in frame and frame["id"] is not None:
            frame["id"] = "other"

    rewriting(change)


@fault
def refusals_without_id() -> None:
    """A refusal bears no id though the request has one."""

    def change(frame: Frame) -> None:
        if "error" in frame:
            frame["id"] = None

    rewriting(change)


@fault
def swallowed_frame() -> None:
    """The fifth frame of a child is never sent."""
    from localagent.core.connection import Connection

    numbers = count(1)

    @around(Connection, "_queue")
    def queue(original: Any, self: Any, frame: Any, now: float) -> None:
        if next(numbers) == 5:
            self._seq -= 1
        else:
            original(self, frame, now)


@fault
def doubled_answer() -> None:
    """The fifth frame of a child is sent twice."""
    from localagent.core.connection import Connection

    numbers = count(1)

    @around(Connection, "_send")
    def send(original: Any, self: Any, filled: Any, now: float) -> None:
        original(self, filled, now)
        if next(numbers) == 5:
            original(self, filled, now)


def _numbering(number: Callable[[int], int]) -> None:
    rewriting(lambda frame: frame.update(seq=number(frame["seq"])))


@fault
def seq_reset() -> None:
    """seq begins again at 1 after four frames."""
    _numbering(lambda seq: (seq - 1) % 4 + 1)


@fault
def seq_repeated() -> None:
    """The fifth frame has the seq of the fourth."""
    _numbering(lambda seq: seq - (seq >= 5))


@fault
def events_counted_apart() -> None:
    """Events have a seq of their own."""
    numbers = count(1)
    rewriting(lambda frame: frame.update(seq=next(numbers)) if "event" in frame else None)


@fault
def seq_from_zero() -> None:
    """seq begins at 0."""
    _numbering(lambda seq: seq - 1)


@fault
def instance_id_changes() -> None:
    """instance_id changes after four frames."""
    fresh = "00000000-0000-4000-8000-000000000000"
    rewriting(lambda frame: frame.update(instance_id=fresh) if frame["seq"] > 4 else None)


@fault
def instance_id_of_all_children() -> None:
    """Every child has the same instance_id."""
    rewriting(lambda frame: frame.update(instance_id="00000000-0000-4000-8000-000000000000"))


@fault
def instance_id_no_uuid() -> None:
    """instance_id is no UUID."""
    rewriting(lambda frame: frame.update(instance_id="the-only-instance"))


@fault
def version_as_text() -> None:
    """The version of refusals is a string."""
    rewriting(lambda frame: frame.update(version="1") if "error" in frame else None)


@fault
def refusals_of_type_error() -> None:
    """A refusal has a type of its own."""
    rewriting(lambda frame: frame.update(type="error") if "error" in frame else None)


@fault
def result_beside_error() -> None:
    """A refusal has a result, too: null."""
    rewriting(lambda frame: frame.update(result=None) if "error" in frame else None)


@fault
def input_echoed() -> None:
    """A refusal repeats the line that it refuses."""
    from localagent.core import connection

    last = [b""]

    @around(connection, "parse")
    def parse(original: Any, line: bytes) -> Any:
        last[0] = line
        return original(line)

    def change(frame: Frame) -> None:
        if "error" in frame:
            frame["error"]["input"] = last[0].decode("utf-8", "replace")[:500]

    rewriting(change)


@fault
def error_with_message() -> None:
    """A refusal explains itself in a member of its own."""
    rewriting(lambda frame: frame["error"].update(message="refused") if "error" in frame else None)


@fault
def event_data_with_time() -> None:
    """The data of an event has a member that it must not have."""
    rewriting(lambda frame: frame["data"].update(time=0) if "event" in frame else None)


@fault
def frames_fused() -> None:
    """A refusal has no LF, so that the next frame follows on its line."""
    _spelling(lambda line: line[:-1])


@fault
def pretty_printed() -> None:
    """A refusal is spread over two lines."""
    _spelling(lambda line: line.replace(b",", b",\n ", 1))


@fault
def not_utf8() -> None:
    """A refusal holds a byte that is no UTF-8."""
    _spelling(lambda line: line.replace(b'"type":', b'"note":"\xe9","type":'))


@fault
def bom_before_frames() -> None:
    """A byte order mark stands before a refusal."""
    _spelling(lambda line: b"\xef\xbb\xbf" + line)


@fault
def empty_lines_written() -> None:
    """A refusal is followed by an empty line."""
    _spelling(lambda line: line + b"\n")


@fault
def status_key_missing() -> None:
    """A status without a run has no run_id instead of null."""

    def change(frame: Frame) -> None:
        result = frame.get("result")
        if isinstance(result, dict) and "readiness" in result and result["run_id"] is None:
            del result["run_id"]

    rewriting(change)


@fault
def null_instead_of_absent() -> None:
    """client_tools is null where it was not negotiated."""

    def change(frame: Frame) -> None:
        if "limits" in frame.get("result", ()):
            frame["result"].setdefault("client_tools", None)

    rewriting(change)


@fault
def cards_without_negotiation() -> None:
    """tool.cards is described where it was not negotiated."""

    def change(frame: Frame) -> None:
        if "limits" in frame.get("result", ()):
            frame["result"].setdefault("extensions", {})["tool.cards"] = {"schema_version": 1}

    rewriting(change)


def _advertising(name: str) -> None:
    def change(frame: Frame) -> None:
        if "limits" in frame.get("result", ()):
            frame["result"]["capabilities"].append(name)

    rewriting(change)


@fault
def cards_advertised_unasked() -> None:
    """tool.cards is advertised where it was not negotiated."""
    _advertising("tool.cards")


@fault
def client_tools_advertised_unasked() -> None:
    """client.tools is advertised where it was not negotiated."""
    _advertising("client.tools")


@fault
def limit_missing() -> None:
    """The published limits lack one."""

    def change(frame: Frame) -> None:
        if "limits" in frame.get("result", ()):
            del frame["result"]["limits"]["discovery_page_bytes"]

    rewriting(change)


@fault
def limit_wrong() -> None:
    """A published limit has another value."""

    def change(frame: Frame) -> None:
        if "limits" in frame.get("result", ()):
            frame["result"]["limits"]["catalog_models"] = 4096

    rewriting(change)


@fault
def capability_not_advertised() -> None:
    """One of the sixteen capabilities is not advertised."""

    def change(frame: Frame) -> None:
        if "limits" in frame.get("result", ()):
            frame["result"]["capabilities"].remove("session.open")

    rewriting(change)


@fault
def page_with_total() -> None:
    """A page of a listing has a member that it must not have."""

    def change(frame: Frame) -> None:
        if "sessions" in frame.get("result", ()):
            frame["result"]["total"] = len(frame["result"]["sessions"])

    rewriting(change)


@fault
def banner() -> None:
    """The child greets before it is asked anything."""
    from localagent.shell.loop import Loop

    @around(Loop, "run")
    def run(original: Any, self: Any) -> int:
        import os

        os.write(self._pipes.stdout, b'{"hello":"client"}\n')
        return int(original(self))


@fault
def output_after_the_last_frame() -> None:
    """A frame follows the answer to shutdown."""
    from localagent.core import fill
    from localagent.core.connection import Connection
    from localagent.protocol import results

    @around(Connection, "_send")
    def send(original: Any, self: Any, filled: Any, now: float) -> None:
        original(self, filled, now)
        if isinstance(filled, fill.Answer) and isinstance(filled.result, results.Stopping):
            original(self, fill.Answer("farewell", results.Stopping()), now)


@fault
def context_id_drifts() -> None:
    """context_id is another one in every status."""
    numbers = count(1)

    def change(frame: Frame) -> None:
        if "readiness" in frame.get("result", ()):
            frame["result"]["context_id"] = f"{next(numbers):064x}"

    rewriting(change)
