"""``python -m localagent``: the same as the ``localagent`` command."""

from localagent.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
