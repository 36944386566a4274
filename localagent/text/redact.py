"""Redaction of texts, of payloads for the store, of what is shown (CRED-11 to CRED-13); secret-like names (SET-09)."""

import re
from collections.abc import Callable
from typing import Any, Final

from localagent.protocol.limits import LIMITS

from .clean import clean
from .cut import fit, utf8
from .scan import fold
from .steps import AS_KEY, MARK, STEPS, is_plain, redact_blocks, spelt

_CREDENTIAL_KEYS: Final = frozenset(spelt(AS_KEY))
_CREDENTIAL_ENDINGS: Final = (
    *("_api_key", "_secret", "_secret_access_key", "_secret_key"),
    *("_session_token", "_token", "_credential", "_credentials"),
)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_LETTER_OR_DIGIT: Final = re.compile("[A-Za-z0-9]")
_SPACE: Final = re.compile(r"\s")


def redact(text: str) -> str:
    """Replace the secrets in ``text`` by marks, by the seven steps of CRED-11."""
    if is_plain(text):
        return text
    text = redact_blocks(text)
    for step in STEPS:
        text, _ = step.run(text)
    return text


def display(text: str) -> str:
    """Make ``text`` fit to be shown: without controls (CRED-10), then without secrets. Cut it to size only then."""
    return redact(clean(text))


def shown(text: str, max_bytes: int = LIMITS.summary_bytes) -> str:
    """Return a beginning of :func:`display` that has at most ``max_bytes`` bytes of UTF-8 (CRED-13, BOUND-11)."""
    text = display(text)
    return text[: fit(text, 0, max_bytes)]


def shown_name(name: str, *, whitespace: bool = True) -> str | None:
    """Return a provider's or model's name if it may be shown, else None (CRED-13, STATUS-09).

    Without ``whitespace``, as for models, any white space in it makes a name secret-like.
    """
    bounded = 0 < utf8(name) <= LIMITS.name_bytes
    safe = bounded and not (_CONTROL.search(name) or secret_like(name, whitespace=whitespace) or redact(name) != name)
    return name if safe else None


def secret_like(value: str, *, whitespace: bool = True) -> bool:
    """Tell whether ``value`` as a whole looks like a secret (SET-09).

    Pass ``whitespace=False`` for models and names of variables: of those, any white space makes one secret-like.
    """
    return (
        value.startswith(("sk-", "Bearer "))
        or "=" in value
        or (utf8(value) >= 48 and len(_LETTER_OR_DIGIT.findall(value)) >= 40)
        or (not whitespace and _SPACE.search(value) is not None)
    )


def is_credential_key(key: str) -> bool:
    """Tell whether strings under ``key`` are credentials by its name (CRED-12)."""
    name = fold(key).replace("-", "_")
    return name in _CREDENTIAL_KEYS or name.endswith(_CREDENTIAL_ENDINGS)


def redact_payload(value: Any, text: Callable[[str], str] = redact) -> Any:
    """Return a JSON value fit for the store: its strings and keys redacted, credentials known by their key (CRED-12).

    A string is under the nearest key above it, also through arrays. Nothing is lost: of keys that redaction makes
    equal, the second gets the number 2 and so on. Where that is to be refused (CT-103), ask :func:`collides`.

    ``text`` is what happens to each string and key; with :func:`display` controls vanish too (CT-102). Recursive: the
    depth of ``value`` is to be bounded before (REC-07, BOUND-03).
    """
    return _redacted(value, text, credential=False)


def _redacted(value: Any, text: Callable[[str], str], *, credential: bool) -> Any:
    if isinstance(value, str):
        return MARK if credential else text(value)
    if isinstance(value, list):
        return [_redacted(item, text, credential=credential) for item in value]
    if isinstance(value, dict):
        members: dict[str, Any] = {}
        for key, member in value.items():
            members[_unused(text(key), members)] = _redacted(member, text, credential=is_credential_key(key))
        return members
    return value


def _unused(name: str, members: dict[str, Any]) -> str:
    number, candidate = 1, name
    while candidate in members:
        number += 1
        candidate = f"{name} {number}"
    return candidate


def collides(value: Any, text: Callable[[str], str] = redact) -> bool:
    """Tell whether :func:`redact_payload` makes two keys of one object equal (CT-103)."""
    pending = [value]
    for each in pending:  # grows while it is walked
        if isinstance(each, dict):
            if len(set(map(text, each))) < len(each):
                return True
            pending.extend(each.values())
        elif isinstance(each, list):
            pending.extend(each)
    return False
