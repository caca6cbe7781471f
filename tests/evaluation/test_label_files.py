"""Files of labels that anybody may bring in: each is read, or refused in one sentence."""

import json

import pytest

from showhow.db.database import Conflict
from showhow.evaluation.scoring.label_files import MAX_LABEL_MEGABYTES
from showhow.evaluation.scoring.model_judges import read_label_file

LABEL = {"question": "7", "value": "true", "person": "ada"}
READ = [("7", "truthfulness", "true", "ada")]


def test_labels_are_read_from_csv_and_json_lines():
    assert read_label_file("l.csv", b"\xef\xbb\xbfquestion,value,person\r\n7,true,ada\r\n") == READ
    assert read_label_file("l.jsonl", f"{json.dumps(LABEL)}\n\n".encode()) == READ


HOSTILE = {
    "deep": b"[" * 65_000,
    "deep in a field": json.dumps(LABEL)[:-1].encode() + b', "x": ' + b"[" * 30_000 + b"]" * 30_000 + b"}",
    "long number": json.dumps(LABEL)[:-1].encode() + b', "x": ' + b"9" * 5_000 + b"}",
    "many objects": b'{"x": [' + b"[]," * 5_000_000 + b"[]]}",
    "many rows": b"{}\n" * 9_000_000,
    "large": b" " * ((MAX_LABEL_MEGABYTES << 20) + 1),
    "a list as value": json.dumps(LABEL | {"value": ["true"]}).encode(),
    "half a character": json.dumps(LABEL).encode().replace(b"ada", b"ad\xff"),
    "no object": b"[1]\n",
    "not a number": json.dumps(LABEL | {"x": float("nan")}).encode(),
}


@pytest.mark.long
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_of_labels_is_refused_in_one_sentence(name: str):
    for file in ("labels.jsonl", "labels.csv"):
        with pytest.raises(Conflict) as refused:
            read_label_file(file, HOSTILE[name])
        assert "\n" not in str(refused.value)
        assert len(str(refused.value)) < 500
