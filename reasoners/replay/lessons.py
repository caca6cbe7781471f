"""Everything that several demonstrations show: wordings, frames, ways to look things up, how sentences say it.

Wordings that several sentences share: what a search by a value finds says the same fact of others.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, takewhile
from uuid import UUID

from db.trace_record import TraceRecord
from reasoners.replay import kin
from reasoners.replay.asks import BLANK, TEXT, WEB, AnalyzedDemonstration, RecordedLookup, RecordedSearch
from reasoners.replay.english import LIGHT, content, names_in, plain, words
from reasoners.replay.fitting import FrameFit, fit_frame, make_counting_frame
from reasoners.replay.frames import QuestionFrame, learn_frame
from reasoners.replay.operations import COUNT
from reasoners.replay.sentences import (
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
from reasoners.replay.wordings import RELATION_QUESTION, QuestionTemplates, relation_of

SnippetHit = tuple[str, str, str]
"""A sentence, whom it is about, and the value that it was found by."""


def find_shared_patterns(hits: Sequence[SnippetHit]) -> Iterator[SentencePattern]:
    """The patterns of sentences that differ in nothing but whom they are about and in words like those searched for."""
    for first, second in combinations(hits, 2):
        one, other = _TokenizedSentence(first), _TokenizedSentence(second)
        before = _common_prefix(one.tokens, other.tokens, one.searched | other.searched)
        after = _common_prefix(one.tokens[::-1], other.tokens[::-1], one.searched | other.searched)[::-1]
        middles = [cut.tokens[len(before) : len(cut.tokens) - len(after)] for cut in (one, other)]
        said = content("".join(token for token in (*before, *after) if token != SUBJECT))
        if first[0] != second[0] and said and all(map(_is_value, middles, (one, other))):
            yield SentencePattern((*before, VALUE, *after), WORD)


class _TokenizedSentence:
    """A sentence as tokens."""

    def __init__(self, hit: SnippetHit) -> None:
        sentence, subject, value = hit
        self.searched = content(value)
        name = subject.partition(" (")[0]
        parts = re.split(rf"({re.escape(name)})", sentence)
        self.tokens = [
            token for part in parts for token in ([SUBJECT] if part == name else SPLIT.findall(part)) if part
        ]


def _common_prefix(one: Sequence[str], other: Sequence[str], searched: set[str]) -> list[str]:
    """The tokens with which both begin, free where they change with who and when."""
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


def _is_value(tokens: Sequence[str], cut: _TokenizedSentence) -> bool:
    """Whether words in small letters have one of those searched for among them."""
    text = "".join(tokens)
    in_words = text == text.strip() and text.replace(" ", "").isalpha() and text.islower()
    return in_words and bool(content(text) & cut.searched)


@dataclass(slots=True)
class ReverseLookups:
    """How demonstrations find who has a value: by typed queries, by searching articles, by asking web pages."""

    queries: list[str] = field(default_factory=list)
    searched: bool = False
    templates: list[str] = field(default_factory=list)


class ReplayKnowledge:
    """What demonstrations teach together, those first that come first."""

    def __init__(self, records: Iterable[TraceRecord]) -> None:
        self.demonstrations = [AnalyzedDemonstration(record) for record in records]
        self.wordings = QuestionTemplates()
        self.tools = {
            step.tool for demonstration in self.demonstrations for step in demonstration.record.steps if not step.error
        }
        self.sources: set[str] = set()
        self.no_answer_text: str | None = None
        """What they answer where nothing is found."""
        self.unanswered_templates: set[str] = set()
        """What they ask and find no answer to."""
        self.own_words = False
        """Whether one asks with the words of its own question."""
        self.backward: dict[str, ReverseLookups] = defaultdict(ReverseLookups)
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
        """How the question can be read as the question of a demonstration, the best demonstration first."""
        for frame in sorted(self.frames, key=lambda frame: rank[frame.demonstration.record.trace.id]):
            if results := fit_frame(frame, question, self.wordings):
                yield results
        for frame in self._counting(question):
            if results := fit_frame(frame, question, self.wordings):
                yield results

    def patterns(self, template: str, source: str) -> list[SentencePattern]:
        """How sentences of a source answer that."""
        relation = RELATION_QUESTION.fullmatch(template)
        # Pages and articles call relations by the same words.
        both = (*self._relations[TEXT], *self._relations[WEB]) if relation else ()
        other = WEB if source == TEXT else TEXT
        return [*self._patterns[template, source], *self._patterns[template, other], *both]

    def kinds(self, template: str) -> set[str]:
        """What kinds of values were found where that was asked."""
        results = {pattern.kind for source in (TEXT, WEB) for pattern in self._patterns[template, source]}
        return results | self._kinds.get(template, set()) or ({DAY} if template.startswith("When ") else set())

    def phrases_for(self, template: str) -> set[str]:
        """Words that speak of what a template asks: its own, and the English ones for how demonstrations read it."""
        asked = words(template)[0]
        names = {*self._readings.get(template, ()), relation_of(template)} - {""}
        names |= kin.find_relations(template.replace(BLANK, ""), asked) if not names else set()
        return {
            template.replace(BLANK, ""),
            *names,
            *(phrase for name in names for phrase in kin.words_for(name, asked)),
        }

    def narrower(self, relation: str) -> list[str]:
        """The word of a relation and words for a part of it: a son is a child, by English or by a demonstration."""
        return list(dict.fromkeys((relation, *self._narrower[relation], *kin.narrower(relation))))

    def words_on_pages(self, template: str) -> list[str]:
        """Words by which pages speak of what a template asks, from either side: those that demonstrations read on
        pages, and for days, or where these are none, those that English has.
        """
        relation = relation_of(template)
        both = kin.symmetric_relation(relation)
        stated = [*kin.narrower_words(relation), *(kin.words_for(both.word, "who") if both else ())]
        phrases = stated or self.phrases_for(template)
        speaking = {word for phrase in phrases for word in content(phrase)} - content("date day")
        results = {word for word in self._page_words if set() < content(word) <= speaking}
        if not results or template.startswith("When "):
            results |= {
                word for phrase in phrases for word in words(phrase) if content(word) and content(word) <= speaking
            }
        return sorted(results)

    def kin(self, relation: str) -> set[str]:
        """The words by which a sentence can say a relation, also from the other side: whoever has a son is a parent."""
        return {*self.narrower(relation), *kin.other_side(relation)}

    def is_kin(self, relation: str) -> bool:
        """Whether articles say the relation by a word for it, as they do of people."""
        return bool(self._narrower[relation]) or kin.is_personal(relation) or relation in self._of_people

    def speaks_of_other(self, sentence: str, template: str) -> bool:
        """Whether a sentence, without its names, has words of something else that is asked for, and none of this."""
        mine = content(template.replace(BLANK, ""))
        others = self._words_of_all()
        said_words = content(sentence)
        return said_words.isdisjoint(mine) and not said_words.isdisjoint(others - mine)

    def _words_of_all(self) -> set[str]:
        """The words of everything that demonstrations ask for, with those that English has for it."""
        if not self._asked_words:
            stated = [phrase for template in self.wordings.templates for phrase in self.phrases_for(template)]
            self._asked_words = {
                word for phrase in (*stated, *self.wordings.phrases) for word in content(phrase)
            } - LIGHT
        return self._asked_words

    def every_pattern(self, source: str) -> list[tuple[str, SentencePattern]]:
        """All that is known of how sentences of a source say anything, each with its relation."""
        stated = [
            (relation_of(template), pattern)
            for (template, origin), patterns in self._patterns.items()
            if origin == source
            for pattern in patterns
        ]
        named = [results["relation"] for t in self.wordings.templates if (results := RELATION_QUESTION.fullmatch(t))]
        named += [word for relation in tuple(named) for word in self.narrower(relation)]
        both = (*self._relations[TEXT], *self._relations[WEB])
        return stated + [(relation, pattern) for pattern in both for relation in named]

    def is_understood(self, template: str, reading: str) -> bool:
        """Whether the words by which a query is read ask what the template asks, as far as demonstrations show."""
        relation = RELATION_QUESTION.fullmatch(template)
        if relation:
            # A cousin is a first cousin.
            return plain(reading) == plain(relation["relation"]).replace("first cousin", "cousin")
        if reading in self._readings.get(template, ()):
            return True
        asked, read = content(template.replace(BLANK, "")), content(reading)
        beginning = words(template)[0]
        explained = self._explained_words.get(beginning) or set().union(
            *(self._explained_words[word] for word in asked)
        )
        return asked <= read <= asked | explained

    @property
    def graph_templates(self) -> list[str]:
        """What demonstrations have asked by written queries, in their order."""
        return list(self._readings)

    @property
    def operations(self) -> set[str]:
        """The ways in which answers follow in demonstrations."""
        return {frame.operation for frame in self.frames}

    @property
    def searches(self) -> bool:
        """Whether demonstrations search articles for a value to find who has it."""
        return any(stated.searched for stated in self.backward.values())

    @property
    def searches_pages(self) -> bool:
        """Whether demonstrations ask web pages who has a value."""
        return any(stated.templates for stated in self.backward.values())

    def is_known(self, template: str) -> bool:
        """Whether demonstrations ask that, or English knows the relation that it names."""
        relation = relation_of(template)
        return template in self.wordings.templates or kin.is_personal(relation) or kin.is_attribute(relation)

    def thought(self, tool: str, template: str, asked: str, subject: str) -> str:
        """What a demonstration thinks before such a call, about what is asked here."""
        forms = self._thoughts[tool]
        form = forms.get(template) or next(iter(forms.values()), "{asked}")
        return form.replace("{asked}", asked).replace("{subject}", subject)

    def _counting(self, question: str) -> Iterator[QuestionFrame]:
        """Frames behind the beginning of questions that are answered by a number: Which ... -> How many ..."""
        heads = {_question_head(frame) for frame in self.frames if frame.operation == COUNT}
        for head in sorted(filter(None, heads)):
            if question.startswith(f"{head} "):
                for frame in self.frames:
                    if made := make_counting_frame(frame, head, "Which"):
                        yield made

    def _study(self, shown: AnalyzedDemonstration) -> None:
        for ask in shown.asks:
            self.sources.add(ask.source)
            self._page_words.update(*map(words, ask.sentences if ask.source == WEB else ()))
            self._study_ask(shown, ask)
        for search in shown.searches:
            self._study_search(shown, search)
        self._study_queries(shown)
        if shown.asks and not any(ask.values for ask in shown.asks):
            self.unanswered_templates |= {ask.template for ask in shown.asks}
            self.no_answer_text = self.no_answer_text or shown.answer or None

    def _study_ask(self, shown: AnalyzedDemonstration, ask: RecordedLookup) -> None:
        if ask.template.replace(BLANK, ask.subject) == shown.question:
            self.own_words = True
        if ask.reading:
            self._readings[ask.template].add(ask.reading)
            for word in (*content(ask.template.replace(BLANK, "")), words(ask.template)[0]):
                self._explained_words[word] |= content(ask.reading)
        self._study_thoughts(shown, ask)
        self._kinds[ask.template] |= {kind_of(value) for value in ask.values}
        relation = relation_of(ask.template)
        if relation and ask.template.startswith("Who "):
            self._of_people.add(relation)
        for value in ask.values:
            for sentence, results in self._find_telling_sentences(ask, value):
                if relation and RELATION in results.parts:
                    self._relations[ask.source].append(results)
                    continue
                self._patterns[ask.template, ask.source].append(results)
                if relation and results.kind == THING:
                    self._study_narrower(ask, relation, sentence, value)

    def _find_telling_sentences(self, ask: RecordedLookup, value: str) -> list[tuple[str, SentencePattern]]:
        """The sentences that tell the value: those with words of what was asked, else the only one that has it."""
        relation = relation_of(ask.template)
        results = [
            (sentence, pattern)
            for sentence in ask.sentences
            if (pattern := learn_pattern(sentence, ask.subject, value, relation))
        ]
        phrases = (*self.phrases_for(ask.template), *kin.narrower_words(relation))
        speaking = {word for phrase in phrases for word in content(phrase)}
        telling = [entry for entry in results if content(entry[0]) & speaking]
        return telling or (results if len(results) == 1 else [])

    def _study_narrower(self, ask: RecordedLookup, relation: str, sentence: str, value: str) -> None:
        """Take up that a sentence answers with another word than was asked by: the father, of who the parents are."""
        if (word := relation_in(sentence, ask.subject)) and (
            results := learn_pattern(sentence, ask.subject, value, word)
        ):
            self._narrower[relation].setdefault(word)
            self._relations[ask.source].append(results)

    def _study_thoughts(self, shown: AnalyzedDemonstration, ask: RecordedLookup) -> None:
        step = shown.record.steps[ask.step - 1]
        asked = ask.template.replace(BLANK, ask.subject)
        if asked in step.thought:
            form = step.thought[step.thought.rindex(asked) :].replace(asked, "{asked}")
        elif ask.subject in step.thought:
            form = step.thought.replace(ask.subject, "{subject}")
        else:
            return
        if len(names_in(form.replace("{asked}", "").replace("{subject}", ""))) <= 1 and not re.search(r"\d", form):
            self._thoughts[str(step.tool)].setdefault(ask.template, form)

    def _study_search(self, shown: AnalyzedDemonstration, search: RecordedSearch) -> None:
        """Who is a hit of a search by a value, and is spoken of later, has the value."""
        fact = next((fact for fact, value in shown.facts if value == search.value), None)
        if fact is None:
            return
        self.backward[fact].searched = True
        later = shown.text_after(search.step)
        data = shown.record.steps[search.step - 1].data or {}
        self._hits[fact] += [(hit["snippet"], hit["title"], search.value) for hit in data.get("hits", ())]
        for hit in data.get("hits", ()):
            if hit["title"] in later and search.value in hit["snippet"]:
                results = learn_pattern(hit["snippet"], hit["title"], search.value, fact)
                template = self.wordings.template_for(fact, what=True)
                if results and RELATION in results.parts:
                    self._relations[TEXT].append(results)
                elif results:
                    self._patterns[template, TEXT].append(results)

    def _study_queries(self, shown: AnalyzedDemonstration) -> None:
        for fact, value in shown.facts:
            if value not in shown.span_texts:
                continue
            stated = self.backward[fact]
            stated.queries += [query.sparql for query in shown.queries if query.subjects == (value,)]
            asks = [ask for ask in shown.asks if ask.subject == value and ask.source == WEB]
            stated.templates += [ask.template for ask in asks]
            self._study_reversed(fact, value, asks)

    def _study_reversed(self, fact: str, value: str, asks: Iterable[RecordedLookup]) -> None:
        """What a page says to tell who has a value is how pages say it of anybody."""
        template = self.wordings.template_for(fact, what=True)
        stated = [
            (sentence, who) for ask in asks for sentence in ask.sentences for who in ask.values if who in sentence
        ]
        self._patterns[template, WEB] += [
            results for sentence, who in stated if (results := learn_pattern(sentence, who, value, ""))
        ]


def _question_head(frame: QuestionFrame) -> str | None:
    """The words of a question before it speaks of anything: How many, Which."""
    first = frame.parts[0]
    return " ".join(first.split()[:2]) if isinstance(first, str) else None
