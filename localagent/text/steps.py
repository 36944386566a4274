"""The seven steps of CRED-11. Each is written once, and runs on a whole text or on one that arrives in pieces.

A step looks for *openers* (``ghp_``, ``data:``, a credential name with its sign); from each one a function *reads* on
and says where the secret is, if there is one. If the reader met the end of the text on its way, more text could change
its answer: unless the text is complete, the step stops at that opener, and what follows is held. So what a stream must
hold back (D81) is written nowhere, it follows from the step. Only for an opener of which no more than the beginning is
there yet, a step needs to know how its openers are spelt.

The steps run one after the other, each on what the one before it made of the text. "Word" is meant as Python's ``\\w``
means it, letters of all scripts; what a secret is made of is ASCII, as the table says.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from typing import Final

from .scan import WINDOW, Openers, Reader, fold, trie

MARK: Final = "<redacted>"
DATA_MARK: Final = f"data:{MARK};base64,{MARK}"

Read = Callable[[Reader, int], int | None]
"""Read on from an opener that begins at the given place, and return where the secret begins; it ends at the reader."""

WORD_START: Final = r"(?<!\w)"


class Step:
    """One row of the table: its openers, how to read on from one, and what the secret becomes.

    ``openers`` are patterns, ``spellings`` all that they match; if openers may be in ``any_case``, both are in lower
    case. An opener begins a word, unless it may stand ``anywhere``.
    """

    def __init__(
        self,
        openers: Iterable[str],
        read: Read,
        spellings: Iterable[str],
        *,
        anywhere: bool = False,
        any_case: bool = False,
        mark: str = MARK,
    ) -> None:
        self.openers = Openers(openers)
        self.read = read
        self.spellings = frozenset(spellings)
        self.longest = max(map(len, self.spellings))
        self.any_case = any_case
        self.mark = mark
        self.anywhere = anywhere
        self.beginning = f"({'?i' if any_case else '?'}:{trie(self.spellings, beginnings=True)})"
        self.unfinished = re.compile(rf"{'' if anywhere else WORD_START}{self.beginning}\Z")

    def candidates(self, view: str, begin: int) -> Iterable[tuple[int, int]]:
        """Return where an opener stands, in order. ``view`` is the text, folded if the openers are in any case."""
        return self.openers.find(view, begin)

    def run(self, text: str, begin: int = 0, *, complete: bool = True) -> tuple[str, int]:
        """Redact ``text`` from ``begin`` on: return what may be shown, and the place from where on it is held.

        The text before ``begin`` is context. Nothing is held of a complete text.
        """
        view = fold(text) if self.any_case else text
        shown: list[str] = []
        done, hold = begin, len(text)
        for start, end in self.candidates(view, begin):
            if start < done:
                continue
            reader = Reader(text, end)
            secret = self.read(reader, start)
            if reader.met_end and not complete:
                hold = start
                break
            if secret is not None:
                shown += text[done:secret], self.mark
                done = reader.at
        else:
            if not complete and (opener := self.unfinished.search(text, max(done, hold - self.longest))):
                hold = opener.start()
        shown.append(text[done:hold])
        return "".join(shown), hold


class NameStep(Step):
    """Step 7. The openers are what credential names end in; then the whole name must be one, as a whole word."""

    def __init__(self) -> None:
        openers = (f"{ending}{_SIGN_AHEAD}" for ending in ENDINGS)
        super().__init__(openers, _named_value, spelt(IN_TEXT), any_case=True)
        self.whole_name = re.compile(rf"{WORD_START}(?:{trie(self.spellings)})\Z")

    def candidates(self, view: str, begin: int) -> Iterable[tuple[int, int]]:
        """Return where a name stands that its sign follows."""
        ends = (end for _, end in self.openers.find(view, begin))
        names = (self.whole_name.search(view, max(begin, end - self.longest), end) for end in ends)
        return [name.span() for name in names if name]


# Step 1: a block may be of any length, so a stream does not wait for its end (see DeltaStream). Whole texts only.

BLOCK_OPENER: Final = "-----BEGIN"
BLOCK_BEGINNING: Final = f"(?:{trie([BLOCK_OPENER], beginnings=True)})"
_BLOCK_LINES: Final = Openers(["-----BEGIN ", "-----END "])
_CAPITALS: Final = re.compile(r"[A-Z ]*+")


def redact_blocks(text: str) -> str:
    """Step 1: PEM blocks of private keys, each to the nearest END line of a private key."""
    shown: list[str] = []
    done = 0
    begun: tuple[int, int] | None = None
    for start, end in _BLOCK_LINES.find(text, 0):
        reader = Reader(text, end)
        reader.run(_CAPITALS)
        if "PRIVATE KEY" not in text[end : reader.at] or not reader.take("-----"):
            continue
        if begun is None:
            if text.startswith(BLOCK_OPENER, start) and start >= done:
                begun = start, reader.at
        elif text.startswith("-----END", start) and start >= begun[1]:
            shown += text[done : begun[0]], MARK
            done = reader.at
            begun = None
    return "".join([*shown, text[done:]])


# Steps 2 to 6.


def _class(characters: str) -> re.Pattern[str]:
    return re.compile(f"[{characters}]*+")


_MEDIA: Final = _class("A-Za-z0-9.+_-")
_BASE64: Final = _class("A-Za-z0-9+/=_-")
_IDENTIFIER: Final = _class("A-Za-z0-9_")
_SIXTEEN: Final = re.compile("[0-9A-Z]{0,16}+")
_DOTTED: Final = _class("A-Za-z0-9_.-")
_BEARER: Final = _class("A-Za-z0-9._~+/=-")
_SPACE: Final = _class(r"\s")
_VALUE: Final = _class(r"^\s,;}")
_QUOTE: Final = re.compile("[\"']?+")
_SIGN: Final = re.compile("[:=]?+")
_WORD_CHARACTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"


def _data_url(reader: Reader, start: int) -> int | None:
    media_type = reader.run(_MEDIA) and reader.take("/") and reader.run(_MEDIA)
    return start if media_type and reader.take(";base64,") and reader.run(_BASE64) else None


def _github_token(reader: Reader, start: int) -> int | None:
    return start if reader.run(_IDENTIFIER) >= 20 and not reader.word_goes_on() else None


def _aws_key_id(reader: Reader, start: int) -> int | None:
    return start if reader.run(_SIXTEEN) == 16 and not reader.word_goes_on() else None


def _dotted_token(reader: Reader, start: int) -> int | None:
    begin = reader.at
    reader.run(_DOTTED)
    body = reader.text[begin : reader.at]
    if reader.word_goes_on():  # with a letter of another script: back to before that word
        body = body.rstrip(_WORD_CHARACTERS)
    body = body.rstrip(".-")
    reader.at = begin + len(body)
    return start if body else None


def _bearer_token(reader: Reader, start: int) -> int | None:
    if not reader.run(_SPACE):
        return None
    secret = reader.at
    return secret if reader.run(_BEARER) >= 8 else None


# Step 7. The names are spelt as in the table: ~ stands for `_`, `-` or nothing, ! for `_` or `-`.

NAMES: Final = (
    *("authorization", "bearer", "credential", "credentials", "password", "passwd", "secret", "token"),
    *("api~key", "exa~api~key", "access~token", "refresh~token", "auth~token", "id~token", "client~secret"),
    *("secret!key", "secret!access!key", "aws~secret!access!key", "session!token", "aws~session!token"),
    *("account~id", "chatgpt-account-id"),
)

ENDINGS: Final = (
    *("authorization", "bearer", "credentials?", "passw(?:or)?d", "secret(?:[_-](?:access[_-])?key)?"),
    *("token", "api[_-]?key", "account[_-]?id"),
)
"""What every name ends in. Each begins with letters, which the regex engine finds far faster than alternatives."""

_SIGN_AHEAD: Final = r"""(?=["']?\s*(?:[:=]|\Z))"""

IN_TEXT: Final = {"~": ("", "_", "-"), "!": ("_", "-")}
AS_KEY: Final = {"~": ("", "_"), "!": ("", "_"), "-": ("", "_")}


def spelt(separators: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """Yield the names in every spelling that ``separators`` allows."""
    for name in NAMES:
        yield from map("".join, product(*(separators.get(character, (character,)) for character in name)))


def _named_value(reader: Reader, start: int) -> int | None:
    del start  # the name and its sign are kept
    reader.run(_QUOTE)
    reader.run(_SPACE)
    if not reader.run(_SIGN):
        return None
    reader.run(_SPACE)
    secret = reader.at
    return secret if reader.quoted() or reader.run(_VALUE) else None


def _word_start(opener: str) -> str:
    r"""Return a pattern for ``opener`` where a word begins. What is literal comes first: the engine looks for that."""
    return rf"{opener}(?<!\w{opener})"


DATA_URL: Final = Step(["data:"], _data_url, ["data:"], anywhere=True, mark=DATA_MARK)
GITHUB_TOKEN: Final = Step(
    map(_word_start, ("gh[pousr]_", "github_pat_")),
    _github_token,
    ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
)
AWS_KEY_ID: Final = Step([_word_start("A[KS]IA")], _aws_key_id, ("AKIA", "ASIA"))
DOTTED_TOKEN: Final = Step(map(_word_start, ("sk-", "eyJ")), _dotted_token, ("sk-", "eyJ"))
BEARER_TOKEN: Final = Step([_word_start("bearer")], _bearer_token, ["bearer"], any_case=True)
NAMED_VALUE: Final = NameStep()

STEPS: Final = (DATA_URL, GITHUB_TOKEN, AWS_KEY_ID, DOTTED_TOKEN, BEARER_TOKEN, NAMED_VALUE)
"""Steps 2 to 7, in order."""

_GITHUB: Final = re.compile("gh[pousr]_|github_pat_")
_NAMES_END: Final = (
    *("authorization", "bearer", "credential", "credentials", "passwd", "password", "secret", "token"),
    *("access_key", "access-key", "secret_key", "secret-key", "api_key", "api-key", "apikey"),
    *("account_id", "account-id", "accountid"),
)
"""Every name of step 7 ends in one of these."""


def is_plain(text: str) -> bool:
    """Tell at a glance that no step changes ``text``, nor what comes after it but for an opener that begins at its end.

    False says nothing. One character is found far faster than any pattern, so it looks first for one that the openers
    need and prose seldom has.
    """
    if len(text) > WINDOW:
        return False
    if "-" in text and ("sk-" in text or BLOCK_OPENER in text):
        return False
    if ("J" in text and "eyJ" in text) or ("A" in text and ("AKIA" in text or "ASIA" in text)):
        return False
    if ("_" in text and _GITHUB.search(text)) or (":" in text and "data:" in text):
        return False
    if b"bearer" in text.encode("utf-8", "surrogatepass").lower():
        return False
    return not _ends_in_name(text) and not any(
        _ends_in_name(before) for sign in ":=" if sign in text for before in text.split(sign)
    )


def _ends_in_name(text: str) -> bool:
    """Tell whether a sign that comes next would make a name of step 7 out of the end of ``text``."""
    end = text.rstrip()
    if end[-1:] not in _LAST:  # most texts do not even end in one of those
        return False
    end = fold(end[-_ENOUGH:])
    return end.endswith(_NAMES_END) or (end.endswith(("'", '"')) and end[:-1].endswith(_NAMES_END))


_ENOUGH: Final = max(map(len, _NAMES_END)) + 1
_LAST: Final = frozenset("'\"\u017f" + "".join({name[-1] + name[-1].upper() for name in _NAMES_END}))
"""What may end a name, or a quote behind it. The long s is the one character more that folding makes one of these."""
