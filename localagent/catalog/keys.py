"""Keys and readiness as they are now, looked up anew for each scan and each refresh (CRED-02, CAT-63)."""

from collections.abc import Mapping
from typing import Final

from localagent.sessions.paths import Root
from localagent.settings import credentials
from localagent.settings.credentials import Wallet
from localagent.settings.faults import Inadmissible
from localagent.settings.snapshot import Authentication, Credential, Provider

_ON_FILE: Final = "anthropic"
"""The kind of provider whose key may stand in ``auth.json``; there is one of it, so that a scan reads it once."""


class Keys:
    """The environment, and ``auth.json`` where it is needed."""

    def __init__(self, root: Root, environ: Mapping[str, str]) -> None:
        self._root, self._environ = root, environ

    def of(self, provider: Provider) -> Credential | None:
        """The key of a provider; None if it has none, or needs none."""
        return self._wallet(provider).of(provider)

    def authentication(self, provider: Provider) -> Authentication:
        """Whether a provider is ready now; local, no request (CAT-77)."""
        return self._wallet(provider).authentication(provider)

    def _wallet(self, provider: Provider) -> Wallet:
        """What there is. ``auth.json`` was admissible at startup; where it is not any more, no key in it counts.

        The provider is then not ready, which is a fact about it and no fault of the catalog (EXT-STATUS-23).
        """
        if provider.kind == _ON_FILE:
            try:
                return credentials.look(self._root, self._environ)
            except Inadmissible:
                pass
        return Wallet(self._environ, {})
