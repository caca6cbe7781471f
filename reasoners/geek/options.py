"""The options of GEEK, and those of the paper."""

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
from showhow.tools.search import MAX_RESULTS, MAX_SCREENED

SEARCH_CHOICES = {
    "both": "the question and the sub-question with its answers filled in, as published",
    "sub-question": "the sub-question with its answers filled in",
}
DECOMPOSE_CHOICES = {
    "on": "the question is decomposed into sub-questions",
    "off": "the question is answered at once, the chain of thought of the paper's ablation",
}
RETRIEVE_CHOICES = {
    "on": "sub-questions are looked up",
    "off": "the model answers sub-questions itself, as in the paper's ablation",
}
SECOND_LOOK_CHOICES = {
    "on": "what is not found is looked for in the other sources, then by other words",
    "off": "each sub-question is looked up once, as published",
}
PUBLISHED_OPTIONS = {"explore": 4, "passages": 10, "documents": 100, "second_look": "off", "own": "free"}
"""GEEK with strategy exploration, as the paper has it."""


@dataclass(frozen=True, slots=True)
class GeekOptions:
    """The options of GEEK."""

    rounds: int = 6
    """The most sub-questions of a lane; then it has to conclude. The paper has no limit."""
    explore: int = 1
    """Different sub-questions that each of the first two rounds follows; the paper's exploration has 4."""
    passages: int = 3
    """Articles or pages read after a search, or paragraphs with `documents`; the paper reads ten paragraphs."""
    documents: int = 0
    """Articles that a search screens for their best paragraphs, 100 in the paper; 0 to read the best articles."""
    shots: int = DEFAULT_SHOTS
    """Decompositions of other questions that the model is shown before the first round."""
    skill_shots: int = 0
    """Answered requests of other questions that each other skill is shown; the paper trains on such ones."""
    search: str = choice("both", SEARCH_CHOICES)
    """What is searched for: both, sub-question; the paper searches for both."""
    decompose: str = choice("on", DECOMPOSE_CHOICES)
    """Whether there are sub-questions: on, off; off is the second row of the paper's Table 2, and needs own=free."""
    retrieve: str = choice("on", RETRIEVE_CHOICES)
    """Whether sub-questions are looked up: on, off; off is the third row of Table 2, and needs own=free."""
    second_look: str = choice("on", SECOND_LOOK_CHOICES)
    """Whether what is not found is looked for again: on, off; the paper looks once."""
    own: str = choice("never", OWN_KNOWLEDGE_OPTIONS)
    """Whether the model's own knowledge may answer: never, free; the paper's model may use it."""

    def __post_init__(self) -> None:
        check_positive(rounds=self.rounds, explore=self.explore, passages=self.passages)
        check_at_most(MAX_RESULTS, passages=self.passages)
        check_at_most(MAX_SCREENED, documents=self.documents)
        check_at_least(0, shots=self.shots, skill_shots=self.skill_shots, documents=self.documents)
        check_choices(self)
        if not self.asks_sources and self.own == "never":
            option = "decompose" if self.decompose == "off" else "retrieve"
            raise AgentOptionsError(f"{option}=off leaves only what the model knows itself; give own=free too")

    @property
    def asks_sources(self) -> bool:
        """Whether anything is looked up."""
        return self.decompose == self.retrieve == "on"
