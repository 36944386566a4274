"""``python -m localagent.selftest MUTANT serve --stdio``: serve with one fault."""

import sys

from localagent.selftest.mutant import UnknownMutantError, zoo


def main(arguments: list[str]) -> int:
    """Put the fault in, then do what ``localagent serve`` does."""
    name, command = arguments[0] if arguments else "", arguments[1:]
    if command[:1] != ["serve"]:
        sys.stderr.write("usage: python -m localagent.selftest MUTANT serve --stdio\n")
        return 2
    try:
        mutant = zoo()[name]
    except KeyError:
        sys.stderr.write(f"{UnknownMutantError(name)}\n")
        return 2
    mutant.install()
    from localagent.shell import serve  # only now: the fault may be in what it imports, or in itself

    return serve.serve(command[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
