"""Gold traces: the gold reasoning of generated questions, followed with the real tools on the real sources.

traces.py   a question of a generated world -> a trace, or why there is none
follow.py   one operation of the reasoning after the other, from source to source
graph.py, text.py, web.py   how an operation is looked up in each source
attempt.py  the trace in the making: every call of a tool is a step
thoughts.py what is thought before each call
"""
