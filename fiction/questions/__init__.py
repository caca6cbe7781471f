"""Questions over a universe: what they ask, every right answer, and the gold reasoning in every formalism.

From what is asked to a line of questions.jsonl:
    expressions   what a question asks, as a tree        evaluate     its answers
    kinds         all templates: grammar, compositions, groups, pairs, unanswerable; each draws with a walk
    sampler       the questions of a world, in words (wording, names), with what is counted (difficulty)
    needs         which sources derive the answers       sparql       the query that gives them
    reasoning     the steps to the answers, and from it atoms, triples and subquestions
    question      a question with all of this; question_file reads those of a world
"""
