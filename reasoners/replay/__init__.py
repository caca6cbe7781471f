"""Replay: answers a question by re-running the actions of demonstrations with new arguments, without a model.

Learning from demonstrations:
    recorded_lookups    the lookups of one demonstration, and question templates by relation
    question_patterns   the question pattern of a demonstration, its operation, and its fit to another question
    sentence_patterns   patterns of sentences that state a value
    knowledge           what several demonstrations show together
English:
    english             inflections, opposites, names, dates; noun phrases: the friend of the daughter of Ada Lund
Answering a question:
    agent               the reasoner: from the fitted pattern to the answer
    source_lookups      looks up values in all sources, and in the graph
    text_lookups        lookups in articles and web pages; from names to entities, and the state that lookups share
    sentence_reader     extracts values from sentences
    session             the steps of the run, with the origins of their arguments, and the entities and values found
"""
