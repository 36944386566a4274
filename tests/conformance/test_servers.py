"""Servers of a case: what is served, held and counted, without a thread."""

import socket

import pytest

from localagent.conformance import cases, judge
from localagent.conformance.lines import repeated
from localagent.conformance.model import Case, Verdict
from localagent.conformance.place import Place
from localagent.conformance.servers import Servers, http
from tests.conformance.test_play import Hasty, marks, play

_CALLER = (
    "import os, socket, sys\n"
    "port = int(open(os.environ['MC_HOME'] + '/port').read())\n"
    "for line in sys.stdin:\n"
    " with socket.create_connection(('127.0.0.1', port)) as call:\n"
    "  call.sendall(b'GET ' + line.strip().encode() + b' HTTP/1.1\\r\\n\\r\\n')\n"
    "  print(call.makefile('rb').readlines()[-1].decode(), flush=True)"
)


def case(steps: str) -> Case:
    text = f"""
    [[case]]
    id = "a.case"
    title = "A case"
    clauses = ["SESS-10"]
    tier = 2
    fixture = "store"
    steps = [ {steps} ]
    """
    return cases.parse(text, "a.toml")[0]


def test_a_caller_is_answered_and_counted() -> None:
    played = play(
        case(
            """
            { listen = "web" }, { write = "port", text = "{port:web}" },
            { heard = "web", most = 0, check = "none" },
            { raw = "/one\\n" }, { serve = "web", status = 200, text = "<{i}>", count = 3 },
            { raw = "/two\\n" }, { serve = "web", status = 404, head = "n", text = "o", tail = "!" },
            { heard = "web", least = 2, most = 2, check = "two" },
            { raw = "/three\\n" }, { raw = "/four\\n" }, { serve = "web", text = "3" }, { serve = "web", text = "4" },
            { heard = "web", most = 1, check = "one" },
            { raw = "/five\\n" }, { serve = "web", text = "5" }, { heard = "web" },
            { heard = "web", most = 0, check = "none-since" },
            { close = true }, { exit = [0] }
            """
        ),
        _CALLER,
    )
    assert [each.data for each in played.records if each.kind == "backend"] == [
        b"<1><2><3>\n",
        b"no!\n",
        b"3\n",
        b"4\n",
        b"5\n",
    ]
    said = [mark for mark in marks(played) if mark.startswith("heard")]
    assert said[:2] == ["heard 3 holds", "heard 8 holds"]
    assert said[2].startswith("heard 13 fails: 2 requests ['GET /three HTTP/1.1', 'GET /four HTTP/1.1']")
    assert said[3:] == ["heard 16 holds", "heard 17 holds"]


def test_who_is_held_has_no_answer_until_the_case_ends() -> None:
    some = case(
        """
        { listen = "web" }, { write = "port", text = "{port:web}" },
        { raw = "/one\\n" }, { serve = "web", hold = true }, { heard = "web", least = 1, most = 1, check = "held" },
        { kill = true }
        """
    )
    played = play(some, _CALLER)
    assert "backend" not in [each.kind for each in played.records]
    found = {each.check: each.verdict for each in judge.judge(played, some, frozenset())}
    assert found["a.case/held"] is Verdict.HELD


def test_a_server_that_nobody_calls_ends_the_case() -> None:
    some = case(
        """
        { listen = "web" }, { raw = "x\\n" }, { serve = "web", optional = true, hold = true },
        { serve = "web", hold = true }, { heard = "web", least = 1, check = "heard" }
        """
    )
    played = play(some, "pass", Hasty())
    assert "nobody called web" in marks(played)
    found = {each.check: each.verdict for each in judge.judge(played, some, frozenset())}
    assert found["a.case/heard"] is Verdict.NOT_EXERCISED


def test_what_was_heard_is_judged() -> None:
    some = case('{ listen = "web" }, { raw = "x\\n" }, { heard = "web", least = 1, check = "heard" }')
    found = {each.check: each for each in judge.judge(play(some, "input()"), some, frozenset())}
    assert found["a.case/heard"].verdict is Verdict.VIOLATED
    assert found["a.case/heard"].what == "fails: 0 requests []"


def test_a_caller_that_says_nothing_or_goes_away_is_heard() -> None:
    servers = Servers()
    servers.listen("web")
    with socket.create_connection(("127.0.0.1", servers.ports["web"])) as call:
        call.sendall(b"GE")
    assert servers.heard("web") == ["GE"]
    call = socket.create_connection(("127.0.0.1", servers.ports["web"]))
    call.sendall(b"GET / HTTP/1.1\r\n\r\n")
    call.close()
    assert servers.serve("web", http(200, b"x" * 1_000_000), 1_000)
    assert servers.heard("web") == ["GET / HTTP/1.1"]
    assert servers.heard("web") == []
    servers.close()
    assert servers.ports == {}


def test_repeated_text() -> None:
    assert repeated(b"ab", 3) == b"ababab"
    assert repeated(b"{i},", 3) == b"1,2,3,"


def test_files_of_the_working_directory() -> None:
    place = Place(None, None)
    try:
        place.write(".mcc/settings.json", b"{}", top="cwd")
        assert (place.cwd / ".mcc/settings.json").read_bytes() == b"{}"
        text = place.filled("{home} {cwd} {port:web}", {"web": 7})
        assert text == f"{place.home.resolve()} {place.cwd.resolve()} 7"
    finally:
        place.remove()


@pytest.mark.parametrize(
    ("step", "told"),
    [
        ('{ serve = "web", hold = true, head = "x" }', "serve needs hold, or status and text"),
        ('{ heard = "web", check = "a", clauses = ["SESS-10"] }', "heard needs least or most where it is a check"),
        ('{ heard = "web", most = 1 }', "heard needs least or most where it is a check"),
        ('{ serve = "web" }', "serve needs hold, or status and text"),
        ('{ serve = "web", hold = true, status = 200 }', "serve needs hold, or status and text"),
        ('{ write = "a", text = "b", in = "outside" }', "must be one of cwd, home"),
    ],
)
def test_what_a_step_may_not_say(step: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        case(step)
