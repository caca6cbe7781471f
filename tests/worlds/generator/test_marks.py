import json

from worlds.generator import marks
from worlds.generator.build import PAGES, generate_world
from worlds.generator.marks import marks_by_address
from worlds.open import open_world
from worlds.universe.options import Options


def test_what_a_page_gets_wrong_is_found_by_its_address(tmp_path, monkeypatch):
    generate_world(tmp_path, "w", Options(people=300, seed=2, split="text=40,graph=20,web=40", per_template=0))
    file = tmp_path / "w" / PAGES
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    wrong = {row["address"]: row["marks"] for row in rows if row["marks"]}
    assert 0 < len(wrong) < len(rows)
    found = marks_by_address(file)
    assert found == wrong
    web = open_world(tmp_path, "w").web
    for address, planted in found.items():
        sentences = web.fetch(address).sentences
        assert all(mark["sentence"] in sentences for mark in planted)
    monkeypatch.setattr(marks, "LARGEST", 10)
    assert marks_by_address(file) is None
