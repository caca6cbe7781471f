"""Skills: typed calls of a model, or of whatever answers in its place.

skill.py            Skill, SkillCall and SkillResult; asks again with the validator's sentence, then falls back;
                    ModelResponder, a language model behind skills
values.py           the values that skills exchange: answers, passages, rows; the final answer with its citations
named_things.py     which values are one thing, of which some have no id
set_operations.py   answers that follow from earlier answers: counts, comparisons, intersections
"""
