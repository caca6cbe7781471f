"""`make test-changed` runs the test files that import what was changed."""

import subprocess
from pathlib import Path

import pytest

from tests.changed import list_touched_tests

FILES = {
    "shop/__init__.py": "",
    "shop/price.py": "PRICE = 3",
    "shop/bill.py": "def total():\n    from showhow.shop.price import PRICE\n    return PRICE",
    "shop/door.py": "",
    "tests/conftest.py": 'pytest_plugins = ("tests.fixtures.till",)',
    "tests/fixtures/till.py": "",
    "tests/test_bill.py": "from shop import bill",
    "tests/test_door.py": "import shop.door",
    "tests/test_nothing.py": "import json",
}


@pytest.mark.parametrize(
    ("changed", "touched"),
    [
        ("shop/price.py", ["test_bill"]),
        ("shop/door.py", ["test_door"]),
        ("tests/test_nothing.py", ["test_nothing"]),
        ("tests/fixtures/till.py", ["test_bill", "test_door", "test_nothing"]),
        ("README.md", []),
        ("shop/deleted.py", []),
    ],
)
def test_a_change_touches_the_tests_that_import_it_directly_or_through_others(
    tmp_path: Path, changed: str, touched: list[str]
):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    assert list_touched_tests(tmp_path, [changed]) == [f"tests/{name}.py" for name in touched]
