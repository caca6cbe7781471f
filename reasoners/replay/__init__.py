"""Replay: answers a question by following a demonstration with the question's own names, without a model.

derivations     words and values; how an answer follows from observed values
demonstration   a demonstration as look-ups: what is asked of which subject, and by which calls
alignment       a question against that of a demonstration; confidence by leaving one out
agent           the look-ups with other names, the shape of what they observe, and the reasoner
"""
