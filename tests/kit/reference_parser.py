"""A second opinion on one line: slow, plain, and sharing no code with ``localagent.protocol.codec``.

It does the steps of D01 in the order in which D01 names them, byte by byte, with the standard library's JSON.
Below it stands a generator of lines that are nearly right.
"""

import json
import math
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

PROTOCOL = "magi-code.local-agent"
KEYS = {"protocol", "version", "id", "method", "params"}
GRAMMAR = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")


class Verdict(NamedTuple):
    """``code`` is None for a request. ``params`` is the repr of the decoded value, so that 1, 1.0 and True differ."""

    code: str | None
    id: str | None = None
    method: str | None = None
    params: str | None = None
    duplicate_inside: bool | None = None


class Members(list[tuple[str, Any]]):
    """The members of one JSON object, as written, none lost."""


INVALID_FRAME = Verdict("invalid_frame")
INVALID_REQUEST = Verdict("invalid_request")


def judge(line: bytes) -> Verdict:
    if not framed(line):
        return INVALID_FRAME
    if not line.lstrip(b" \t\r\n").startswith(b"{"):
        return INVALID_REQUEST
    try:
        members = json.loads(
            line.decode("utf-8"),
            object_pairs_hook=Members,
            parse_constant=refuse,
            parse_float=finite,
        )
    except ValueError:  # JSONDecodeError, UnicodeDecodeError, an integer of over 4,300 digits, and ours
        return INVALID_REQUEST
    if any("\ud800" <= character <= "\udfff" for text in texts(members) for character in text):
        return INVALID_REQUEST
    if sorted(key for key, _ in members) != sorted(KEYS):
        return INVALID_REQUEST
    envelope = dict(members)
    request_id, method, version = envelope["id"], envelope["method"], envelope["version"]
    if not (well_named(request_id) and well_named(method)):
        return INVALID_REQUEST
    if not isinstance(envelope["protocol"], str) or type(version) is not int or not 0 <= version < 2**32:
        return INVALID_REQUEST
    if envelope["protocol"] != PROTOCOL or version != 1:
        return Verdict("protocol_mismatch", request_id)
    params = envelope["params"]
    return Verdict(None, request_id, method, repr(plain(params)), has_repeat(params))


def framed(line: bytes) -> bool:
    """Depth at most 32, brackets balanced in number, no string left open."""
    depth = 0
    in_string = escaped = False
    for byte in line:
        if in_string:
            if escaped:
                escaped = False
            elif byte == ord("\\"):
                escaped = True
            elif byte == ord('"'):
                in_string = False
        elif byte == ord('"'):
            in_string = True
        elif byte in b"{[":
            depth += 1
            if depth > 32:
                return False
        elif byte in b"}]":
            depth -= 1
            if depth < 0:
                return False
    return depth == 0 and not in_string


def refuse(constant: str) -> float:
    raise ValueError(constant)


def finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(text)
    return value


def well_named(value: object) -> bool:
    return isinstance(value, str) and 1 <= len(value) <= 64 and set(value) <= GRAMMAR


def texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Members):
        for key, inner in value:
            yield key
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)


def has_repeat(value: object) -> bool:
    if isinstance(value, Members):
        keys = [key for key, _ in value]
        return len(set(keys)) < len(keys) or any(has_repeat(inner) for _, inner in value)
    return isinstance(value, list) and any(has_repeat(inner) for inner in value)


def plain(value: object) -> object:
    if isinstance(value, Members):
        return {key: plain(inner) for key, inner in value}
    return [plain(inner) for inner in value] if isinstance(value, list) else value


# Lines that are nearly right. Fragments are JSON text, so that escapes and odd numbers survive as written.

NAMES = ('"a"', '"a.b-c_D9"', '"r1"', '"status"', '"' + "x" * 64 + '"', '"\\u0061"')
STRINGS = (
    *NAMES,
    *('""', '"a b"', '"' + "x" * 65 + '"', '"é"', '"\\u00e9"', '"日本"', '"😀"', '"\\ud83d\\ude00"', '"a\\u003ab"'),
    *('"{"', '"["', '"}]"', '":"', '"\\":\\""', '"\\\\"', '"\\\\\\""', '"\\n\\t\\r\\b\\f\\/"', '"\\u0000"'),
    *('"\x7f"', '"\u2028"', '"\ufeff"'),
)
BROKEN_STRINGS = (
    *('"\\ud800"', '"\\udc00"', '"\\ude00\\ud83d"', '"\\ud800\\ud800\\udc00"', '"\\ud800x"'),
    *('"\\x"', '"\\u12"', '"\t"'),
)
NUMBERS = (
    *("0", "1", "2", "-0", "-1", "4294967295", "4294967296", "9" * 30),
    *("18446744073709551615", "18446744073709551616", "-9223372036854775809"),
    *("1.0", "1e0", "1E+2", "100.0", "1e-999", "0e1", "0.1", "1e22", "123456789.123456789", "2.2250738585072014e-308"),
)
BROKEN_NUMBERS = ("01", "+1", "1.", ".5", "1e999", "-1e999", "NaN", "Infinity", "-Infinity", "0x1", "1_0", "--1", "")
WORDS = ("true", "false", "null")
BROKEN_WORDS = ("True", "nul", "nulll")
BROKEN = BROKEN_STRINGS + BROKEN_NUMBERS + BROKEN_WORDS
KEY_NAMES = ("a", "b", "\\u0061", "id", "\\u0069d", "params", "cursor", "limit", "x:y", "{", "é", "")
SPACES = ("", "", "", "", " ", "\t", "\r", "\n ", "  ")
DAMAGE = (
    *(b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xe2\x82", b"\x00", b"\x1f", b"\xef\xbb\xbf", b"\xc2\xa0"),
    *(b'"', b"\\", b'\\"', b"{", b"}", b"[", b"]", b"{}", b":", b",", b'"a":'),
    *(b" ", b"\r", b"\t", b"\x0b", b"0", b"-", b"//", b"'"),
)


def lines(seed: int, count: int) -> Iterator[bytes]:
    """Yield ``count`` lines, the same ones for the same seed."""
    rng = random.Random(seed)
    for _ in range(count):
        yield line(rng)


def line(rng: random.Random) -> bytes:
    text = envelope(rng).encode()
    for _ in range(rng.choice((0, 0, 0, 0, 0, 1, 1, 2, 3))):
        text = damaged(rng, text)
    return text


def envelope(rng: random.Random) -> str:
    members = [
        ("protocol", '"magi-code.local-agent"' if rng.random() < 0.9 else value(rng, 1)),
        ("version", "1" if rng.random() < 0.85 else rng.choice(NUMBERS)),
        ("id", rng.choice(NAMES) if rng.random() < 0.9 else value(rng, 2)),
        ("method", rng.choice(NAMES) if rng.random() < 0.9 else value(rng, 1)),
        ("params", params(rng)),
    ]
    if rng.random() < 0.2:
        edit(rng, members)
    if rng.random() < 0.5:
        rng.shuffle(members)
    return rng.choice(SPACES) + written(rng, members) + rng.choice(SPACES)


def edit(rng: random.Random, members: list[tuple[str, str]]) -> None:
    """Take a key away, repeat one, add one, or spell one with an escape."""
    kind = rng.randrange(4)
    if kind == 0:
        members.pop(rng.randrange(len(members)))
    elif kind == 1:
        members.append(rng.choice(members))
    elif kind == 2:
        members.append((rng.choice(KEY_NAMES), value(rng, 2)))
    else:
        key, inner = members.pop(rng.randrange(len(members)))
        members.append((f"\\u{ord(key[0]):04x}{key[1:]}", inner))


def params(rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.15:
        return "{}"
    if kind < 0.3:
        depth = rng.randrange(29, 36)  # the frame adds one container
        return nest(rng, depth)
    return value(rng, 4)


def nest(rng: random.Random, depth: int) -> str:
    opened = [rng.choice(("[", '{"a":')) for _ in range(depth)]
    closed = ["]" if each == "[" else "}" for each in reversed(opened)]
    return "".join(opened) + "1" + "".join(closed)


def value(rng: random.Random, depth: int) -> str:
    kind = rng.random()
    if kind < 0.02:
        return rng.choice(BROKEN)
    if depth == 0 or kind < 0.4:
        return rng.choice(STRINGS)
    if kind < 0.55:
        return rng.choice(NUMBERS)
    if kind < 0.62:
        return rng.choice(WORDS)
    if kind < 0.75:
        return "[" + ",".join(value(rng, depth - 1) for _ in range(rng.randrange(4))) + "]"
    return written(rng, [(rng.choice(KEY_NAMES), value(rng, depth - 1)) for _ in range(rng.randrange(6))])


def written(rng: random.Random, members: list[tuple[str, str]]) -> str:
    def space() -> str:
        return rng.choice(SPACES) if rng.random() < 0.2 else ""

    return "{" + ",".join(f'{space()}"{key}"{space()}:{space()}{inner}' for key, inner in members) + space() + "}"


def damaged(rng: random.Random, text: bytes) -> bytes:
    """Insert, delete, repeat or cut somewhere."""
    at = rng.randrange(len(text) + 1)
    end = min(len(text), at + rng.randrange(1, 12))
    edit = rng.randrange(5)
    if edit <= 1:
        return text[:at] + rng.choice(DAMAGE) + text[at:]
    if edit == 2:
        return text[:at] + text[end:]
    if edit == 3:
        return text[:at] + text[at:end] + text[at:]
    return text[:at]
