"""The worker channel: 32 places, merging, dropping, waiting, giving up. Arithmetic and one small machine."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.core.channel import Channel, Offer
from localagent.core.worker import ActivityChanged, Delta, InputAppended, Note, Reconcile, RunEvent
from statemachines.channel import ChannelState

CRITICAL: list[RunEvent] = [
    InputAppended("in1", "h2"),
    Reconcile("m1", 0, "x", True, False),
    ActivityChanged("a1", "tool", "started", "read", "x"),
    Note("hint", "x"),
]


def note(number: int) -> Note:
    return Note("hint", str(number))


def filled(count: int = 32) -> Channel:
    channel = Channel()
    for number in range(count):
        assert channel.offer(note(number), 0) is Offer.ACCEPTED
    return channel


def drain(channel: Channel) -> list[RunEvent]:
    return list(iter(channel.take, None))


@pytest.mark.parametrize("count", [31, 32])
def test_so_many_events_have_a_place(count: int) -> None:
    channel = filled(count)
    assert len(channel) == count
    assert drain(channel) == [note(number) for number in range(count)]
    assert (channel.take(), len(channel), channel.state) == (None, 0, ChannelState.ROOM)


@pytest.mark.parametrize("event", CRITICAL)
def test_the_33rd_critical_event_waits(event: RunEvent) -> None:
    channel = filled()
    assert (channel.offer(event, 0), channel.state) == (Offer.WAIT, ChannelState.FULL)
    assert channel.take() == note(0)
    assert (channel.offer(event, 1_999, since=0), channel.state) == (Offer.ACCEPTED, ChannelState.ROOM)
    assert drain(channel)[-1] == event


@pytest.mark.parametrize(("now", "offer"), [(1_999, Offer.WAIT), (2_000, Offer.GIVEN_UP), (2_001, Offer.GIVEN_UP)])
def test_a_critical_event_waits_two_seconds(now: int, offer: Offer) -> None:
    channel = filled()
    assert channel.offer(CRITICAL[0], 0, since=0) is Offer.WAIT
    assert channel.offer(CRITICAL[0], now, since=0) is offer
    assert (channel.state is ChannelState.GIVEN_UP) == (now >= 2_000)


def test_waiting_begins_with_the_first_offer() -> None:
    """Two waiters, each with a time of its own; a place that comes free late still saves whoever asks for it."""
    channel = filled()
    first, second, third = CRITICAL[:3]
    assert channel.offer(first, 0, since=0) is Offer.WAIT
    assert channel.offer(second, 1_500, since=1_500) is Offer.WAIT
    assert channel.offer(third, 1_500) is Offer.WAIT
    channel.take()
    assert channel.offer(first, 2_500, since=0) is Offer.ACCEPTED
    assert channel.offer(second, 3_499, since=1_500) is Offer.WAIT
    assert channel.state is ChannelState.FULL
    channel.take()
    assert channel.offer(second, 3_500, since=1_500) is Offer.ACCEPTED
    assert drain(channel)[-2:] == [first, second]


def test_giving_up_is_for_the_rest_of_the_run() -> None:
    channel = filled()
    channel.offer(CRITICAL[0], 0, since=0)
    assert channel.offer(CRITICAL[0], 2_000, since=0) is Offer.GIVEN_UP
    assert len(drain(channel)) == 32
    for event in (*CRITICAL, Delta("m1", "x")):
        assert channel.offer(event, 2_000, since=2_000) is Offer.GIVEN_UP
    assert (channel.take(), channel.state) == (None, ChannelState.GIVEN_UP)


# deltas


@pytest.mark.parametrize(("size", "merges"), [(3_999, True), (4_000, True), (4_001, False)])
@pytest.mark.parametrize(("character", "width"), [("x", 1), ("é", 2), ("日", 3), ("😀", 4)])
def test_deltas_merge_up_to_4000_bytes(size: int, merges: bool, character: str, width: int) -> None:
    """BOUND-10 counts UTF-8 bytes, not characters."""
    wide = character * 900
    channel, rest = Channel(), size - 900 * width
    assert channel.offer(Delta("m1", wide), 0) is Offer.ACCEPTED
    assert channel.offer(Delta("m1", "y" * rest), 0) is (Offer.MERGED if merges else Offer.ACCEPTED)
    expected = [Delta("m1", wide + "y" * rest, 0)] if merges else [Delta("m1", wide, 0), Delta("m1", "y" * rest, 1)]
    assert drain(channel) == expected


def test_a_delta_merges_only_with_the_last_event() -> None:
    channel = Channel()
    offers = [channel.offer(event, 0) for event in (Delta("m1", "a"), Delta("m2", "b"), Delta("m1", "c"), note(0))]
    assert offers == [Offer.ACCEPTED] * 4
    assert channel.offer(Delta("m1", "d"), 0) is Offer.ACCEPTED
    assert channel.offer(Delta("m1", "e"), 0) is Offer.MERGED
    assert drain(channel) == [
        Delta("m1", "a", 0),
        Delta("m2", "b", 0),
        Delta("m1", "c", 1),
        note(0),
        Delta("m1", "de", 2),
    ]


def test_a_merged_delta_leaves_no_gap_and_a_dropped_one_does() -> None:
    """BASE-OP-170: a client must be able to notice a loss, and only a loss."""
    channel = filled(30)
    assert channel.offer(Delta("m1", "a"), 0) is Offer.ACCEPTED
    assert channel.offer(Delta("m1", "b"), 0) is Offer.MERGED
    assert channel.offer(Delta("m2", "c"), 0) is Offer.ACCEPTED
    assert channel.offer(Delta("m1", "d"), 0) is Offer.DROPPED
    assert channel.offer(Delta("m1", "e"), 0) is Offer.DROPPED
    assert channel.offer(Delta("m2", "f"), 0) is Offer.MERGED, "there is room in the last delta, if not in the channel"
    channel.take()
    assert channel.offer(Delta("m1", "g"), 0) is Offer.ACCEPTED
    deltas = [event for event in drain(channel) if isinstance(event, Delta)]
    assert deltas == [Delta("m1", "ab", 0), Delta("m2", "cf", 0), Delta("m1", "g", 3)]


def test_a_delta_never_waits() -> None:
    channel = filled()
    assert (channel.offer(Delta("m1", "x"), 0), channel.state) == (Offer.DROPPED, ChannelState.ROOM)


pieces = st.one_of(
    st.tuples(st.sampled_from("ab"), st.sampled_from(["x", "é", "x" * 1_500, "é" * 1_999, "😀" * 1_000])),
    st.just("note"),
    st.just("take"),
)


@given(st.lists(pieces, max_size=120))
def test_what_comes_out_is_what_went_in(given_pieces: list[tuple[str, str] | str]) -> None:
    """In order; no delta over 4,000 bytes; a gap in the parts of a message exactly where a delta was dropped."""
    channel, taken, numbers = Channel(), [], itertools.count()
    said: dict[str, str] = {}
    dropped: dict[str, int] = {}
    notes = 0
    for piece in given_pieces:
        if piece == "take":
            event = channel.take()
            taken += [event] if event else []
        elif isinstance(piece, str):
            notes += channel.offer(note(next(numbers)), 0) is Offer.ACCEPTED
        elif channel.offer(Delta(*piece), 0) is Offer.DROPPED:
            dropped[piece[0]] = dropped.get(piece[0], 0) + 1
        else:
            said[piece[0]] = said.get(piece[0], "") + piece[1]
        assert len(channel) <= 32
    taken += drain(channel)
    seen = [int(event.summary) for event in taken if isinstance(event, Note)]
    assert (seen, len(seen)) == (sorted(seen), notes)
    for message in "ab":
        deltas = [event for event in taken if isinstance(event, Delta) and event.message_id == message]
        parts = [delta.part for delta in deltas]
        assert "".join(delta.text for delta in deltas) == said.get(message, "")
        assert all(len(delta.text.encode()) <= 4_000 for delta in deltas)
        assert parts == sorted(set(parts))
        gaps = max(parts, default=-1) + 1 - len(parts)
        assert gaps <= dropped.get(message, 0)
        if dropped.get(message, 0) == 0:
            assert gaps == 0
