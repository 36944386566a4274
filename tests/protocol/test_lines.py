"""D02 to D18 and the bounds of one line: literal lines with the verdict each must get."""

import pytest

from localagent.protocol.codec import Request, parse
from localagent.protocol.errors import Refused
from localagent.protocol.limits import LIMITS

HEAD = b'{"protocol":"magi-code.local-agent","version":1,"id":"r1","method":"status","params":'
STATUS = HEAD + b"{}}"


def refusal(line: bytes) -> tuple[str, str | None]:
    with pytest.raises(Refused) as caught:
        parse(line)
    return caught.value.code, caught.value.id


def envelope(
    protocol: bytes = b'"magi-code.local-agent"',
    version: bytes = b"1",
    id: bytes = b'"r1"',  # noqa: A002 - the wire's own word
    method: bytes = b'"status"',
    params: bytes = b"{}",
) -> bytes:
    fields = (protocol, version, id, method, params)
    return b'{"protocol":%b,"version":%b,"id":%b,"method":%b,"params":%b}' % fields


def nested(containers: int, opening: bytes = b"[", closing: bytes = b"]") -> bytes:
    """A request that is ``containers`` deep, its own object included."""
    inner = containers - 1
    return HEAD + opening * inner + closing * inner + b"}"


def test_a_request() -> None:
    request = parse(STATUS)
    assert request == Request(id="r1", method="status", params={}, duplicate_inside=False)
    with pytest.raises(AttributeError):
        request.id = "r2"  # type: ignore[misc]


INVALID_FRAME = [
    pytest.param(nested(33), id="D02 depth 33"),
    pytest.param(nested(40), id="D02 depth 40"),
    pytest.param(b"[" * 65_536, id="D02 depth 65536, unbalanced"),
    pytest.param(b"[" * 32_768 + b"]" * 32_768, id="D02 depth 32768, balanced"),
    pytest.param(b'{"a":' * 13_000, id="D02 depth 13000, objects"),
    pytest.param(HEAD + b"{}", id="D02 a brace missing"),
    pytest.param(STATUS + b"}", id="D02 a brace too many"),
    pytest.param(b"}{", id="D02 below zero"),
    pytest.param(b"]", id="D02 only closing"),
    pytest.param(b'{"protocol":"magi', id="D02 unterminated string"),
    pytest.param(b'"', id="D02 a quote"),
    pytest.param(b'"\\"', id="D02 a quote and an escaped one"),
    pytest.param(b'"\\', id="D02 ends in an escape"),
    pytest.param(b'"' + b'\\"' * 32_000, id="D02 64 KB unterminated"),
    pytest.param(b"\xff" + nested(33), id="BASE-OP-18 depth before UTF-8"),
    pytest.param(nested(33) + b" nonsense", id="BASE-OP-18 depth before JSON"),
    pytest.param(b"[" + nested(32) + b"]", id="D02 depth 33 around a request"),
]


@pytest.mark.parametrize("line", INVALID_FRAME)
def test_invalid_frame(line: bytes) -> None:
    assert refusal(line) == ("invalid_frame", None)


INVALID_REQUEST = [
    pytest.param(b"{]", id="D02 kinds are not matched"),
    pytest.param(b'{"a":[}]', id="D02 crossed"),
    pytest.param(b"", id="D03 empty"),
    pytest.param(b" ", id="D03 space"),
    pytest.param(b"\t \r", id="D03 white space"),
    pytest.param(b"\r", id="D03 CR"),
    pytest.param(b"[]", id="D03 array"),
    pytest.param(b"[" + STATUS + b"]", id="D03 array of a request"),
    pytest.param(b"1", id="D03 number"),
    pytest.param(b'"status"', id="D03 string"),
    pytest.param(b"null", id="D03 null"),
    pytest.param(b"true", id="D03 true"),
    pytest.param(b"hello", id="D03 garbage"),
    pytest.param(b"\x00", id="D03 NUL"),
    pytest.param(b"\xef\xbb\xbf" + STATUS, id="D03 BOM before"),
    pytest.param(STATUS + b"\xef\xbb\xbf", id="D03 BOM after"),
    pytest.param(b"{\xef\xbb\xbf" + STATUS[1:], id="D03 BOM between tokens"),
    pytest.param(STATUS.decode().encode("utf-16-le"), id="D03 UTF-16"),
    pytest.param(envelope(params=b'{"a":"\xff"}'), id="D03 bad UTF-8 in params"),
    pytest.param(envelope(params=b'{"\xff":1}'), id="D03 bad UTF-8 in a key"),
    pytest.param(b"\xff" + STATUS, id="D03 bad UTF-8 between tokens"),
    pytest.param(envelope(params=b'{"a":"\xc0\xaf"}'), id="D03 overlong UTF-8"),
    pytest.param(envelope(params=b'{"a":"\xed\xa0\x80"}'), id="D03 surrogate in UTF-8"),
    pytest.param(envelope(params=b'{"a":"\xf4\x90\x80\x80"}'), id="D03 beyond U+10FFFF"),
    pytest.param(envelope(params=b'{"a":"\xe2\x82"}'), id="D03 cut UTF-8"),
    pytest.param(envelope(params=b'{"a":"\t"}'), id="D03 raw tab in a string"),
    pytest.param(envelope(params=b'{"a":"\x1f"}'), id="D03 raw U+001F"),
    pytest.param(envelope(params=b'{"a":NaN}'), id="D03 NaN"),
    pytest.param(envelope(params=b'{"a":Infinity}'), id="D03 Infinity"),
    pytest.param(envelope(params=b'{"a":-Infinity}'), id="D03 -Infinity"),
    pytest.param(STATUS + b"x", id="D03 trailing byte"),
    pytest.param(STATUS + b"\x00", id="D03 trailing NUL"),
    pytest.param(STATUS + STATUS, id="D03 two objects"),
    pytest.param(STATUS + b" " + STATUS, id="D03 two objects and a space"),
    pytest.param(STATUS + b"\r" + STATUS, id="D05 two objects and a CR"),
    pytest.param(STATUS + b"\x0b", id="D04 VT is not JSON white space"),
    pytest.param(b"\xc2\xa0" + STATUS, id="D04 NBSP is not JSON white space"),
    pytest.param(envelope(params=b'{"a":01}'), id="D03 leading zero"),
    pytest.param(envelope(params=b'{"a":1,}'), id="D03 trailing comma"),
    pytest.param(envelope(params=b"{'a':1}"), id="D03 single quotes"),
    pytest.param(envelope(params=b'{"a":"\\x41"}'), id="D03 bad escape"),
    pytest.param(envelope(params=b'{"a":"\\ud800"}'), id="D06 lone high surrogate"),
    pytest.param(envelope(params=b'{"a":"\\udc00"}'), id="D06 lone low surrogate"),
    pytest.param(envelope(params=b'{"a":"\\ud800\\u0041"}'), id="D06 high surrogate, letter"),
    pytest.param(envelope(params=b'{"a":"\\ud800\\ud800"}'), id="D06 two high surrogates"),
    pytest.param(envelope(params=b'{"\\udc00":1}'), id="D06 in a key"),
    pytest.param(envelope(params=b'{"a":1e999}'), id="D07 1e999"),
    pytest.param(envelope(params=b'{"a":-1e999}'), id="D07 -1e999"),
    pytest.param(envelope(params=b'{"a":' + b"9" * 4301 + b"}"), id="D07 4,301 digits"),
    pytest.param(envelope(method=b'""'), id="D08 empty method"),
    pytest.param(envelope(method=b'"session list"'), id="D08 space in the method"),
    pytest.param(envelope(method=b'"status\\n"'), id="D08 LF after the method"),
    pytest.param(envelope(method="\"státus\"".encode()), id="D08 method not ASCII"),
    pytest.param(envelope(method=b"1"), id="D08 method a number"),
    pytest.param(envelope(version=b"1.0"), id="D09 1.0"),
    pytest.param(envelope(version=b"1e0"), id="D09 1e0"),
    pytest.param(envelope(version=b'"1"'), id='D09 "1"'),
    pytest.param(envelope(version=b"true"), id="D09 true"),
    pytest.param(envelope(version=b"null"), id="D09 null"),
    pytest.param(envelope(version=b"-1"), id="D09 -1"),
    pytest.param(envelope(version=b"4294967296"), id="D09 2^32"),
    pytest.param(envelope(version=b"1099511627776"), id="D09 2^40"),
    pytest.param(envelope(protocol=b"1"), id="BASE-OP-31 protocol a number"),
    pytest.param(envelope(protocol=b"null"), id="BASE-OP-31 protocol null"),
    pytest.param(envelope(protocol=b'"x"', id=b'"a b"'), id="D10 wrong protocol and bad id"),
    pytest.param(envelope(version=b"2", id=b'""'), id="D10 wrong version and bad id"),
    pytest.param(envelope(version=b"2", method=b'"a b"'), id="D10 wrong version and bad method"),
    pytest.param(envelope(protocol=b'"x"', version=b'"1"'), id="D10 wrong protocol and mistyped version"),
    pytest.param(envelope(version=b"2")[:-1] + b',"x":1}', id="BASE-OP-32 wrong version and unknown key"),
    pytest.param(STATUS[:-1] + b',"x":1}', id="D12 unknown key"),
    pytest.param(STATUS[:-1] + b',"Id":1}', id="D12 keys are case-sensitive"),
    pytest.param(STATUS[:-1] + b',"":1}', id="D12 empty key"),
    pytest.param(STATUS[:-1] + b',"id":"r1"}', id="D12 id twice, the same"),
    pytest.param(STATUS[:-1] + b',"id":"r2"}', id="BASE-OP-28 id twice, different"),
    pytest.param(STATUS[:-1] + b',"\\u0069d":"r1"}', id="D12 id twice, once escaped"),
    pytest.param(STATUS[:-1] + b',"params":{}}', id="D12 params twice"),
    pytest.param(b'{"version":2,' + STATUS[1:], id="D12 version twice"),
    pytest.param(b'{"protocol":"x",' + STATUS[1:], id="D12 protocol twice"),
    pytest.param(STATUS.replace(b',"params":{}', b""), id="ENV-04 no params"),
    pytest.param(STATUS.replace(b'"method":"status",', b""), id="ENV-04 no method"),
    pytest.param(STATUS.replace(b'"id":"r1",', b""), id="ENV-04 no id"),
    pytest.param(STATUS.replace(b'"version":1,', b""), id="ENV-04 no version"),
    pytest.param(STATUS.replace(b'"protocol":"magi-code.local-agent",', b""), id="ENV-04 no protocol"),
    pytest.param(b"{}", id="ENV-04 no key"),
    pytest.param(envelope(id=b"null"), id="BASE-OP-29 id null"),
    pytest.param(envelope(id=b"7"), id="BASE-OP-29 id a number"),
    pytest.param(envelope(id=b'""'), id="BASE-OP-29 id empty"),
    pytest.param(envelope(id=b'"a/b"'), id="ENV-13 id with a slash"),
    pytest.param(envelope(id=b'"r1\\n"'), id="ENV-13 LF after the id"),
    pytest.param(envelope(id="\"é\"".encode()), id="ENV-13 id not ASCII"),
    pytest.param(envelope(id="\"１\"".encode()), id="ENV-13 a digit, but not an ASCII one"),
]  # fmt: skip


@pytest.mark.parametrize("line", INVALID_REQUEST)
def test_invalid_request(line: bytes) -> None:
    assert refusal(line) == ("invalid_request", None)


MISMATCH = [
    pytest.param(envelope(version=b"0"), id="D09 0"),
    pytest.param(envelope(version=b"2"), id="D09 2"),
    pytest.param(envelope(version=b"4294967295"), id="D09 2^32-1"),
    pytest.param(envelope(version=b"-0"), id="-0 is read as 0"),
    pytest.param(envelope(protocol=b'"magi-code.other"'), id="ENV-08 another protocol"),
    pytest.param(envelope(protocol=b'"MAGI-CODE.local-agent"'), id="ENV-08 another case"),
    pytest.param(envelope(protocol=b'""'), id="ENV-08 empty"),
    pytest.param(envelope(protocol=b'"a:b"'), id="ENV-08 with a colon"),
    pytest.param(envelope(version=b"2", params=b'{"a":1,"a":2}'), id="D13 params are not reached"),
    pytest.param(envelope(version=b"2", params=b"null"), id="D15 params are not reached"),
]


@pytest.mark.parametrize("line", MISMATCH)
def test_protocol_mismatch_echoes_the_id(line: bytes) -> None:
    assert refusal(line) == ("protocol_mismatch", "r1")


ACCEPTED = [
    pytest.param(b" " + STATUS, id="D04 space before"),
    pytest.param(b"\t\r  " + STATUS, id="D04 white space before"),
    pytest.param(STATUS + b" ", id="D04 space after"),
    pytest.param(STATUS + b"\r", id="FRAME-13 CR before the LF"),
    pytest.param(STATUS.replace(b":", b"\r:\r").replace(b",", b" , "), id="D05 CR inside"),
    pytest.param(STATUS.replace(b'"id"', b'"\\u0069d"'), id="BASE-OP-22 key spelt with an escape"),
    pytest.param(STATUS.replace(b'"r1"', b'"\\u0072\\u0031"'), id="D18 id spelt with escapes"),
    pytest.param(STATUS.replace(b"magi-code", b"\\u006dagi-code"), id="protocol spelt with an escape"),
    pytest.param(
        b'{"params":{},"method":"status","id":"r1","version":1,"protocol":"magi-code.local-agent"}', id="order"
    ),
]


@pytest.mark.parametrize("line", ACCEPTED)
def test_accepted(line: bytes) -> None:
    assert parse(line) == Request("r1", "status", {}, False)


@pytest.mark.parametrize("params", [b"null", b"[]", b"1", b'"x"', b"true", b"[{}]"])
def test_params_of_any_type_make_a_request(params: bytes) -> None:
    """BASE-OP-26, D15: the five keys are there, the rest is the method's affair."""
    assert not isinstance(parse(envelope(params=params)).params, dict)


@pytest.mark.parametrize(
    "params",
    [
        b'{"a":1,"a":1}',
        b'{"a":1,"\\u0061":2}',
        b'{"a":{"b":1,"b":2}}',
        b'{"a":[0,[{"b":{},"b":{}}]]}',
        b'[{"a":1,"a":1}]',
        b'{"a":1,"b":2,"a":3}',
        b'{":":1,":":2}',
        b'{"a":":","a":":"}',
        b'{"":1,"":2}',
        b'{"a":{"b":1,"b":2},"a":1}',
    ],
)
def test_a_key_twice_inside_params_is_only_noted(params: bytes) -> None:
    """D13: the code is ``invalid_params``, and that is for the method's own order to say."""
    assert parse(envelope(params=params)).duplicate_inside


@pytest.mark.parametrize(
    "params",
    [
        b'{"a":"b:c","d":":"}',
        b'{"a":{"a":{"a":1}}}',
        b'[{"a":1},{"a":1}]',
        b'{"protocol":1,"id":2,"params":3}',
        b'{"a:b":1,"c":"\\"a\\":1,\\"a\\":2"}',
        b'{"a":"{\\"b\\":1,\\"b\\":2}"}',
        b'{"a":"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["}',
    ],
)
def test_what_only_looks_like_a_key_twice_is_not_noted(params: bytes) -> None:
    assert not parse(envelope(params=params)).duplicate_inside


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
@pytest.mark.parametrize(("containers", "code"), [(31, None), (32, None), (33, "invalid_frame")])
def test_depth_counts_the_root(containers: int, code: str | None, opening: bytes, closing: bytes) -> None:
    """BOUND-03, FRAME-23, D02."""
    line = nested(containers, opening, closing).replace(b'"a":}', b'"a":0}')
    if code is None:
        assert parse(line).method == "status"
    else:
        assert refusal(line) == (code, None)


def test_brackets_in_strings_are_no_containers() -> None:
    """FRAME-24."""
    assert parse(HEAD + b'{"a":"' + b"[{" * 100 + b'\\"' + b"[" * 100 + b'"}}').params["a"].startswith("[{[{")


@pytest.mark.parametrize("length", [1, 63, 64, 65])
@pytest.mark.parametrize("field", ["id", "method"])
def test_ids_and_methods_have_64_bytes_at_most(field: str, length: int) -> None:
    """BOUND-04."""
    name = "x" * length
    line = envelope(**{field: b'"%b"' % name.encode()})
    if length <= LIMITS.id_bytes:
        assert getattr(parse(line), field) == name
    else:
        assert refusal(line) == ("invalid_request", None)


@pytest.mark.parametrize("character", [chr(code) for code in range(128)])
def test_the_letters_of_an_id(character: str) -> None:
    """ENV-10: exactly ``[A-Za-z0-9._-]``."""
    escaped = b'"\\u%04x"' % ord(character)
    if character.isalnum() or character in "._-":
        assert parse(envelope(id=escaped)).id == character
    else:
        assert refusal(envelope(id=escaped)) == ("invalid_request", None)


def test_a_full_frame_parses() -> None:
    """FRAME-18: 65,536 bytes, whatever they hold."""
    room = LIMITS.frame_bytes - len(HEAD) - len(b'{"a":""}}')
    line = HEAD + b'{"a":"' + b"x" * room + b'"}}'
    assert len(line) == 65_536
    assert parse(line).params == {"a": "x" * room}


@pytest.mark.parametrize(
    "params",
    [
        b"{}",
        b'{"session_id":"s","prompt":"hello"}',
        b'{"revision":null,"cursor":null,"limit":100}',
        b'{"effort":{"mode":"set","value":"low"},"model":"m"}',
        b'{"structured":[{"a":[{"b":1},{"b":{"c":2}}]},[],{}]}',
    ],
)
def test_usual_lines_take_the_fast_path(params: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exact scans must stay the exception, or every line would pay for them."""
    monkeypatch.delattr("localagent.protocol.codec._scan")
    monkeypatch.delattr("localagent.protocol.codec._duplicates")
    assert not parse(envelope(params=params)).duplicate_inside


def test_the_recursion_guard_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """FRAME-25: the depth check keeps the guard from ever being needed; were it to trip, the line would be refused."""

    def trips(line: bytes) -> None:
        raise RecursionError

    monkeypatch.setattr("localagent.protocol.codec._decode", trips)
    assert refusal(STATUS) == ("invalid_request", None)
