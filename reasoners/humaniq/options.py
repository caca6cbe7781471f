"""The options of the agents and the values they accept; pages, verbs and evaluations offer them from here."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from fewshot_library.selection import SelectionConfig

SELECTION_DESCRIPTIONS = {
    "dpp": "relevant and diverse demonstrations, by a determinantal point process",
    "relevance": "the demonstrations with the most similar questions",
    "diversity": "the demonstrations with the most diverse actions",
    "random": "random demonstrations",
    "one": "only the best demonstration",
    "none": "no demonstration",
}
PIPELINES = {
    "dynamic": "the model chooses each action",
    "static": "always search, id, query, run, label, in this order",
}
SOURCE_CHOICES = {"both": "text and graph", "text": "text only", "graph": "graph only"}
PROMPT_FORMATS = {
    "auto": "tool calls, or text for a model without them",
    "chat": "chat messages with tool calls",
    "text": "plain text with stop sequences",
}
RESPONSE_STYLES = {
    "short": "an answer as short as a gold answer",
    "normal": "a few sentences with their sources",
    "none": "the answer of the last step, without another call",
}
MERGE_STRATEGIES = {"random": "a random one of the two answers", "model": "the model merges both answers"}
OPTION_CHOICES: dict[str, Mapping[str, str]] = {
    "selection": SELECTION_DESCRIPTIONS,
    "pipeline": PIPELINES,
    "sources": SOURCE_CHOICES,
    "form": PROMPT_FORMATS,
    "response": RESPONSE_STYLES,
    "merge": MERGE_STRATEGIES,
}
"""The options of AgentOptions with fixed choices: for each option, its values with a description."""


class AgentOptionsError(ValueError):
    """An option is unknown or has an invalid value."""


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """The options of an agent, apart from its model."""

    selection: str = "dpp"
    k: int = 3
    """The number of demonstrations; ignored if `selection` is "one" or "none"."""
    pipeline: str = "dynamic"
    sources: str = "both"
    form: str = "auto"
    response: str = "short"
    own_answer: bool = True
    """Also ask the model without tools, as a further source for the final response."""
    merge: str = "model"
    """How late fusion merges the answers of its two pipelines."""
    context_tokens: int = 16_000
    """The model's context window, including the reply."""
    reply_tokens: int = 1_500
    """Tokens of the context window reserved for the reply."""
    observation_tokens: int = 500
    """The token limit of one observation; longer ones are truncated to what is relevant to the question."""
    seed: int = 0
    """The seed of random choices."""

    def __post_init__(self) -> None:
        for name, known in OPTION_CHOICES.items():
            if getattr(self, name) not in known:
                raise AgentOptionsError(f"there is no {name} {getattr(self, name)!r}; choose one of {', '.join(known)}")
        if self.k < 0:
            raise AgentOptionsError(f"k is {self.k}; it must be 0 or more")
        if min(self.reply_tokens, self.observation_tokens) < 1 or self.context_tokens <= self.reply_tokens:
            raise AgentOptionsError(
                f"a context of {self.context_tokens} tokens with {self.reply_tokens} for the reply and "
                f"{self.observation_tokens} an observation leaves no room; raise context_tokens"
            )

    @classmethod
    def from_mapping(cls, options: Mapping[str, Any]) -> "AgentOptions":
        """Build the options; AgentOptionsError for an unknown name, with a list of the known names."""
        known = [option.name for option in fields(cls)]
        if unknown := sorted(options.keys() - set(known)):
            raise AgentOptionsError(f"there is no option {unknown[0]!r}; there are {', '.join(known)}")
        return cls(**options)

    def selection_config(self) -> SelectionConfig:
        """Return how demonstrations are selected."""
        k = {"one": 1, "none": 0}.get(self.selection, self.k)
        mode = self.selection if self.selection in ("relevance", "diversity", "random") else "dpp"
        return SelectionConfig(k=k, mode=mode, seed=self.seed)

    @property
    def compared_sources(self) -> tuple[str, ...]:
        """The sources whose answers are compared: text and graph, as `sources` allows, and the model itself."""
        sources = ("text", "graph") if self.sources == "both" else (self.sources,)
        return (*sources, "model") if self.own_answer and self.response != "none" else sources

    def to_json(self) -> dict[str, Any]:
        """The options as stored in a trace's configuration."""
        return asdict(self)
