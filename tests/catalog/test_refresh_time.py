"""``model.refresh`` and time: slow servers, deadlines, cancellation, two at once, death (EXT-REFRESH-57 to -66)."""

import socket
import threading
from collections.abc import Callable

import pytest

from localagent.catalog.remote import Bounds
from localagent.sessions.clock import SYSTEM, Clock
from localagent.sessions.errors import Cancelled

from .kit import Desk, House, custom
from .server import Behaviour, Connection, answering, head, models, refreshed, serving

MIB = 1024 * 1024


class Moved:
    """The system's clock, moved ahead by hand."""

    def __init__(self) -> None:
        self.ahead = 0.0

    @property
    def clock(self) -> Clock:
        return Clock(steady=lambda: SYSTEM.steady() + self.ahead)


def _silence(connection: Connection) -> None:
    connection.gone()


def _half_then_silence(connection: Connection) -> None:
    body = models("tiny")
    connection.send(head(200, len(body)) + body[:20])
    connection.gone()


def _drip(connection: Connection) -> None:
    body = models("tiny")
    connection.send(head(200, len(body)))
    for byte in body:
        connection.send(bytes([byte]))


def test_one_byte_at_a_time(house: House) -> None:
    assert refreshed(house, _drip).outcome == "refreshed"


@pytest.mark.parametrize("behaviour", [_silence, _half_then_silence])
@pytest.mark.parametrize(("ahead", "over"), [(299.0, False), (301.0, True)])
def test_the_wall_is_not_reset_by_what_comes(house: House, behaviour: Behaviour, ahead: float, over: bool) -> None:
    """EXT-REFRESH-58: 300 s for all of it, by an injected clock; the connection is given up."""
    house.put()
    before = house.tree()
    moved, stop = Moved(), threading.Event()
    with serving(behaviour) as server:
        desk = Desk(house, custom("bench", "tiny", base_url=server.url), clock=moved.clock)

        def move() -> None:
            server.asked.wait()
            moved.ahead = ahead
            if not over:
                threading.Event().wait(0.1)
                stop.set()

        mover = threading.Thread(target=move)
        mover.start()
        if over:
            assert desk.refresher.refresh("bench", None).reason == "remote_timeout"
        else:
            with pytest.raises(Cancelled):
                desk.refresher.refresh("bench", None, stop.is_set)
        mover.join()
    assert house.tree() == before


def test_a_connection_that_is_never_taken(house: House) -> None:
    """EXT-REFRESH-57: the backlog is full; 10 s are over when the clock says so."""
    with socket.socket() as full, socket.socket() as first, socket.socket() as second:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for filler in (first, second):
            filler.setblocking(False)
            filler.connect_ex(full.getsockname())
        url = f"http://127.0.0.1:{full.getsockname()[1]}/v1"
        desk = Desk(house, custom("bench", base_url=url), bounds=Bounds(connect_ms=50))
        assert desk.refresher.refresh("bench", None).reason == "remote_timeout"


def test_the_time_to_connect_does_not_run_once_connected(house: House) -> None:
    moved = Moved()

    def slow(connection: Connection) -> None:
        moved.ahead = 11
        connection.send(head(200))
        threading.Event().wait(0.05)
        connection.send(models("tiny"))

    assert refreshed(house, slow, desk={"clock": moved.clock}).outcome == "refreshed"


# cancellation


@pytest.mark.parametrize("behaviour", [_silence, _half_then_silence])
def test_cancelled_while_the_server_says_nothing(house: House, behaviour: Behaviour) -> None:
    """EXT-REFRESH-23, -43, -62, -65: at once, no write, and nothing of before is valid any more."""
    house.put()
    before = house.tree()
    with serving(behaviour) as server:
        desk = Desk(house, custom("bench", "tiny", base_url=server.url))
        desk.page()
        with pytest.raises(Cancelled):
            desk.refresher.refresh("bench", None, server.asked.is_set)
        assert desk.catalog.revision is None
    assert house.tree() == before


def test_cancelled_at_each_look_nothing_is_written_later(house: House) -> None:
    """EXT-REFRESH-63 to -66: from the commit on the new cache stands, before it the old one; never something else."""
    with serving(answering(models("new"))) as server:
        desk = Desk(house, custom("bench", "new", base_url=server.url))
        old = house.put().read_bytes()
        looks: list[bool] = []

        def token() -> bool:
            looks.append(house.file().read_bytes() == old)
            return len(looks) > allowed

        allowed = outcome = 0
        while outcome == 0:
            house.file().write_bytes(old)
            looks.clear()
            allowed += 1
            try:
                desk.refresher.refresh("bench", None, token)
                outcome = 1
            except Cancelled:
                written = house.file().read_bytes() != old
                assert written == (not looks[-1])  # nothing was written after the look that stopped it
                assert desk.catalog.revision is None
        assert allowed >= 8


def test_two_at_once(house: House) -> None:
    """Each whole: one of both is there in the end, and never anything else."""
    meet = threading.Barrier(2)

    def behaviour(name: str) -> Callable[[Connection], None]:
        def answer(connection: Connection) -> None:
            meet.wait(10)
            answering(models(name))(connection)

        return answer

    with serving(behaviour("one")) as one, serving(behaviour("two")) as two:
        desks = [Desk(house, custom("bench", "one", "two", base_url=each.url)) for each in (one, two)]
        outcomes: list[str] = []
        threads = [
            threading.Thread(target=lambda desk=desk: outcomes.append(desk.refresher.refresh("bench", None).outcome))
            for desk in desks
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert outcomes == ["refreshed", "refreshed"]
    assert desks[0].models() in (["one"], ["two"])
    assert not [each for each in house.tree() if each.endswith(".tmp")]
