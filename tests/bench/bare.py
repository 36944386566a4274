"""The baseline: the least a Python child can do over the same pipes. Read, decode, encode, write, one line at a time.

``python -m tests.bench.bare``: answers every line with a frame of the size of a status answer. ``bare.py flood``
writes 8 MiB in frames of 4,000 bytes of text as soon as it is asked anything.
"""

import os
import sys

import msgspec

ANSWER = {
    "id": "",
    "instance_id": "00000000-0000-4000-8000-000000000000",
    "protocol": "magi-code.local-agent",
    "result": {
        "context_id": "0" * 64,
        "model": "demo",
        "provider": "scripted",
        "readiness": "ready",
        "run_id": None,
        "selection": {
            "effective_effort": None,
            "effort_support": "unsupported",
            "model": "demo",
            "permitted_efforts": ["default"],
            "provider": "scripted",
            "requested_effort": "default",
            "revision": "00000000-0000-4000-8000-000000000000",
        },
        "session_id": None,
        "state": "idle",
    },
    "seq": 0,
    "type": "response",
    "version": 1,
}


def main() -> None:
    """Answer until input ends."""
    decode, encode = msgspec.json.Decoder().decode, msgspec.json.Encoder().encode
    seq, rest = 0, b""
    while data := os.read(0, 4096):
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            seq += 1
            ANSWER["id"], ANSWER["seq"] = decode(line)["id"], seq
            os.write(1, encode(ANSWER) + b"\n")


def flood() -> None:
    """Write 8 MiB of text as frames."""
    encode = msgspec.json.Encoder().encode
    os.read(0, 4096)
    for part in range(8 * 1024 * 1024 // 4000):
        view = memoryview(encode({"data": {"part": part, "text": "x" * 4000}, "event": "message.reconcile"}) + b"\n")
        while view:
            view = view[os.write(1, view) :]


if __name__ == "__main__":
    flood() if sys.argv[1:] == ["flood"] else main()
