"""Transcripts: everything that crossed between us and one child, one JSON object a line.

:func:`write` and :func:`read` are exact opposites for transcripts that begin with our header. Foreign captures are read
too: plain NDJSON of ``{"dir", "line"}`` or ``{"direction", "frame"}`` without times, with ``{"exit": 0}`` and
``{"dir": "client", "closed": true}``, as :mod:`localagent.observe` reads them. A frame that was recorded decoded is
given as the line it may have been; ``value`` is then ``"decoded"``, and nothing can be said of its bytes. A line that
cannot be read becomes a record of the kind ``damaged``, its bytes being its ``data``; nothing raises.
"""

from base64 import b64decode, b64encode
from binascii import Error as NotBase64Error
from collections.abc import Iterator, Mapping
from json import dumps, loads
from pathlib import Path
from typing import IO, Any, Final

from .model import Record, Transcript

FORMAT: Final = "magi-code.local-agent/1"
"""What ``transcript`` of our header says."""
DECODED: Final = "decoded"

_PLAIN: Final = {"eof": str, "signal": str, "mark": str, "stderr": str, "exit": int}
"""Kinds whose one value stands under the kind's name."""


def write(transcript: Transcript, file: Path | str | IO[bytes]) -> None:
    """Write a transcript to a path or a binary file. Raises ``OSError``."""
    data = to_bytes(transcript)
    if isinstance(file, Path | str):
        Path(file).write_bytes(data)
    else:
        file.write(data)


def to_bytes(transcript: Transcript) -> bytes:
    """A transcript as NDJSON; each record on the line of its number."""
    lines: list[bytes] = []
    for record in transcript.records:
        lines += [b""] * (record.number - 1 - len(lines))  # where lines were empty in what was read
        lines.append(record.data if record.kind == "damaged" else to_line(record))
    return b"".join(line + b"\n" for line in lines)


def to_line(record: Record) -> bytes:
    """One record as its line, without LF."""
    return dumps(to_object(record), ensure_ascii=False, separators=(", ", ": ")).encode("utf-8", "surrogatepass")


def to_object(record: Record) -> Mapping[str, Any]:
    """One record as the object that stands for it in the file."""
    if record.kind == "header":
        return dict(record.value)
    time = {} if record.t is None else {"t": record.t}
    match record.kind:
        case "footer":
            return {**time, **record.value}
        case "closed":
            return {**time, "dir": "client", "closed": True}
        case "client" | "backend":
            return {**time, "dir": record.kind, **_data(record)}
        case _:
            return {**time, record.kind: record.value}


def _data(record: Record) -> dict[str, Any]:
    if record.value == DECODED:
        return {"frame": loads(record.data)}
    try:
        return {"line": record.data.decode()}
    except UnicodeDecodeError:
        return {"bytes": b64encode(record.data).decode()}


def read(source: Path | str | bytes) -> Transcript:
    """Read a transcript or a foreign capture, from a path or from its bytes. Raises ``OSError`` for the path alone."""
    data = source if isinstance(source, bytes) else Path(source).read_bytes()
    lines = data.split(b"\n")  # only LF ends a line
    if lines[-1] == b"":
        lines.pop()
    records = [_record(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    return Transcript(tuple(_whole(records)))


def _whole(records: list[Record]) -> Iterator[Record]:
    """The records; lines get their LF back where a capture left it out of all of them."""
    ours = any(each.kind == "header" and "transcript" in each.value for each in records)
    ended = [each.data.endswith(b"\n") for each in records if each.kind in ("client", "backend") and not each.value]
    for each in records:
        bare = each.kind in ("client", "backend") and not each.value
        if bare and not ours and not any(ended):
            each = Record(each.number, each.kind, each.t, each.data + b"\n")
        yield each


def _record(number: int, line: bytes) -> Record:
    try:
        found = _read(number, loads(line.decode("utf-8", "surrogatepass")))
    except (ValueError, RecursionError, OverflowError):
        found = None
    return found or Record(number, "damaged", data=line)


def _read(number: int, found: Any) -> Record | None:
    """What an object of a file stands for; nothing if it is not known what."""
    if not isinstance(found, dict):
        return None
    if "transcript" in found:
        return Record(number, "header", value=found)
    t = found.get("t")
    time = float(t) if isinstance(t, int | float) and not isinstance(t, bool) else None
    for kind, wanted in _PLAIN.items():
        if type(found.get(kind)) is wanted:
            return Record(number, kind, time, value=found[kind])
    if isinstance(found.get("end"), str):
        return Record(number, "footer", time, value={key: each for key, each in found.items() if key != "t"})
    side = found.get("dir", found.get("direction"))
    if side is None:
        return Record(number, "header", value=found)
    if side == "client" and found.get("closed") is True:
        return Record(number, "closed", time)
    return _line(number, side, time, found) if side in ("client", "backend") else None


def _line(number: int, side: str, time: float | None, found: Mapping[str, Any]) -> Record | None:
    if "frame" in found:
        return Record(number, side, time, dumps(found["frame"], separators=(",", ":")).encode() + b"\n", DECODED)
    line, coded = found.get("line"), found.get("bytes")
    if isinstance(line, str):
        return Record(number, side, time, line.encode("utf-8", "surrogatepass"))
    if isinstance(coded, str):
        try:
            return Record(number, side, time, b64decode(coded, validate=True))
        except NotBase64Error:
            return None
    return None
