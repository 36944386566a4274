"""A line to a request or a refusal, a request to checked params, a frame to a line (D01 to D18).

The order of verdicts on one line is that of D01: depth and quotes, an object, UTF-8 and JSON and the five keys,
grammars, protocol and version. The order of the *work* is another one, for speed. It gives the same verdicts, because
each check is a pure function of the line, and a line that decodes can be neither unbalanced nor unterminated.
"""

from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Meta, Struct

from .codes import Code
from .errors import FrameTooLong, InvalidParams, Refused, Unwritable
from .ids import is_id
from .limits import LIMITS
from .measure import compact, depth, is_finite, members, without_strings
from .messages import FREE_JSON, METHODS, EventFrame, Frame, ResultFrame
from .names import PROTOCOL, VERSION
from .params import InitializeParams, Params

P = TypeVar("P", bound=Params)


class Request(Struct, frozen=True):
    """A line whose five keys, grammars, protocol and version are right: from here on it has an identity (D11).

    ``params`` is whatever JSON stood there, of any type (BASE-OP-26). ``duplicate_inside`` tells that some object in it
    has a key twice, which is ``invalid_params`` once the method's order of checks reaches params (D13).
    """

    id: str
    method: str
    params: Any
    duplicate_inside: bool


class _Envelope(Struct, forbid_unknown_fields=True):
    """The five keys, all of them and no other (ENV-01 to ENV-04). ``version`` is an unsigned 32-bit integer (D09)."""

    protocol: str
    version: Annotated[int, Meta(ge=0, le=0xFFFF_FFFF)]
    id: str
    method: str
    params: Any


_KEYS: Final = len(_Envelope.__struct_fields__)
_DEPTH: Final = LIMITS.json_depth
_decode = msgspec.json.Decoder(_Envelope).decode


def parse(line: bytes) -> Request:
    """Judge one line of at most 65,536 bytes, without its LF, up to where state is needed.

    Raises Refused with ``invalid_frame`` (FRAME-23, FRAME-27, D02), ``invalid_request`` (FRAME-15, FRAME-28, FRAME-29,
    ENV-05, ENV-13, D03 to D07, D10, D12) or ``protocol_mismatch`` (ENV-08, D09); only the last one bears an id.
    """
    # Openings in the line, strings included, are at least the containers it nests: the exact scan is rarely needed.
    opens = line.count(b"{") + line.count(b"[")
    if opens > _DEPTH:
        _scan(line)
    try:
        envelope = _decode(line)
    except (msgspec.DecodeError, RecursionError):
        if opens <= _DEPTH:
            _scan(line)
        raise Refused(Code.INVALID_REQUEST) from None
    params = envelope.params
    if not (is_id(envelope.id) and (envelope.method in METHODS or is_id(envelope.method))):
        raise Refused(Code.INVALID_REQUEST)
    # Each member of an object has one colon outside strings. So colons in the line >= members written >= members kept,
    # and if the first equals the last, no key occurred twice. With two openings, params is the only object inside.
    kept = len(params) if opens == 2 and type(params) is dict else members(params)
    inside = False
    if line.count(b":") != _KEYS + kept:
        top, inside = _duplicates(line)
        if top:
            raise Refused(Code.INVALID_REQUEST)
    if envelope.protocol != PROTOCOL or envelope.version != VERSION:
        raise Refused(Code.PROTOCOL_MISMATCH, envelope.id)
    return Request(envelope.id, envelope.method, params, inside)


_PAIRS: Final = bytes.maketrans(b"{[}]", b"(())")
_OTHER_BYTES: Final = bytes(set(range(256)) - set(b"{[}]"))


def _scan(line: bytes) -> None:
    """Raise Refused(``invalid_frame``) for a line nested too deep, unbalanced, or ending inside a string (D02).

    Kinds of brackets are not matched: ``{]`` is balanced here, and then not JSON.
    """
    bare = without_strings(line + b' "')  # this quote ends an unterminated string; otherwise it stays
    brackets = bare.translate(_PAIRS, _OTHER_BYTES)
    for _ in range(_DEPTH):  # each round takes away the innermost containers, one level everywhere
        brackets = brackets.replace(b"()", b"")
    if brackets or not bare.endswith(b'"'):
        raise Refused(Code.INVALID_FRAME)


def _duplicates(line: bytes) -> tuple[bool, bool]:
    """Tell whether a key occurs twice in the outermost object, and whether in any other one. The line must be JSON.

    Keys are compared after unescaping (BASE-OP-22). The hook is called where an object ends: for the outermost, last.
    """
    import json  # almost no line comes here

    repeats: list[bool] = []

    def hook(members: list[tuple[str, object]]) -> None:
        repeats.append(len({key for key, _ in members}) != len(members))

    json.loads(line.decode(), object_pairs_hook=hook)
    return repeats.pop(), any(repeats)


def params_of(method: str, request: Request) -> Params:
    """Return the checked params of ``request`` as the struct that METHODS names for ``method``.

    Raises InvalidParams when a key occurs twice anywhere inside (D13), when params is no object (D17), and for an
    unknown, missing or mistyped key, a broken grammar or a passed bound (base 19.1).
    Raises KeyError for a method that METHODS does not name.
    """
    return checked(METHODS[method], request)


def checked(kind: type[P], request: Request) -> P:
    """Do as :func:`params_of`, for a caller who knows the struct he wants."""
    if request.duplicate_inside:
        raise InvalidParams("a key occurs twice")
    try:
        return msgspec.convert(request.params, kind, strict=True)
    except msgspec.ValidationError as fault:
        raise InvalidParams(str(fault)) from None


def initialize_form(request: Request) -> InitializeParams:
    """Return the params of ``initialize``, free of faults of form: shape, count, name grammar, descriptor fields.

    This is the first of the two steps that D20 and CT-OP-05 ask for. Unknown names come between; the second is
    :func:`.client_tools.client_registry`. Raises InvalidParams.
    """
    return checked(InitializeParams, request)


def encode(frame: Frame | dict[str, Any]) -> bytes:
    """Write ``frame`` as one compact line, LF included: keys alphabetical, UTF-8 unescaped (FRAME-02 to FRAME-05, D70).

    A plain dict is written the same way, for tools that replay frames. Raises FrameTooLong above 65,536 bytes, LF
    included (BOUND-02). Raises Unwritable for a lone surrogate, and for what only free JSON can bear: NaN, an infinity,
    an integer of over 4,300 digits, more than 32 containers (BOUND-03). No number is replaced by ``null`` in silence.
    """
    try:
        if _bears_free_json(frame):
            _check_free_json(msgspec.to_builtins(frame))
        line = compact(frame) + b"\n"
    except (ValueError, RecursionError) as fault:
        raise Unwritable(str(fault)) from None
    if len(line) > LIMITS.frame_bytes:
        raise FrameTooLong(f"{len(line)} bytes")
    return line


def _bears_free_json(frame: Frame | dict[str, Any]) -> bool:
    if isinstance(frame, EventFrame):
        return type(frame.data) in FREE_JSON
    if isinstance(frame, ResultFrame):
        return type(frame.result) in FREE_JSON
    return isinstance(frame, dict)


def _check_free_json(value: object) -> None:
    if not is_finite(value):
        raise ValueError("a number that is not finite")
    if depth(value) > _DEPTH:
        raise ValueError("nested too deep")
