"""Replay: answers a question by following a demonstration with the question's own names, without a model.

derivations     names, dates and numbers, the words of questions; how an answer follows from observed values
demonstration   a demonstration as look-ups: what is asked of which subject, and by which calls; the names in a question
compiler        from a trace to its look-ups, by the origins of arguments
alignment       a question against that of a demonstration; confidence by leaving one out
follower        the look-ups with other names, and the shape of what they observe
agent           the reasoner
"""
