"""What all tests share: the Hypothesis profiles."""

from .kit import profiles

profiles.load()
