"""Skills: typed calls of a model, or of whatever answers in its place.

skill.py            Skill, SkillCall and SkillResult; asks again with the validator's sentence, then falls back
model_responder.py  a language model behind skills
values.py           the values that skills exchange: answers, passages, rows
conclusion.py       the final answer with its citations and the source that it rests on
set_operations.py   answers that follow from earlier answers: counts, comparisons, intersections
"""
