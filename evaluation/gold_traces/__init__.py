"""Gold traces: traces of generated questions, made by executing their gold reasoning with the real tools.

demonstrations.py  the gold traces of a world's questions, and a varied selection of them
traces.py          executes the reasoning, one operation after the other, and builds the trace of one question
graph_steps.py, text_steps.py  the lookups of an operation in the graph, and in articles and web pages
attempt.py         the steps of a trace and the thoughts before each call
"""
