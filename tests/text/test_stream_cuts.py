"""No cut of a text makes a secret visible, or the deltas differ from its redaction."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.text import redact, scan, steps
from localagent.text.steps import NAMED_VALUE
from tests.kit import reference_redactor as reference

from .streaming import check, check_random, cut

SECRETS = [
    # (text, what must never be seen of it)
    *((opener + "Zq0Zq1Zq2Zq3Zq4Zq5Zq6",) * 2 for opener in ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_")),
    *(("AKIAZQ0ZQ1ZQ2ZQ3ZQ45",) * 2, ("ASIAZQ0ZQ1ZQ2ZQ3ZQ45",) * 2),
    *(("sk-zq0.zq1-zq2_zq3",) * 2, ("sk-proj--Zq.9",) * 2, ("eyJZq0.eyJZq1.Zq2",) * 2),
    *(("Bearer Zq0.Zq1~Zq2", "Zq0.Zq1~Zq2"), ("bearer \n\t\u00a0Zq/0+Zq=-", "Zq/0+Zq=-")),
    *(("data:image/svg+xml;base64,Zq0Zq1Zq2Zq3==", "Zq0Zq1Zq2Zq3=="), ("data:a/b;base64,Zq+/", "Zq+/")),
    *(('"api_key" : "Zq0 Zq1, Zq2"', "Zq0 Zq1, Zq2"), ("password='Zq0 \\' Zq1; Zq2'", "Zq0 \\' Zq1; Zq2")),
    *(
        ("Secret-Access-Key\n=\tZq0Zq1", "Zq0Zq1"),
        ("token: Zq'0\"Zq1", "Zq'0\"Zq1"),
        ("credential=\u5bc6Zq\u94a50", "\u5bc6Zq\u94a50"),
    ),
    *(('client-secret: "Zq0\nZq1\\\\"', "Zq0\nZq1\\\\"), ("authorization: Zq0:Zq1=Zq2", "Zq0:Zq1=Zq2")),
    *(
        ("chatgpt-account-id=Zq0-Zq1", "Zq0-Zq1"),
        ("aws_session_token : Zq0Zq", "Zq0Zq"),
        ("to\u212aen: Zq0Zq", "Zq0Zq"),
    ),
    ("authorization: bearer Zq0Zq1Zq2", "Zq0Zq1Zq2"),
    ("token: ghp_Zq0Zq1Zq2Zq3Zq4Zq5Zq6,x", "Zq0Zq1Zq2Zq3Zq4Zq5Zq6"),
    ('sk-token: "a secret: b"c', "sk-token"),
]
BLOCK = "-----BEGIN EC PRIVATE KEY-----\nZq0Zq1Zq2\nZq3Zq4\n-----END EC PRIVATE KEY-----"
BEFORE = ["", "x-", "\u00e9, ", "data:", 'the secret "', "\U0001f600", "bearer ", "s"]
AFTER = ["", ", y", "}\n", "-----BEG"]
NEARLY = [
    *(
        "ghp_ZqZqZqZqZqZqZqZqZqZ x",
        "github_pat_x",
        "AKIAZQ0ZQ1ZQ2ZQ3ZQ456",
        "sk-.-",
        "eyJa\u00e9",
        "bearer abcdefg.",
        "bearers",
    ),
    *("data:text/plain,hello", "data:a/b;base64", "data:;base64,x", "token of love", "secretary: x", "password\\: x"),
    *("-----BEGI", "------", "well-known", "and so on", "aws_secret: x", "api key: x", "account: x", "\u00e9sk-abc"),
    *(
        "\x1b[31mred\x1b[0m",
        "\x1b]0;title\x07",
        "a\r\nb\rc",
        "gh\x1b[1mp_ZqZqZqZqZqZqZqZqZqZq",
        "e\u0301 \U0001f469\u200d\U0001f4bb!",
    ),
]


@pytest.mark.parametrize(("secret", "hidden"), SECRETS)
def test_a_secret_cut_anywhere_in_two_with_any_neighbours(secret: str, hidden: str) -> None:
    for before in BEFORE:
        for after in AFTER:
            text = before + secret + after
            if any(hidden[i : i + 4] in reference.redact(text) for i in range(len(hidden) - 3)):
                continue  # what stands before it makes it none
            for place in range(len(text) + 1):
                assert not check(cut(text, [place]), hidden).muted


def test_few_neighbours_make_a_secret_none() -> None:
    """The test above would prove nothing if it skipped what matters."""
    texts = [(before + secret, hidden) for before in BEFORE[:-2] for secret, hidden in SECRETS]
    assert [text for text, hidden in texts if hidden in reference.redact(text)] == []


@pytest.mark.parametrize(("secret", "hidden"), SECRETS)
def test_a_secret_cut_anywhere_in_three(secret: str, hidden: str) -> None:
    text = f"x {secret} y"
    for places in combinations(range(len(text) + 1), 2):
        assert not check(cut(text, places), hidden).muted


@pytest.mark.parametrize("text", [*(f"a {secret}. b" for secret, _ in SECRETS), *NEARLY])
def test_every_character_a_piece(text: str) -> None:
    assert not check(list(text)).muted


@pytest.mark.parametrize("text", NEARLY)
def test_what_is_no_secret_cut_anywhere_in_two_and_three(text: str) -> None:
    for number in (1, 2):
        for places in combinations(range(len(text) + 1), number):
            assert not check(cut(text, places)).muted


def test_a_block_cut_anywhere_in_two_and_three() -> None:
    text = f"x {BLOCK} y"
    for number in (1, 2):
        for places in combinations(range(len(text) + 1), number):
            stream = check(cut(text, places), "Zq0Zq1Zq2\nZq3Zq4")
            assert stream.muted
            assert stream.reconciled() == "x <redacted> y"


@pytest.mark.parametrize("name", sorted(NAMED_VALUE.spellings))
def test_every_spelling_of_a_name_cut_anywhere_in_two(name: str) -> None:
    for text in (f"{name}: Zq0Zq1.", f'{{"{name.upper()}" : "Zq0Zq1"}}'):
        for place in range(len(text) + 1):
            check(cut(text, [place]), "Zq0Zq1")


def test_three_thousand_texts_cut_at_random() -> None:
    assert check_random(seed=1, count=3_000, length=1) > 2_500


def test_longer_texts_cut_at_random() -> None:
    """Long enough for pieces that are not short to the stream."""
    assert check_random(seed=2, count=150, length=12) > 30


def test_small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "WINDOW", 20)
    monkeypatch.setattr(scan, "SHORT", 0)
    monkeypatch.setattr(steps, "WINDOW", 0)  # nothing is plain at a glance
    check_random(seed=3, count=1_000, length=1)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(10, 20))
def test_a_hundred_thousand_texts_cut_at_random(seed: int) -> None:
    assert check_random(seed, count=10_000, length=1) > 8_000


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(20, 24))
def test_four_thousand_longer_texts_cut_at_random(seed: int) -> None:
    check_random(seed, count=1_000, length=20)


@given(st.lists(st.text(max_size=6) | st.sampled_from([*reference.FRAGMENTS, *reference.SECRETS]), max_size=10))
def test_any_pieces(pieces: list[str]) -> None:
    check(pieces)


@given(st.text(), st.integers(1, 9))
def test_any_text_in_pieces_of_any_length(text: str, length: int) -> None:
    check([text[begin : begin + length] for begin in range(0, len(text), length)])


def test_the_secrets_are_secrets() -> None:
    for secret, hidden in SECRETS:
        assert hidden in secret
        assert hidden not in redact(secret)
