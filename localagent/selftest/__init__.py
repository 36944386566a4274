"""The suite put to the test: a zoo of mutants of our backend, each with one fault that a named check must see.

A mutant is a program: ``python -m localagent.selftest MUTANT serve --stdio``. It is our backend with one place
replaced (:mod:`.mutant`), and otherwise behaves like it. Which checks must turn red on it stands in ``expected.toml``.
:mod:`.campaign` runs them. The suite itself knows a mutant as it knows any backend: by its argv.
"""
