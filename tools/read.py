"""The tool read: the sentences of an article or a web page that best answer a question.

Sentences are ranked by the sentence encoder, by word overlap and by their place. If a language model is configured, it
answers the question from the text with quotations, and each quotation is looked up in the text: only white space and
the kind of quotation marks may differ.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence, Set
from dataclasses import asdict, dataclass
from functools import cache
from math import log1p
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field
from tantivy import TextAnalyzer

from showhow.llm.client import ChatClient
from showhow.llm.errors import ChatError
from showhow.llm.prompts import PromptTemplates
from showhow.llm.structured_output import ReplyText, parse_reply, request_json_reply
from showhow.llm.types import Message
from showhow.tools.arguments import Accepts, require_text, require_web
from showhow.tools.tool import EncodeFunction, Observation, ToolContext
from showhow.worlds.embedded.text import strip_parenthesis
from showhow.worlds.source import AmbiguousTitle, Article, WebPage
from showhow.worlds.text_normalization import STOP_WORDS, build_analyzer, replace_surrogates

MIN_QUOTE_LENGTH = 8
"""Minimum letters and digits of a quotation; shorter ones occur in nearly every text."""
_QUOTATION_MARKS = str.maketrans({**dict.fromkeys("“”„‟«»″", '"'), **dict.fromkeys("‘’‚‛`´′", "'")})
_STRIPPED_CHARACTERS = " \t\n\"'"
_SENTENCE_NUMBER = re.compile(r"\A\s*\[\d+\]\s+")
"""The number of a sentence in the prompt; it is not part of the text."""


@dataclass(frozen=True, slots=True)
class Quote:
    """A quotation as worded in the text; `place` is the index of the sentence in which it begins."""

    place: int
    text: str


def find_quote(words: str, sentences: Sequence[str]) -> Quote | None:
    """Look up a quotation in the text; None if it does not occur word for word, or is too short to identify."""
    quoted_words = (
        _SENTENCE_NUMBER.sub("", words.translate(_QUOTATION_MARKS), count=1).strip(_STRIPPED_CHARACTERS).split()
    )
    letters = sum(map(str.isalnum, "".join(quoted_words)))
    if not quoted_words or (
        letters < MIN_QUOTE_LENGTH and quoted_words not in [s.translate(_QUOTATION_MARKS).split() for s in sentences]
    ):
        return None
    text = " ".join(sentences)
    start_boundary = r"(?<!\w)" if _is_cased(quoted_words[0][0]) else ""
    end_boundary = r"(?!\w)" if _is_cased(quoted_words[-1][-1]) else ""
    pattern = start_boundary + r"\s+".join(map(re.escape, quoted_words)) + end_boundary
    # The translation replaces single characters, so that positions in both texts are the same.
    match = re.search(pattern, text.translate(_QUOTATION_MARKS))
    return Quote(_sentence_index(match.start(), sentences), text[match.start() : match.end()]) if match else None


def _is_cased(letter: str) -> bool:
    """Whether the letter's script separates words by spaces, so that quotations begin and end at word boundaries."""
    return letter.isdigit() or letter.lower() != letter.upper()


def _sentence_index(start: int, sentences: Sequence[str]) -> int:
    end = 0
    for index, sentence in enumerate(sentences):
        end += len(sentence) + 1
        if start < end:
            return index
    return len(sentences) - 1


MAX_PROMPT_CHARACTERS = 12_000
"""Maximum characters of the text in a prompt, about 3,000 tokens; of a longer text the best sentences are sent."""
_LEADING_SENTENCES = 3
_MAX_PASSAGE_CHARACTERS = 1_500
_MAX_ANSWER_CHARACTERS = 2_000
_MAX_QUOTES = 20

render_prompt = PromptTemplates("showhow.tools")


def _to_list(value: object) -> object:
    """Accept one quotation without a list, and null for none."""
    return [] if value is None else [value] if isinstance(value, str) else value


class _AnswerReply(BaseModel):
    answer: ReplyText | None
    quotes: Annotated[list[ReplyText], BeforeValidator(_to_list)] = Field(default_factory=list)


@dataclass(frozen=True, slots=True)
class QuotedAnswer:
    """The model's answer; `quotes` are its quotations that are in the text, `invented` those that are not."""

    text: str | None
    """None if the text does not answer the question."""
    quotes: tuple[Quote, ...]
    invented: tuple[str, ...]

    @property
    def supported(self) -> bool:
        """Whether there is an answer whose quotations are all in the text."""
        return self.text is not None and bool(self.quotes) and not self.invented

    def to_json(self) -> dict[str, Any]:
        """Return JSON values for the data of an observation."""
        return {
            "answer": self.text,
            "quotes": [asdict(quote) for quote in self.quotes],
            "invented": list(self.invented),
            "supported": self.supported,
        }


def answer_from_text(
    chat: ChatClient, question: str, text: Article | WebPage, likeliest: Sequence[int]
) -> QuotedAnswer:
    """Ask the model to answer from the text; `likeliest` are indexes of sentences, best first."""
    sentences = text.sentences
    passages = _select_passages(sentences, likeliest)
    prompt = render_prompt(
        "read_question", question=_to_single_line(question), title=_to_single_line(text.title), passages=passages
    )
    messages = [Message("system", render_prompt("read")), Message("user", prompt)]
    reply = request_json_reply(chat, messages, _AnswerReply)
    answer_reply = parse_reply(reply.text, _AnswerReply, chat.name)
    # On one line, so that no part of the answer looks like a numbered sentence of the text.
    answer_text = _to_single_line(answer_reply.answer or "")[:_MAX_ANSWER_CHARACTERS] or None
    quotations = [words for words in dict.fromkeys(answer_reply.quotes) if words.strip()][:_MAX_QUOTES]
    looked_up = [(words, find_quote(words, sentences)) for words in quotations]
    quotes = dict.fromkeys(quote for _, quote in looked_up if quote)
    invented = tuple(words[:_MAX_ANSWER_CHARACTERS] for words, quote in looked_up if not quote)
    return QuotedAnswer(answer_text, tuple(quotes) if answer_text else (), invented)


def _select_passages(sentences: Sequence[str], likeliest: Sequence[int]) -> list[dict[str, Any] | None]:
    """The sentences that fit into the prompt, in their order, with None for each gap."""
    candidates = [*likeliest[:1], *range(min(_LEADING_SENTENCES, len(sentences))), *likeliest, *range(len(sentences))]
    selected: set[int] = set()
    remaining = MAX_PROMPT_CHARACTERS
    for index in dict.fromkeys(candidates):
        remaining -= min(len(sentences[index]), _MAX_PASSAGE_CHARACTERS)
        if remaining < 0:
            break
        selected.add(index)
    passages: list[dict[str, Any] | None] = []
    for index, sentence in enumerate(sentences):
        if index in selected:
            passages.append({"number": index + 1, "text": _to_single_line(sentence)[:_MAX_PASSAGE_CHARACTERS]})
        elif not passages or passages[-1] is not None:
            passages.append(None)
    return passages


def _to_single_line(text: str) -> str:
    """The text on one line, so that no part of it looks like a line of the prompt."""
    return " ".join(text.split())


TOP_SENTENCES = 3
MAX_ENCODED_SENTENCES = 96
"""Sentences of a long article that are encoded; those with the best scores without similarity."""
WORD_WEIGHT, TIME_WEIGHT, LEAD_WEIGHT = 0.8, 0.2, 0.4
"""Weights of word overlap, of a year where the question asks for a time, and of the early sentences of an article,
beside cosine similarity; fitted on one half of the questions of benchmarks/reading.py."""
_BM25_SATURATION, _BM25_LENGTH, _BM25_SCALE = 1.5, 0.75, 5.0
"""k1 and b of BM25, and the score that counts as one half."""
_LONG_SENTENCE_WORDS = 32
_TIME_WORDS = frozenset("when date year day century older younger earlier later".split())
_YEAR = re.compile(r"\b\d{3,4}\b")
_MAX_SENTENCE_CHARACTERS = 600
_URL = re.compile(r"https?://\S+", re.IGNORECASE)


def read(
    context: ToolContext,
    title: Annotated[
        str, "title of an article, as wikisearch gives it, or address of a web page", Accepts("title", "address")
    ],
    question: Annotated[str, "what you want to know from it", Accepts()],
) -> Observation:
    """Read an article or a web page; returns the sentences that best answer the question, with their places in it."""
    page: Article | WebPage
    if _URL.fullmatch(title.strip()):
        page = require_web(context.world, "read").fetch(title, typed=context.by_person)
        metadata = {"title": page.title, "entity": None, "address": page.address, "date": page.date}
    else:
        try:
            page = require_text(context.world, "read").article(title)
        except AmbiguousTitle as ambiguous:
            return _disambiguation_observation(ambiguous)
        metadata = {"title": page.title, "entity": page.entity}
        if page.redirected is not None:
            metadata["redirected"] = page.redirected
    ranked = rank_sentences(page.sentences, question, context.encode, page.title)
    best = sorted(ranked[:TOP_SENTENCES])
    data = {
        **metadata,
        "sentences": list(page.sentences),
        "best": [{"place": index, "text": page.sentences[index], "score": score} for index, score in best],
    }
    answer_line, answer_data = _answer_with_model(context.chat, question, page, [index for index, _ in ranked])
    indexes = sorted({index for index, _ in best} | {quote["place"] for quote in answer_data.get("quotes", ())})
    return Observation(_format_sentences(page, indexes, answer_line), {**data, **answer_data})


def _answer_with_model(
    chat: ChatClient | None, question: str, page: Article | WebPage, likeliest: Sequence[int]
) -> tuple[str | None, dict[str, Any]]:
    """The model's answer as a line and as data; if the model fails, the data contain its error."""
    if chat is None or not page.sentences:
        return None, {}
    try:
        answer = answer_from_text(chat, question, page, likeliest)
    except ChatError as error:
        return None, {"route": "ranking", "why": str(error)}
    return _format_answer(answer), {"route": "model", **answer.to_json()}


def _format_answer(answer: QuotedAnswer) -> str:
    """The answer on one line, with a note on whether the text supports it."""
    if answer.text is None:
        return "The text does not tell the answer."
    if answer.supported:
        numbers = ", ".join(f"[{index + 1}]" for index in sorted({quote.place for quote in answer.quotes}))
        return f"Answer: {answer.text} (quoted from {numbers})"
    if answer.quotes:
        return f"Answer with quotations of which not all stand in the text: {answer.text}"
    return f"Answer that no quotation from the text supports: {answer.text}"


def _disambiguation_observation(ambiguous: AmbiguousTitle) -> Observation:
    """The meanings of an ambiguous title as hits to choose from."""
    lines = [
        f"{number}. {hit.title}: {hit.description or 'not described'}"
        for number, hit in enumerate(ambiguous.choices, 1)
    ]
    hits = [{"title": hit.title, "snippet": hit.description or "", "entity": hit.entity} for hit in ambiguous.choices]
    text = "\n".join([f"{ambiguous.title} has several meanings; read one of these:", *lines])
    return Observation(text, {"title": ambiguous.title, "entity": None, "hits": hits})


def rank_sentences(
    sentences: Sequence[str], question: str, encode: EncodeFunction, title: str = ""
) -> list[tuple[int, float]]:
    """Return (index, score) of the sentences that match the question, best first.

    `title` is that of the article whose sentences these are: its subject does not tell them apart, and its early
    sentences answer most questions. A text with at most TOP_SENTENCES is not encoded.
    """
    question = replace_surrogates(question)
    scores = _score_without_encoder(sentences, question, title)
    likeliest = sorted(range(len(sentences)), key=lambda index: (-scores[index], index))[:MAX_ENCODED_SENTENCES]
    similarities = [0.0] * len(likeliest)
    if len(sentences) > TOP_SENTENCES:
        replace_subject = _subject_replacer(title)
        texts = [question, *(sentences[index][:_MAX_SENTENCE_CHARACTERS] for index in likeliest)]
        rows = encode([replace_subject(text) for text in texts])
        similarities = (rows[1:] @ rows[0]).tolist()
    ranked = [(i, round(scores[i] + similarity, 4)) for i, similarity in zip(likeliest, similarities, strict=True)]
    return sorted(ranked, key=lambda pair: (-pair[1], pair[0]))


def _subject_replacer(title: str) -> Callable[[str], str]:
    """A function that replaces the subject of the article by "it", so that similarity to its name counts nowhere."""
    names = dict.fromkeys(name for name in (title, strip_parenthesis(title)) if name)
    if not names:
        return str
    pattern = re.compile("|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in names))
    return lambda text: pattern.sub("it", text)


def _score_without_encoder(sentences: Sequence[str], question: str, title: str) -> list[float]:
    """The score of each sentence by its words and its place."""
    analyzer, stop_stems = _stemming_analyzer()
    ignored = stop_stems | set(analyzer.analyze(title))
    words = [[word for word in analyzer.analyze(sentence) if word not in ignored] for sentence in sentences]
    overlaps = _score_by_bm25(words, set(analyzer.analyze(question)) - ignored)
    asks_for_time = not _TIME_WORDS.isdisjoint(re.findall(r"\w+", question.casefold()))
    scores = []
    for index, overlap in enumerate(overlaps):
        score = WORD_WEIGHT * overlap / (overlap + _BM25_SCALE)
        if asks_for_time and _YEAR.search(sentences[index]):
            score += TIME_WEIGHT
        if title:
            # A short first sentence such as "Ada Reed was a woman." tells little.
            score += LEAD_WEIGHT * min(1.0, log1p(len(words[index])) / log1p(_LONG_SENTENCE_WORDS)) / (index + 1)
        scores.append(score)
    return scores


@cache
def _stemming_analyzer() -> tuple[TextAnalyzer, frozenset[str]]:
    """An analyzer that stems, with the stems of the stop words."""
    analyzer = build_analyzer(stemmed=True)
    return analyzer, frozenset(stem for word in STOP_WORDS for stem in analyzer.analyze(word))


def _score_by_bm25(texts: Sequence[Sequence[str]], query: Set[str]) -> list[float]:
    """The BM25 score of each text, given as its words, among these texts."""
    counts = [Counter(word for word in text if word in query) for text in texts]
    frequency = Counter(word for count in counts for word in count)
    rarity = {word: log1p((len(texts) - n + 0.5) / (n + 0.5)) for word, n in frequency.items()}
    mean_length = sum(map(len, texts)) / (len(texts) or 1)
    scores = []
    for text, count in zip(texts, counts, strict=True):
        damping = _BM25_SATURATION * (1 - _BM25_LENGTH + _BM25_LENGTH * len(text) / (mean_length or 1))
        scores.append(sum(rarity[word] * n * (_BM25_SATURATION + 1) / (n + damping) for word, n in count.items()))
    return scores


def _format_sentences(page: Article | WebPage, indexes: Sequence[int], answer: str | None = None) -> str:
    if not page.sentences:
        return f"{page.title} is empty."
    lines = [f"[{index + 1}] {_truncate_sentence(page.sentences[index])}" for index in indexes]
    omitted = len(page.sentences) - len(indexes)
    title = f"{page.title} ({page.date})" if page.date else page.title
    if isinstance(page, Article) and page.redirected:
        title = f"{title} (redirected from {page.redirected})"
    answer_lines = [answer] if answer else []
    return "\n".join([f"{title}:", *answer_lines, *lines, *([f"... {omitted} more sentences"] if omitted else [])])


def _truncate_sentence(sentence: str) -> str:
    return (
        sentence
        if len(sentence) <= _MAX_SENTENCE_CHARACTERS
        else f"{sentence[:_MAX_SENTENCE_CHARACTERS]} ... {len(sentence) - _MAX_SENTENCE_CHARACTERS} more characters"
    )
