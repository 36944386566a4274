r"""CRED-10 and CRED-11 a second time: plain regexes straight from the table, slow, sharing no code with the product.

Below them stands a generator of texts full of things that are, or nearly are, secrets.
"""

import random
import re
from collections.abc import Iterator

MARK = "<redacted>"

NAMES = (
    "authorization bearer credential credentials password passwd secret token api~key exa~api~key access~token "
    "refresh~token auth~token id~token client~secret secret!key secret!access!key session!token "
    "aws~secret!access!key aws~session!token account~id chatgpt-account-id"
)
NAME = "|".join(NAMES.replace("~", "[_-]?").replace("!", "[_-]").split())
QUOTED = r""""(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' | "[^"]*" | '[^']*'"""

TABLE = (
    (
        r"-----BEGIN\ [A-Z ]*PRIVATE\ KEY[A-Z ]*-----  .*?  -----END\ [A-Z ]*PRIVATE\ KEY[A-Z ]*-----",
        MARK,
    ),
    (
        r"data: [A-Za-z0-9.+_-]+ / [A-Za-z0-9.+_-]+ ;base64, [A-Za-z0-9+/=_-]+",
        f"data:{MARK};base64,{MARK}",
    ),
    (r"\b (?: ghp_ | gho_ | ghu_ | ghs_ | ghr_ | github_pat_ ) [A-Za-z0-9_]{20,} \b", MARK),
    (r"\b (?: AKIA | ASIA ) [0-9A-Z]{16} \b", MARK),
    (r"\b (?: sk- | eyJ ) [A-Za-z0-9_.-]+ (?<=\w) (?!\w)", MARK),
    (r"\b ( (?i:bearer) \s+ ) [A-Za-z0-9._~+/=-]{8,}", rf"\1{MARK}"),
    (rf"""( ["']? \b (?i:{NAME}) \b ["']? \s* [:=] \s* ) (?: {QUOTED} | [^\s,;}}]+ )""", rf"\1{MARK}"),
)
STEPS = [(re.compile(match, re.DOTALL | re.VERBOSE), becomes) for match, becomes in TABLE]

CONTROLS = (
    (re.compile(r"\x1b\[[^@-~]*[@-~] | \x1b[]P^_X].*?(?:\x07|\x1b\\) | \x1b.", re.DOTALL | re.VERBOSE), ""),
    (re.compile(r"\r\n?"), "\n"),
    (re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]"), ""),
)


def redact(text: str) -> str:
    for pattern, becomes in STEPS:
        text = pattern.sub(becomes, text)
    return text


def clean(text: str) -> str:
    for pattern, becomes in CONTROLS:
        text = pattern.sub(becomes, text)
    return text


def fired(text: str) -> list[int]:
    """The steps that change ``text`` when it passes all seven, by their numbers in the table."""
    numbers = []
    for number, (pattern, becomes) in enumerate(STEPS, 1):
        before, text = text, pattern.sub(becomes, text)
        if text != before:
            numbers.append(number)
    return numbers


SECRETS = [
    *(
        "ghp_abcdefghijklmnopqrst",
        "github_pat_0123456789_ABCDEFGHIJ",
        "gho_abcdefghijklmnopqrs",
        "AKIA0123456789ABCDEF",
    ),
    *(
        "ASIAABCDEFGHIJKLMNOP",
        "AKIA0123456789ABCDEFG",
        "sk-a.b-c_d",
        "sk-proj-Zz9.",
        "eyJhbGciOiJub25lIn0.eyJzdWIi.c2ln",
    ),
    *(
        "bearer abcdefgh",
        "Bearer  a.b~c+d/e==",
        "BEARER\nabcdefg",
        "data:image/png;base64,QUJD+/==",
        "data:a/b;base64,x",
    ),
    *('token: "two words"', "api_key='it\\'s'", "PASSWORD = hunter2", "Secret-Key:x", '"client_secret": "a, b; c}"'),
    *("aws_session_token=abc", "chatgpt-account-id: 1-2-3", "id-token : a", "credentials={a", "passwd:\n\tx"),
]
BLOCKS = [
    *("-----BEGIN RSA PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\nMII\n", "-----BEGIN PGP PRIVATE KEY BLOCK-----"),
    *("-----END RSA PRIVATE KEY-----", "-----END PRIVATE KEY-----", "-----BEGIN CERTIFICATE-----", "-----BEGIN "),
    *("-----END CERTIFICATE-----", "-----END ", "PRIVATE KEY", "-----"),
]
FRAGMENTS = [
    # openers, whole and broken
    *("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "ghx_", "gh", "AKIA", "ASIA", "AKI", "sk-", "sk", "eyJ"),
    *("data:", "data:image/png;base64,", "data:a/b;base64", "data:/", "dat", ";base64,", "image/svg+xml", "/", ";"),
    *("bearer", "Bearer ", "BEARER\t", "bearer \n", "bearers ", "-----", "--", "-", "-----BEG"),
    # bodies
    *("abcdefghijklmnopqrst", "abcdefghijklmnopqrs", "0123456789ABCDEF", "0123456789ABCDE", "A", "Zz9", "a.b-c_d"),
    *("abcdefgh", "abcdefg", "QUJD/+==", "x", "_", "~"),
    # names and what is nearly one
    *("token", "Token", "TOKEN", "secret", "secret_key", "secret-access-key", "secretkey", "api_key", "apikey", "key"),
    *("API-KEY", "exa_api_key", "exaapikey", "access_token", "refreshtoken", "auth-token", "id_token", "client-secret"),
    *("client_secret", "clientsecret", "session_token", "aws_session_token", "awssecret_access_key", "aws-secret"),
    *("password", "passwd", "passwor", "authorization", "Authorization", "author", "credential", "credentials"),
    *("account_id", "accountid", "account", "chatgpt-account-id", "chatgpt", "id", "aws_", "exa", "client", "session-"),
    # the four characters outside ASCII that are cases of an ASCII letter
    *("\u017fecret", "to\u212aen", "\u0131d_token", "\u0130d_token", "pa\u017f\u017fwd"),
    # signs, quotes, ends
    *(":", "=", ": ", " = ", ":\n", '"', "'", '": "', "': '", '="', "='", '\\"', "\\'", "\\", "\\\\", ",", "}", "{"),
    *(" ", "  ", "\n", "\t", "\u00a0", ".", "<redacted>", "(", "and the word ", "n\u00e9e"),
    # neighbours of other scripts
    *("\u00e9", "e\u0301", "\u5bc6\u94a5", "\U0001f600", "\u0660", "\u00df", "\u03a3"),
]


def texts(seed: int, count: int) -> Iterator[str]:
    """Texts of one to twelve parts: whole secrets, fragments of secrets and what may stand between."""
    draw = random.Random(seed)
    kinds = [FRAGMENTS, SECRETS, BLOCKS]
    for _ in range(count):
        chosen = draw.choices(kinds, weights=[75, 20, 3], k=draw.randint(1, 12))
        yield "".join(draw.choice(kind) for kind in chosen)
