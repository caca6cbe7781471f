"""The knowledge learned from several demonstrations: question templates, frames, lookups and sentence patterns.

Sentence patterns are also learned from the hits of one search, whose snippets state the same fact about others.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, takewhile
from uuid import UUID

from db.trace_record import TraceRecord
from reasoners.replay.english import COUNT, LIGHT, content, names_in, plain, words
from reasoners.replay.question_patterns import FrameFit, QuestionFrame, fit_frame, learn_frame, make_counting_frame
from reasoners.replay.recorded_lookups import (
    BLANK,
    RELATION_QUESTION,
    TEXT,
    WEB,
    AnalyzedDemonstration,
    QuestionTemplates,
    RecordedGraphStep,
    RecordedLookup,
    RecordedSearch,
    relation_of,
)
from reasoners.replay.sentence_patterns import (
    DAY,
    RELATION,
    SPLIT,
    SUBJECT,
    THING,
    VALUE,
    WORD,
    SentencePattern,
    generalize_token,
    kind_of,
    learn_pattern,
    relation_in,
)
from worlds.lexicon import kinship

SnippetHit = tuple[str, str, str]
"""A snippet, its subject, and the value that was searched for."""


def find_shared_patterns(hits: Sequence[SnippetHit]) -> Iterator[SentencePattern]:
    """Yield the patterns of snippets that differ only in the subject and in words of the value searched for."""
    for first, second in combinations(hits, 2):
        one, other = _TokenizedSentence(first), _TokenizedSentence(second)
        before = _common_prefix(one.tokens, other.tokens, one.searched | other.searched)
        after = _common_prefix(one.tokens[::-1], other.tokens[::-1], one.searched | other.searched)[::-1]
        middles = [tokenized.tokens[len(before) : len(tokenized.tokens) - len(after)] for tokenized in (one, other)]
        shared_words = content("".join(token for token in (*before, *after) if token != SUBJECT))
        if first[0] != second[0] and shared_words and all(map(_is_value, middles, (one, other))):
            yield SentencePattern((*before, VALUE, *after), WORD)


class _TokenizedSentence:
    """A snippet as tokens, with SUBJECT in place of its subject."""

    def __init__(self, hit: SnippetHit) -> None:
        sentence, subject, value = hit
        self.searched = content(value)
        name = subject.partition(" (")[0]
        parts = re.split(rf"({re.escape(name)})", sentence)
        self.tokens = [
            token for part in parts for token in ([SUBJECT] if part == name else SPLIT.findall(part)) if part
        ]


def _common_prefix(one: Sequence[str], other: Sequence[str], searched: set[str]) -> list[str]:
    """The common first tokens as patterns; words that vary with subject and time match all their forms."""
    same = takewhile(
        lambda pair: _is_same_token(*pair) and content(pair[0]).isdisjoint(searched), zip(one, other, strict=False)
    )
    return [_merge_tokens(*pair) for pair in same]


def _is_same_token(one: str, other: str) -> bool:
    return generalize_token(one) == generalize_token(other) or bool(content(one) and content(one) == content(other))


def _merge_tokens(one: str, other: str) -> str:
    if SUBJECT in (one, other):
        return SUBJECT
    return (
        generalize_token(one)
        if generalize_token(one) == generalize_token(other)
        else f"(?:{re.escape(one)}|{re.escape(other)})"
    )


def _is_value(tokens: Sequence[str], tokenized: _TokenizedSentence) -> bool:
    """Whether the tokens are lower-case words, at least one of them from the value searched for."""
    text = "".join(tokens)
    is_lower_case = text == text.strip() and text.replace(" ", "").isalpha() and text.islower()
    return is_lower_case and bool(content(text) & tokenized.searched)


@dataclass(slots=True)
class ReverseLookups:
    """How demonstrations find the entities with a value: by typed queries, article searches or web searches."""

    queries: list[str] = field(default_factory=list)
    searched: bool = False
    templates: list[str] = field(default_factory=list)


class ReplayKnowledge:
    """What a set of demonstrations shows; earlier demonstrations take precedence."""

    def __init__(self, records: Iterable[TraceRecord]) -> None:
        self.demonstrations = [AnalyzedDemonstration(record) for record in records]
        self.wordings = QuestionTemplates()
        self.tools = {
            step.tool for demonstration in self.demonstrations for step in demonstration.record.steps if not step.error
        }
        self.sources: set[str] = set()
        self.no_answer_text: str | None = None
        """The answer of a demonstration in which nothing was found."""
        self.unanswered_templates: set[str] = set()
        """The templates without a value in some demonstration."""
        self.own_words = False
        """Whether a demonstration uses its own question as a template."""
        self.backward: dict[str, ReverseLookups] = defaultdict(ReverseLookups)
        self.graph_steps: dict[str, RecordedGraphStep] = {}
        """The steps through the graph that look up a template."""
        self._patterns: dict[tuple[str, str], list[SentencePattern]] = defaultdict(list)
        self._relations: dict[str, list[SentencePattern]] = defaultdict(list)
        self._readings: dict[str, set[str]] = defaultdict(set)
        self._kinds: dict[str, set[str]] = defaultdict(set)
        self._of_people: set[str] = set()
        self._narrower: dict[str, dict[str, None]] = defaultdict(dict)
        self._explained_words: dict[str, set[str]] = defaultdict(set)
        self._thoughts: dict[str, dict[str, str]] = defaultdict(dict)
        for demonstration in self.demonstrations:
            for ask in demonstration.asks:
                self.wordings.learn(ask.template)
        self._page_words: set[str] = set()
        self._asked_words: set[str] = set()
        self._hits: dict[str, list[SnippetHit]] = defaultdict(list)
        self.frames = [
            frame for demonstration in self.demonstrations if (frame := learn_frame(demonstration, self.wordings))
        ]
        for demonstration in self.demonstrations:
            self._study(demonstration)
        for fact, hits in self._hits.items():
            self._patterns[self.wordings.template_for(fact, what=True), TEXT] += find_shared_patterns(hits)

    def fits(self, question: str, rank: Mapping[UUID, int]) -> Iterator[FrameFit]:
        """Yield the fits of the question to the frames, those of the best demonstration first."""
        for frame in sorted(self.frames, key=lambda frame: rank[frame.demonstration.record.trace.id]):
            if fit := fit_frame(frame, question, self.wordings):
                yield fit
        for frame in self._counting(question):
            if fit := fit_frame(frame, question, self.wordings):
                yield fit

    def patterns(self, template: str, source: str) -> list[SentencePattern]:
        """The sentence patterns of a template, those of this source first."""
        relation = RELATION_QUESTION.fullmatch(template)
        # Pages and articles use the same words for relations.
        both = (*self._relations[TEXT], *self._relations[WEB]) if relation else ()
        other = WEB if source == TEXT else TEXT
        return [*self._patterns[template, source], *self._patterns[template, other], *both]

    def kinds(self, template: str) -> set[str]:
        """The kinds of values that demonstrations found for a template."""
        kinds = {pattern.kind for source in (TEXT, WEB) for pattern in self._patterns[template, source]}
        return kinds | self._kinds.get(template, set()) or ({DAY} if template.startswith("When ") else set())

    def phrases_for(self, template: str) -> set[str]:
        """Phrases with the meaning of a template: its own words, the paraphrases of its queries, and their synonyms."""
        question_word = words(template)[0]
        names = {*self._readings.get(template, ()), relation_of(template)} - {""}
        names |= kinship.relations_in_question(template.replace(BLANK, ""), question_word) if not names else set()
        return {
            template.replace(BLANK, ""),
            *names,
            *(phrase for name in names for phrase in kinship.relation_phrases(name, question_word)),
        }

    def narrower(self, relation: str) -> list[str]:
        """The relation and its narrower relations, from English or from demonstrations: son for child."""
        return list(dict.fromkeys((relation, *self._narrower[relation], *kinship.narrower_relations(relation))))

    def words_on_pages(self, template: str) -> list[str]:
        """Words to search pages for a template, in either direction of its relation.

        These are the words on pages of demonstrations; for dates, and if there are none, also English synonyms.
        """
        relation = relation_of(template)
        symmetric = kinship.symmetric_relation(relation)
        relation_words = [
            *kinship.related_words(relation),
            *(kinship.relation_phrases(symmetric.relation, "who") if symmetric else ()),
        ]
        phrases = relation_words or self.phrases_for(template)
        content_words = {word for phrase in phrases for word in content(phrase)} - content("date day")
        search_words = {word for word in self._page_words if set() < content(word) <= content_words}
        if not search_words or template.startswith("When "):
            search_words |= {
                word for phrase in phrases for word in words(phrase) if content(word) and content(word) <= content_words
            }
        return sorted(search_words)

    def kin(self, relation: str) -> set[str]:
        """The nouns by which a sentence can state a relation in either direction: a person with a son is a parent."""
        return {*self.narrower(relation), *kinship.inverse_words(relation)}

    def is_kin(self, relation: str) -> bool:
        """Whether articles state the relation by a noun, as they do for relations between people."""
        return bool(self._narrower[relation]) or kinship.relates_people(relation) or relation in self._of_people

    def speaks_of_other(self, sentence: str, template: str) -> bool:
        """Whether a masked sentence has content words of another template and none of this one."""
        own_words = content(template.replace(BLANK, ""))
        all_words = self._words_of_all()
        sentence_words = content(sentence)
        return sentence_words.isdisjoint(own_words) and not sentence_words.isdisjoint(all_words - own_words)

    def _words_of_all(self) -> set[str]:
        """The content words of all templates, with English synonyms."""
        if not self._asked_words:
            phrases = [phrase for template in self.wordings.templates for phrase in self.phrases_for(template)]
            self._asked_words = {
                word for phrase in (*phrases, *self.wordings.phrases) for word in content(phrase)
            } - LIGHT
        return self._asked_words

    def every_pattern(self, source: str) -> list[tuple[str, SentencePattern]]:
        """All known sentence patterns of a source, each with its relation."""
        template_patterns = [
            (relation_of(template), pattern)
            for (template, origin), patterns in self._patterns.items()
            if origin == source
            for pattern in patterns
        ]
        relations = [match["relation"] for t in self.wordings.templates if (match := RELATION_QUESTION.fullmatch(t))]
        relations += [word for relation in tuple(relations) for word in self.narrower(relation)]
        relation_patterns = (*self._relations[TEXT], *self._relations[WEB])
        return template_patterns + [(relation, pattern) for pattern in relation_patterns for relation in relations]

    def is_understood(self, template: str, reading: str) -> bool:
        """Whether the paraphrase of a query has the meaning of the template, by the evidence of demonstrations."""
        relation = RELATION_QUESTION.fullmatch(template)
        if relation:
            # The graph says cousin for first cousin.
            return plain(reading) == plain(relation["relation"]).replace("first cousin", "cousin")
        if reading in self._readings.get(template, ()):
            return True
        template_words, reading_words = content(template.replace(BLANK, "")), content(reading)
        question_word = words(template)[0]
        explained = self._explained_words.get(question_word) or set().union(
            *(self._explained_words[word] for word in template_words)
        )
        return template_words <= reading_words <= template_words | explained

    @property
    def graph_templates(self) -> list[str]:
        """The templates that demonstrations look up by generated queries, in their order."""
        return list(self._readings)

    @property
    def operations(self) -> set[str]:
        """The operations that demonstrations use."""
        return {frame.operation for frame in self.frames}

    @property
    def searches(self) -> bool:
        """Whether demonstrations search articles for a value to find the entities with it."""
        return any(lookups.searched for lookups in self.backward.values())

    @property
    def searches_pages(self) -> bool:
        """Whether demonstrations search web pages for the entities with a value."""
        return any(lookups.templates for lookups in self.backward.values())

    def is_known(self, template: str) -> bool:
        """Whether a demonstration has the template, or its relation is a known English one."""
        relation = relation_of(template)
        return template in self.wordings.templates or kinship.relates_people(relation) or kinship.is_attribute(relation)

    def thought(self, tool: str, template: str, question: str, subject: str) -> str:
        """A demonstration's thought before a call of this tool, with this question and subject filled in."""
        forms = self._thoughts[tool]
        form = forms.get(template) or next(iter(forms.values()), "{asked}")
        return form.replace("{asked}", question).replace("{subject}", subject)

    def _counting(self, question: str) -> Iterator[QuestionFrame]:
        """Yield frames turned into counting questions: Which ... -> How many ..."""
        heads = {_question_head(frame) for frame in self.frames if frame.operation == COUNT}
        for head in sorted(filter(None, heads)):
            if question.startswith(f"{head} "):
                for frame in self.frames:
                    if counting_frame := make_counting_frame(frame, head, "Which"):
                        yield counting_frame

    def _study(self, demonstration: AnalyzedDemonstration) -> None:
        for ask in demonstration.asks:
            self.sources.add(ask.source)
            self._page_words.update(*map(words, ask.sentences if ask.source == WEB else ()))
            self._study_ask(demonstration, ask)
        for search in demonstration.searches:
            self._study_search(demonstration, search)
        self._study_queries(demonstration)
        if demonstration.asks and not any(ask.values for ask in demonstration.asks):
            self.unanswered_templates |= {ask.template for ask in demonstration.asks}
            self.no_answer_text = self.no_answer_text or demonstration.answer or None

    def _study_ask(self, demonstration: AnalyzedDemonstration, ask: RecordedLookup) -> None:
        if ask.template.replace(BLANK, ask.subject) == demonstration.question:
            self.own_words = True
        if ask.graph_step is not None:
            self.graph_steps.setdefault(ask.template, ask.graph_step)
        if ask.reading:
            self._readings[ask.template].add(ask.reading)
            for word in (*content(ask.template.replace(BLANK, "")), words(ask.template)[0]):
                self._explained_words[word] |= content(ask.reading)
        self._study_thoughts(demonstration, ask)
        self._kinds[ask.template] |= {kind_of(value) for value in ask.values}
        relation = relation_of(ask.template)
        if relation and ask.template.startswith("Who "):
            self._of_people.add(relation)
        for value in ask.values:
            for sentence, pattern in self._find_telling_sentences(ask, value):
                if relation and RELATION in pattern.parts:
                    self._relations[ask.source].append(pattern)
                    continue
                self._patterns[ask.template, ask.source].append(pattern)
                if relation and pattern.kind == THING:
                    self._study_narrower(ask, relation, sentence, value)

    def _find_telling_sentences(self, ask: RecordedLookup, value: str) -> list[tuple[str, SentencePattern]]:
        """The sentences that state the value: those with words of the template, or else the only one with the value."""
        relation = relation_of(ask.template)
        candidates = [
            (sentence, pattern)
            for sentence in ask.sentences
            if (pattern := learn_pattern(sentence, ask.subject, value, relation))
        ]
        phrases = (*self.phrases_for(ask.template), *kinship.related_words(relation))
        template_words = {word for phrase in phrases for word in content(phrase)}
        matching = [entry for entry in candidates if content(entry[0]) & template_words]
        return matching or (candidates if len(candidates) == 1 else [])

    def _study_narrower(self, ask: RecordedLookup, relation: str, sentence: str, value: str) -> None:
        """Learn that a sentence uses a narrower relation than the template: father for parents."""
        if (word := relation_in(sentence, ask.subject)) and (
            pattern := learn_pattern(sentence, ask.subject, value, word)
        ):
            self._narrower[relation].setdefault(word)
            self._relations[ask.source].append(pattern)

    def _study_thoughts(self, demonstration: AnalyzedDemonstration, ask: RecordedLookup) -> None:
        step = demonstration.record.steps[ask.step - 1]
        question = ask.template.replace(BLANK, ask.subject)
        if question in step.thought:
            form = step.thought[step.thought.rindex(question) :].replace(question, "{asked}")
        elif ask.subject in step.thought:
            form = step.thought.replace(ask.subject, "{subject}")
        else:
            return
        if len(names_in(form.replace("{asked}", "").replace("{subject}", ""))) <= 1 and not re.search(r"\d", form):
            self._thoughts[str(step.tool)].setdefault(ask.template, form)

    def _study_search(self, demonstration: AnalyzedDemonstration, search: RecordedSearch) -> None:
        """Learn from a search for a value: hits mentioned in later steps are the entities with the value."""
        fact = next((fact for fact, value in demonstration.facts if value == search.value), None)
        if fact is None:
            return
        self.backward[fact].searched = True
        later_text = demonstration.text_after(search.step)
        data = demonstration.record.steps[search.step - 1].data or {}
        self._hits[fact] += [(hit["snippet"], hit["title"], search.value) for hit in data.get("hits", ())]
        for hit in data.get("hits", ()):
            if hit["title"] in later_text and search.value in hit["snippet"]:
                pattern = learn_pattern(hit["snippet"], hit["title"], search.value, fact)
                template = self.wordings.template_for(fact, what=True)
                if pattern and RELATION in pattern.parts:
                    self._relations[TEXT].append(pattern)
                elif pattern:
                    self._patterns[template, TEXT].append(pattern)

    def _study_queries(self, demonstration: AnalyzedDemonstration) -> None:
        for fact, value in demonstration.facts:
            if value not in demonstration.span_texts:
                continue
            lookups = self.backward[fact]
            lookups.queries += [query.sparql for query in demonstration.queries if query.subjects == (value,)]
            asks = [ask for ask in demonstration.asks if ask.subject == value and ask.source == WEB]
            lookups.templates += [ask.template for ask in asks]
            self._study_reversed(fact, value, asks)

    def _study_reversed(self, fact: str, value: str, asks: Iterable[RecordedLookup]) -> None:
        """Learn sentence patterns from the pages by which a demonstration found the entities with a value."""
        template = self.wordings.template_for(fact, what=True)
        sentences = [
            (sentence, who) for ask in asks for sentence in ask.sentences for who in ask.values if who in sentence
        ]
        self._patterns[template, WEB] += [
            pattern for sentence, who in sentences if (pattern := learn_pattern(sentence, who, value, ""))
        ]


def _question_head(frame: QuestionFrame) -> str | None:
    """The first two words of a question, such as How many; None if it begins with a hole."""
    first = frame.parts[0]
    return " ".join(first.split()[:2]) if isinstance(first, str) else None
