"""Faults of policy: which settings, profiles and approvals count, and what is read and written beside a request."""

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from .histories import staleness_forgotten
from .mutant import fault
from .tools import around, instead_of, put


@fault
def settings_in_the_context() -> None:
    """Other settings give another context_id."""
    import hashlib

    from localagent.sessions import paths

    @around(paths, "context_id")
    def context_id(original: Any, root: Any, cwd: str) -> str:
        told = original(root, cwd)
        for path in (os.path.join(root.path, "settings.json"), os.path.join(cwd, ".magi-code", "settings.json")):
            with suppress(FileNotFoundError), open(path, "rb") as file:
                told = hashlib.sha256(told.encode() + file.read()).hexdigest()
        return str(told)


@fault
def project_settings_passed_over() -> None:
    """The settings of the working directory are not read."""
    from localagent.settings import load

    put(load, "_resolved", lambda path, cwd: None)


@fault
def project_settings_for_all() -> None:
    """What the settings of a working directory say of the agent becomes global."""
    from localagent.settings import load

    @around(load, "settings")
    def settings(original: Any, root: Any, cwd: str, environ: Any) -> Any:
        import json

        merged = original(root, cwd, environ)
        path, mine = os.path.join(root.path, "settings.json"), os.path.join(cwd, ".magi-code", "settings.json")
        if os.path.exists(mine):
            with open(path, encoding="utf-8") as file, open(mine, encoding="utf-8") as project:
                document, said = json.load(file), json.load(project)
            document["agent"]["model"].update(said["agent"]["model"])
            with open(path, "w", encoding="utf-8") as file:
                json.dump(document, file)
        return merged


@fault
def settings_of_below() -> None:
    """The settings of a directory below the working directory count."""
    from localagent.settings import load

    @around(load, "settings")
    def settings(original: Any, root: Any, cwd: str, environ: Any) -> Any:
        below = os.path.join(cwd, "below")
        return original(root, below if os.path.isdir(below) else cwd, environ)


@fault
def profiles_passed_over() -> None:
    """Broken profiles of subagents are left out."""
    from localagent.settings import profiles

    put(profiles, "subagents", lambda root, disabled: {})


@fault
def disabled_profiles_judged() -> None:
    """A broken profile fails startup although it is disabled."""
    from localagent.settings import profiles

    around(profiles, "subagents")(lambda original, root, disabled: original(root, ()))


@fault
def agent_passed_over() -> None:
    """A primary agent that is missing is done without."""
    from localagent.settings import profiles

    put(profiles, "primary", lambda root, name: None)


@fault
def instructions_passed_over() -> None:
    """Instructions that are no text are left out."""
    from localagent.settings import knowledge

    put(knowledge, "instructions", lambda *given: ())


@fault
def skills_must_be_sound() -> None:
    """A broken skill fails startup."""
    from localagent.protocol.codes import Code
    from localagent.sessions.errors import StoreError
    from localagent.settings import knowledge

    @around(knowledge, "skills")
    def skills(original: Any, *given: Any) -> Any:
        found = original(*given)
        if found[1]:
            raise StoreError(Code.CONFIGURATION_INVALID, found[1][0])
        return found


@fault
def any_selection_ready() -> None:
    """A provider that is not known, or has no key, is ready."""
    from localagent.settings import providers
    from localagent.settings.snapshot import Provider

    put(providers, "_refusal", lambda choice, known, embedded: None)

    @around(providers, "admitted")
    def admitted(original: Any, settings: Any, wallet: Any, embedded: Any) -> Any:
        known = dict(original(settings, wallet, embedded))
        name = settings.agent.model.provider
        if name:
            known.setdefault(name, Provider(id=name, kind="unsupported"))
        return known


@fault
def any_login_ready() -> None:
    """A login of Codex counts, whether it has expired or not."""
    from localagent.settings import providers

    @around(providers, "_refusal")
    def refusal(original: Any, choice: Any, known: Any, embedded: Any) -> Any:
        return None if choice.provider == "openai-codex" else original(choice, known, embedded)


@fault
def authentication_before_capabilities() -> None:
    """Authentication data is judged before an unsupported capability is refused."""
    from localagent.protocol.codes import Code

    def judged(connection: Any, request: Any) -> Any:
        from json import loads

        with suppress(FileNotFoundError), open(os.path.join(os.environ["MC_HOME"], "auth.json"), "rb") as file:
            try:
                loads(file.read())
            except ValueError:
                return Code.CONFIGURATION_INVALID
        return None

    instead_of("unsupported_capability", judged)


@fault
def names_shown_as_they_are() -> None:
    """A status shows provider and model whatever they look like."""
    from importlib import import_module

    for module in ("localagent.text.redact", "localagent.catalog.selection"):
        put(import_module(module), "shown_name", lambda name, whitespace=True: name)


@fault
def unapproved_servers_run() -> None:
    """The command of an MCP server is run before anybody looks for an approval."""
    from localagent.settings import mcp

    @around(mcp, "approved")
    def approved(original: Any, root: Any, found: Any, *rest: Any, **more: Any) -> Any:
        _run(each.body for each in found.values())
        return original(root, found, *rest, **more)


def _run(bodies: Iterable[Any]) -> None:
    """Run the commands of MCP servers."""
    import subprocess

    for each in bodies:
        subprocess.run([each.command, *each.args], check=False)


@fault
def project_approves_servers() -> None:
    """Any MCP server of the working directory is approved, and started."""
    from localagent.settings import mcp

    @around(mcp, "_is_approved")
    def is_approved(original: Any, key: Any, definition: Any, approvals: Any) -> bool:
        mine = os.path.dirname(definition.source) == os.path.realpath(os.getcwd())
        if mine:
            _run([definition.body])
        return mine or bool(original(key, definition, approvals))


@fault
def approval_approves_servers() -> None:
    """Who allows a tool has approved every MCP server, too."""
    from localagent.settings import mcp
    from localagent.shell.turn import Turn

    def note() -> str:
        return os.path.join(os.environ["MC_HOME"], "cache", "allowed")

    @around(Turn, "resolve")
    def resolve(original: Any, self: Any, answer: Any) -> None:
        original(self, answer)
        if answer.allow:
            with open(note(), "w", encoding="utf-8"):
                pass

    @around(mcp, "_is_approved")
    def is_approved(original: Any, key: Any, definition: Any, approvals: Any) -> bool:
        if os.path.exists(note()):
            _run([definition.body])
            return True
        return bool(original(key, definition, approvals))


@fault
def approval_runs_servers() -> None:
    """Who allows a tool has every MCP server started."""
    from localagent.settings import mcp
    from localagent.shell.turn import Turn

    known: list[Any] = []

    @around(mcp, "approved")
    def approved(original: Any, root: Any, found: Any, *rest: Any, **more: Any) -> Any:
        known.extend(each.body for each in found.values())
        return original(root, found, *rest, **more)

    @around(Turn, "resolve")
    def resolve(original: Any, self: Any, answer: Any) -> None:
        if answer.allow:
            _run(known)
        original(self, answer)


@fault
def restoring_writes_the_history() -> None:
    """What a session works with is saved into it whenever it is opened."""
    from localagent.sessions.records import Draft
    from localagent.shell.backend import LocalBackend

    @around(LocalBackend, "_attach")
    def attach(original: Any, self: Any, handle: Any, token: Any) -> Any:
        word = original(self, handle, token)
        if handle.durable:
            handle.append([Draft("session_preferences", self._models.selector.current.record())])
            handle.refresh()
        return word


@fault
def restoring_writes_the_settings() -> None:
    """What a session has saved becomes the choice of the settings."""
    from localagent.shell.backend import LocalBackend

    @around(LocalBackend, "_attach")
    def attach(original: Any, self: Any, handle: Any, token: Any) -> Any:
        import json

        word = original(self, handle, token)
        if handle.durable:
            path, current = os.path.join(self._place[0].path, "settings.json"), self._models.selector.current
            with open(path, encoding="utf-8") as file:
                settings = json.load(file)
            settings["agent"] = {"model": {"provider": current.provider, "model": current.model}}
            with open(path, "w", encoding="utf-8") as file:
                json.dump(settings, file)
        return word


@fault
def attached_session_unprotected() -> None:
    """Only the writer's lease of a session is taken."""
    from localagent.sessions import ownership

    put(ownership, "ROLES", ("writer",))


@fault
def history_read_without_a_revision() -> None:
    """After a run that left no revision any old one still reads."""
    from localagent.sessions.errors import StoreError
    from localagent.sessions.handle import Handle

    staleness_forgotten()
    kept: list[Any] = []

    @around(Handle, "refresh")
    def refresh(original: Any, self: Any, *rest: Any) -> Any:
        try:
            told = original(self, *rest)
            kept[:] = [self._history]
            return told
        except StoreError:
            self._history = kept[0]
            raise
