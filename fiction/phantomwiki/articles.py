"""Articles and files of a PhantomWiki instance: one article per person, one sentence per relation or attribute.

The stated facts of an imported instance are stored in the world's folder for verification.
"""

import gzip
import json
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from showhow.fiction.generator.world_files import UNIVERSE_FILE
from showhow.fiction.phantomwiki.prolog import PrologSyntaxError, PrologTerm, format_fact, parse_goal, quote_string
from showhow.fiction.phantomwiki.published_questions import (
    GRAMMAR_DEPTH,
    PublishedQuestion,
    RelationChain,
    parse_query,
    to_chain,
)
from showhow.fiction.phantomwiki.records import ATTRIBUTE_FACTS, ATTRIBUTE_WORDS, ValueCodec, iter_records
from showhow.fiction.questions.evaluate import FACT_VALUE_KINDS, ExpressionEvaluator
from showhow.fiction.questions.expressions import decode_expression
from showhow.fiction.questions.question import compute_difficulty
from showhow.fiction.questions.question_file import read_question_rows
from showhow.fiction.universe.relations import (
    DOWN,
    FRIEND,
    RELATIONS,
    SIDE,
    SPOUSE,
    UP,
    KinshipRelation,
    find_related,
    get_relation,
)
from showhow.fiction.universe.universe import NONE, Universe
from showhow.guard.files import partial_path, remove_abandoned_partials
from showhow.worlds.folder import WorldError, world_folder
from showhow.worlds.input_files import (
    MalformedFile,
    iter_nonblank_lines,
    parse_json,
    read_text_file,
    require_storable_text,
)
from showhow.worlds.open import read_world_metadata

STATED_FACTS_FILE = "stated.json.gz"


SECTIONS = {
    "Family": ("sister", "brother", "mother", "father", "son", "daughter", "wife", "husband"),
    "Friends": ("friend",),
    "Attributes": ("dob", "job", "hobby", "gender"),
}
"""Relations and attributes of an article by heading, in order."""
FACT_NAMES = tuple(name for names in SECTIONS.values() for name in names)
_FACTS_SUFFIX = "_facts"


class StatedFact(NamedTuple):
    """A stated fact: `value` is the relation or attribute `name` of the person `whose`."""

    name: str
    whose: str
    value: str

    def __str__(self) -> str:
        return format_fact(*self)


@dataclass(frozen=True, slots=True)
class StatedFacts:
    """Stated facts of an instance: facts by article, counts of bare attributes, and relation tables if published.

    Worlds that were imported by older versions have no rules and no solutions.
    """

    articles: Mapping[str, list[StatedFact]]
    attributes: Mapping[str, int]
    relations: Mapping[str, Mapping[str, list[str]]]
    rules: Sequence[str] = ()
    """The clauses of facts.pl that define relations."""
    solutions: Mapping[str, list[dict[str, str | int]]] = field(default_factory=dict)
    """The solution traces by question: values by variable. Questions without published traces are absent."""

    def save(self, file: Path) -> None:
        """Write a gzipped JSON file; the same facts give the same bytes."""
        document = {part.name: getattr(self, part.name) for part in fields(self)}
        text = json.dumps(document, ensure_ascii=False)
        file.write_bytes(gzip.compress(text.encode(), mtime=0))

    @classmethod
    def load(cls, file: Path) -> "StatedFacts":
        """Load the facts; WorldError if the file is missing or damaged."""
        try:
            document = parse_json(read_text_file(file), file, None)
            articles = {title: [StatedFact(*fact) for fact in facts] for title, facts in document["articles"].items()}
            parts = {name: document[name] for name in ("rules", "solutions") if name in document}
            return cls(articles, document["attributes"], document["relations"], **parts)
        except (MalformedFile, TypeError, KeyError, AttributeError) as error:
            reason = error.reason if isinstance(error, MalformedFile) else str(error)
            raise WorldError(f"The facts {file} cannot be read ({reason}); import the world again.") from error


@dataclass(frozen=True, slots=True)
class PublishedArticle:
    """An article as published, with its file and line for error messages."""

    title: str
    text: str
    facts: tuple[StatedFact, ...]
    file: Path
    line: int | None

    def malformed_error(self, reason: str) -> MalformedFile:
        """The error for a malformed article."""
        return MalformedFile(self.file, self.line, reason)


def read_articles(files: tuple[Path, ...]) -> Iterator[PublishedArticle]:
    """Read articles from record files, or from text files that each have a second file of facts."""
    for file in files:
        if file.suffix != ".txt":
            for record in iter_records(file):
                facts = tuple(_parse_stated_fact(text, file, record.line) for text in record.require_texts("facts"))
                yield PublishedArticle(
                    record.require_text("title"), record.require_text("article"), facts, file, record.line
                )
        elif not (
            file.stem.endswith(_FACTS_SUFFIX)
            and file.with_name(f"{file.stem.removesuffix(_FACTS_SUFFIX)}.txt") in files
        ):
            yield _read_text_article(file)


def _read_text_article(file: Path) -> PublishedArticle:
    facts_file = file.with_name(f"{file.stem}{_FACTS_SUFFIX}.txt")
    facts = tuple(_parse_stated_fact(text, facts_file, line) for line, text in iter_nonblank_lines(facts_file))
    return PublishedArticle(file.stem, require_storable_text(read_text_file(file), file, None), facts, file, None)


def _parse_stated_fact(text: str, file: Path, line: int) -> StatedFact:
    reason = "it is not a fact with two strings"
    try:
        match parse_goal(text):
            case PrologTerm(name, (str(whose), str(value))):
                return StatedFact(name, whose, value)
    except PrologSyntaxError as error:
        reason = str(error)
    raise MalformedFile(file, line, f"the fact {text} cannot be read: {reason}")


def parse_sentences(text: str) -> tuple[tuple[str, ...], tuple[tuple[str, int], ...]]:
    """Split an article into sentences, and headings with the index of the first sentence below each."""
    sentences: list[str] = []
    sections = []
    for line in (line.strip() for line in text.splitlines()):
        if line.startswith("## "):
            sections.append((line.removeprefix("## "), len(sentences)))
        elif line and not line.startswith("# "):
            sentences.append(line)
    return tuple(sentences), tuple(sections)


def parse_sentence(title: str, sentence: str) -> list[StatedFact]:
    """Parse a sentence of an article; ValueError if it is not in the format of instances."""
    match = re.fullmatch(rf"The ([a-z ]+) of {re.escape(title)} (?:(is)|are) (.+)\.", sentence)
    name = _names_by_words().get((match[1], match[2] is None)) if match else None
    if match is None or name is None:
        raise ValueError(f"{sentence!r} states no relation or attribute of {title}")
    return [StatedFact(name, title, value) for value in ([match[3]] if match[2] else match[3].split(", "))]


@cache
def _names_by_words() -> dict[tuple[str, bool], str]:
    """Relation or attribute names by (words, whether plural)."""
    names = {}
    for name in FACT_NAMES:
        names[ATTRIBUTE_WORDS.get(name, name), False] = name
        if name in RELATIONS:
            names[RELATIONS[name].plural, True] = name
    return names


def derive_facts(values: ValueCodec, row: int, names: tuple[str, ...] = FACT_NAMES) -> Iterator[StatedFact]:
    """Derive the facts of a person's article from the universe, in article order; several people are sorted by name."""
    title = values.format_value("person", row)
    for name in names:
        yield from (StatedFact(name, title, value) for value in _derive_values(values, name, row))


def _derive_values(values: ValueCodec, name: str, row: int) -> list[str]:
    universe = values.universe
    if name == "gender":
        return ["female" if universe.female[row] else "male"]
    if name in ATTRIBUTE_FACTS:
        number = int(getattr(universe, ATTRIBUTE_FACTS[name])[row])
        return [values.format_value(FACT_VALUE_KINDS[ATTRIBUTE_FACTS[name]], number)] if number > NONE else []
    related = find_related(universe, get_relation(name), np.array([row], np.int32))
    return values.format_values("person", (int(number) for number in related))


def format_article(title: str, facts: list[StatedFact]) -> str:
    """Write the article that states the facts."""
    parts = [f"# {title}\n"]
    for heading, names in SECTIONS.items():
        sentences = (
            _format_sentence(title, name, [fact.value for fact in facts if fact.name == name]) for name in names
        )
        # A section without sentences is an empty line, as published.
        parts.append("\n".join([f"## {heading}", "\n".join(sentence for sentence in sentences if sentence), ""]))
    return "\n".join(parts)


def _format_sentence(title: str, name: str, texts: list[str]) -> str:
    if not texts:
        return ""
    if len(texts) == 1:
        return f"The {ATTRIBUTE_WORDS.get(name, name)} of {title} is {texts[0]}."
    return f"The {RELATIONS[name].plural} of {title} are {', '.join(texts)}."


_BASE_RULES = (
    ":- dynamic parent/2, married_/2, friend_/2.",
    'female(X) :- gender(X, "female").',
    'male(X) :- gender(X, "male").',
    "child(X, Y) :- parent(Y, X).",
    "sibling(X, Y) :- parent(X, A), parent(Y, A), X \\= Y.",
    "married(X, Y) :- parent(A, X), parent(A, Y), X \\= Y.",
    "married(X, Y) :- married_(X, Y).",
    "married(X, Y) :- married_(Y, X).",
    "friend(X, Y) :- friend_(X, Y).",
    "friend(X, Y) :- friend_(Y, X).",
)
MARRIED_FACT = "married_"
"""Our predicate for couples without children, which published instances do not have."""
_STEP_PREDICATES = {UP: "parent", DOWN: "child", SIDE: "sibling", SPOUSE: "married", FRIEND: "friend"}


def generate_rules() -> Iterator[str]:
    """Prolog rules of all relations."""
    yield from _BASE_RULES
    yield from (
        _format_rule(relation) for relation in RELATIONS.values() if relation.name not in _STEP_PREDICATES.values()
    )


def _format_rule(relation: KinshipRelation) -> str:
    variables = ["X", *(chr(ord("A") + index) for index in range(len(relation.steps) - 1)), "Y"]
    steps = zip(relation.steps, variables, variables[1:], strict=False)
    goals = [f"{_STEP_PREDICATES[step]}({left}, {right})" for step, left, right in steps]
    if relation.women is not None:
        goals.append("female(Y)" if relation.women else "male(Y)")
    return f"{relation.name}(X, Y) :- {', '.join(goals)}."


def generate_facts(values: ValueCodec) -> Iterator[str]:
    """Prolog facts of all people, kind by kind."""
    universe, titles = values.universe, values.universe.titles
    yield from (f"type({quote_string(title)}, person)." for title in titles)
    for name in ("gender", "dob", "job", "hobby"):
        for row in range(len(universe)):
            yield from (str(fact) for fact in derive_facts(values, row, (name,)))
    yield from (format_fact("attribute", value) for value in values.iter_attributes())
    for child, parents in enumerate(zip(universe.father.tolist(), universe.mother.tolist(), strict=True)):
        yield from (format_fact("parent", titles[child], titles[parent]) for parent in parents if parent > NONE)
    yield from (format_fact(MARRIED_FACT, titles[one], titles[other]) for one, other in _childless_couples(universe))
    yield from (format_fact("friend_", titles[one], titles[other]) for one, other in universe.friends.pairs.tolist())


def _childless_couples(universe: Universe) -> Iterator[tuple[int, int]]:
    """Couples without a common child."""
    both = (universe.father > NONE) & (universe.mother > NONE)
    parents = set(universe.father[both].tolist())
    parents |= set(universe.mother[both].tolist())
    for one, other in enumerate(universe.spouse.tolist()):
        if other > one and one not in parents:
            yield one, other


@dataclass(frozen=True, slots=True)
class InstanceExport:
    """Result of an export; `left_out` counts questions that the published grammar cannot express."""

    people: int
    questions: int
    left_out: int
    split: str
    """Folder name that the published evaluator expects."""


def export_instance(worlds: Path, name: str, folder: Path) -> InstanceExport:
    """Write the world to a new or empty folder; WorldError, and nothing is written, if that fails."""
    metadata = read_world_metadata(worlds, name)
    source = world_folder(worlds, name)
    if not (source / UNIVERSE_FILE).is_file():
        raise WorldError(f"The world {name} has no universe; only generated worlds can be written in this layout.")
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise WorldError(f"{folder} is not empty; name a new folder.")
    try:
        return _write_instance(source, metadata, folder)
    except OSError as error:
        raise WorldError(f"{folder} cannot be written ({error}); check free space and permissions.") from error


def _write_instance(source: Path, metadata: dict[str, Any], folder: Path) -> InstanceExport:
    values = ValueCodec(Universe.load(source / UNIVERSE_FILE))
    rows = read_question_rows(source)
    chains = [(row["id"], chain) for row in rows if (chain := _to_published_chain(row, values)) is not None]
    depth = max([int(metadata.get("depth", GRAMMAR_DEPTH)), *(chain.depth for _, chain in chains)])
    folder.parent.mkdir(parents=True, exist_ok=True)
    remove_abandoned_partials(folder.parent, folder.name)
    partial = partial_path(folder)
    partial.mkdir(mode=0o700)
    try:
        _write_file(partial / "facts.pl", (f"{line}\n" for line in (*generate_rules(), *generate_facts(values))))
        _write_file(partial / "articles.json", _encode_json_list(_encode_articles(values)))
        _write_file(
            partial / "questions.json", _encode_json_list(_encode_question(*entry, values, depth) for entry in chains)
        )
        partial.rename(folder)
    # After every exception, also KeyboardInterrupt, the partial folder is removed and the exception raised again.
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    size = len(values.universe)
    split = f"depth_{depth}_size_{size}_seed_{metadata.get('seed', 1)}"
    return InstanceExport(size, len(chains), len(rows) - len(chains), split)


def _to_published_chain(row: dict[str, Any], values: ValueCodec) -> RelationChain | None:
    """Convert a question to the published grammar; None if it cannot be expressed or its answers would differ."""
    chain = to_chain(decode_expression(row["expression"]))
    if chain is None:
        return None
    # Published "how many" answers are a set with one number per person; ours may be a single total.
    same = _answer_texts(chain, values) == sorted(answer["text"] for answer in row["answers"])
    return chain if same else None


def _answer_texts(chain: RelationChain, values: ValueCodec) -> list[str]:
    return values.format_answers(
        ExpressionEvaluator(values.universe).evaluate(parse_query(*chain.build_goals(values), values))
    )


def _encode_question(question: str, chain: RelationChain, values: ValueCodec, depth: int) -> dict[str, Any]:
    goals, variable = chain.build_goals(values)
    return PublishedQuestion(
        id=question,
        text=chain.format_text(values),
        answers=tuple(_answer_texts(chain, values)),
        goals=tuple(goals),
        variable=variable,
        template=tuple(chain.build_template()),
        type=chain.template_number(depth),
        difficulty=compute_difficulty(parse_query(goals, variable, values)),
    ).to_record()


def _encode_articles(values: ValueCodec) -> Iterator[dict[str, Any]]:
    for row, title in enumerate(values.universe.titles):
        facts = list(derive_facts(values, row))
        yield {"title": title, "article": format_article(title, facts), "facts": [str(fact) for fact in facts]}


def _encode_json_list(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Encode a JSON list incrementally."""
    before = "[\n"
    for row in rows:
        yield before + json.dumps(row, ensure_ascii=False, indent=4)
        before = ",\n"
    yield "\n]\n" if before != "[\n" else "[]\n"


def _write_file(file: Path, parts: Iterable[str]) -> None:
    with file.open("w", encoding="utf-8") as stream:
        stream.writelines(parts)
