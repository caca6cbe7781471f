"""Shots of any skill: answered requests of other questions, chosen for each request and shown before it.

A pool has the finished calls of one skill in a library's traces, or those that come with Showhow where a library has
none: calls of gold traces of a world that nobody is asked about. Of a pool, the determinantal point process that
chooses demonstrations takes those whose requests are near, and whose forms differ.
"""

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, get_args, get_origin
from uuid import UUID

import numpy as np
from pydantic import BaseModel, ValidationError

from showhow.fewshot_library.encoder import load_or_encode
from showhow.fewshot_library.library import SAME_QUESTION_COSINE, TextEncoder
from showhow.fewshot_library.selection import CandidatePool, SelectionConfig, select_demonstrations
from showhow.fewshot_library.sequence_similarity import encode_actions
from showhow.llm.profiles import DEFAULT_CONTEXT_WINDOW
from showhow.llm.types import ModelProfile
from showhow.reasoners.humaniq.options import DEFAULT_REPLY_TOKENS
from showhow.reasoners.prompting.run_state import count_message_tokens
from showhow.reasoners.skills.skill import Shot, Skill, SkillCall, build_skill_messages

MAX_POOL = 300
"""Calls of a skill that are chosen from, the first of a library: to encode one takes about 15 ms, once a version."""
BUNDLED_SHOTS = "shots.jsonl"
"""One call a line, written by evaluation/scoring/bundled_shots.py."""
_DESCRIBED_CHARACTERS = 200
"""A request says first what is asked; what was retrieved follows, and says less about how it is answered."""
_COMPARED_ITEMS = 3
"""The items of a list whose form is compared."""
_COMPARED_PARTS = 60
_REJECTED_TOKENS = 512


class ShotPool:
    """The answered requests of one skill, with the embeddings of the requests; built once for many selections."""

    def __init__(
        self, skill: Skill[Any, Any], shots: Sequence[Shot[Any, Any]], encode: TextEncoder, file: Path | None = None
    ) -> None:
        """The embeddings are read from `file`, if it has them, and written to it."""
        # Several samples of one request are one shot.
        distinct = {shot.request.model_dump_json(): shot for shot in reversed(shots)}
        self.shots = list(reversed(distinct.values()))[:MAX_POOL]
        self._encode = encode
        texts = [describe_request(shot.request) for shot in self.shots]
        rows = encode(texts) if file is None else load_or_encode(file, encode.name, texts, encode)
        self._pool = CandidatePool(rows, encode_actions([list_form(skill, shot) for shot in self.shots]))
        self._skill = skill
        self._instructions = [write_instructions(skill, shot.request) for shot in self.shots]

    def choose(self, request: BaseModel, count: int, left_out: Collection[UUID] = ()) -> tuple[Shot[Any, Any], ...]:
        """At most `count` shots with the request's instructions; none is of these traces, and none asks the same."""
        if not self.shots:
            return ()
        row = self._encode([describe_request(request)])[0]
        same = set(np.flatnonzero(self._pool.embeddings @ row > SAME_QUESTION_COSINE).tolist())
        instructions = write_instructions(self._skill, request)
        hidden = same | {
            item
            for item, shot in enumerate(self.shots)
            if shot.trace_id in left_out or self._instructions[item] != instructions
        }
        config = SelectionConfig(k=min(count, len(self.shots) - len(hidden)), left_out=frozenset(hidden))
        return tuple(self.shots[pick.item] for pick in select_demonstrations(self._pool, row, config).picks)


def write_instructions(skill: Skill[Any, Any], request: BaseModel) -> str:
    """The instructions of a request; a skill may have several, as its options say."""
    return build_skill_messages(SkillCall(skill, request, ""))[0].text


def describe_request(request: BaseModel) -> str:
    """The beginning of a request's texts, by which requests are compared."""
    return " ".join(_list_texts(request.model_dump(mode="json", exclude_none=True)))[:_DESCRIBED_CHARACTERS]


def _list_texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _list_texts(item)


def list_form(skill: Skill[Any, Any], shot: Shot[Any, Any]) -> list[str]:
    """The form of a plan, or the parts that the request and the reply have, without their texts."""
    if skill.shape is not None:
        return list(skill.shape(shot.reply))
    return [part for model in (shot.request, shot.reply) for part in _list_parts(model)][:_COMPARED_PARTS]


def _list_parts(model: BaseModel) -> Iterator[str]:
    for name, field in type(model).model_fields.items():
        value, types = getattr(model, name), (field.annotation, *get_args(field.annotation))
        is_choice = isinstance(value, bool) or any(get_origin(type_) is Literal for type_ in types)
        if is_choice:
            yield f"{name}={value}"
        elif isinstance(value, list | tuple):
            for item in value[:_COMPARED_ITEMS]:
                yield name
                if isinstance(item, BaseModel):
                    yield from _list_parts(item)
        elif isinstance(value, BaseModel):
            yield from _list_parts(value)
        elif value not in (None, "", {}):
            yield name


@dataclass(frozen=True, slots=True)
class BundledShot:
    """A line of the bundled shots."""

    skill: str
    request: Any
    reply: Any


@cache
def _read_bundled() -> tuple[BundledShot, ...]:
    text = files(__package__).joinpath(BUNDLED_SHOTS).read_text(encoding="utf-8")
    return tuple(BundledShot(**json.loads(line)) for line in text.splitlines())


def load_bundled_shots(skill: Skill[Any, Any]) -> list[Shot[Any, Any]]:
    """The calls of a skill that come with Showhow; without those that the skill does not accept any more."""
    shots = []
    for entry in _read_bundled():
        if entry.skill == skill.name:
            try:
                shot = Shot(
                    skill.request_type.model_validate(entry.request), skill.reply_type.model_validate(entry.reply)
                )
            except ValidationError:
                continue
            if skill.check(shot.request, shot.reply) is None:
                shots.append(shot)
    return shots


def fit_shots(call: SkillCall[Any, Any], profile: ModelProfile) -> SkillCall[Any, Any]:
    """The call with those of its shots, the first ones first, that the context window has room for.

    Beside them it has room for the request, the reply, and a reply that is not usable and is shown to be written anew.
    """
    window = profile.context_window or DEFAULT_CONTEXT_WINDOW
    reply = min(profile.reply_limit or DEFAULT_REPLY_TOKENS, window // 4)
    room = window - reply - min(reply, _REJECTED_TOKENS)
    fitted = replace(call, shots=())
    for shot in call.shots:
        longer = replace(fitted, shots=(*fitted.shots, shot))
        fitted = longer if count_message_tokens(build_skill_messages(longer)) <= room else fitted
    return fitted
