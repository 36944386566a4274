"""Keys: from the environment, else from ``auth.json``, which is read and judged, never written (CRED-01 to CRED-04).

A startup looks once; before provider work, and once in each scan of catalogs, whoever needs a key looks again
(CRED-02, CAT-64): ``look(root, os.environ).of(provider)``.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from localagent.sessions.paths import Root

from . import source
from .faults import Inadmissible, kind, misconfigured, spelt
from .snapshot import READY, UNAVAILABLE, Authentication, Credential, Provider

AUTH: Final = "auth.json"
ANTHROPIC_VARIABLE: Final = "ANTHROPIC_API_KEY"
_BOOKKEEPING: Final = ("api_key", "revision", "provider_generations")
_OPTIONAL: Final[dict[str, tuple[type, ...]]] = {"refresh": (str,), "expires": (int, float), "accountId": (str,)}


@dataclass(frozen=True, slots=True, repr=False)
class Wallet:
    """The keys that there are now. Nothing of it prints."""

    _environ: Mapping[str, str]
    _records: Mapping[str, Any]

    def of(self, provider: Provider) -> Credential | None:
        """The key of a provider; None if it has none, or needs none."""
        if provider.kind == "openai_compatible" and provider.api_key_env_var is not None:
            return self._variable(provider.api_key_env_var)
        if provider.kind == "anthropic":
            return self._variable(ANTHROPIC_VARIABLE) or self._record(provider.id)
        return None

    def authentication(self, provider: Provider) -> Authentication:
        """Whether a provider is ready (CRED-01 to CRED-03); local, no request (START-39)."""
        if provider.kind == "scripted":
            return READY
        if provider.kind == "openai_compatible" and provider.api_key_env_var is None:
            return READY
        return UNAVAILABLE if self.of(provider) is None else READY

    def _variable(self, name: str) -> Credential | None:
        value = self._environ.get(name)
        return Credential("environment", name, value) if value else None

    def _record(self, name: str) -> Credential | None:
        record = self._records.get(name)
        if record is None or record["type"] != "api_key" or not record["key"]:
            return None
        return Credential("auth.json", name, record["key"])


def look(root: Root, environ: Mapping[str, str]) -> Wallet:
    """Read what there is. Raises Inadmissible(``configuration_invalid``) for an ``auth.json`` that CRED-04 refuses."""
    path = os.path.join(root.path, AUTH)
    data = source.read(path, source.MIB, private=True)
    records: dict[str, Any] = {} if data is None else source.document(path, data)
    for id_, record in records.items():
        if id_ not in _BOOKKEEPING:
            _judge(path, id_, record)
    return Wallet(environ, {id_: record for id_, record in records.items() if id_ not in _BOOKKEEPING})


def _judge(path: str, id_: str, record: object) -> None:
    """Raise Inadmissible unless it is a record of type ``api_key`` or ``oauth``. Optional members may be null."""

    def refuse(expected: str, found: object, *below: str) -> Inadmissible:
        absent = found is None and below and below[-1] not in (record if isinstance(record, dict) else ())
        return misconfigured(path, spelt((id_, *below)), expected, "nothing" if absent else kind(found))

    if not isinstance(record, dict):
        raise refuse("an object", record)
    type_ = record.get("type")
    if type_ not in ("api_key", "oauth"):
        raise misconfigured(path, spelt((id_, "type")), '"api_key" or "oauth"')
    key = "key" if type_ == "api_key" else "access"
    if not isinstance(record.get(key), str):
        raise refuse("a string", record.get(key), key)
    if type_ == "oauth":
        for name, types in _OPTIONAL.items():
            value = record.get(name)
            if value is not None and (not isinstance(value, types) or isinstance(value, bool)):
                raise refuse("a number" if float in types else "a string", value, name)
