# Recipes of the project. `just` itself comes with the dev extra (rust-just); `.venv/bin` is on PATH here.
set shell := ["bash", "-euo", "pipefail", "-c"]
export PATH := justfile_directory() / ".venv/bin" + ":" + env_var("PATH")

_default:
    @just --list --unsorted

# create .venv and install everything a developer needs
setup:
    python3 -m venv .venv
    .venv/bin/pip install --quiet --editable '.[dev,docs]'

# format the code
fmt:
    ruff format .
    ruff check --fix .

# style and formatting, nothing changed
lint:
    ruff check .
    ruff format --check .

# static types, strict
types:
    mypy

# the fast suite (under 3 minutes on 2 cores); what the branch coverage gate asks about is measured by its own tests
test: test-gated
    pytest -n 2 -m "not deep" {{ replace_regex(gated, '(\S+)', '--ignore=$1') }}

gated := "tests/statemachines tests/protocol tests/core tests/observe"

# the model, the wire layer and the core, with the branch coverage gate
test-gated:
    coverage erase
    coverage run -m pytest -n 2 -m "not deep" {{ gated }}
    coverage combine --quiet
    coverage report --fail-under=95

# the deep profile: long campaigns, all slices, and the whole kill matrix
deep: && matrix
    LOCALAGENT_HYPOTHESIS=deep pytest -n 2 -m "deep or not deep" --timeout=3600

# the kill matrix, an hour or more on 2 cores; homes in memory if possible, for nothing in it is about a disk (--minutes N)
matrix *ARGS:
    TMPDIR="$([ -d /dev/shm ] && echo /dev/shm || echo "${TMPDIR:-/tmp}")" localagent conform selftest --full --jobs 8 {{ARGS}}

# see that the suite finds every fault of the zoo (under 6 minutes on 2 cores)
selftest *ARGS:
    localagent conform selftest {{ARGS}}

# performance, as ratios in one run
bench:
    python -m tests.bench

# explore the joint machines and print the counts
explore *ARGS:
    localagent explore {{ARGS}}

# write DOT, SVG and the generated pages anew
diagrams:
    python diagrams/render.py

# write the shell completions anew
completions:
    for shell in bash zsh fish; do shtab --shell=$shell localagent.cli.parser > completions/localagent.$shell; done

# build the documentation site (docs/_build/html)
docs: diagrams
    sphinx-build -W --keep-going -q -b html docs docs/_build/html

# everything CI runs
check: lint types test selftest
