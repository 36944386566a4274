"""Payloads for the store (CRED-12), what is shown (CRED-13), secret-like names (SET-09), collisions (CT-103)."""

from typing import Any

import pytest

from localagent.text import collides, display, redact_payload, secret_like, shown, shown_name
from localagent.text.redact import is_credential_key

M = "<redacted>"
GH = "ghp_" + "a" * 20


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("plain", "plain"),
        (f"x {GH}", f"x {M}"),
        (
            {"text": f"x {GH}", "n": 1, "f": 1.5, "t": True, "z": None},
            {"text": f"x {M}", "n": 1, "f": 1.5, "t": True, "z": None},
        ),
        ({"password": "hunter2"}, {"password": M}),
        ({"password": ""}, {"password": M}),
        ({"password": 5, "token": None, "secret": False}, {"password": 5, "token": None, "secret": False}),
        ({"a": [{"Api-Key": "x"}, "token: y"]}, {"a": [{"Api-Key": M}, f"token: {M}"]}),
        ({"authorization": ["a", ["b", 1]]}, {"authorization": [M, [M, 1]]}),  # the nearest key above
        (
            {"credentials": {"type": "oauth", "access_token": "x"}},
            {"credentials": {"type": "oauth", "access_token": M}},
        ),
        ({"command": "curl -H 'Authorization: Bearer abcdefgh'"}, {"command": f"curl -H 'Authorization: {M} {M}'"}),
        ({"text": "\x1b[31mred\r\n"}, {"text": "\x1b[31mred\r\n"}),  # cleaning is for display
        ({GH: 1}, {M: 1}),
        ([], []),
        ({}, {}),
        (None, None),
    ],
)
def test_payload(value: Any, expected: Any) -> None:
    assert redact_payload(value) == expected


def test_a_payload_is_not_changed_in_place() -> None:
    value = {"a": [GH], "token": "x"}
    redact_payload(value)
    assert value == {"a": [GH], "token": "x"}


CREDENTIAL_KEYS = [
    *("authorization", "bearer", "credential", "credentials", "password", "passwd", "secret", "token"),
    *(
        "api_key",
        "apikey",
        "apiKey",
        "API-KEY",
        "exa_api_key",
        "exaApiKey",
        "access_token",
        "accessToken",
        "Access-Token",
    ),
    *("refresh_token", "auth_token", "id_token", "idtoken", "client_secret", "clientSecret", "secret_key", "secretKey"),
    *("secret_access_key", "secretaccesskey", "aws_secret_access_key", "awsSecretAccessKey", "session_token"),
    *("aws_session_token", "account_id", "accountId", "chatgpt-account-id", "chatgpt_account_id", "chatgptAccountId"),
    *("OPENAI_API_KEY", "x-api-key", "my_secret", "my-secret-key", "s3_secret_access_key", "sts_session_token"),
    *("github_token", "db_credential", "db-credentials", "_token", "To\u212aen"),
]
OTHER_KEYS = [
    *(
        "",
        "key",
        "tokens",
        "secrets",
        "author",
        "account",
        "passwords",
        "max_tokens",
        "token_count",
        "mytoken",
        "apikeys",
    ),
    *("api key", "api.key", "db_password", "public_key", "id", "session", "awssecret", "chatgpt account id"),
]


@pytest.mark.parametrize("key", CREDENTIAL_KEYS)
def test_credential_keys(key: str) -> None:
    assert is_credential_key(key)
    assert redact_payload({key: "x"}) == {key: M}


@pytest.mark.parametrize("key", OTHER_KEYS)
def test_other_keys(key: str) -> None:
    assert not is_credential_key(key)
    assert redact_payload({key: "x"}) == {key: "x"}


def test_keys_that_become_equal_are_told_apart() -> None:
    value = {GH: 1, GH + "b": 2, M: 3, f"{M} 2": 4}
    assert redact_payload(value) == {M: 1, f"{M} 2": 2, f"{M} 3": 3, f"{M} 2 2": 4}
    assert collides(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": {GH: 1, "b": 2}}, False),
        ([{"a": 1}, {"a": 1}], False),
        ({"x": [{"y": {GH: 1, GH + "b": 1}}]}, True),
        ({GH: 1, M: 2}, True),
        ("text", False),
        (None, False),
    ],
)
def test_collisions(value: Any, expected: bool) -> None:
    assert collides(value) is expected


def test_payload_for_display() -> None:
    """CT-102: strings and keys sanitized as well."""
    assert redact_payload({"a\x07": f"\x1b[1m{GH}\x1b[0m"}, display) == {"a": M}
    assert collides({"a\x07": 1, "a": 2}, display)
    assert not collides({"a\x07": 1, "a": 2})


def test_display_cleans_before_it_redacts() -> None:
    assert display(f"gh\x1b[31mp_{'a' * 20}\x00{'b' * 9}") == M
    assert display(f"\x1b[31m{GH}\x1b[0m\r\n") == f"{M}\n"


@pytest.mark.parametrize(
    ("text", "most", "expected"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "abc"),
        ("ab\u00e9", 3, "ab"),
        ("\x1b[31mabcd", 3, "abc"),
        (f"a {GH}", 12, f"a {M}"),
        (f"a {GH}", 11, "a <redacted"),  # what is cut is the mark, never the secret
        (f"a {GH}", 2, "a "),
        ("token: 'two words'", 40, f"token: {M}"),
        ("", 0, ""),
    ],
)
def test_shown(text: str, most: int, expected: str) -> None:
    assert shown(text, most) == expected


@pytest.mark.parametrize("length", [1_023, 1_024, 1_025])
def test_a_summary_has_at_most_1024_bytes(length: int) -> None:
    assert shown("x" * length) == "x" * min(length, 1_024)
    assert shown("x" * 1_020 + GH) == "x" * 1_020 + GH[:4]  # no word begins there, so that is no secret
    assert shown("x" * 1_019 + " " + GH) == "x" * 1_019 + " " + M[:4]


SECRET_LIKE = [
    *("sk-", "sk-abc", "Bearer x", "Bearer ", "a=b", "=", "a" * 48, "A1" * 24, "-" * 8 + "a" * 40),
    *("\u00e9" * 4 + "a" * 40, "\u5bc6" * 3 + "a" * 40),
]
NOT_SECRET_LIKE = [
    *("", "gpt-5", "ask-a", "Sk-a", "bearer x", "Bearer", "a" * 47, "-" * 9 + "a" * 39, "a" * 40, "\u00e9" * 48),
    *("anthropic/claude-sonnet-4-5", "My Provider", "a" * 39 + "\u0660" * 9, "-" * 60),
]


@pytest.mark.parametrize("value", SECRET_LIKE)
def test_secret_like(value: str) -> None:
    assert secret_like(value)
    assert secret_like(value, whitespace=False)


@pytest.mark.parametrize("value", NOT_SECRET_LIKE)
def test_not_secret_like(value: str) -> None:
    assert not secret_like(value)
    assert secret_like(value, whitespace=False) == any(c.isspace() for c in value)


@pytest.mark.parametrize("name", ["gpt-5", "Caf\u00e9", "a", "-" * 256, "\u00e9" * 128, "My Provider"])
def test_names_that_are_shown(name: str) -> None:
    assert shown_name(name) == name
    assert shown_name(name, whitespace=False) == (None if " " in name else name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "-" * 257,
        "\u00e9" * 129,
        "a\tb",
        "a\n",
        "a\x7f",
        "a\x85b",
        "sk-a",
        "a sk-a",
        GH,
        "token:x",
        "bearer abcdefgh",
        "a=b",
    ],
)
def test_names_that_are_not(name: str) -> None:
    assert shown_name(name) is None
