"""What can go wrong in this room. No text of an exception goes on the wire (ERR-02, CRED-14): only codes do."""

from enum import Enum, unique

from localagent.protocol.codes import Code


class StoreError(Exception):
    """The store refuses. ``code`` is the answer; the text is for people who debug and may name a path."""

    def __init__(self, code: Code, why: str = "") -> None:
        super().__init__(f"{code}: {why}" if why else str(code))
        self.code = code


class Cancelled(Exception):  # noqa: N818 - a verdict, not an error
    """The caller's cancel token was set. Nothing was changed, and what had been taken was given back."""


class Unsafe(Exception):  # noqa: N818 - says what was found
    """A file, lock or directory that the store does not touch: a link, a foreign owner, loose permissions."""


class Held(Exception):  # noqa: N818 - says what was found
    """A lease that somebody else holds."""


class BadRecord(Exception):  # noqa: N818 - says what was found
    """A line that is no record of its session (REC-04 to REC-06), or a record that breaks its kind (HISTP-10)."""


@unique
class Outcome(Enum):
    """What a failed append left on the disk."""

    REFUSED = "nothing was written"
    ROLLED_BACK = "what was written was taken back"
    UNCERTAIN = "only a fresh exact open tells"


class AppendFailed(Exception):  # noqa: N818 - says what happened
    """An append is not acknowledged (REC-31 to REC-36). Nobody may call it durable, whatever ``outcome`` says."""

    def __init__(self, outcome: Outcome, why: str) -> None:
        super().__init__(f"{why}: {outcome.value}")
        self.outcome = outcome


class CompactionFailed(Exception):  # noqa: N818 - says what happened
    """A compaction did not succeed (REC-44, REC-45).

    ``replaced`` False: the old file stands as it was. True: the new one does, but a power cut may bring the old one
    back, so that this child must not append to the session any more.
    """

    def __init__(self, why: str, *, replaced: bool = False) -> None:
        super().__init__(why)
        self.replaced = replaced
