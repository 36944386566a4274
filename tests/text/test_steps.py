"""CRED-11 by literal examples: every step, its bounds, its neighbours, and what the steps do to one another."""

import re
from collections.abc import Callable

import pytest

from localagent.text import redact, scan
from localagent.text.steps import AS_KEY, ENDINGS, IN_TEXT, NAMED_VALUE, spelt
from tests.kit import reference_redactor as reference

M = "<redacted>"
D = f"data:{M};base64,{M}"
GH = "ghp_" + "a1_Z" * 5
AWS = "AKIA" + "0123456789ABCDEF"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIB\nAAAA\n-----END RSA PRIVATE KEY-----"

BLOCKS = [
    (f"a {PEM} b", f"a {M} b"),
    (PEM * 2, M * 2),
    (PEM + PEM[5:], M + PEM[5:]),  # the hyphens between are those of the first END
    (PEM.replace("RSA ", ""), M),
    (PEM.replace("RSA", "ENCRYPTED"), M),
    (PEM.replace("\n", "\\n"), M),  # a BEGIN line need not begin a line
    (f"-{PEM}-", f"-{M}-"),
    ("-----BEGIN PGP PRIVATE KEY BLOCK-----\nx\n-----END PGP PRIVATE KEY BLOCK-----", M),
    ("-----BEGIN PRIVATE KEY----------END EC PRIVATE KEY-----", M),
    (f"{PEM}\n-----END RSA PRIVATE KEY-----", f"{M}\n-----END RSA PRIVATE KEY-----"),  # the shortest span
    (f"-----BEGIN PRIVATE KEY-----\n{PEM}", M),
    ("-----BEGIN CERTIFICATE" + PEM, f"-----BEGIN CERTIFICATE{M}"),  # two lines may share their hyphens
    (
        "-----BEGIN PRIVATE KEY-----x-----END CERTIFICATE-----y-----END PRIVATE KEY-----z",
        f"{M}z",
    ),
    # none
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIB", "-----BEGIN RSA PRIVATE KEY-----\nMIIB"),
    (PEM.replace("PRIVATE", "PUBLIC"), PEM.replace("PRIVATE", "PUBLIC")),
    (PEM.replace("RSA", "rsa"), PEM.replace("RSA", "rsa")),
    (PEM.replace("RSA", "X25519"), PEM.replace("RSA", "X25519")),
    ("-----BEGIN PRIVATE KEY-----END PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----END PRIVATE KEY-----"),
    ("-----BEGINPRIVATE KEY-----x-----END PRIVATE KEY-----", "-----BEGINPRIVATE KEY-----x-----END PRIVATE KEY-----"),
]
DATA_URLS = [
    ("data:image/png;base64,iVBORw0KGgo=", D),
    ("data:a/b;base64,x", D),
    ("data:application/vnd.a+b-c_d/x;base64,-_+/=", "data:application/vnd.a+b-c_d/x;base64,-_+/="),
    ("data:application/vnd.a+b-c_d;base64,-_+/=", D),
    ("![x](data:image/png;base64,QUJD) y", f"![x]({D}) y"),
    ("metadata:a/b;base64,QUJD", f"meta{D}"),  # not a word
    ("data:data:a/b;base64,QUJD", f"data:{D}"),
    ("data:a/b;base64,QUJD\u00e9", f"{D}\u00e9"),
    ("data:a/b;base64,QUJD,data:c/d;base64,x;", f"{D},{D};"),
    # none
    *((text, text) for text in ("data:a/b;base64,", "data:/b;base64,x", "data:a/;base64,x", "data:a;base64,x")),
    *((text, text) for text in ("Data:a/b;base64,x", "data:a/b;charset=utf-8;base64,x", "data:a/b;base64x")),
    *((text, text) for text in ("data: a/b;base64,x", "data:\u00e9/b;base64,x", "data:a/b;base64,\u00e9")),
]
GITHUB = [
    *((f"x {kind}{'a' * 20} y", f"x {M} y") for kind in ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_")),
    (GH, M),
    (f"{GH}.{GH}", f"{M}.{M}"),
    (f"-{GH}-", f"-{M}-"),
    (f"\U0001f600{GH}\u2014", f"\U0001f600{M}\u2014"),
    # none
    *((f"{kind}{'a' * 19}", f"{kind}{'a' * 19}") for kind in ("ghp_", "github_pat_")),
    *((text, text) for text in ("GHP_" + "a" * 20, "ghx_" + "a" * 20, "ghp-" + "a" * 20, "ghp_" + "a-" * 20)),
    *((text, text) for text in (f"x{GH}", f"_{GH}", f"\u00e9{GH}", f"{GH}\u00e9", f"\u5bc6{GH}", f"{GH}\u0660")),
]
AWS_IDS = [
    (AWS, M),
    (AWS.replace("AKIA", "ASIA"), M),
    (f"{AWS}/{AWS}", f"{M}/{M}"),
    (f"e\u0301{AWS}\u0301", f"e\u0301{M}\u0301"),  # a combining accent is no word character
    # none
    *((text, text) for text in (AWS[:-1], AWS + "0", AWS + "a", AWS + "_", "x" + AWS, AWS + "\u00e9", AWS.lower())),
    *((text, text) for text in ("AKIA0123456789abcdef", "AROA0123456789ABCDEF")),
]
DOTTED = [
    ("sk-a", M),
    ("sk-proj-A_b.c-9", M),
    ("eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.c2ln", M),
    ("eyJ_", M),
    ("(sk-abc).", f"({M})."),
    ("sk-abc. Then", f"{M}. Then"),
    ("sk-abc--- x", f"{M}--- x"),
    ("risk-sk-abc", f"risk-{M}"),
    ("sk-a.b\u00e9", f"{M}.b\u00e9"),  # ends where a word ends
    ("sk-.a", M),
    # none
    *((text, text) for text in ("sk-", "eyJ", "sk-.-", "eyJ-.", "task-abc", "_sk-a", "\u00e9sk-a", "sk_abc", "SK-a")),
    *((text, text) for text in ("sk-a\u00e9", "eyJab\u5bc6", "EYJa", "sk- a", "xeyJabc", "sk--\u00e9")),
]
BEARERS = [
    ("bearer abcdefgh", f"bearer {M}"),
    ("BeArEr \t\n\u00a0A9._~+/=-x", f"BeArEr \t\n\u00a0{M}"),
    ("bearer abcdefgh\u00e9", f"bearer {M}\u00e9"),
    ("bearer bearer abcdefgh", f"bearer bearer {M}"),
    ('"bearer abcdefgh"', f'"bearer {M}"'),
    # none
    *((text, text) for text in ("bearer abcdefg", "bearerabcdefgh", "bearers abcdefgh", "xbearer abcdefgh")),
    *((text, text) for text in ("_bearer abcdefgh", "\u00e9bearer abcdefgh", "bearer, abcdefgh", "bearer abc defgh")),
]
NAMED = [
    ("token: x", f"token: {M}"),
    ("token=x", f"token={M}"),
    ("TOKEN\n=\t\u00a0x", f"TOKEN\n=\t\u00a0{M}"),
    ('"token": "x y, z; }"', f'"token": {M}'),
    ("'token' : 'x \"y\" z'!", f"'token' : {M}!"),
    ('token: "" x', f"token: {M} x"),
    ('token: "two\nlines" x', f"token: {M} x"),
    ('token: "a\\"b" x', f"token: {M} x"),  # a quoted string goes on after an escaped quote
    ('token: "a\\\\" b"', f'token: {M} b"'),
    ('token: "a b\\" c', f"token: {M} c"),  # unless there is no other
    ('token: "a b', f"token: {M} b"),
    ("token: 'tis", f"token: {M}"),
    ("token: it's", f"token: {M}"),
    ("token=a,token=b;token=c}token=d e", f"token={M},token={M};token={M}}}token={M} e"),
    ("token==x", f"token={M}"),
    ("token: secret: x", f"token: {M} x"),  # matches do not overlap
    ("token: \U0001f600e\u0301 y", f"token: {M} y"),
    ("the-token: x", f"the-token: {M}"),
    ("(password:x)", f"(password:{M}"),
    ("\u201ctoken\u201d token:x", f"\u201ctoken\u201d token:{M}"),
    ("to\u212aen: x", f"to\u212aen: {M}"),  # the Kelvin sign is a case of k
    ("\u017fECRET: x", f"\u017fECRET: {M}"),
    ("\u0130D_TOKEN: x, \u0131d-token: x", f"\u0130D_TOKEN: {M}, \u0131d-token: {M}"),
    # none
    *(
        (text, text)
        for text in ("token x", "token", "token:", "token: ", "token: , x", "token:}", "token ; x", "tokens: x")
    ),
    *(
        (text, text)
        for text in ("_token: x", "token_: x", "xtoken: x", "\u00e9token: x", "token\u00e9: x", "1token: x")
    ),
    *((text, text) for text in ("token\\: x", 'token"" : x', "token.: x", "aws_secret: x", "secretkey: x", "key: x")),
    *((text, text) for text in ("\u5bc6token: x", "awstoken: x", "account: x", "author: x", "session_: x")),
]
STEPS_MEET = [
    (f"token: {GH} x", f"token: {M} x"),
    (f'token: "{GH} x"', f"token: {M}"),
    ("Authorization: Bearer abcdefgh", f"Authorization: {M} {M}"),
    ("bearer: abcdefgh", f"bearer: {M}"),
    ("bearer sk-abcdefgh", f"bearer {M}"),  # step 5 leaves nothing that step 6 would take
    (f"bearer abc.{GH}", f"bearer abc.{M}"),
    (f"sk-abc.{GH}.def", f"{M}.{M}.def"),  # step 3 comes before step 5
    ("sk-token: x", f"{M}: x"),
    ("sk-abc-token: x", f"{M}: x"),
    ("token: data:a/b;base64,QUJD", f"token: {M};base64,{M}"),
    (f"data:a/b;base64,QUJD{GH}", D),
    (f"token: {PEM} x", f"token: {M} x"),
    ("token: sk-a\u00e9 x", f"token: {M} x"),
    ("bearer abcdefgh\u017fecret: x", f"bearer {M}\u017fecret: {M}"),  # a word begins after a mark
    (f"eyJ{AWS} {AWS}", f"{M} {M}"),
    ("aws_secret_access_key = AKIA", f"aws_secret_access_key = {M}"),
    (f"{M} token: {M}", f"{M} token: {M}"),
    ("", ""),
]
TABLE = [*BLOCKS, *DATA_URLS, *GITHUB, *AWS_IDS, *DOTTED, *BEARERS, *NAMED, *STEPS_MEET]


@pytest.mark.parametrize(("text", "expected"), TABLE)
def test_table(text: str, expected: str) -> None:
    assert redact(text) == expected
    assert reference.redact(text) == expected


def test_every_spelling_of_every_name() -> None:
    """The spellings typed out by another hand."""
    written = {
        *("authorization", "bearer", "credential", "credentials", "password", "passwd", "secret", "token"),
        *(f"api{s}key" for s in ("_", "-", "")),
        *(f"exa{s}api{t}key" for s in ("_", "-", "") for t in ("_", "-", "")),
        *(f"{a}{s}token" for a in ("access", "refresh", "auth", "id") for s in ("_", "-", "")),
        *(f"client{s}secret" for s in ("_", "-", "")),
        *(f"secret{s}key" for s in "_-"),
        *(f"{a}secret{s}access{t}key" for a in ("", "aws_", "aws-", "aws") for s in "_-" for t in "_-"),
        *(f"{a}session{s}token" for a in ("", "aws_", "aws-", "aws") for s in "_-"),
        *(f"account{s}id" for s in ("_", "-", "")),
        "chatgpt-account-id",
    }
    assert set(spelt(IN_TEXT)) == written == NAMED_VALUE.spellings
    for name in written:
        for spelling in (name, name.upper(), name.title()):
            assert redact(f"x {spelling}: y z") == f"x {spelling}: {M} z"
            assert redact(f"{spelling}x: y") == f"{spelling}x: y"
            for before in ("x_", "\u00e9", "9", "-", "aws-", "my.", "exa_", "client"):
                assert redact(f"{before}{spelling}: y") == reference.redact(f"{before}{spelling}: y")
    for name in ("secretkey", "sessiontoken", "chatgptaccountid", "chatgpt_account_id"):
        assert redact(f"{name}: y") == f"{name}: y"
    assert {"secretkey", "chatgpt_account_id", "chatgptaccountid", "awssessiontoken"} <= set(spelt(AS_KEY))


def test_every_name_ends_in_one_of_the_endings() -> None:
    for name in NAMED_VALUE.spellings:
        assert any(re.search(rf"(?:{ending})\Z", name) for ending in ENDINGS), name


@pytest.mark.parametrize("length", [65_000, 65_536, 70_000, 200_000])
def test_long_secrets_and_what_stands_far_apart(length: int) -> None:
    """Longer than a window of the regex engine, and across the edges of windows."""
    x, space = "x" * length, " " * length
    secrets = [
        (f"data:{x}/{x};base64,{x}", D),
        (f"ghp_{x}", M),
        (f"sk-{x}.{x}", M),
        (f"bearer{space}{x}", f"bearer{space}{M}"),
        (f"token{space}:{space}{x}", f"token{space}:{space}{M}"),
        (f'token: "{space}\\"{x}"', f"token: {M}"),
        (f'token: "{x}' + "\\\\" * length + '"', f"token: {M}"),
        (f"-----BEGIN {space}PRIVATE KEY-----{x}-----END {space}PRIVATE KEY-----", M),
    ]
    for text, expected in secrets:
        assert redact(text) == expected
        assert redact(f"{space} {text} {space}") == f"{space} {expected} {space}"


def test_an_opener_at_the_edge_of_a_window() -> None:
    secrets = [("ghp_" + "a" * 20, M), ("aws-secret-access-key : x", f"aws-secret-access-key : {M}"), ("sk-a", M)]
    for secret, expected in secrets:
        for before in range(scan.WINDOW - 40, scan.WINDOW + 2):
            assert redact(" " * before + secret) == " " * before + expected


def test_a_reader_notices_when_it_meets_the_end() -> None:
    """From this alone follows what a stream holds."""
    digits = re.compile("[0-9]*+")

    def meets_end(text: str, read: Callable[[scan.Reader], object]) -> bool:
        reader = scan.Reader(text, 0)
        read(reader)
        return reader.met_end

    assert [meets_end(text, lambda r: r.run(digits)) for text in ("", "12", "12a")] == [True, True, False]
    assert [meets_end(text, lambda r: r.take("ab")) for text in ("", "a", "ab", "ac", "b")] == [
        True,
        True,
        *[False] * 3,
    ]
    assert [meets_end(text, lambda r: r.word_goes_on()) for text in ("", "a", " ")] == [True, False, False]
    quoted = ('"', '"a', '"a\\"', '"a\\', '"a"', '"a\\\\"', "a")
    assert [meets_end(text, lambda r: r.quoted()) for text in quoted] == [*[True] * 4, *[False] * 3]


def test_case_and_words_are_those_of_the_regex_engine() -> None:
    everything = "".join(map(chr, range(0x110000)))
    letters = re.findall("(?i)[a-z]", everything)
    assert [c for c in everything if scan.fold(c) in "abcdefghijklmnopqrstuvwxyz"] == letters
    for c in letters:
        assert re.fullmatch(f"(?i){c}", scan.fold(c))
    assert [c for c in everything if scan.is_word(c)] == re.findall(r"\w", everything)
    assert all(len(scan.fold(c)) == 1 for c in everything)


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    "part",
    [
        *("sk-", "sk--", "eyJ", "sk-sk-\u00e9", "ghp_", "AKIA", "data:", "data:a/", "data:a/b;base64,", "bearer "),
        *("token", "token ", "token:", "token:'a ", 'token="\\"', "token:\"\\\" token:'\\' ", "secret-access-", "\\"),
        *("-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----x-----END X-----", "PRIVATE KEY"),
    ],
)
def test_time_is_linear(part: str) -> None:
    """What is not linear does not end."""
    text = part * (2**17 // len(part))
    for before in ("", 'token="'):
        redact(before + text)
