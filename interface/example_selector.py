"""Selection for LangChain's prompt templates."""

from typing import Any

from langchain_core.example_selectors import BaseExampleSelector

from showhow.interface.demonstrations import Library
from showhow.interface.errors import ShowhowError


class ExampleSelector(BaseExampleSelector):
    """Selects the examples of a FewShotPromptTemplate or FewShotChatMessagePromptTemplate from a library.

    Each example has `question`, `answer` and `trace`, which is the trace as text.

    >>> from langchain_core.prompts import FewShotPromptTemplate, PromptTemplate
    >>> selector = ExampleSelector(library, k=2, escape_braces=True)
    >>> prompt = FewShotPromptTemplate(
    ...     example_selector=selector,
    ...     example_prompt=PromptTemplate.from_template("{trace}"),
    ...     suffix="{question}",
    ...     input_variables=["question"],
    ... )
    >>> prompt.format(question="Where does the Rhine end?").count("Final Answer: ")
    2
    """

    def __init__(
        self,
        library: Library,
        *,
        k: int = 3,
        mode: str = "dpp",
        key: str = "question",
        escape_braces: bool = False,
        **settings: Any,
    ) -> None:
        """`key` is the prompt's variable with the question; k, mode and settings are those of `Library.select`.

        With `escape_braces` braces are doubled, as a FewShotPromptTemplate needs it, which formats examples twice.
        """
        self._library = library
        self._key = key
        self._escape_braces = escape_braces
        self._settings = {"k": k, "mode": mode, **settings}

    def select_examples(self, input_variables: dict[str, str]) -> list[dict[str, Any]]:
        """The examples for the question among the prompt's variables."""
        if self._key not in input_variables:
            raise ShowhowError(f"the prompt has no variable {self._key!r}; name the one with the question as `key`")
        picks = self._library.select(input_variables[self._key], **self._settings)
        examples = [{"question": pick.question, "answer": pick.answer or "", "trace": pick.as_text()} for pick in picks]
        return [{name: self._escape(text) for name, text in example.items()} for example in examples]

    def _escape(self, text: str) -> str:
        return text.replace("{", "{{").replace("}", "}}") if self._escape_braces else text

    def add_example(self, example: dict[str, str]) -> Any:  # noqa: ARG002 - LangChain names it
        """A library is frozen: ShowhowError."""
        raise ShowhowError("a library is frozen: add the trace to a home, and freeze its next version")
