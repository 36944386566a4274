"""What a step of a case writes to the child: its bytes, with references filled in. Pure."""

import re
from collections.abc import Iterator, Mapping
from json import dumps
from typing import Any, Final

from localagent.protocol.names import PROTOCOL, VERSION

from .model import Step
from .steps import StepError
from .values import Lookup, resolve, resolve_inside

_ID: Final = re.compile(r'"id"\s*:\s*"([^"\\]+)"')


BARRIER: Final = "barrier"


def barrier_id(step: Step) -> str:
    """The id of the ``status`` request that a step asks in order to know that nothing came before its answer.

    No name of a case has a dot in it, so that it is like no other id.
    """
    return f"{BARRIER}.{step.number}"


def barrier(step: Step) -> bytes:
    """That request, as a line."""
    return _line(_envelope("status", barrier_id(step), {}))


def ids(step: Step) -> tuple[tuple[str, str], ...]:
    """The names and ids on the wire of the requests that a step sends, in order.

    Of raw text those that it names, or else whatever looks like an id in it. A request whose id was taken away or made
    something else than a text has none: it can have no answer but one with a null id.
    """
    args = step.args
    match step.kind:
        case "start":
            name = args.get("as", "init")
            return ((name, name),)
        case "turn":
            return ((args["as"], args["as"]),)
        case "send" if "id" in args.get("drop", ()):
            return ()
        case "send":
            return tuple((name, wire) for name, wire in _names(args) if isinstance(wire, str))
        case "raw" | "hex" | "fill":
            named = args.get("as", ())
            names = (named,) if isinstance(named, str) else tuple(named)
            found = names or tuple(_ID.findall(args.get("raw", "")))
            return tuple((name, name) for name in found)
        case _:
            return ()


def again(name: str, time: int) -> str:
    """The id of a request that is sent again because of ``retry`` or ``until``, the second time under ``name.2``."""
    return name if time == 1 else f"{name}.{time}"


def page_id(step: Step, number: int) -> str:
    """The id of a request of a ``pages`` step, from 1; one that is sent again counts anew."""
    return f"{step.args['as']}.{number}"


def page(step: Step, number: int, params: Any) -> bytes:
    """That request, as a line."""
    return _line(_envelope(step.args["pages"], page_id(step, number), params))


def sent_by(step: Step, names: Lookup, prompts: Mapping[str, str], time: int = 1) -> bytes:
    """The bytes of a ``start``, ``turn``, ``send``, ``raw``, ``hex`` or ``fill`` step, sent for the ``time``-th time.

    Raises :class:`~.values.DanglingError` for a reference that leads nowhere, ``KeyError`` for a prompt that is not
    among ``prompts``, :class:`~.steps.StepError` for a ``pad`` that is too short.
    """
    args = step.args
    match step.kind:
        case "start":
            params = {"required_capabilities": list(args.get("require", ())), **resolve(args.get("params", {}), names)}
            return _line(_envelope("initialize", args.get("as", "init"), params))
        case "turn":
            params = {"session_id": resolve(args["session"], names), "prompt": prompts[args["turn"]]}
            return _line(
                _envelope("turn.start", again(args["as"], time), {**params, **resolve(args.get("params", {}), names)})
            )
        case "send":
            return b"".join(_requests(args, names, time))
        case "raw":
            raw: str = resolve_inside(args["raw"], names) + args.get("then", "")
            return raw.encode("utf-8", "surrogatepass")
        case "hex":
            return bytes.fromhex(args["hex"]) + str(args.get("then", "")).encode()
        case _:
            text: str = args["fill"] * args["count"] + args.get("then", "")
            return text.encode()


def _names(args: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Name and id of each request of a ``send``."""
    times = args.get("times")
    for name in [args["as"]] if times is None else [f"{args['as']}{i}" for i in range(1, times + 1)]:
        yield name, args.get("envelope", {}).get("id", name)


def _requests(args: Mapping[str, Any], names: Lookup, time: int) -> Iterator[bytes]:
    over = resolve(args.get("envelope", {}), names)
    for name, _ in _names(args):
        request = {**_envelope(args["send"], again(name, time), resolve(args.get("params", {}), names)), **over}
        for key in args.get("drop", ()):
            request.pop(key, None)
        yield _line(request, args.get("end", "\n"), args.get("pad"))


def _envelope(method: str, id_: str, params: Any) -> dict[str, Any]:
    return {"protocol": PROTOCOL, "version": VERSION, "id": id_, "method": method, "params": params}


def _line(request: Mapping[str, Any], end: str = "\n", pad: int | None = None) -> bytes:
    """One line; ``pad`` is its length in bytes before ``end``, reached by spaces before the last brace."""
    data = dumps(request, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    if pad is not None:
        if len(data) > pad:
            raise StepError(f"the line has {len(data)} bytes already, more than pad = {pad}")
        data = data[:-1] + b" " * (pad - len(data)) + b"}"
    return data + end.encode()


def repeated(text: bytes, count: int) -> bytes:
    """A text so many times, one behind the other; ``{i}`` in it is the number of each, from 1."""
    if b"{i}" not in text:
        return text * count
    return b"".join(text.replace(b"{i}", str(number).encode()) for number in range(1, count + 1))
