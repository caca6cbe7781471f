"""Where the arguments of an action came from, so that a trace can be followed on another question.

An origin is a JSON object in one of four forms:

    {"from": "question", "start": 23, "end": 37}          a span of the question's text
    {"from": "step", "step": 2, "pointer": "/hits/0/title"}  a value in the data of step 2 (JSON Pointer, RFC 6901)
    {"from": "typed"}                                      the person's head
    {"from": "parts", "parts": [{"start": 0, "end": 8, "origin": {...}}, ...]}
        a text whose spans have origins, or, with "item" in place of the span, a list whose items have
"""
