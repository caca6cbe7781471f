"""A question answered by the language model from one text, with quotations that are looked up in it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field

from tools.chat import Chat, Message
from tools.json_reply import Words, read_reply
from tools.prompt import Prompts
from tools.quotes import Quote, find_quote
from worlds.source import Article, Page

MOST_CHARACTERS = 12_000
"""Of the text that goes to the model, which is some 3,000 tokens; a longer one goes by its likeliest sentences."""
_INTRODUCTION = 3
_MOST_OF_ONE = 1_500
_LONGEST_ANSWER = 2_000
_MOST_QUOTES = 20

prompt = Prompts("tools")


def _listed(value: object) -> object:
    """One quotation without a list around it, or none at all."""
    return [] if value is None else [value] if isinstance(value, str) else value


class _Reply(BaseModel):
    answer: Words | None
    quotes: Annotated[list[Words], BeforeValidator(_listed)] = Field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model says; `quotes` are those of its quotations that stand in the text, `invented` the others."""

    text: str | None
    """None where the text does not tell it."""
    quotes: tuple[Quote, ...]
    invented: tuple[str, ...]

    @property
    def supported(self) -> bool:
        """Whether there is an answer, and every quotation for it stands in the text."""
        return self.text is not None and bool(self.quotes) and not self.invented

    def to_json(self) -> dict[str, Any]:
        """As an observation keeps it."""
        return {
            "answer": self.text,
            "quotes": [asdict(quote) for quote in self.quotes],
            "invented": list(self.invented),
            "supported": self.supported,
        }


def answer_from(chat: Chat, question: str, text: Article | Page, likeliest: Sequence[int]) -> Answer:
    """The model's answer from one text, `likeliest` being places in it, best first; a ChatError where there is none."""
    sentences = text.sentences
    passages = _passages(sentences, likeliest)
    asked = prompt("read_question", question=_line(question), title=_line(text.title), passages=passages)
    reply = chat.ask([Message("system", prompt("read")), Message("user", asked)])
    found = read_reply(reply.text, _Reply, chat.name)
    # In one line, so that nothing in it can pass for a sentence of the text.
    said = _line(found.answer or "")[:_LONGEST_ANSWER] or None
    given = [words for words in dict.fromkeys(found.quotes) if words.strip()][:_MOST_QUOTES]
    looked_up = [(words, find_quote(words, sentences)) for words in given]
    quotes = dict.fromkeys(quote for _, quote in looked_up if quote)
    invented = tuple(words[:_LONGEST_ANSWER] for words, quote in looked_up if not quote)
    return Answer(said, tuple(quotes) if said else (), invented)


def _passages(sentences: Sequence[str], likeliest: Sequence[int]) -> list[dict[str, Any] | None]:
    """The sentences that fit the measure, in their order, with None for each gap."""
    wanted = [*likeliest[:1], *range(min(_INTRODUCTION, len(sentences))), *likeliest, *range(len(sentences))]
    kept: set[int] = set()
    room = MOST_CHARACTERS
    for place in dict.fromkeys(wanted):
        room -= min(len(sentences[place]), _MOST_OF_ONE)
        if room < 0:
            break
        kept.add(place)
    passages: list[dict[str, Any] | None] = []
    for place, sentence in enumerate(sentences):
        if place in kept:
            passages.append({"number": place + 1, "text": _line(sentence)[:_MOST_OF_ONE]})
        elif not passages or passages[-1] is not None:
            passages.append(None)
    return passages


def _line(text: str) -> str:
    """In one line, so that no text can pass for a line of the prompt."""
    return " ".join(text.split())
