"""Gold traces: traces of generated questions, made by executing their gold reasoning with the real tools.

traces.py   executes the reasoning, one operation after the other, and builds the trace of one question
lookups.py  the lookups of an operation in the graph, in articles and in web pages
attempt.py  the steps of a trace and the thoughts before each call
"""
