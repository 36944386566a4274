"""Offline repair (REC-56): what it would do, what it does, what it leaves alone; no byte is ever lost."""

import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from localagent.protocol.codes import Code
from localagent.sessions import repair
from tests.sessions.kit import House, StillClock, answer, opening, refusal, shown, user

REPAIR = "Repair set aside {} damaged bytes."


def salvaged(house: House, session_id: str = "s") -> dict[str, bytes]:
    """What was set aside, by name."""
    folder = Path(house.root.path) / "salvage" / session_id
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}


def texts(house: House, session_id: str = "s") -> list[str]:
    handle = house.store().open(session_id)
    try:
        return [text for _, text, _ in shown(handle)]
    finally:
        handle.release()


def records(house: House, *words: str) -> list[bytes]:
    return [house.line("s", "user_input" if at % 2 == 0 else "assistant_output", {"text": word})
            for at, word in enumerate(words)]  # fmt: skip


# what is damaged, and what becomes of it


def test_the_last_record_cut_at_every_byte(house: House) -> None:
    """Open refuses it, an append cannot fuse with it, repair brings back every complete record."""
    whole = b"\n".join(records(house, "one", "two")) + b"\n"
    last = house.line("s", "user_input", {"text": "a \u2028 {\"b\": \u65e5"})  # fmt: skip
    handle = house.store().open(house.put_bytes("s", whole + last).stem)  # attached while its tail is torn
    for cut in range(1, len(last)):
        data = whole + last[:cut]
        house.put_bytes("s", data)
        with pytest.raises(Exception, match="torn"):
            handle.append([user("more")])
        assert house.file("s").read_bytes() == data
        plan = repair.survey(house.root, "s")
        assert (plan.aside, plan.good, [each.kept for each in plan.damages]) == (cut, whole, [0])
        assert plan.outcome.fault is None
    handle.release()
    for cut in (1, 2, len(last) // 2, len(last) - 1):
        data = whole + last[:cut]
        house.put_bytes("s", data)
        assert opening(house) is Code.SESSION_INVALID
        done = repair.apply(house.root, "s")
        assert done.salvage is not None
        assert (Path(house.root.path) / done.salvage).read_bytes() == data
        assert texts(house) == ["one", "two", REPAIR.format(cut)]
        after = house.store().open("s")
        after.append([user("three"), answer("four")])
        after.release()
        assert texts(house) == ["one", "two", REPAIR.format(cut), "three", "four"]
    assert len(salvaged(house)) == 4


def test_a_record_that_lacks_only_its_lf_is_not_damaged(house: House) -> None:
    data = house.put_bytes("s", b"\n".join(records(house, "one", "two"))).read_bytes()
    assert repair.survey(house.root, "s").damages == ()
    assert repair.apply(house.root, "s").salvage is None
    assert house.file("s").read_bytes() == data
    assert house.names() == {"s.jsonl"}
    handle = house.store().open("s")
    handle.append([user("three"), answer("four")])
    handle.release()
    assert house.file("s").read_bytes().startswith(data + b'\n{"event_id"')
    assert texts(house) == ["one", "two", "three", "four"]


BAD = [
    b"",
    b"\r",
    b"\x00" * 5000,
    b"\xef\xbb\xbf{}",
    b'{"torn',
    b"[" * 10_000,
    b"null",
    b"\xff\xfe",
    b"x" * 300_000,
    b"line\xe2\x80\xa8separators\xc2\x85and\x1cmore",
]


@pytest.mark.parametrize("bad", BAD, ids=range(len(BAD)))
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_bad_line_anywhere(house: House, bad: bytes, place: int) -> None:
    lines = records(house, "one", "two")
    lines.insert(place, bad)
    data = house.put("s", *lines).read_bytes()
    plan = repair.survey(house.root, "s")
    assert [(each.line, each.aside, each.kept) for each in plan.damages] == [(place + 1, len(bad) + 1, 0)]
    repair.apply(house.root, "s")
    assert salvaged(house) == {"1.bytes": data}
    assert house.file("s").read_bytes().startswith(b"\n".join(records(house, "one", "two")) + b"\n{")
    assert texts(house) == ["one", "two", REPAIR.format(len(bad) + 1)]


def test_good_lines_stay_byte_for_byte(house: House) -> None:
    """CRLF, spaces, unknown fields and kinds, any spelling: what reads is not written anew."""
    odd = [
        house.line("s", "user_input", {"text": "a\u2028b"}) + b"\r\n",
        b" " + house.line("s", "newer_kind", {"x": 1}, extra=[1]) + b"  \n",
        house.line("s", "assistant_output", {"text": "c"}).replace(b'"payload"', b'"p\\u0061yload"') + b"\n",
        house.line("s", "session_usage", {"x": "y" * 200_000}) + b"\n",
    ]
    house.put_bytes("s", odd[0] + b"bad\r\n" + odd[1] + odd[2] + b"\n" + odd[3] + b"\0")
    assert repair.survey(house.root, "s").aside == len(b"bad\r\n" + b"\n" + b"\0")
    repair.apply(house.root, "s")
    assert house.file("s").read_bytes().startswith(b"".join(odd) + b'{"event_id"')


def test_a_last_record_that_lacks_its_lf_gets_it(house: House) -> None:
    one, two = records(house, "one", "two")
    house.put_bytes("s", one + b"\nbad\n" + two)
    repair.apply(house.root, "s")
    assert house.file("s").read_bytes().startswith(one + b"\n" + two + b'\n{"event_id"')
    assert texts(house) == ["one", "two", REPAIR.format(4)]


def test_joined_records_are_parted(house: House) -> None:
    """What an appender makes who does not look at the tail (REC-34)."""
    one, two, three = records(house, "one", "two", "three")
    house.put_bytes("s", one + two + b"\r\n" + three[:40] + three)
    plan = repair.survey(house.root, "s")
    assert [(each.line, each.aside, each.kept) for each in plan.damages] == [(1, 1, 2), (2, 40, 1)]
    assert plan.good == b"\n".join((one, two, three)) + b"\n"
    repair.apply(house.root, "s")
    assert texts(house) == ["one", "two", "three", REPAIR.format(41), "Turn interrupted"]


def test_nothing_but_a_torn_record(house: House) -> None:
    """A crash in the first append: the session is there, and says what happened."""
    house.put_bytes("s", records(house, "one")[0][:-1])
    repair.apply(house.root, "s")
    handle = house.store().open("s")
    assert handle.notices == ("cwd_unverified",)
    handle.release()
    assert len(salvaged(house)) == 1


PIECES = st.one_of(st.sampled_from(BAD[:7]), st.binary(max_size=30), st.integers(0, 4))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pieces=st.lists(st.tuples(PIECES, st.sampled_from([b"\n", b"\r\n", b""])), max_size=8))
def test_no_byte_is_lost_and_a_plan_is_final(pieces: list[tuple[bytes | int, bytes]], house: House) -> None:
    """Whatever the bytes: what stays is good, what does not is counted, and there is nothing to repair any more."""
    stock = [house.line("s", "user_input", {"text": str(number)}) for number in range(5)]
    data = b"".join((stock[piece] if isinstance(piece, int) else piece) + end for piece, end in pieces)
    plan = repair.plan("s", data)
    assert is_subsequence(plan.good.replace(b"\n", b""), data)
    lone = [line for line in data.split(b"\n") if line.removesuffix(b"\r") in stock]
    assert is_subsequence(lone, plan.good.split(b"\n"))
    again = repair.plan("s", plan.good)
    assert (again.damages, again.good, again.outcome.fault) == ((), plan.good, None)
    assert 0 <= plan.aside <= plan.length == len(data)
    assert plan.length - plan.aside <= len(plan.good)  # parted records get line ends of their own


def is_subsequence(part: Sequence[object], whole: Iterable[object]) -> bool:
    rest = iter(whole)
    return all(any(each == other for other in rest) for each in part)


# the record that says so


def test_the_diagnostic(house: House) -> None:
    """It is of the session's own directory, has an id like any other, and names the number of bytes."""
    house.put_bytes("s", records(house, "one", "two")[0] + b"\nbad")
    still = StillClock()
    repair.apply(house.root, "s", still.clock)
    last = house.file("s").read_bytes().splitlines()[-1]
    assert last == house.line(
        "s",
        "diagnostic",
        {"category": "repair", "level": "warning", "message": REPAIR.format(3)},
        event_id="1",
        timestamp="2027-01-15T08:00:00Z",
        session_path=house.cwd,
    )
    assert house.file("s").stat().st_mode & 0o777 == 0o600
    handle = house.store().open("s")
    assert handle.notices == ()
    assert handle.append([user("x"), answer("y")]).event_ids == ("401", "402")
    handle.release()


@pytest.mark.parametrize("cwds", [["", ""], ["/", "/etc"]])
def test_where_no_one_directory_is_recorded_none_is_invented(house: House, cwds: list[str]) -> None:
    house.put("s", *[house.line("s", "x", {}, cwd=cwd) for cwd in cwds], b"bad")
    repair.apply(house.root, "s")
    assert b'"cwd":"","session_path":null,' in house.file("s").read_bytes().splitlines()[-1]
    if not any(cwds):
        assert house.store().open("s").notices == ("cwd_unverified",)


# the salvage


def test_the_salvage_is_private_and_numbered(house: House) -> None:
    before = os.umask(0)
    try:
        for number in (1, 2, 3):
            house.put_bytes("s", b"bad" * number)
            assert repair.apply(house.root, "s").salvage == f"salvage/s/{number}.bytes"
    finally:
        os.umask(before)
    top = Path(house.root.path) / "salvage"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (top, top / "s", top / "s/1.bytes")] == [0o700, 0o700, 0o600]
    assert salvaged(house) == {f"{number}.bytes": b"bad" * number for number in (1, 2, 3)}


def test_a_copy_that_is_there_already_serves(house: House) -> None:
    house.put_bytes("s", b"bad")
    repair.apply(house.root, "s")
    house.put_bytes("s", b"bad")
    assert repair.apply(house.root, "s").salvage == "salvage/s/1.bytes"
    assert salvaged(house) == {"1.bytes": b"bad"}


def test_other_names_in_the_salvage_are_left_alone(house: House) -> None:
    folder = Path(house.root.path) / "salvage" / "s"
    folder.mkdir(mode=0o700, parents=True)
    folder.parent.chmod(0o700)
    for name in ("0.bytes", "07.bytes", "x.bytes", "9.bytes.old"):
        (folder / name).write_bytes(b"mine")
    (folder / "4.bytes").symlink_to("nowhere")
    house.put_bytes("s", b"bad")
    assert repair.apply(house.root, "s").salvage == "salvage/s/5.bytes"
    assert (folder / "4.bytes").is_symlink()
    assert (folder / "07.bytes").read_bytes() == b"mine"


@pytest.mark.parametrize("spoil", ["link", "file", "mode"])
@pytest.mark.parametrize("name", ["salvage", "salvage/s"])
def test_a_salvage_that_is_not_ours_alone_is_not_used(house: House, name: str, spoil: str) -> None:
    path = Path(house.root.path) / name
    path.parent.mkdir(mode=0o700, exist_ok=True)
    if spoil == "link":
        (house.base / "elsewhere").mkdir(mode=0o700)
        path.symlink_to(house.base / "elsewhere")
    elif spoil == "file":
        path.touch(0o600)
    else:
        path.mkdir()
        path.chmod(0o750)
    data = house.put_bytes("s", b"bad").read_bytes()
    assert refusal(lambda: repair.apply(house.root, "s")) is Code.PERSISTENCE_FAILED
    assert house.file("s").read_bytes() == data
    assert house.names() == {"s.jsonl", "event-id-sequence"}
