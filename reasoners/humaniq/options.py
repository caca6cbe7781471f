"""The options of the agents and the values they accept; pages, verbs and evaluations offer them from here."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from showhow.fewshot_library.selection import (
    DEFAULT_ALPHA,
    DEFAULT_GAMMA,
    GUARDS,
    SELECTION_MODES,
    SelectionConfig,
    SelectionError,
)
from showhow.llm.profiles import DEFAULT_CONTEXT_WINDOW

DEFAULT_REPLY_TOKENS = 1_500
"""The room for the reply of a model without a reply limit."""
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
OWN_KNOWLEDGE_OPTIONS = {
    "never": "answers rest on sources only",
    "free": "the model may know it itself, as published",
}
"""The values of the option `own` of methods that retrieve."""
FINAL_DECISIONS = {
    "settled": "the answer of the run; the model is asked only where the run has none and its sources disagree",
    "weighed": "one request weighs the question, the model's own answer and the run's answer, as published",
}
FUSION_TOOLS = {
    "all": "every tool of the source",
    "published": "search and read of the articles; generateQuery, runQuery and getLabel of the graph, as published",
}
MERGE_STRATEGIES = {"random": "a random one of the two answers", "model": "the model merges both answers"}
OPTION_CHOICES: dict[str, Mapping[str, str]] = {
    "selection": SELECTION_DESCRIPTIONS,
    "pipeline": PIPELINES,
    "sources": SOURCE_CHOICES,
    "form": PROMPT_FORMATS,
    "response": RESPONSE_STYLES,
    "final": FINAL_DECISIONS,
    "merge": MERGE_STRATEGIES,
    "fusion_tools": FUSION_TOOLS,
    "guard": GUARDS,
}
"""The options of AgentOptions with fixed choices: for each option, its values with a description."""


def list_selections() -> dict[str, str]:
    """The values of the option `selection` with their descriptions, the modes of other packages included."""
    return SELECTION_DESCRIPTIONS | {name: SELECTION_MODES[name].hint for name in SELECTION_MODES.packages}


def choice(default: str, choices: Mapping[str, str]) -> Any:
    """A field of a dataclass of options whose values are fixed: each with a description, for forms."""
    return field(default=default, metadata={"choices": choices})


class AgentOptionsError(ValueError):
    """An option is unknown or has an invalid value."""


def check_option(option: str, value: str, choices: Iterable[str]) -> None:
    """Raise AgentOptionsError if the value of an option is not among its choices."""
    names = list(choices)
    if value not in names:
        raise AgentOptionsError(f"there is no {option} {value!r}; choose one of {', '.join(names)}")


def check_choices(options: Any) -> None:
    """Raise AgentOptionsError if an option that is a `choice` has a value that is none of its choices."""
    for option in fields(options):
        if choices := option.metadata.get("choices"):
            check_option(option.name, getattr(options, option.name), choices)


def check_positive(**options: int) -> None:
    """Raise AgentOptionsError for an option below 1."""
    check_at_least(1, **options)


def check_at_least(least: int, **options: int) -> None:
    """Raise AgentOptionsError for an option below `least`."""
    for option, value in options.items():
        if value < least:
            raise AgentOptionsError(f"{option} is {value}; it must be {least} or more")


def check_at_most(most: int, **options: int) -> None:
    """Raise AgentOptionsError for an option above `most`."""
    for option, value in options.items():
        if value > most:
            raise AgentOptionsError(f"{option} is {value}; it must be {most} or less")


def check_temperature(temperature: float) -> None:
    """Raise AgentOptionsError for a temperature that no provider accepts."""
    if not 0 <= temperature <= 2:
        raise AgentOptionsError(f"temperature is {temperature}; it must be from 0 to 2")


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """The options of an agent, apart from its model; those that the paper of HumanIQ has name its section."""

    selection: str = "dpp"
    """How demonstrations are selected (section 2); random and the single criteria are those of RQ5."""
    k: int = 3
    """The number of demonstrations, 3 as published; ignored if `selection` is "one" or "none" (RQ5)."""
    alpha: float = DEFAULT_ALPHA
    """The weight of relevance in the DPP, which the paper does not tell."""
    gamma: float = DEFAULT_GAMMA
    """How fast similarity falls with the distance of actions in the DPP, which the paper does not tell."""
    exchange: bool = True
    """Exchange picks while that raises the determinant; the published search is greedy alone (section 2)."""
    guard: str = "answers"
    """The demonstrations that evaluations leave out; the paper leaves out none, since its libraries are of training
    questions (section 3)."""
    pipeline: str = "dynamic"
    """Whether the model chooses its tools (section 2), or the order is fixed (RQ6)."""
    sources: str = "both"
    """The tools to offer by their sources."""
    form: str = "auto"
    """The form of the prompt; the paper's thoughts, actions and observations are in both."""
    response: str = "short"
    """The style of the final response, short for benchmarks and normal for readers (section 3, RQ2)."""
    final: str = "settled"
    """How the final answer is decided; weighed is the paper's final response generation (section 3)."""
    own_answer: bool = True
    """Also ask the model without tools, as a further source for the final response (section 3)."""
    merge: str = "model"
    """How late fusion merges the answers of its two pipelines; both ways are those of RQ4."""
    fusion_tools: str = "all"
    """The tools of late fusion's pipelines; the paper's are those of RQ4."""
    context_tokens: int | None = None
    """The context window to use, including the reply; None for that of the model."""
    reply_tokens: int | None = None
    """Tokens of the context window reserved for the reply; None for the model's reply limit."""
    observation_tokens: int = 500
    """The token limit of one observation; longer ones are truncated to what is relevant to the question."""
    seed: int = 0
    """The seed of random choices."""

    def __post_init__(self) -> None:
        for name, choices in OPTION_CHOICES.items():
            known = list_selections() if name == "selection" else choices
            if getattr(self, name) not in known:
                raise AgentOptionsError(f"there is no {name} {getattr(self, name)!r}; choose one of {', '.join(known)}")
        if self.k < 0:
            raise AgentOptionsError(f"k is {self.k}; it must be 0 or more")
        try:
            self.selection_config().check()
        except SelectionError as error:
            raise AgentOptionsError(str(error)) from error
        if min(self.reply_tokens or 1, self.observation_tokens) < 1 or self.prompt_tokens < 1:
            raise AgentOptionsError(
                f"a context of {self.context_tokens} tokens with {self.reply_tokens or DEFAULT_REPLY_TOKENS} for the "
                f"reply and {self.observation_tokens} an observation leaves no room; raise context_tokens"
            )

    @property
    def prompt_tokens(self) -> int:
        """The most tokens of a prompt: the context window without the room for the reply."""
        return (self.context_tokens or DEFAULT_CONTEXT_WINDOW) - (self.reply_tokens or DEFAULT_REPLY_TOKENS)

    def fit_to_model(self, context_window: int | None, reply_limit: int | None) -> "AgentOptions":
        """The options with the window and the reply limit of the model where the options name none."""
        window = self.context_tokens or context_window or DEFAULT_CONTEXT_WINDOW
        reply_tokens = self.reply_tokens or min(reply_limit or DEFAULT_REPLY_TOKENS, window - 1)
        if self.context_tokens and not self.reply_tokens:
            # A window that is smaller than the model's keeps room for the prompt.
            reply_tokens = min(reply_tokens, window // 2)
        return replace(self, context_tokens=window, reply_tokens=reply_tokens)

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
        mode = "dpp" if self.selection in ("one", "none") else self.selection
        return SelectionConfig(
            k=k,
            mode=mode,
            alpha=self.alpha,
            gamma=self.gamma,
            exchange=self.exchange,
            seed=self.seed,
            guard=self.guard,
        )

    @property
    def compared_sources(self) -> tuple[str, ...]:
        """The sources whose answers are compared: text and graph, as `sources` allows, and the model itself."""
        sources = ("text", "graph") if self.sources == "both" else (self.sources,)
        return (*sources, "model") if self.own_answer and self.response != "none" else sources

    def to_json(self) -> dict[str, Any]:
        """The options as a run stores them."""
        return asdict(self)
