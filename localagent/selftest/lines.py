"""Faults of reading: where lines end, what JSON is, what an envelope is."""

import re
from typing import Any

from .mutant import fault
from .tools import around, bounds, put


def _reading(change: Any) -> None:
    """Let ``change`` make another line of every line, before it is judged."""
    from localagent.core import connection

    @around(connection, "parse")
    def parse(original: Any, line: bytes) -> Any:
        return original(change(line))


def _feeding(change: Any) -> None:
    """Let ``change`` choose among the lines that became complete."""
    from localagent.protocol.framing import LineBuffer

    @around(LineBuffer, "feed")
    def feed(original: Any, self: Any, data: bytes) -> Any:
        return change(original(self, data))


@fault
def frame_bound_below() -> None:
    """A frame of 65,536 bytes is too large."""
    from localagent.protocol import framing

    bounds(framing, frame_bytes=65_535)


@fault
def frame_bound_above() -> None:
    """A frame of 65,537 bytes is accepted."""
    from localagent.protocol import framing

    bounds(framing, frame_bytes=65_537)


@fault
def oversize_waits_for_lf() -> None:
    """An oversize frame is not told before its LF."""
    from localagent.protocol.framing import LineBuffer

    @around(LineBuffer, "feed")
    def feed(original: Any, self: Any, data: bytes) -> Any:
        if b"\n" not in data and not self.oversize:
            self._partial += data
            return []
        return original(self, data)


@fault
def depth_bound_below() -> None:
    """32 containers are too deep."""
    from localagent.protocol import codec

    put(codec, "_DEPTH", 31)


@fault
def depth_bound_above() -> None:
    """33 containers are not too deep."""
    from localagent.protocol import codec

    put(codec, "_DEPTH", 33)


@fault
def depth_counts_strings() -> None:
    """Brackets inside strings count as containers."""
    from localagent.core import connection
    from localagent.protocol.codes import Code
    from localagent.protocol.errors import Refused

    @around(connection, "parse")
    def parse(original: Any, line: bytes) -> Any:
        if line.count(b"{") + line.count(b"[") > 32:
            raise Refused(Code.INVALID_FRAME)
        return original(line)


@fault
def id_bound_below() -> None:
    """An id of 64 bytes is outside the grammar."""
    from localagent.protocol import codec

    put(codec, "is_id", re.compile(r"\A[A-Za-z0-9._-]{1,63}\Z").match)


@fault
def id_bound_above() -> None:
    """An id of 65 bytes is within the grammar."""
    from localagent.protocol import codec

    put(codec, "is_id", re.compile(r"\A[A-Za-z0-9._-]{1,65}\Z").match)


@fault
def id_grammar_wide() -> None:
    """An id may have colons and spaces."""
    from localagent.protocol import codec

    put(codec, "is_id", re.compile(r"\A[A-Za-z0-9._: -]{1,64}\Z").match)


@fault
def crlf_refused() -> None:
    """A CR before the LF makes a line faulty."""
    _reading(lambda line: line[:-1] + b"\\" if line.endswith(b"\r") else line)


@fault
def cr_ends_a_line() -> None:
    """A CR alone ends a line."""
    from localagent.protocol.framing import LineBuffer

    @around(LineBuffer, "feed")
    def feed(original: Any, self: Any, data: bytes) -> Any:
        return original(self, data.replace(b"\r\n", b"\n").replace(b"\r", b"\n"))


@fault
def empty_lines_skipped() -> None:
    """Empty lines are not answered."""
    _feeding(lambda lines: [line for line in lines if line.strip()])


@fault
def invalid_utf8_accepted() -> None:
    """Bytes that are no UTF-8 become replacement characters."""
    _reading(lambda line: line.decode("utf-8", "replace").encode())


@fault
def bom_accepted() -> None:
    """A byte order mark before the object is passed over."""
    _reading(lambda line: line.removeprefix(b"\xef\xbb\xbf"))


@fault
def nan_accepted() -> None:
    """NaN counts as JSON."""
    _reading(lambda line: line.replace(b"NaN", b"0"))


@fault
def bytes_behind_accepted() -> None:
    """What stands on a line behind its object is passed over."""
    import json

    def first(line: bytes) -> bytes:
        text = line.decode("utf-8", "surrogateescape").lstrip()
        try:
            _, end = json.JSONDecoder().raw_decode(text)
        except ValueError:
            return line
        return text[:end].encode("utf-8", "surrogateescape")

    _reading(first)


@fault
def duplicate_keys_accepted() -> None:
    """The last of two equal keys of the envelope counts."""
    from localagent.protocol import codec

    around(codec, "_duplicates")(lambda original, line: (False, original(line)[1]))


@fault
def duplicate_keys_inside_accepted() -> None:
    """The last of two equal keys in params counts."""
    from localagent.protocol import codec

    around(codec, "_duplicates")(lambda original, line: (original(line)[0], False))


@fault
def unknown_envelope_key_accepted() -> None:
    """A sixth key of the envelope is passed over."""
    import msgspec

    from localagent.protocol import codec

    known = set(codec._Envelope.__struct_fields__)

    def without(line: bytes) -> bytes:
        try:
            frame = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return line
        if not isinstance(frame, dict) or known >= set(frame):
            return line
        return msgspec.json.encode({key: value for key, value in frame.items() if key in known})

    _reading(without)


@fault
def missing_params_accepted() -> None:
    """A request without params has empty ones."""
    import msgspec

    def completed(line: bytes) -> bytes:
        try:
            frame = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return line
        return msgspec.json.encode({**frame, "params": {}}) if _lacks(frame) else line

    def _lacks(frame: Any) -> bool:
        return isinstance(frame, dict) and "params" not in frame

    _reading(completed)


@fault
def another_version_accepted() -> None:
    """Version 2 is served like version 1."""
    from localagent.protocol import codec

    put(codec, "VERSION", 2)
    _reading(lambda line: re.sub(rb'"version": ?1\b', b'"version":2', line))


@fault
def protocol_compared_without_case() -> None:
    """The protocol's name is compared without case."""
    _reading(lambda line: re.sub(rb"(?i)magi-code\.local-agent", b"magi-code.local-agent", line))


@fault
def mismatch_does_not_close() -> None:
    """After a protocol mismatch the connection goes on."""
    from localagent.core.connection import Connection

    around(Connection, "_refuse")(lambda original, self, id_, code, failed, now: original(self, id_, code, None, now))


@fault
def cut_frame_carried_out() -> None:
    """A line without its LF is carried out at the end of input."""
    from localagent.core.connection import Connection

    @around(Connection, "end_of_input")
    def end(original: Any, self: Any, now: float) -> Any:
        more = [command for commands in self.receive(b"\n", now) for command in commands] if self._lines.pending else []
        return more + original(self, now)


@fault
def cut_frame_not_told() -> None:
    """A cut line at the end of input passes in silence."""
    from localagent.core.connection import Connection
    from statemachines.connection import ConnectionInput

    around(Connection, "end_of_input")(
        lambda original, self, now: self._step(("connection", ConnectionInput.EOF_BETWEEN_FRAMES), now)
    )


@fault
def request_quota_below() -> None:
    """The 4,096th request is one too many."""
    from localagent.core import routes

    bounds(routes, requests_per_child=4095)


@fault
def request_quota_above() -> None:
    """A 4,097th request is served."""
    from localagent.core import routes

    bounds(routes, requests_per_child=4097)


@fault
def duplicate_ids_accepted() -> None:
    """An id may be used again."""
    from localagent.core import routes

    @around(routes, "identity")
    def identity(original: Any, request: Any, facts: Any) -> Any:
        facts.ids.discard(request.id)
        return original(request, facts)


@fault
def refused_ids_forgotten() -> None:
    """The id of a request for an unknown method is not retained."""
    from localagent.core import routes

    @around(routes, "identity")
    def identity(original: Any, request: Any, facts: Any) -> Any:
        failed = original(request, facts)
        if failed is not None and failed.name == "method known":
            facts.ids.discard(request.id)
        return failed
