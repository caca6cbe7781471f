"""All kinds of questions of a world, and their templates."""

from worlds.questions.compositions import compositions, conjunctions
from worlds.questions.grammar import grammar
from worlds.questions.groups import comparatives, counts, filters, superlatives
from worlds.questions.pairs import comparisons, judgements
from worlds.questions.template import Template
from worlds.questions.unanswerable import unanswerable
from worlds.universe.options import Options

KINDS = (
    "who",
    "what",
    "how many",
    "composition",
    "conjunction",
    "filter",
    "comparative",
    "superlative",
    "count",
    "comparison",
    "implicit",
    "no answer",
)
"""The first three are the paper's grammar."""


def templates(options: Options) -> list[Template]:
    """Every template, short chains of relations first and in the order of KINDS."""
    others = (
        compositions,
        conjunctions,
        filters,
        comparatives,
        superlatives,
        counts,
        comparisons,
        judgements,
        unanswerable,
    )
    found = list(grammar(options.depth, each=options.each))
    for made in others:
        found.extend(made())
    return sorted(found, key=lambda template: (template.text.count("<relation"), KINDS.index(template.kind)))
