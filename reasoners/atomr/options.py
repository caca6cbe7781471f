"""The options of AtomR, and those with which it is the method of the paper."""

from dataclasses import dataclass

from showhow.reasoners.humaniq.options import AgentOptionsError, check_at_least, check_choices, check_positive, choice
from showhow.reasoners.skills.skill import DEFAULT_SHOTS
from showhow.reasoners.sources import MAX_HEADS

OWN_KNOWLEDGE_CHOICES = {
    "never": "answers rest on sources only",
    "fallback": "the model answers itself where the sources do not tell, which the trace marks",
    "free": "every request allows what the model knows, where its sources do not tell, as in the paper",
}
RULE_CHOICES = {
    "fewest": "the fewest sources that are likely to tell",
    "unsure: all": "all sources where it is not clear which one tells, as in the paper",
}
CHOSEN_CHOICES = {
    "at once": "for all operations at the same time, before anything is answered",
    "when filled": "for each operation once what it refers to is answered, as in the paper",
}
PROMPT_CHOICES = {
    "one": "one prompt for all operations",
    "three": "a prompt of its own for Search, Relate and Filter, as in the paper",
}
COMBINED_CHOICES = {
    "code": "by code where the plan says how, else by the model",
    "model": "by the model at every node, as in the paper",
}
EMPTY_CHOICES = {
    "nothing": "there is no such thing",
    "unknown": "the answer is unknown, and searched for by its question, as in the paper",
}
LOOK_CHOICES = {
    "wider": "the same is looked for again by other words and in more texts",
    "none": "the question is answered from what was retrieved, as in the paper",
}


@dataclass(frozen=True, slots=True)
class AtomROptions:
    """The options of AtomR."""

    passages: int = 3
    """Articles or pages read after a search."""
    shots: int = DEFAULT_SHOTS
    """Plans of other questions that the model is shown."""
    own: str = choice("never", OWN_KNOWLEDGE_CHOICES)
    """Whether the model's own knowledge may answer: never, fallback, free."""
    source_rule: str = choice("fewest", RULE_CHOICES)
    """How sources are chosen: fewest, unsure: all."""
    source_time: str = choice("at once", CHOSEN_CHOICES)
    """When sources are chosen: at once, when filled."""
    operator_prompts: str = choice("one", PROMPT_CHOICES)
    """The prompts of the operations: one, three."""
    combine: str = choice("code", COMBINED_CHOICES)
    """How earlier answers are combined: code, model."""
    empty_list: str = choice("nothing", EMPTY_CHOICES)
    """What an empty list of answers of an operation means: nothing, unknown."""
    overlap: float = 0.0
    """The overlap of words, 0 to 1, below which Filter drops a thing and its passages; the paper's is .5."""
    most_things: int = MAX_HEADS
    """How many things of a set are looked up one by one; 0 for every one, as in the paper."""
    second_look: str = choice("wider", LOOK_CHOICES)
    """What is done where the sources do not tell: wider, none."""
    skill_shots: int = 0
    """Answered requests of other questions that each other skill is shown; the paper has them in its prompts."""

    def __post_init__(self) -> None:
        check_choices(self)
        check_positive(passages=self.passages)
        check_at_least(0, shots=self.shots, skill_shots=self.skill_shots, most_things=self.most_things)
        if not 0 <= self.overlap <= 1:
            raise AgentOptionsError(f"overlap is {self.overlap}; it is a number from 0 to 1")

    @property
    def own_flag(self) -> bool | None:
        """What requests say about the model's own knowledge."""
        return True if self.own == "free" else None


PUBLISHED = {
    "own": "free",
    "source_rule": "unsure: all",
    "source_time": "when filled",
    "operator_prompts": "three",
    "combine": "model",
    "empty_list": "unknown",
    "overlap": 0.5,
    "most_things": 0,
    "second_look": "none",
}
"""The options with which the method is that of the paper."""
