"""Selection for LangChain's prompt templates."""

from typing import Any

from langchain_core.example_selectors import BaseExampleSelector

from showhow.demonstrations import Library
from showhow.errors import ShowhowError


class ExampleSelector(BaseExampleSelector):
    """Selects the examples of a FewShotPromptTemplate or FewShotChatMessagePromptTemplate from a library.

    Each example has `question`, `answer` and `trace`, which is the trace as text.

    >>> from langchain_core.prompts import FewShotPromptTemplate, PromptTemplate
    >>> selector = ExampleSelector(library, k=2)
    >>> prompt = FewShotPromptTemplate(
    ...     example_selector=selector,
    ...     example_prompt=PromptTemplate.from_template("{question} {answer}"),
    ...     suffix="{question}",
    ...     input_variables=["question"],
    ... )
    >>> prompt.format(question="Where does the Rhine end?").count("?")
    3
    """

    def __init__(
        self, library: Library, *, k: int = 3, mode: str = "dpp", key: str = "question", **settings: Any
    ) -> None:
        """`key` is the prompt's variable with the question; the others are those of `Library.select`."""
        self._library = library
        self._key = key
        self._settings = {"k": k, "mode": mode, **settings}

    def select_examples(self, input_variables: dict[str, str]) -> list[dict[str, Any]]:
        """The examples for the question among the prompt's variables."""
        if self._key not in input_variables:
            raise ShowhowError(f"the prompt has no variable {self._key!r}; name the one with the question as `key`")
        picks = self._library.select(input_variables[self._key], **self._settings)
        return [{"question": pick.question, "answer": pick.answer or "", "trace": pick.as_text()} for pick in picks]

    def add_example(self, example: dict[str, str]) -> Any:  # noqa: ARG002 - LangChain names it
        """A library is frozen: ShowhowError."""
        raise ShowhowError("a library is frozen: add the trace to a home, and freeze its next version")
