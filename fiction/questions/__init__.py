"""Questions over a universe, with all correct answers and gold reasoning in several formalisms.

expressions    the expression tree of a question           evaluate      its answers
templates      all templates (with added_templates), which draw with random walks (walk), and the sample of a world
wording        the English text of questions               names         names and ids
question       a question with its gold parts, its difficulty, and the sources that it needs
reasoning      the reasoning steps; decomposition writes them as atomic tree, triples and sub-questions
sparql         the gold query
question_file  reads the questions of a world
"""
