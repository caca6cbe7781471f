"""All templates of the questions of a world."""

from worlds.questions.grammar import grammar
from worlds.questions.template import Template
from worlds.universe.options import Options


def templates(options: Options) -> list[Template]:
    """Every template, those of the paper's grammar first."""
    return list(grammar(options.depth, each=options.each))
