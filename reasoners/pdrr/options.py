"""The options of PDRR, and those of the paper."""

from dataclasses import dataclass

from showhow.reasoners.humaniq.options import (
    OWN_KNOWLEDGE_OPTIONS,
    AgentOptionsError,
    check_at_least,
    check_at_most,
    check_choices,
    check_positive,
    choice,
)
from showhow.reasoners.skills.skill import DEFAULT_SHOTS
from showhow.tools.search import MAX_RESULTS

MODES = {
    "set": "all facts of a triple are kept, as sets of values that code joins",
    "published": "chains keep few facts a triple and branch; independent triples are completed alone",
    "beam": "only the best chains go on, whatever the structure",
}
BEST_CHAIN_CHOICES = {
    "off": "all chains go to the answer, as in the published code",
    "on": "a call chooses the chain that goes to the answer, as in the paper",
}
STRUCTURE_CHOICES = {
    "predicted": "the model predicts whether a question is a chain or parallel",
    "gold": "the type that the data set gives the question, as in the paper's Table 2",
    "chain": "every question is a chain, as in the paper's Figure 4",
    "parallel": "every question is parallel, as in the paper's Figure 4",
}
FACT_FORMS = {
    "triples": "facts go to the answer as triples and rows",
    "sentences": "facts go to the answer as sentences, as in the paper's Table 5",
}
RETRIEVE_CHOICES = {
    "on": "triples are completed from the sources",
    "off": "the model answers from the triples alone, the paper's PDR",
}
TEXT_CHOICES = {
    "on": "texts are read where the graph has no fact",
    "off": "only the graph is asked, as published",
}
GOLD_STRUCTURES = {
    **dict.fromkeys(("chain", "composition"), "chain"),
    **dict.fromkeys(("parallel", "conjunction", "comparative", "superlative"), "parallel"),
}
"""The structures of the types that data sets give: those of generated worlds, and of ComplexWebQuestions."""
PUBLISHED_OPTIONS = {"mode": "published", "best_chain": "on", "texts": "off", "own": "free"}
"""PDRR as the paper has it."""


@dataclass(frozen=True, slots=True)
class PdrrOptions:
    """The options of PDRR."""

    relations: int = 4
    """Relations that are followed for a triple, as in the published code."""
    passages: int = 3
    """Articles or pages read where the graph does not tell; the paper reads none."""
    shots: int = DEFAULT_SHOTS
    """Triples of other questions that the model is shown; the paper shows 3."""
    skill_shots: int = 0
    """Answered requests of other questions that each other skill is shown; the paper has them in its prompts."""
    mode: str = choice("set", MODES)
    """How facts are kept: set, published, beam."""
    triples: int = 2
    """Facts that a published chain keeps of a triple; it branches into as many."""
    width: int = 2
    """Chains that a beam keeps."""
    best_chain: str = choice("off", BEST_CHAIN_CHOICES)
    """Whether one chain goes to the answer: off, on.

    The default is the code that gave the published figures; one chain cannot give several answers.
    """
    structure: str = choice("predicted", STRUCTURE_CHOICES)
    """Where the structure comes from by which a question is decomposed: predicted, gold, chain, parallel."""
    facts: str = choice("triples", FACT_FORMS)
    """The form in which facts of the graph go to the answer: triples, as in the paper, or sentences."""
    retrieve: str = choice("on", RETRIEVE_CHOICES)
    """Whether anything is looked up: on, off; off is PDR in the paper's Table 2, and needs own=free."""
    texts: str = choice("on", TEXT_CHOICES)
    """Whether texts complete what the graph does not state: on, off; the paper has a graph only."""
    own: str = choice("never", OWN_KNOWLEDGE_OPTIONS)
    """Whether the model's own knowledge may answer: never, free; the paper's prompts allow it."""

    def __post_init__(self) -> None:
        check_positive(relations=self.relations, passages=self.passages, triples=self.triples, width=self.width)
        check_at_most(MAX_RESULTS, passages=self.passages)
        check_at_least(0, shots=self.shots, skill_shots=self.skill_shots)
        check_choices(self)
        if self.retrieve == "off" and self.own == "never":
            raise AgentOptionsError("retrieve=off leaves only what the model knows itself; give own=free too")
