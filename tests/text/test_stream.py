"""What a stream sends, holds and mutes, and how much one delta carries."""

import pytest

from localagent.text import DeltaStream

from .streaming import check

M = "<redacted>"
GH = "ghp_" + "a" * 20
PROSE = "The quick brown fox, as a rule, jumps over each lazy dog; and so on. It's known (more or less) by all. "


def fed(*pieces: str) -> tuple[str, int]:
    """What is visible after the pieces, and how many characters are held."""
    stream = DeltaStream()
    return "".join(text for piece in pieces for text in stream.feed(piece)), stream.held


AT_ONCE = [
    *(
        "The",
        "Hello, ",
        "over ",
        "x = 1\n",
        "key",
        "tokens",
        "my_token",
        "1",
        "\u5bc6\u94a5",
        "",
        "token of",
        "secret.",
    ),
    *(
        "xa",
        "\u00e9s",
        "_g",
        "bearer,",
        "GH",
        "SKx",
        "akia",
        "eyj",
        "ghp_a ",
        "AKIA0123456789a",
        "bearer abc,",
        "data:a;",
    ),
    *("AKIA0123456789ABCDEFG", "token;", "sk- ", "eyJ\u00e9", "-----END"),
]
HELD = [
    # a beginning of an opener, from where a word begins
    *("a", "s", "g", "e", "A", "id", "gh", "ghp", "AKI", "sk", "ey", "bear", "auth", "Secr", "PASS", "api-", "exa_a"),
    *("aws", "aws_secret_acc", "chatgpt-acc"),
    # an opener with the body it has so far
    *("ghp_", GH, GH[:9], "sk-", "sk-a.", "eyJ", "AKIA", "AKIA0123456789ABCDEF"),
    *("data:a", "data:a/", "data:a/b", "data:a/b;", "data:a/b;base64,", "data:a/b;base64,Q"),
    # bearer and its token
    *("bearer", "Bearer \n", "bearer abc", "bearer abcdefgh"),
    # a credential name with its sign, and an open value or quote
    *("token", 'token"', "token ", "token:", "token = ", "token: x", "token: 'x y, ", 'token: "a\\"', "token: '"),
]
ANYWHERE = ["d", "da", "data", "data:", "-", "--", "-----", "-----BEGI"]
OVER = [
    (f"{GH} ", f"{M} "),
    ("AKIA0123456789ABCDEF.", f"{M}."),
    ("sk-a. ", f"{M}. "),
    ("bearer abcdefgh,", f"bearer {M},"),
    ("data:a/b;base64,Q)", f"data:{M};base64,{M})"),
    ("token: x ", f"token: {M} "),
    ("token: 'x y'", f"token: {M}"),
    ("sk-token: x", f"{M}: x"),  # no name: step 5 took it
    ("an add", "an ad"),  # no more than needed
    ("------", "-"),
    ("x\r", "x"),
    ("x\x1b[3", "x"),
]


@pytest.mark.parametrize("text", AT_ONCE)
def test_what_cannot_belong_to_a_secret_leaves_at_once(text: str) -> None:
    assert fed(f"x {text}") == fed("x ", text) == (f"x {text}", 0)


@pytest.mark.parametrize("text", HELD)
def test_what_may_begin_or_continue_a_secret_is_held(text: str) -> None:
    for before in ("x ", "x-", "\u00e9(", ""):
        assert fed(f"{before}{text}") == fed(*before, *text) == (before, len(text))
    if not text.startswith("data:"):
        assert fed(f"1{text}")[0].startswith(f"1{text[0]}")  # no word begins there


@pytest.mark.parametrize("text", ANYWHERE)
def test_what_need_not_begin_a_word_is_held_anywhere(text: str) -> None:
    for before in ("x ", "well", "\u00e9", "_"):
        assert fed(f"{before}{text}") == fed(*before, *text) == (before, len(text))


@pytest.mark.parametrize(("text", "visible"), OVER)
def test_no_more_is_held_than_must_be(text: str, visible: str) -> None:
    assert fed(text)[0] == fed(*text)[0] == visible


@pytest.mark.parametrize(
    ("opener", "body", "end"),
    [
        *(("ghp_", "a", " "), ("eyJ", "a.", ","), ("data:", "a", " "), ("bearer ", "a", "\n")),
        *(("token: ", "a", ";"), ("token' : \"", "a b", '"'), ("password = '", "\u5bc6", "'"), ("token", " ", "x")),
    ],
)
@pytest.mark.parametrize("length", [1_023, 1_024, 1_025])
@pytest.mark.parametrize("piece", [1, 7, 300, 5_000])
def test_more_than_1024_held_characters_mute(opener: str, body: str, end: str, length: int, piece: int) -> None:
    held = (opener + body * 1_024)[:length]
    stream = DeltaStream()
    for begin in range(0, length, piece):
        part = held[begin : begin + piece]
        assert stream.feed(f"x {part}" if begin == 0 else part) == (["x "] if begin == 0 else [])
        assert stream.held in (0, min(begin + piece, length))
    assert stream.muted == (length == 1_025)
    assert stream.held == (0 if stream.muted else length)
    rest = stream.feed(f"{end} y") + stream.finish()
    assert (rest == []) == stream.muted
    assert stream.text == f"x {held}{end} y"
    if not stream.muted:
        assert "x " + "".join(rest) == stream.reconciled()


def test_a_secret_that_is_over_is_not_held_however_long() -> None:
    stream = DeltaStream()
    assert stream.feed("token: '" + "x " * 5_000 + "' and") == [f"token: {M} an"]
    assert stream.feed(f" {'ghp_' + 'a' * 5_000} ") == [f"d {M} "]
    assert not stream.muted


def test_held_text_of_several_steps_counts_together() -> None:
    stream = DeltaStream()
    assert stream.feed("token: '" + "x " * 500) == []  # 1,008 held by step 7
    assert stream.feed("sk-aaaaaaaaaaaaa") == []  # 16 by step 5
    assert (stream.held, stream.muted) == (1_024, False)
    assert stream.feed("a") == []
    assert stream.muted


@pytest.mark.parametrize("opener", ["-----BEGIN", "-----BEGIN CERTIFICATE-----", "------BEGIN", "x-----BEGINNING"])
def test_the_opener_of_a_block_mutes(opener: str) -> None:
    before, _, rest = opener.partition("-----BEGIN")
    for pieces in ([f"see {opener} y"], ["see ", opener, " y"], list(f"see {opener} y")):
        stream = DeltaStream()
        shown = "".join(text for piece in pieces for text in stream.feed(piece))
        assert shown == f"see {before}"
        assert stream.muted
        assert (stream.held, stream.feed("more"), stream.finish()) == (0, [], [])
        assert stream.text == stream.reconciled() == f"see {before}-----BEGIN{rest} ymore"


@pytest.mark.parametrize("text", ["-----BEGI", "----BEGIN", "-----Begin", "-----begin", "----- BEGIN", "-----END"])
def test_what_is_not_the_opener_of_a_block_does_not(text: str) -> None:
    assert not check([text]).muted
    assert not check(list(text)).muted


def test_what_a_block_leaves_held_stays_hidden() -> None:
    """What a stage held when a block began is not let through at the end either: the block is part of that secret."""
    for pieces in (["sk-Zq0-----BEGIN X"], ["sk-Zq0\x1b]x-----BEGIN X"], ["token: 'Zq0 -----BEGIN X' y"]):
        assert check(pieces, "Zq0").muted


def test_a_line_of_hyphens_is_not_held() -> None:
    assert fed("-" * 5_000) == ("-" * 4_995, 5)
    assert fed(*["-"] * 5_000) == ("-" * 4_995, 5)


def test_nothing_is_held_of_plain_text_but_the_beginning_of_an_opener() -> None:
    stream = DeltaStream()
    held = []
    for character in PROSE * 20:
        stream.feed(character)
        held.append(stream.held)
    assert max(held) <= 2
    assert held.count(0) > 0.8 * len(held)


def test_text_and_reconciliation_do_not_wait() -> None:
    """D80: a cancelled run shows what was accepted, also what was still held."""
    stream = DeltaStream()
    assert stream.text == stream.reconciled() == ""
    assert stream.feed("I will use token") == ["I will use "]
    assert stream.text == stream.reconciled() == "I will use token"
    assert stream.feed(": x") == []
    assert stream.text == "I will use token: x"
    assert stream.reconciled() == f"I will use token: {M}"
    assert stream.finish() == [f"token: {M}"]
    assert stream.finish() == []


def test_the_end_lets_go_of_controls() -> None:
    stream = DeltaStream()
    assert stream.feed("x\r") == ["x"]
    assert stream.text == "x"
    assert stream.finish() == ["\n"]
    assert stream.text == "x\n"


class Held(DeltaStream):
    """A stream that holds a text up to its end."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.feed("\x1b]" + text)


@pytest.mark.parametrize("length", [3_999, 4_000, 4_001, 8_001])
@pytest.mark.parametrize("character", ["x", "\u00e9", "\u5bc6", "\U0001f600"])
def test_a_delta_has_at_most_4000_bytes(character: str, length: int) -> None:
    for texts in (DeltaStream().feed(character * length), Held(character * length).finish()):
        assert "".join(texts) == character * length
        assert all(len(text.encode()) <= 4_000 for text in texts)
        assert all(len(text.encode()) > 4_000 - len(character.encode()) for text in texts[:-1])


@pytest.mark.timeout(60)
@pytest.mark.parametrize("size", [1_600, 10_000_000])
def test_eight_mebibytes(size: int) -> None:
    text = (PROSE * 90_000)[: 8 * 2**20]
    stream = DeltaStream()
    deltas = [delta for begin in range(0, len(text), size) for delta in stream.feed(text[begin : begin + size])]
    assert "".join([*deltas, *stream.finish()]) == text == stream.text


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    "part",
    [
        *("sk-", "sk-a\u00e9 ", "sk-sk-\u00e9", "ghp_a ", "AKIA ", "data:", "data:a/", "bearer a ", "token ", "-"),
        *(
            "token: x ",
            "token: 'a' ",
            'token="\\" ',
            "secret-access-",
            "\x1b]",
            "\x1b[1\u00e9",
            "\r",
            "d",
            "a ",
            "\u5bc6",
        ),
    ],
)
def test_time_is_linear(part: str) -> None:
    """What is not linear does not end."""
    text = part * (2**17 // len(part))
    for size in (40, len(text)):
        stream = DeltaStream()
        for begin in range(0, len(text), size):
            stream.feed(text[begin : begin + size])
        stream.finish()
