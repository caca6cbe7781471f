"""The registry of reasoners: what pages, verbs and evaluations need to offer a reasoner and to run it.

A new reasoner is one `ReasonerEntry` in `REASONERS`, of ours here or of another package (guard/plugins.py).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from math import isnan
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from showhow.db.run_spec import DEFAULT_STEP_LIMIT
from showhow.fewshot_library.selection import SelectionConfig, SelectionError
from showhow.guard.plugins import Registry
from showhow.llm.errors import ChatError
from showhow.reasoners.atomr.agent import AtomR
from showhow.reasoners.atomr.options import PUBLISHED, AtomROptions
from showhow.reasoners.atomr.skills import AGGREGATE, OPERATE, PLAN
from showhow.reasoners.base import Reasoner, ReasonerError
from showhow.reasoners.baselines.chain_of_knowledge import (
    CORRECT_RATIONALE,
    DRAFT_RATIONALES,
    NEXT_RATIONALE,
    ChainOfKnowledge,
    ChainOfKnowledgeOptions,
)
from showhow.reasoners.baselines.graph_rounds import Pog, PogOptions, StructGpt, StructGptOptions, Tog2, Tog2Options
from showhow.reasoners.baselines.graph_skills import (
    ANSWER_WALK,
    ENOUGH,
    MEMORY,
    OBJECTIVES,
    REASON_WALK,
    REFLECT,
    SCORE_FACTS,
    SCORE_RELATIONS,
    TOPICS,
)
from showhow.reasoners.baselines.graph_walks import Tog, TogOptions
from showhow.reasoners.baselines.probtree import QUESTION_TREE, ProbTree, ProbTreeOptions
from showhow.reasoners.baselines.rounds import (
    Ircot,
    IrcotOptions,
    React,
    ReactCotScOptions,
    ReactOptions,
    SelfAsk,
    SelfAskOptions,
    build_cot_sc_react,
    build_react_cot_sc,
)
from showhow.reasoners.baselines.single_call import (
    CotSc,
    CotScOptions,
    InContext,
    InContextOptions,
    RagOptions,
    build_cot,
    build_cot_rag,
    build_direct,
    build_rag,
)
from showhow.reasoners.baselines.skills import COT_ANSWER, COT_RAG
from showhow.reasoners.geek.agent import Geek
from showhow.reasoners.geek.options import PUBLISHED_OPTIONS as PUBLISHED_GEEK
from showhow.reasoners.geek.options import GeekOptions
from showhow.reasoners.geek.skills import CONCLUDE, DECOMPOSE, EXTRACT, NEEDS_RETRIEVAL, NEXT_ACTION, SELF_ANSWER
from showhow.reasoners.humaniq.agent import HumanIQ
from showhow.reasoners.humaniq.late_fusion import LateFusion
from showhow.reasoners.humaniq.options import OPTION_CHOICES, AgentOptions, AgentOptionsError, list_selections
from showhow.reasoners.pdrr.agent import Pdrr
from showhow.reasoners.pdrr.options import PUBLISHED_OPTIONS as PUBLISHED_PDRR
from showhow.reasoners.pdrr.options import PdrrOptions
from showhow.reasoners.pdrr.skills import (
    ANSWER_TRIPLES,
    BEST_CHAIN,
    COMPLETE,
    PRUNE_TRIPLES,
    RELATIONS,
    STRUCTURE,
    TRIPLES,
)
from showhow.reasoners.replay.agent import ReplayOptions, ReplayReasoner
from showhow.reasoners.replay.calls import MAX_CALLS
from showhow.reasoners.skills.skill import Skill
from showhow.reasoners.sources import DIRECT_ANSWER, DIRECT_RAG, SELECT_SOURCES
from showhow.tools.arguments import ToolError
from showhow.tools.tool import Tool
from showhow.worlds.source import SourceError

REPLAY_STEP_LIMIT = MAX_CALLS + 1
"""Replay calls no model, and following a relation of many people takes many steps."""
TREE_STEP_LIMIT = 2_000
"""A node of a tree takes a step for itself, for each skill and for each retrieval."""
REPLAY_CANDIDATES = 60
"""How many demonstrations replay gets, those with the most similar questions first."""


MAX_NUMBER = 2**31 - 1
"""The most that a number of an option may be."""
DEFAULT_PRESET = "showhow"
"""The preset of every reasoner that sets no option."""


_PUBLISHED_SHOTS = {"skill_shots": 3}
"""The published prompts of these baselines have examples, in one skill more than in another; three stand for them."""


class UnknownReasoner(ValueError):
    """There is no reasoner with this name; the message lists the names."""


@dataclass(frozen=True, slots=True)
class NoOptions:
    """The options of a reasoner that has none."""


def _select_plans(options: Any) -> SelectionConfig:
    return SelectionConfig(k=options.shots, guard="answers")


def _select_nothing(_options: Any) -> SelectionConfig:
    return SelectionConfig(k=0)


@dataclass(frozen=True, slots=True)
class ReasonerEntry:
    """The description of one reasoner."""

    name: str
    """Stored in runs and traces, and written after --reasoner."""
    label: str
    """The name shown on pages."""
    description: str
    """One sentence for help texts."""
    build: Callable[[Any], Reasoner]
    """Makes the reasoner from an instance of `options`."""
    cost: str = ""
    """The calls of the model that a question takes, as a phrase for pages."""
    needs: str = ""
    """What it needs besides the model, as a phrase for pages."""
    options: type[Any] = NoOptions
    """A dataclass; its fields are the options by name."""
    hidden_options: frozenset[str] = frozenset()
    """Fields of `options` that this reasoner ignores; forms do not offer them."""
    presets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Options by the name of a preset, such as published; `showhow` is every default, and is not listed."""
    select: Callable[[Any], SelectionConfig] = _select_nothing
    """Returns the selection of demonstrations for an instance of `options`."""
    bring_tools: Callable[[Any], Sequence[Tool]] = lambda _options: ()
    """Returns the tools that the reasoner brings with these options, in place of those of the project; often none."""
    explains_all_demonstrations: bool = True
    """Whether every selected demonstration influences the answer; otherwise the trace names those that did."""
    repeats: bool = False
    """Whether it repeats a demonstration on its own question, where one is asked."""
    needs_model: bool = True
    """Whether it needs a language model; if not, its tools get no model either."""
    default_step_limit: int = DEFAULT_STEP_LIMIT
    skills: tuple[Skill[Any, Any], ...] = ()
    """The skills that it calls."""

    @property
    def planning_skill(self) -> Skill[Any, Any] | None:
        """The skill whose earlier plans are its demonstrations; None for a reasoner that imitates tool calls."""
        return next((skill for skill in self.skills if skill.shape is not None), None)

    @property
    def option_names(self) -> list[str]:
        """The names of the options that the reasoner uses."""
        return [option.name for option in self.own_options]

    def apply_preset(self, name: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options of a preset, replaced by those that are given; AgentOptionsError for an unknown preset."""
        if name not in (names := [DEFAULT_PRESET, *self.presets]):
            raise AgentOptionsError(f"{self.name} has no preset {name!r}; there are {', '.join(names)}")
        return {**self.presets.get(name, {}), **options}

    @property
    def uses_demonstrations(self) -> bool:
        """Whether demonstrations or shots are selected for it."""
        return self.select is not _select_nothing or "skill_shots" in self.option_names

    def count_shots(self, options: Mapping[str, Any], skill: Skill[Any, Any]) -> int:
        """How many answered requests of other questions the skill is shown where its call brings none."""
        parsed = self.parse_options(options)
        count: int = getattr(parsed, "skill_shots", 0)
        # Where other skills are shown some, plans need no library either.
        return getattr(parsed, "shots", count) if count and skill.shape is not None else count

    def find_skill(self, reference: str | None) -> Skill[Any, Any] | None:
        """The skill with this name and version, such as plan/1; None if the reasoner calls no such skill."""
        return next((skill for skill in self.skills if skill.reference == reference), None)

    @property
    def own_options(self) -> list[Field[Any]]:
        """The fields of the options that the reasoner uses."""
        return [option for option in fields(self.options) if option.name not in self.hidden_options]

    def list_choices(self, option: Field[Any]) -> Mapping[str, str]:
        """The values of an option whose values are fixed, with their descriptions."""
        if option.name == "selection" and self.options is AgentOptions:
            return list_selections()
        shared = OPTION_CHOICES if self.options is AgentOptions else {}
        return option.metadata.get("choices") or shared.get(option.name, {})

    @property
    def option_kinds(self) -> dict[str, tuple[type[Any], bool]]:
        """The type of each option without None, and whether it may be None."""
        kinds = {}
        for name, hint in get_type_hints(self.options).items():
            members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
            kinds[name] = next(kind for kind in members if kind is not NoneType), NoneType in members
        return kinds

    def require_option(self, name: str, problem: str = "") -> None:
        """AgentOptionsError, by default that there is no such option, unless the reasoner uses one of this name."""
        if name not in self.option_names:
            options = f"its options are {', '.join(self.option_names)}" if self.option_names else "it has no options"
            raise AgentOptionsError(f"{problem or f'there is no option {name!r} of {self.name}'}; {options}")

    def parse_options(self, options: Mapping[str, Any]) -> Any:
        """Build the options' dataclass; AgentOptionsError for an unknown name or an invalid value."""
        kinds = self.option_kinds
        for name, value in options.items():
            if name not in kinds:
                self.require_option(name)
            kind, is_optional = kinds[name]
            if value is not None or not is_optional:
                _check_value(name, value, kind)
        return self.options(**options)

    def selection_config(self, options: Mapping[str, Any]) -> SelectionConfig:
        """Return how demonstrations are selected for the reasoner with these options."""
        return self.select(self.parse_options(options))


def _check_value(name: str, value: Any, kind: type[Any]) -> None:
    """AgentOptionsError for a value of another type than a plain option's, and for a number beyond all use."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    fits, expected = {
        bool: (isinstance(value, bool), "yes or no"),
        int: (is_whole, "a whole number"),
        float: (is_whole or (isinstance(value, float) and not isnan(value)), "a number"),
        str: (isinstance(value, str), "a text"),
    }.get(kind, (True, ""))
    if fits and kind in (int, float) and abs(value) > MAX_NUMBER:
        fits, expected = False, f"at most {MAX_NUMBER:,}"
    if not fits:
        raise AgentOptionsError(f"{name} is {value!r}; it must be {expected}")


_PHANTOMWIKI_REACT = {"rounds": 50, "shots": "phantomwiki", "tools": "phantomwiki", "sources": "text", "form": "text"}
_PUBLISHED_HUMANIQ = {"final": "weighed", "exchange": False, "guard": "question"}
_ENTRIES = (
    ReasonerEntry(
        name="replay",
        label="Replay: demonstrations without a model",
        description="makes the look-ups that demonstrations show, for the names of the question, in all sources",
        cost="no call of the model",
        needs="demonstrations whose questions ask in the same way",
        build=ReplayReasoner,
        options=ReplayOptions,
        hidden_options=frozenset({"demonstration", "slots"}),
        select=lambda _options: SelectionConfig(k=REPLAY_CANDIDATES, mode="relevance"),
        explains_all_demonstrations=False,
        repeats=True,
        needs_model=False,
        default_step_limit=REPLAY_STEP_LIMIT,
    ),
    ReasonerEntry(
        name="humaniq",
        label="HumanIQ: one agent",
        description="one agent with a model imitates demonstrations",
        cost="1 call of the model for each step",
        needs="demonstrations of a library, and the tools of the project",
        build=HumanIQ,
        options=AgentOptions,
        hidden_options=frozenset({"merge", "fusion_tools"}),
        presets={"published": _PUBLISHED_HUMANIQ},
        select=AgentOptions.selection_config,
    ),
    ReasonerEntry(
        name="fusion",
        label="Fusion: text and graph apart, then merged",
        description="two agents ask text and graph separately; their answers are merged",
        cost="1 call for each step of both agents",
        needs="demonstrations of a library, and tools for text and graph",
        build=LateFusion,
        options=AgentOptions,
        presets={"published": {**_PUBLISHED_HUMANIQ, "fusion_tools": "published"}},
        select=AgentOptions.selection_config,
    ),
    ReasonerEntry(
        name="atomr",
        label="AtomR: a tree of operations",
        description="plans a tree of search, relate and filter operations, and runs independent ones at the same time",
        cost="1 call for the plan, 1 or 2 for each operation, 1 for each conclusion that code cannot draw",
        needs="the tools of a text, web or graph source",
        build=AtomR,
        options=AtomROptions,
        presets={"published": PUBLISHED},
        select=_select_plans,
        default_step_limit=TREE_STEP_LIMIT,
        skills=(PLAN, SELECT_SOURCES, OPERATE, AGGREGATE, DIRECT_RAG, DIRECT_ANSWER),
    ),
    ReasonerEntry(
        name="pdrr",
        label="PDRR: triples with unknowns",
        description="writes the question as triples and fills in their unknowns from the graph, then answers from them",
        cost="3 calls, and 1 for each triple; 2 for each triple and chain if facts are pruned (published, beam)",
        needs="the relation tools of a graph, or the tools that search texts",
        build=Pdrr,
        options=PdrrOptions,
        presets={"published": PUBLISHED_PDRR},
        select=_select_plans,
        default_step_limit=TREE_STEP_LIMIT,
        skills=(STRUCTURE, TRIPLES, RELATIONS, COMPLETE, PRUNE_TRIPLES, BEST_CHAIN, ANSWER_TRIPLES),
    ),
    ReasonerEntry(
        name="geek",
        label="GEEK: sub-questions and facts in rounds",
        description="asks one sub-question a round until the facts suffice; may follow several lanes, which vote",
        cost="4 calls for each sub-question and 2 at the end, times the strategies that are explored",
        needs="the tools of a text, web or graph source",
        build=Geek,
        options=GeekOptions,
        presets={"published": PUBLISHED_GEEK},
        select=_select_plans,
        default_step_limit=TREE_STEP_LIMIT,
        skills=(NEXT_ACTION, DECOMPOSE, NEEDS_RETRIEVAL, SELECT_SOURCES, EXTRACT, SELF_ANSWER, CONCLUDE),
    ),
    ReasonerEntry(
        name="direct",
        label="Direct: own knowledge",
        description="asks the model once, without sources",
        cost="1 call",
        needs="no source",
        build=lambda _options: build_direct(),
        presets={"published": {}},
    ),
    ReasonerEntry(
        name="cot",
        label="CoT: own knowledge, step by step",
        description="asks the model once, without sources, to reason before it answers",
        cost="1 call",
        needs="no source",
        build=lambda _options: build_cot(),
        presets={"published": {}},
    ),
    ReasonerEntry(
        name="cot-sc",
        label="CoT-SC: a vote over samples",
        description="samples chains of thought and keeps the answers that more than half of them have",
        cost="1 call for each sample, 5 by default",
        needs="no source",
        build=CotSc,
        options=CotScOptions,
        presets={"published": {}},
        default_step_limit=TREE_STEP_LIMIT,
    ),
    ReasonerEntry(
        name="rag",
        label="RAG: one retrieval",
        description="searches once by the question, and answers from what it reads",
        cost="1 call after 1 retrieval",
        needs="the tools that search a source",
        build=build_rag,
        options=RagOptions,
        hidden_options=frozenset({"exemplars"}),
        presets={"published": {}},
    ),
    ReasonerEntry(
        name="cot-rag",
        label="CoT-RAG: one retrieval, step by step",
        description="searches once by the question, and reasons from what it reads before it answers",
        cost="1 call after 1 retrieval",
        needs="the tools that search a source",
        build=build_cot_rag,
        options=RagOptions,
        presets={"published": {"exemplars": "phantomwiki"}},
    ),
    ReasonerEntry(
        name="in-context",
        label="In-context: all articles in the prompt",
        description="answers from all articles of the world in one prompt; refuses where they do not fit",
        cost="1 call with every article in it",
        needs="a world that fits the context window of the model",
        build=InContext,
        options=InContextOptions,
        presets={
            "published": {"prompting": "zero-shot"},
            "published-cot": {"exemplars": "phantomwiki"},
        },
    ),
    ReasonerEntry(
        name="self-ask",
        label="Self-Ask: follow-up questions",
        description="asks follow-up questions, looks each up, and answers when they suffice",
        cost="1 call for each follow-up, and 1 more",
        needs="the tools that search a source",
        build=SelfAsk,
        options=SelfAskOptions,
        default_step_limit=TREE_STEP_LIMIT,
    ),
    ReasonerEntry(
        name="ircot",
        label="IRCoT: reasoning and retrieval in turn",
        description="searches by each sentence of its reasoning, and answers from all that it gathered",
        cost="1 call for each sentence, and 1 for the reader",
        needs="the tools that search a source",
        build=Ircot,
        options=IrcotOptions,
        default_step_limit=TREE_STEP_LIMIT,
    ),
    ReasonerEntry(
        name="react",
        label="ReAct: thoughts and actions in turn",
        description="one agent without demonstrations, or with the same ones for every question, in few rounds",
        cost="1 call for each round, at most 8",
        needs="the tools that search a source",
        build=React,
        options=ReactOptions,
        presets={"published": _PHANTOMWIKI_REACT},
        select=ReactOptions.selection_config,
        bring_tools=lambda options: options.own_tools,
        default_step_limit=TREE_STEP_LIMIT,
    ),
    ReasonerEntry(
        name="react-cot-sc",
        label="ReAct, then CoT-SC",
        description="answers with ReAct, and by a vote over samples where ReAct ends without an answer",
        cost="1 call for each round, and 21 samples where ReAct ends without an answer",
        needs="the tools that search a source",
        build=build_react_cot_sc,
        options=ReactCotScOptions,
        select=ReactCotScOptions.selection_config,
        bring_tools=lambda options: options.own_tools,
        default_step_limit=TREE_STEP_LIMIT,
    ),
    ReasonerEntry(
        name="cot-sc-react",
        label="CoT-SC, then ReAct",
        description="answers by a vote over samples, and with ReAct where no answer is in more than half of them",
        cost="21 samples, and 1 call for each round where they disagree",
        needs="the tools that search a source for its second part",
        build=build_cot_sc_react,
        options=ReactCotScOptions,
        select=ReactCotScOptions.selection_config,
        bring_tools=lambda options: options.own_tools,
        default_step_limit=TREE_STEP_LIMIT,
    ),
    ReasonerEntry(
        name="probtree",
        label="ProbTree: the surest answer of each node",
        description="splits the question into a tree, answers each node in several ways, and takes the surest answer",
        cost="3 or more calls for each question of the tree",
        needs="the tools that search a source",
        build=ProbTree,
        options=ProbTreeOptions,
        presets={"published": {"own": "free", **_PUBLISHED_SHOTS}},
        default_step_limit=TREE_STEP_LIMIT,
        skills=(QUESTION_TREE, COT_ANSWER, COT_RAG, CONCLUDE),
    ),
    ReasonerEntry(
        name="chain-of-knowledge",
        label="Chain-of-Knowledge: corrected rationales",
        description="drafts a reasoning, corrects its sentences by sources one after the other, and answers from them",
        cost="2 calls, and 2 for each sentence of the draft",
        needs="the tools that search a source",
        build=ChainOfKnowledge,
        options=ChainOfKnowledgeOptions,
        presets={"published": {"own": "free", **_PUBLISHED_SHOTS}},
        default_step_limit=TREE_STEP_LIMIT,
        skills=(DRAFT_RATIONALES, SELECT_SOURCES, NEXT_RATIONALE, CORRECT_RATIONALE, CONCLUDE),
    ),
    ReasonerEntry(
        name="tog",
        label="ToG: a beam through the graph",
        description="walks from the question's entities along the best-scored relations and facts until they suffice",
        cost="at most 24 calls with a beam of 3 over 3 hops",
        needs="the graph-step tools",
        build=Tog,
        options=TogOptions,
        presets={"published": {"own": "fallback", **_PUBLISHED_SHOTS}},
        default_step_limit=TREE_STEP_LIMIT,
        skills=(TOPICS, SCORE_RELATIONS, SCORE_FACTS, ENOUGH, ANSWER_WALK, DIRECT_ANSWER),
    ),
    ReasonerEntry(
        name="pog",
        label="PoG: objectives, memory and going back",
        description="walks through the graph as broadly as its objectives need, and may go back to earlier entities",
        cost="1 call, and 2 to 4 for each hop and 1 for each entity",
        needs="the graph-step tools",
        build=Pog,
        options=PogOptions,
        presets={"published": {"own": "fallback", **_PUBLISHED_SHOTS}},
        default_step_limit=TREE_STEP_LIMIT,
        skills=(OBJECTIVES, SCORE_RELATIONS, SCORE_FACTS, MEMORY, ENOUGH, REFLECT, ANSWER_WALK, DIRECT_ANSWER),
    ),
    ReasonerEntry(
        name="tog-2",
        label="ToG-2: graph and articles in turn",
        description="walks through the graph and ranks entities by their articles; may vote first, as published",
        cost="2 calls for each hop; with samples, only where they disagree",
        needs="the graph-step tools, wikisearch and read",
        build=Tog2,
        options=Tog2Options,
        presets={"published": {"samples": 5, "agreement": 0.8, **_PUBLISHED_SHOTS}},
        default_step_limit=TREE_STEP_LIMIT,
        skills=(COT_ANSWER, TOPICS, SCORE_RELATIONS, REASON_WALK),
    ),
    ReasonerEntry(
        name="structgpt",
        label="StructGPT: relations, then facts",
        description="chooses relations, reads their facts from the graph, and answers or makes the next hop",
        cost="1 call, and 2 for each hop",
        needs="the graph-step tools",
        build=StructGpt,
        options=StructGptOptions,
        presets={"published": _PUBLISHED_SHOTS},
        default_step_limit=TREE_STEP_LIMIT,
        skills=(TOPICS, SCORE_RELATIONS, REASON_WALK),
    ),
)
REASONERS = Registry(
    "reasoners",
    ReasonerEntry,
    _ENTRIES,
    raises=(ReasonerError, AgentOptionsError, SelectionError, ChatError, ToolError, SourceError),
    check=lambda entry: (entry.own_options, *map(entry.selection_config, ({}, *entry.presets.values()))),
)


def find_reasoner(name: str) -> ReasonerEntry:
    """Return the entry with this name, or raise UnknownReasoner."""
    if name not in REASONERS:
        raise UnknownReasoner(f"there is no reasoner {name!r}; there are {', '.join(REASONERS)}")
    return REASONERS[name]


def reasoner_title(name: str) -> str:
    """The word of pages for a reasoner: its label without the explanation; its name if there is none of that name."""
    return REASONERS[name].label.partition(":")[0] if name in REASONERS else name


def default_reasoner(*, has_model: bool) -> ReasonerEntry:
    """Return the default reasoner: the first that needs a model, or the first that needs none."""
    return next(entry for entry in REASONERS.values() if entry.needs_model == has_model)


def make_reasoner(name: str, options: Mapping[str, Any] | None = None) -> Reasoner:
    """Build a reasoner with these options; UnknownReasoner or AgentOptionsError for an invalid name or option."""
    entry = find_reasoner(name)
    return entry.build(entry.parse_options(options or {}))
