"""`localagent models` and `localagent models refresh`: tables, advice, progress, JSON, exit statuses."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from localagent import cli

from .kit import House, entry
from .server import Behaviour, Connection, answering, models, serving


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory to work in, and a store that is not there yet."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("MC_HOME", str(tmp_path / "home"))
    for name in ("MC_PROVIDER", "MC_MODEL", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "work"


def settings(house: House, url: str = "http://127.0.0.1:9/v1", *enabled: str, **more: Any) -> None:
    custom = {
        "bench": {"label": "Bench", "base_url": url},
        "gated": {"label": "Gated", "base_url": url, "api_key_env_var": "NO_SUCH_KEY"},
    }
    value = {"schema_version": 2, "providers": {"custom": custom, "catalog": {"enabled": list(enabled)}}} | more
    (house.path / "settings.json").write_text(json.dumps(value))


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    try:
        status = cli.main(["models", *arguments])
    except SystemExit as end:
        status = int(str(end.code))
    out, err = capsys.readouterr()
    return status, out, err


def test_nothing_is_there_and_nothing_is_made(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys)
    assert (status, err) == (0, "")
    assert out.startswith("no model may be chosen\n\nPROVIDER")
    assert not (work.parent / "home").exists()
    assert run(capsys, "refresh", "nobody")[0] == 2
    assert not (work.parent / "home").exists()


def test_the_tables(house: House, work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings(house, "http://127.0.0.1:9/v1", "bench/tiny", "bench/embed", "gated/x")
    tiny = entry("bench", "tiny", display_name="Tiny Chat", reasoning_efforts=["low", "x_high"])
    house.put("bench", [tiny, entry("bench", "embed", supports_reasoning=False), "more"])
    status, out, err = run(capsys)
    assert (status, err) == (1, "")  # gated is enabled, and has no key
    assert out == (
        "PROVIDER  MODEL  NAME       EFFORTS            STATUS\n"
        "bench     embed  -          none               available\n"
        "bench     tiny   Tiny Chat  default low xhigh  available\n"
        "\n"
        "PROVIDER             USE       CACHE     KEY            WHAT TO DO\n"
        "anthropic            not used  none yet  not asked for  to use it: localagent models refresh anthropic\n"
        "bench                enabled   3 models  ready          -\n"
        "claude-subscription  not used  none yet  not asked for  -\n"
        "gated                enabled   none yet  missing        set NO_SUCH_KEY\n"
        "openai-codex         not used  none yet  not asked for  -\n"
    )
    _, out, _ = run(capsys, "--all")
    assert "bench     more   -          not known          not enabled\n" in out


@pytest.mark.parametrize(
    ("data", "cache"),
    [
        (None, "none yet"),
        (b"{", "damaged"),
        ({"entries": []}, "empty"),
        ({"schema_version": 8}, "of another version"),
        ({"cache_fingerprint": {}}, "made for other settings"),
    ],
)
def test_what_is_wrong_with_a_cache(
    house: House, work: Path, capsys: pytest.CaptureFixture[str], data: Any, cache: str
) -> None:
    settings(house, "http://127.0.0.1:9/v1", "bench/tiny")
    if isinstance(data, bytes):
        house.put_bytes(data)
    elif data is not None:
        house.put("bench", ["tiny"], **data)
    status, out, _ = run(capsys)
    (line,) = (each for each in out.splitlines() if each.startswith("bench"))
    assert status == 1
    assert cache in line
    assert line.endswith("localagent models refresh bench")


def test_a_selected_provider_without_a_key_is_a_subject_not_an_obstacle(
    house: House, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings(house, agent={"model": {"provider": "gated", "model": "x"}})
    status, out, _ = run(capsys)
    (line,) = (each for each in out.splitlines() if each.startswith("gated"))
    assert (status, line.split()[1], line.endswith("set NO_SUCH_KEY")) == (1, "selected", True)


def test_json(house: House, work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings(house, "http://127.0.0.1:9/v1", "bench/tiny")
    house.put("bench", ["tiny", "more"])
    status, out, _ = run(capsys, "--all", "--json")
    told = json.loads(out)
    assert status == 0
    assert [each["model"] for each in told["choices"]] == ["tiny"]
    assert told["not_enabled"] == [{"provider": "bench", "model": "more"}]
    bench = next(each for each in told["providers"] if each["provider"] == "bench")
    assert (bench["models"], bench["advice"], bench["recovery"]) == (2, None, "none")


def test_names_do_nothing_to_a_terminal(house: House, work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings(house, "http://127.0.0.1:9/v1", "bench/ok", "bench/a\x1b[31m", "bench/\u202etxt")
    house.put("bench", ["ok", "a\x1b[31m", "\u202etxt", "b\x1b[31m"])
    _, out, _ = run(capsys, "--all")
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert "some models are left out" in out


@pytest.mark.parametrize("spoil", ["settings", "cache"])
def test_what_cannot_be_read(house: House, work: Path, capsys: pytest.CaptureFixture[str], spoil: str) -> None:
    if spoil == "settings":
        (house.path / "settings.json").write_text('{"schema_version": 3}')
    else:
        house.file("anthropic").symlink_to("nowhere")
    status, out, err = run(capsys)
    assert (status, out) == (2, "")
    assert ("schema_version" if spoil == "settings" else "anthropic.json") in err


def test_a_refresh(house: House, work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    house.put("bench", ["tiny", "old"])
    with serving(answering(models("tiny", "new"))) as server:
        settings(house, server.url, "bench/tiny", "bench/never")
        status, out, err = run(capsys, "refresh", "bench")
    assert status == 0
    assert out == (
        "bench: 2 models, 1 of them enabled\n    new: new\n    gone: old\n    enabled, but not there: never\n"
    )
    assert err == "bench: asking\nbench: receiving\nbench: writing\nbench: reading back\n"


def test_a_first_refresh_says_how_to_go_on(house: House, work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(answering(models(*(f"m{number:02d}" for number in range(14))))) as server:
        settings(house, server.url)
        status, out, _ = run(capsys, "refresh", "bench")
    assert status == 0
    assert "m09 and 4 more\n" in out
    assert 'enable "bench/MODEL" in providers.catalog.enabled' in out


@pytest.mark.parametrize(
    ("behaviour", "reason"), [(answering(b"", 401), "authentication_rejected"), (answering(b"", 429), "rate_limited")]
)
def test_a_refresh_that_fails(
    house: House, work: Path, capsys: pytest.CaptureFixture[str], behaviour: Behaviour, reason: str
) -> None:
    with serving(behaviour) as server:
        settings(house, server.url)
        status, out, _ = run(capsys, "refresh", "bench")
        assert (status, out.startswith("bench: not refreshed: ")) == (1, True)
        status, out, _ = run(capsys, "refresh", "bench", "--json")
    assert status == 1
    assert json.loads(out) == {
        "provider": "bench",
        "outcome": "failed",
        "reason": reason,
        "catalog_error": None,
        "models": 0,
        "new": [],
        "gone": [],
    }


def test_refresh_of_what_there_is_not(house: House, work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings(house)
    for name in ("nobody", "scripted", "a\x1b[31m"):
        status, out, err = run(capsys, "refresh", name)
        assert (status, out, "\x1b" in err) == (2, "", False)
        assert "there are anthropic, bench, claude-subscription, gated, openai-codex" in err


def test_progress_on_a_terminal(house: House, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    err = Terminal()
    monkeypatch.setattr(sys, "stderr", err)
    with serving(answering(models("tiny"))) as server:
        settings(house, server.url)
        assert cli.main(["models", "refresh", "bench"]) == 0
    assert "\rbench: receiving, " in err.getvalue()
    assert err.getvalue().endswith("\r\x1b[K")


def test_interrupted(house: House, work: Path) -> None:
    """Ctrl-C ends it at once, with 130, and the cache is as it was."""

    def silence(connection: Connection) -> None:
        connection.gone()

    house.put("bench", ["tiny"])
    with serving(silence) as server:
        settings(house, server.url)
        before = house.tree()
        process = subprocess.Popen(
            [sys.executable, "-m", "localagent", "models", "refresh", "bench"],
            cwd=work,
            env={**os.environ},
            stderr=subprocess.PIPE,
        )
        assert server.asked.wait(20)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert err == b"bench: asking\n"
    assert house.tree() == before
