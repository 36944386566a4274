"""Event ids: unique for ever, in blocks of 1,024 (REC-09)."""

import os
from pathlib import Path

import pytest

from localagent.sessions.clock import never
from localagent.sessions.disk import Step
from localagent.sessions.errors import Cancelled, Held, Unsafe
from localagent.sessions.eventids import EventIds
from tests.sessions.kit import House, StillClock, failing

LAST = 2**64 - 1


def ids(house: House, still: StillClock | None = None) -> EventIds:
    return EventIds(house.root, (still or StillClock()).clock)


def sequence(house: House) -> Path:
    return house.sessions / "event-id-sequence"


def test_a_block_is_taken_before_an_id_is_used(house: House) -> None:
    source = ids(house)
    with failing([], OSError()) as log:
        assert source.take(2, never) == ["1", "2"]
    assert (Step.REPLACE_SYNC_DIRECTORY, True) in log
    assert sequence(house).read_bytes() == b"1024"  # digits alone: no line feed
    assert sequence(house).stat().st_mode & 0o777 == 0o600
    with failing([], OSError()) as log:
        assert source.take(1022, never)[-1] == "400"
    assert log == []
    assert source.take(1, never) == ["401"]
    assert sequence(house).read_bytes() == b"2048"
    assert house.names() == {"event-id-sequence"}


def test_two_children_never_share_a_block(house: House) -> None:
    one, two = ids(house), ids(house)
    taken = [*one.take(3, never), *two.take(3, never), *one.take(1021, never), *one.take(3, never)]
    assert len(set(taken)) == len(taken)
    assert two.take(1, never) == ["404"]


@pytest.mark.parametrize(("count", "end"), [(1023, b"1024"), (1024, b"1024"), (1025, b"1025"), (5000, b"5000")])
def test_a_larger_batch_takes_a_larger_block(house: House, count: int, end: bytes) -> None:
    taken = ids(house).take(count, never)
    assert taken == [f"{number:x}" for number in range(1, count + 1)]
    assert sequence(house).read_bytes() == end


@pytest.mark.parametrize("content", [b"", b"12\n", b" 12", b"-1", b"0x12", "\u0661".encode(), b"1" * 21, b"7" * 40])
def test_a_sequence_that_is_no_number_is_refused_and_left(house: House, content: bytes) -> None:
    sequence(house).write_bytes(content)
    sequence(house).chmod(0o600)
    with pytest.raises(Unsafe):
        ids(house).take(1, never)
    assert sequence(house).read_bytes() == content
    assert house.names() == {"event-id-sequence"}


def test_the_sequence_must_be_a_file_of_ours(house: House, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("7")
    sequence(house).symlink_to(tmp_path / "outside")
    with pytest.raises(Unsafe):
        ids(house).take(1, never)
    assert (tmp_path / "outside").read_text() == "7"


@pytest.mark.parametrize(
    ("end", "fits"), [(LAST - 1025, True), (LAST - 1024, True), (LAST - 1023, False), (LAST, False)]
)
def test_ids_have_at_most_16_digits(house: House, end: int, fits: bool) -> None:
    sequence(house).write_text(str(end))
    sequence(house).chmod(0o600)
    if fits:
        assert len(ids(house).take(1024, never)[-1]) == 16
    else:
        with pytest.raises(Unsafe):
            ids(house).take(1, never)


@pytest.mark.parametrize("step", [step for step in Step if step.name.startswith("REPLACE")])
def test_a_failed_replacement_gives_out_nothing(house: House, step: Step) -> None:
    source = ids(house)
    with failing([step], OSError(5, "Input/output error")), pytest.raises(OSError, match="Input"):
        source.take(1, never)
    moved = step is Step.REPLACE_SYNC_DIRECTORY  # after the rename: those ids are lost
    assert source.take(1, never) == ["401" if moved else "1"]
    assert house.names() == {"event-id-sequence"}


def test_waiting_for_the_sequence(house: House) -> None:
    (house.sessions / ".event-id-sequence.lock").write_text(f"pid={os.getpid()}\n")
    still = StillClock()
    with pytest.raises(Held):
        ids(house, still).take(1, never)
    assert 30 <= still.steady < 30.02
    with pytest.raises(Cancelled):
        ids(house).take(1, lambda: True)
