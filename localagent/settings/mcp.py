"""MCP definitions, and which of them may run (MCPC-01 to MCPC-08). Nothing is started here."""

import hashlib
import hmac
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field

from localagent.protocol.codes import Code
from localagent.sessions import files, leases
from localagent.sessions.clock import SYSTEM, CancelCheck, Clock, never
from localagent.sessions.errors import Held, StoreError, Unsafe
from localagent.sessions.paths import Root

from . import source
from .faults import HIDDEN, Fault, Inadmissible, misconfigured, spelt
from .snapshot import McpServer

DEFINITIONS: Final = ".mcp.json"
KEY: Final = "mcp-approval.key"
KEY_BYTES: Final = 32
VERSION: Final = "magi-code:mcp-approval:v1"
_Integer = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
_is_name = re.compile(r"(?!.*__)[A-Za-z0-9_-]*[A-Za-z0-9-]").fullmatch
_reference = re.compile(r"\$\{(?:([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\})?")


class Stdio(Struct, frozen=True, kw_only=True, tag_field="type", tag="stdio"):
    """A server that is started (MCPC-03). Other members are ignored, ``enabled`` too."""

    command: str
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    timeout: _Integer = 30


class OAuth(Struct, frozen=True, kw_only=True):
    """How to log in to a server that is called."""

    client_id: str | UnsetType = UNSET
    scopes: tuple[str, ...] = ()
    authorization_server: str | UnsetType = UNSET


class Http(Struct, frozen=True, kw_only=True, tag_field="type", tag="http"):
    """A server that is called (MCPC-03)."""

    url: str
    headers: dict[str, str] = field(default_factory=dict)
    oauth: OAuth | UnsetType = UNSET
    timeout: _Integer = 30


@dataclass(frozen=True, slots=True)
class Definition:
    """A server of a definition file, as it stands there."""

    name: str
    source: str
    """The canonical path of the file."""
    body: Stdio | Http


def definitions(root: Root, cwd: str) -> dict[str, Definition]:
    """Return the servers by name; one of the project replaces a global one whole (MCPC-01).

    Raises Inadmissible for a file that is no definition file, approved or not (MCPC-04).
    """
    found: dict[str, Definition] = {}
    for directory in dict.fromkeys((root.path, cwd)):
        path = os.path.join(directory, DEFINITIONS)
        data = source.read(path, source.MIB)
        if data is not None:
            found.update((each.name, each) for each in _decoded(path, source.document(path, data)))
    return found


def _decoded(path: str, document: dict[str, Any]) -> Iterator[Definition]:
    servers = document.get("mcpServers", {})
    if not isinstance(servers, dict):
        raise misconfigured(path, "mcpServers", "an object")
    for name, value in servers.items():
        if not _is_name(name):
            expected = "a name of ASCII letters, digits, - and _, without __ and without _ last"
            raise misconfigured(path, spelt(("mcpServers", name)), expected)
        if not isinstance(value, dict):
            raise misconfigured(path, spelt(("mcpServers", name)), "an object")
        type_ = value.get("type", "stdio")
        if type_ not in ("stdio", "http"):
            raise misconfigured(path, spelt(("mcpServers", name, "type")), '"stdio" or "http"')
        struct: type[Stdio | Http] = Stdio if type_ == "stdio" else Http
        try:
            body = msgspec.convert(value | {"type": type_}, struct, strict=True)
        except msgspec.ValidationError:
            raise Inadmissible(Code.CONFIGURATION_INVALID, _mismatches(path, name, value, struct)) from None
        yield Definition(name, path, body)


def _mismatches(path: str, name: str, value: object, struct: type) -> list[Fault]:
    from .explain import mismatches

    return [
        Fault(path, spelt(("mcpServers", name, *place)), *words) for place, *words in mismatches(value, struct)
    ] or [Fault(path, spelt(("mcpServers", name)), f"a server of type {struct.__name__.lower()}")]


def digest(key: bytes, definition: Definition) -> str:
    """The HMAC by which a user approves exactly this definition from exactly this file (MCPC-06)."""
    message = [VERSION, definition.source, definition.name, _canonical(definition.body)]
    return hmac.new(key, msgspec.json.encode(message), hashlib.sha256).hexdigest()


def _canonical(body: Stdio | Http) -> dict[str, Any]:
    """The members in their order; what is empty or absent is left out, ``enabled`` and ``timeout`` never."""
    members: dict[str, Any]
    if isinstance(body, Stdio):
        members = {"type": "stdio", "command": body.command}
        optional = {"args": body.args, "env": dict(sorted(body.env.items()))}
    else:
        members = {"type": "http", "url": body.url}
        optional = {"headers": dict(sorted(body.headers.items()))}
    members |= {name: value for name, value in optional.items() if value}
    if isinstance(body, Http) and body.oauth is not UNSET:
        oauth = body.oauth
        login = [(name, getattr(oauth, name)) for name in ("client_id", "scopes", "authorization_server")]
        members["oauth"] = {name: value for name, value in login if value is not UNSET and value != ()}
    return members | {"enabled": False, "timeout": body.timeout}


def approved(
    root: Root,
    found: Mapping[str, Definition],
    approvals: Mapping[str, Any],
    environ: Mapping[str, str],
    *,
    clock: Clock = SYSTEM,
    cancelled: CancelCheck = never,
    create: bool = True,
) -> tuple[McpServer, ...]:
    """Return the servers that the global settings approve, by name (MCPC-05, MCPC-09, START-34, START-35).

    The key is created if ``create`` and some file names a server (MCPC-08). Raises Inadmissible for a bad key file and
    for bad values of an approved server; StoreError(``startup_failed``) if no key can be made; Cancelled.
    """
    if not found:
        return ()
    key = _key(root, clock, cancelled, create)
    if key is None:
        return ()
    servers = (found[name] for name in sorted(found))
    return tuple(_server(each, environ) for each in servers if _is_approved(key, each, approvals))


def _is_approved(key: bytes, definition: Definition, approvals: Mapping[str, Any]) -> bool:
    """Only an object of version 1 with this very digest approves; whatever else stands there does not (MCPC-05)."""
    by_name = approvals.get(definition.source)
    given = by_name.get(definition.name) if isinstance(by_name, dict) else None
    if not isinstance(given, dict) or type(given.get("version")) is not int or given["version"] != 1:
        return False
    claimed = given.get("digest")
    return isinstance(claimed, str) and hmac.compare_digest(claimed.encode(), digest(key, definition).encode())


def _key(root: Root, clock: Clock, cancelled: CancelCheck, create: bool) -> bytes | None:
    path = os.path.join(root.path, KEY)
    key = _read_key(path)
    if key is not None or not create:
        return key
    try:
        with leases.waiting(root.directory, KEY, clock, cancelled), root.directory() as directory:
            key = _read_key(path)
            if key is None:
                key = os.urandom(KEY_BYTES)
                files.replace(KEY, key, directory, clock)
            return key
    except (OSError, Unsafe, Held) as fault:
        raise StoreError(Code.STARTUP_FAILED, f"{KEY}: {fault}") from None


def _read_key(path: str) -> bytes | None:
    key = source.read(path, KEY_BYTES, private=True, owned=True)
    if key is not None and len(key) != KEY_BYTES:
        raise misconfigured(path, "", f"exactly {KEY_BYTES} bytes", "fewer")
    return key


def _server(definition: Definition, environ: Mapping[str, str]) -> McpServer:
    """An approved server with its references replaced (MCPC-07) and its values judged (MCPC-04)."""
    body = definition.body

    def refuse(expected: str, *key: str | int) -> Inadmissible:
        return misconfigured(definition.source, spelt(("mcpServers", definition.name, *key)), expected)

    def put(text: str, *key: str | int) -> str:
        try:
            return expanded(text, environ)
        except LookupError as fault:
            raise refuse(str(fault.args[0]), *key) from None

    if not 1 <= body.timeout <= 300:
        raise refuse("1 to 300 seconds", "timeout")
    common: dict[str, Any] = {"name": definition.name, "source": definition.source, "timeout_s": body.timeout}
    if isinstance(body, Stdio):
        command = put(body.command, "command")
        if not command.strip():
            raise refuse("a command", "command")
        args = tuple(put(each, "args", index) for index, each in enumerate(body.args))
        env = {name: put(value, "env", name) for name, value in body.env.items()}
        return McpServer(**common, transport="stdio", command=command, args=args, env=env)
    url = put(body.url, "url")
    headers = {name: put(value, "headers", name) for name, value in body.headers.items()}
    expected = _url_fault(url)
    if expected is not None:
        raise refuse(expected, "url")
    oauth = None if body.oauth is UNSET else _canonical(body)["oauth"]
    if oauth is not None and any(name.lower() == "authorization" for name in headers):
        raise refuse("no authorization header beside oauth", "headers")
    return McpServer(**common, transport="http", url=url, headers=headers, oauth=oauth)


def _url_fault(url: str) -> str | None:
    from urllib.parse import urlsplit  # as ipaddress below: only who has such a server waits for it

    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return "a URL"
    if "@" in parts.netloc:
        return "no user or password in the URL"
    if host and (parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(host))):
        return None
    return "an https URL, or an http one of this machine"


def _is_loopback(host: str) -> bool:
    import ipaddress

    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def expanded(text: str, environ: Mapping[str, str]) -> str:
    """Replace ``${NAME}`` and ``${NAME:-text}`` once, from left to right; what is put in is not looked at again.

    Raises LookupError, whose argument says what was expected, for a name that is not set and has no default, and for
    a ``${`` that begins no reference (MCPC-07). A name that is set to nothing is set.
    """

    def value(found: re.Match[str]) -> str:
        name, default, word = found.groups()
        if name is None:
            raise LookupError("${NAME} or ${NAME:-text}")
        if name not in environ and default is None:
            from localagent.text.redact import shown_name

            raise LookupError(f"the variable {shown_name(name) or HIDDEN} in the environment")
        return environ.get(name, word or "")

    return _reference.sub(value, text)
