"""Replay: answers a question by following a demonstration with the question's own names, without a model.

values          names, dates and numbers, and the words of questions
derivations     how an answer follows from observed values: a closed set
demonstration   a demonstration as look-ups: what is asked of which subject, and by which calls
compiler        from a trace to its look-ups, by the origins of arguments
masking         the names in a question
alignment       a question against that of a demonstration; confidence by leaving one out
follower        the look-ups with other names, and the shape of what they observe
agent           the reasoner
"""
