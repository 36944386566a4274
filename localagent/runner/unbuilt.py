"""What answers for the providers whose runners are yet to be built: it says so, and the turn fails."""

from .provider import ProviderError, Stage


class Unbuilt:
    """Implements :class:`.provider.Runner` for any provider, and asks nobody anything."""

    def __init__(self, provider: str) -> None:
        self._provider = provider

    def run(self, prompt: str, stage: Stage) -> None:
        """Fail the turn with ``execution_failed`` and a diagnostic that tells why (ERR-45, EVT-39)."""
        raise ProviderError(f"The runner of the provider {self._provider} is not built yet.")
