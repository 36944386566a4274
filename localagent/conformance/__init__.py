"""Judging a backend from outside: the register of clauses, and what is built on it."""
