"""Shared tools of the tests. Nothing here judges by code of what it judges."""
