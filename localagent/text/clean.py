"""Control cleaning (CRED-10), of a whole text or of one that arrives in pieces; and what is no text at all.

Three passes in the order of the clause: escape sequences go; CR becomes LF, or vanishes before one; all other controls
but LF and TAB vanish. A CSI or string sequence without its end is none: then ESC goes with the one character after it,
and the rest is text. So only the end of the text tells, and until then what follows such an ESC is held.
"""

import re
from typing import Final

from .scan import WINDOW, windows

_ESC: Final = "\x1b"
_FINAL: Final = re.compile("[@-~]")
_TERMINATOR: Final = re.compile(r"\x07|\x1b\\")
_ENDS: Final = {"[": _FINAL, **dict.fromkeys("]P^_X", _TERMINATOR)}
_WITHOUT_STRINGS: Final = re.compile(r"\x1b(?:\[[^@-~]*+[@-~]|.)?", re.DOTALL)
_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def has_controls(text: str) -> bool:
    """Tell whether cleaning has anything to do. LF and TAB are text.

    Searches for one character each are many times as fast as one for a class of them.
    """
    for control in _ASCII_CONTROLS if text.isascii() else _CONTROLS:  # noqa: SIM110 - a generator costs more
        if control in text:
            return True
    return False


_CONTROLS: Final = tuple(chr(code) for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t")
_ASCII_CONTROLS: Final = tuple(filter(str.isascii, _CONTROLS))


class Cleaner:
    """Cleans a text piece by piece. What :meth:`feed` and :meth:`finish` return, joined, is :func:`clean` of it all.

    Holds at most a CR, an ESC, and a sequence that has not ended. Time is linear in the characters fed, in any cut.
    """

    __slots__ = ("_carriage", "_end", "_escape", "_sequence")

    def __init__(self) -> None:
        self._carriage = ""
        """A CR that may stand before a LF."""
        self._escape = ""
        """An ESC whose character is still to come."""
        self._end: re.Pattern[str] | None = None
        """What ends the sequence that has begun."""
        self._sequence: list[str] = []
        """That sequence so far, without its first two characters."""

    def feed(self, piece: str) -> str:
        """Take the next piece and return what is clean by now."""
        if not (self._carriage or self._escape or self._end or has_controls(piece)):
            return piece
        if len(piece) > WINDOW:
            return "".join(map(self.feed, windows(piece)))
        return self._without_controls(self._without_sequences(piece))

    def finish(self) -> str:
        """Return what was held: there is no more to come."""
        # An end that was sought from here in vain does not occur later either, so only CSI sequences can be complete.
        rest = _WITHOUT_STRINGS.sub("", "".join(self._sequence))
        self._escape, self._end, self._sequence = "", None, []
        return self._without_controls(rest, complete=True)

    def _without_sequences(self, piece: str) -> str:
        text = self._escape + piece
        self._escape = ""
        kept: list[str] = []
        at = 0
        while True:
            if self._end is None:
                escape = text.find(_ESC, at)
                if escape < 0:
                    kept.append(text[at:])
                    break
                kept.append(text[at:escape])
                if escape == len(text) - 1:
                    self._escape = _ESC
                    break
                self._end = _ENDS.get(text[escape + 1])
                at = escape + 2
            else:
                end = self._end.search(text, at)
                if end is None:
                    rest = text[at:]
                    self._sequence.append(rest.removesuffix(_ESC))
                    self._escape = _ESC if rest.endswith(_ESC) else ""
                    break
                self._end, self._sequence = None, []
                at = end.end()
        return "".join(kept)

    def _without_controls(self, text: str, *, complete: bool = False) -> str:
        text = self._carriage + text
        self._carriage = ""
        if text.endswith("\r") and not complete:
            self._carriage, text = "\r", text[:-1]
        return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def clean(text: str) -> str:
    """Remove from ``text`` what could move a cursor, colour a screen or hide (CRED-10)."""
    if not has_controls(text):
        return text
    cleaner = Cleaner()
    return cleaner.feed(text) + cleaner.finish()


def scrub(text: str) -> str:
    """Return foreign ``text`` as Unicode: a lone surrogate becomes U+FFFD, a pair in two halves its character.

    UTF-8 cannot carry a lone surrogate, so foreign text is scrubbed where it enters.
    """
    if text.isascii() or not any(map(_SURROGATE.search, windows(text))):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
