"""Whether the replies of a run's skills were of any use: a model that writes nonsense has failed, not refused."""

from typing import Any

from showhow.reasoners.skills.skill import Skill, SkillResult
from showhow.reasoners.skills.values import WITHOUT_SUPPORT, AnswersReply


class ReplyTally:
    """Tells whether the replies of a run's skills were of any use."""

    def __init__(self) -> None:
        self._usable: dict[bool, bool] = {}
        """Whether a skill that answers, or another one, had a usable reply."""
        self._error = ""

    def add(self, skill: Skill[Any, Any], result: SkillResult[Any]) -> None:
        """Note a reply, or that there was none."""
        answers = issubclass(skill.reply_type, AnswersReply)
        # An answer that rests on nothing is no nonsense.
        is_usable = result.is_usable or result.error == WITHOUT_SUPPORT
        self._usable[answers] = self._usable.get(answers, False) or is_usable
        self._error = self._error if is_usable else result.error or ""

    @property
    def unusable(self) -> str | None:
        """Why no answering skill, or if none was asked no skill, had a usable reply; None if one had."""
        if not self._usable or self._usable.get(True, self._usable.get(False)):
            return None
        return self._error
