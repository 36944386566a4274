"""``model.refresh`` that fails: every reason, every bound, the cache as it was (EXT-REFRESH-18 to -29, EXT-OP-36)."""

import gzip
import socket

import pytest

from localagent.catalog import remote
from localagent.protocol.codes import Code

from .kit import Desk, House, custom, refusal
from .server import Behaviour, Connection, answering, bomb, head, models, refreshed, serving

MIB = 1024 * 1024


def _half(connection: Connection) -> None:
    body = models("tiny")
    connection.send(head(200, len(body)) + body[: len(body) // 2])


def _reset(connection: Connection) -> None:
    connection._peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")


def _longer_than_told(connection: Connection) -> None:
    body = models("tiny")
    connection.send(head(200, len(body) - 5) + body)


FAILURES: dict[str, tuple[Behaviour, str]] = {
    "401": (answering(b"{}", 401), "authentication_rejected"),
    "403": (answering(b"{}", 403), "authentication_rejected"),
    "429": (answering(b"{}", 429, "Retry-After: 1"), "rate_limited"),
    "500": (answering(b"{}", 500), "remote_unavailable"),
    "503": (answering(models("tiny"), 503), "remote_unavailable"),
    "404": (answering(b"", 404), "remote_unavailable"),
    "204": (lambda connection: connection.send(head(204)), "remote_unavailable"),
    "201": (answering(models("tiny"), 201), "remote_unavailable"),
    "redirect": (answering(b"", 302, "Location: /v1/other"), "remote_unavailable"),
    "redirect for good": (answering(b"", 301, "Location: http://127.0.0.1:1/"), "remote_unavailable"),
    "redirect that keeps the method": (answering(b"", 307, "Location: /v1/models"), "remote_unavailable"),
    "HTML": (answering(b"<!DOCTYPE html><p>Hello", 200, "Content-Type: text/html"), "invalid_catalog"),
    "nothing": (answering(b""), "invalid_catalog"),
    "an array": (answering(b"[]"), "invalid_catalog"),
    "no data": (answering(b'{"object":"list"}'), "invalid_catalog"),
    "data of another type": (answering(b'{"data":{}}'), "invalid_catalog"),
    "models that are strings": (answering(b'{"data":["tiny"]}'), "invalid_catalog"),
    "a model without a name": (answering(models("tiny", {"name": "x"})), "invalid_catalog"),
    "a model of no name": (answering(models("tiny", "")), "invalid_catalog"),
    "a name of another type": (answering(models({"id": 1})), "invalid_catalog"),
    "a name of 257 bytes": (answering(models("-" * 257)), "invalid_catalog"),
    "a name with a control": (answering(models("a\nb")), "invalid_catalog"),
    "a lone surrogate": (answering(b'{"data":[{"id":"\\ud800"}]}'), "invalid_catalog"),
    "bad UTF-8": (answering(b'{"data":[{"id":"\xff"}]}'), "invalid_catalog"),
    "depth": (answering(b"[" * MIB), "invalid_catalog"),
    "a name twice": (answering(models("tiny", "big", "tiny")), "invalid_catalog"),
    "half, told to be plain": (answering(models("tiny")[:20]), "invalid_catalog"),
    "no models": (answering(models()), "empty_catalog"),
    "no HTTP": (lambda connection: connection.send(b"SSH-2.0-x\r\n\r\n"), "remote_unavailable"),
    "closed at once": (lambda connection: None, "remote_unavailable"),
    "reset": (_reset, "remote_unavailable"),
    "half a head": (lambda connection: connection.send(head()[:20]), "remote_unavailable"),
    "half a body, then closed": (_half, "remote_unavailable"),
    "longer than told": (_longer_than_told, "invalid_catalog"),
    "a length that is none": (lambda c: c.send(head(200, None, "Content-Length: many")), "remote_unavailable"),
    "two lengths": (lambda c: c.send(head(200, 5, "Content-Length: 7") + b"{}"), "remote_unavailable"),
    "a head without end": (lambda c: c.send(b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 50_000), "remote_unavailable"),
    "a packing nobody asked for": (answering(b"x", 200, "Content-Encoding: br"), "invalid_catalog"),
    "told to be packed": (answering(models("tiny"), 200, "Content-Encoding: gzip"), "invalid_catalog"),
    "a bomb": (answering(bomb(300 * MIB), 200, "Content-Encoding: gzip"), "catalog_limit"),
    "half a packed body": (
        answering(gzip.compress(models("tiny"))[:30], 200, "Content-Encoding: gzip"),
        "invalid_catalog",
    ),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_keeps_the_cache_and_says_why(house: House, name: str) -> None:
    """EXT-REFRESH-29, EXT-REFRESH-41 to -45, EXT-OP-36."""
    behaviour, reason = FAILURES[name]
    house.put("bench", ["tiny", "old"])
    before = house.tree()
    with serving(behaviour) as server:
        desk = Desk(house, custom("bench", "tiny", base_url=server.url))
        page = desk.page()
        told = desk.refresher.refresh("bench", None)
        assert len(server.requests) == 1  # nothing is tried again, no redirect followed
    assert (told.outcome, told.reason, told.catalog_error) == ("failed", reason, None)
    assert told.catalog_revision not in (None, page.revision)
    assert refusal(lambda: desk.catalog.verify(page.revision)) is Code.STALE_CATALOG
    assert desk.catalog.verify(str(told.catalog_revision)).find("bench", "tiny")
    assert house.tree() == before


def test_nobody_listens(house: House) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    told = Desk(house, custom("bench", base_url=url)).refresher.refresh("bench", None)
    assert told.reason == "remote_unavailable"


@pytest.mark.parametrize("url", [None, "", "http://", "ftp://127.0.0.1/v1", "http://127.0.0.1:99999/v1", "nonsense"])
def test_an_address_that_is_none(house: House, url: str | None) -> None:
    told = Desk(house, custom("bench", base_url=url)).refresher.refresh("bench", None)
    assert told.reason == "configuration_invalid"


# bounds


def test_what_follows_a_packed_body_counts_too(house: House) -> None:
    """A small catalog, and then no end of bytes that unpack to nothing."""
    body = gzip.compress(models("tiny")) + b"\0" * (2 * MIB)
    assert refreshed(house, answering(body, 200, "Content-Encoding: gzip")).reason == "catalog_limit"


def test_no_more_of_a_bomb_is_unpacked_than_may_be_kept() -> None:
    unpack = remote._unpacker("gzip")
    assert len(unpack(bomb(MIB), 100)) == 100


def test_a_packed_answer_is_understood_though_not_asked_for(house: House) -> None:
    packed = gzip.compress(models("tiny"))
    assert refreshed(house, answering(packed, 200, "Content-Encoding: gzip")).outcome == "refreshed"


@pytest.mark.parametrize(("length", "reason"), [(2 * MIB - 1, None), (2 * MIB, None), (2 * MIB + 1, "catalog_limit")])
@pytest.mark.parametrize("form", ["told", "untold", "packed"])
def test_bytes_of_a_body(house: House, length: int, reason: str | None, form: str) -> None:
    """EXT-REFRESH-55; a length is believed only when the bytes have come."""
    body = models("tiny").ljust(length)

    def behaviour(connection: Connection) -> None:
        if form == "told":
            connection.send(head(200, len(body)) + body)
        elif form == "untold":
            connection.send(head(200) + body)
        else:
            packed = gzip.compress(body)
            connection.send(head(200, len(packed), "Content-Encoding: gzip") + packed)

    assert refreshed(house, behaviour).reason == reason


@pytest.mark.parametrize(("count", "reason"), [(2047, None), (2048, None), (2049, "catalog_limit")])
def test_models_of_a_catalog(house: House, count: int, reason: str | None) -> None:
    """EXT-REFRESH-26, EXT-OP-37: counted before anything repeated is found, extra ones included."""
    names = [f"m{number}" for number in range(count - 1)]
    assert refreshed(house, answering(models(*names)), extra_models=("extra",)).reason == reason
    if reason is not None:
        assert refreshed(house, answering(models(*names[:-1], "m0", "m0", "m0"))).reason == reason


def test_bytes_of_the_written_cache(house: House) -> None:
    """EXT-REFRESH-27, EXT-OP-38: as written, indented."""

    def written(more: int) -> str | None:
        """``more`` bytes, spread over the display names."""
        each, rest = divmod(more, 1700)
        names = ("-" * (160 + each + (number < rest)) for number in range(1700))
        facts = ({"id": f"m{number:04d}" + "-" * 140, "display_name": name} for number, name in enumerate(names))
        return refreshed(house, answering(models(*facts))).reason

    assert written(0) is None
    missing = MIB - house.file().stat().st_size
    assert 0 < missing < 1700 * 90
    assert written(missing) is None
    assert house.file().stat().st_size == MIB
    before = house.tree()
    assert written(missing + 1) == "catalog_limit"
    assert house.tree() == before
