"""The tool getLabel."""

from showhow.tools.registry import get_tool
from showhow.tools.tool import ToolContext


def test_labels_come_in_the_order_of_the_ids_for_entities_and_properties(without_encoder: ToolContext) -> None:
    observation = get_tool("getLabel").call(without_encoder, {"ids": "P1, Q1\nwd:Q999"}).observation
    assert observation is not None
    assert observation.data["labels"] == [
        {"id": "P1", "label": "father", "description": None},
        {"id": "Q1", "label": "Ada Reed", "description": "ferry pilot"},
    ]
    assert observation.text == "P1: father\nQ1: Ada Reed (ferry pilot)\nNot known: Q999"


def test_only_unknown_ids_and_no_ids_are_errors(without_encoder: ToolContext) -> None:
    assert "knows none of Q999" in str(get_tool("getLabel").call(without_encoder, {"ids": ["Q999"]}).error)
    assert "needs at least one id" in str(get_tool("getLabel").call(without_encoder, {"ids": " "}).error)
