import json

from fiction.generator import pages
from fiction.generator.build import PAGES_FILE, generate_world
from fiction.generator.pages import load_marks_by_address
from fiction.universe.options import GenerationOptions
from worlds.open import open_world


def test_what_a_page_gets_wrong_is_found_by_its_address(tmp_path, monkeypatch):
    generate_world(
        tmp_path, "w", GenerationOptions(people=300, seed=2, split="text=40,graph=20,web=40", per_template=0)
    )
    file = tmp_path / "w" / PAGES_FILE
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    wrong = {row["address"]: row["marks"] for row in rows if row["marks"]}
    assert 0 < len(wrong) < len(rows)
    found = load_marks_by_address(file)
    assert found == wrong
    web = open_world(tmp_path, "w").web
    for address, planted in found.items():
        sentences = web.fetch(address).sentences
        assert all(mark["sentence"] in sentences for mark in planted)
    monkeypatch.setattr(pages, "MAX_FILE_BYTES", 10)
    assert load_marks_by_address(file) is None
