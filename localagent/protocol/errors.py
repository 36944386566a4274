"""What can go wrong in this room, and whose fault it is."""

from .codes import Code


class Refused(Exception):  # noqa: N818 - a verdict, not an error of ours
    """The peer's fault: a line that is no request of this protocol (D01 to D12).

    ``code`` is ``invalid_frame``, ``invalid_request`` or ``protocol_mismatch``. ``id`` is what the answer must echo:
    the id of the request for ``protocol_mismatch``, otherwise None (ENV-22, BASE-OP-27, BASE-OP-33).
    """

    def __init__(self, code: Code, id: str | None = None) -> None:  # noqa: A002 - the wire's own word
        super().__init__(code, id)
        self.code = code
        self.id = id


class InvalidParams(Exception):  # noqa: N818 - likewise
    """The peer's fault: params that the method does not allow; the answer is ``invalid_params`` (ERR-10).

    Its text is for people who debug. It may quote the peer and never goes on the wire (ERR-02).
    """


class Unwritable(ValueError):  # noqa: N818 - says what the frame is
    """Our fault: a frame that JSON, or the bounds of a frame, cannot carry. Nothing of it has been written."""


class FrameTooLong(Unwritable):
    """Our fault: a frame over 65,536 bytes, LF included (BOUND-02). It may be neither cut nor dropped (BASE-OP-69)."""
