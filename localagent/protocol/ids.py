"""The grammars of the protocol, each as a pattern for typed params and as a predicate for everything else.

Predicates take any text and never raise.
"""

import re
from typing import Final

from .limits import LIMITS
from .measure import utf8_bytes

ID: Final = rf"\A[A-Za-z0-9._-]{{1,{LIMITS.id_bytes}}}\Z"
"""Request ids, methods, capabilities; revisions, cursors; run and approval ids (ENV-10, HIST-09, BASE-OP-162)."""

SESSION_ID: Final = rf"\A[A-Za-z0-9_-]{{1,{LIMITS.id_bytes}}}\Z"
"""As :data:`ID`, without the dot (SESS-45)."""

CLIENT_TOOL_NAME: Final = rf"\Aclient__[A-Za-z0-9_]{{1,{LIMITS.client_tools.name_bytes - len('client__')}}}\Z"
"""Names of client tools; upper and lower case differ (CT-33, CT-34)."""

ECHO: Final = rf"\A[\x20-\x7e]{{1,{LIMITS.activity_id_bytes}}}\Z"
"""Task and subagent ids, which a client only echoes: printable ASCII, at most 1,024 bytes (CT-OP-22)."""

_WHITE_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680"
    "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)

_id = re.compile(ID).match
_session_id = re.compile(SESSION_ID).match
_client_tool_name = re.compile(CLIENT_TOOL_NAME).match
_uuid = re.compile(r"\A[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z", re.IGNORECASE).match
_control = re.compile(r"[\x00-\x1f\x7f-\x9f]").search


def is_id(text: str) -> bool:
    """Tell whether ``text`` is 1 to 64 ASCII bytes from ``[A-Za-z0-9._-]`` (ENV-10, BOUND-04)."""
    return _id(text) is not None


def is_session_id(text: str) -> bool:
    """Tell whether ``text`` is 1 to 64 ASCII bytes from ``[A-Za-z0-9_-]``: the ID grammar without the dot (SESS-45)."""
    return _session_id(text) is not None


def is_uuid(text: str) -> bool:
    """Tell whether ``text`` is a UUID in hyphenated hexadecimal, of either case (ENV-32, TURN-11, BASE-OP-45)."""
    return _uuid(text) is not None


def is_client_tool_name(text: str) -> bool:
    """Tell whether ``text`` is ``client__`` and 1 to 56 ASCII letters, digits or underscores (CT-33)."""
    return _client_tool_name(text) is not None


def has_control(text: str) -> bool:
    """Tell whether ``text`` bears a control character: general category Cc, that is C0, DEL or C1 (CT-OP-08)."""
    return _control(text) is not None


def is_safe_name(text: str) -> bool:
    """Tell whether ``text`` may name a provider or model: 1 to 256 UTF-8 bytes, no controls (SEL-34, EXT-REFRESH-03).

    Whether a name looks like a secret is redaction's question, not one of grammar.
    """
    return 0 < utf8_bytes(text) <= LIMITS.name_bytes and not has_control(text)


def is_blank(text: str) -> bool:
    """Tell whether ``text`` is empty or only Unicode ``White_Space`` (BOUND-07, BASE-OP-152).

    ``str.isspace`` would not do: it also takes U+001C to U+001F, which are not ``White_Space``.
    """
    return not text.strip(_WHITE_SPACE)
