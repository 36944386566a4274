from pathlib import Path

import pytest

from .kit import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)
