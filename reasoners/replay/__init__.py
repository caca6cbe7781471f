"""Replay: answers a question by following a demonstration, without a model.

derivations     words and values; how an answer follows from observed values
phrases         the phrases of a question that stand for things, and the frame that is left of it
statements      what sentences state of a thing
lookups         look-ups that unite graph, articles and pages
observed        what the steps of a demonstration observed, and what they asked
composition     what demonstrations show for a frame: the paths from things, and the derivation
demonstration   a demonstration as look-ups: what is asked of which subject, and by which calls
alignment       a question against that of a demonstration; confidence by leaving one out
substitution    a demonstration with external tools: its slots, its steps, the places of its answer
counterparts    what stands at these places for another question with its words
calls           the tool calls of a run
agent           the reasoner: composed look-ups, or those of a demonstration with other names
"""
