"""PDRR: predict, decompose, retrieve, reason (AAAI 2026): a question becomes triples whose unknowns are filled in.

triples.py  triples with numbered unknowns, their checks, and the order in which they can be completed
skills.py   the typed calls: structure, decomposition, relations, answer
agent.py    the reasoner: relations are chosen, entities kept as sets and joined by code
"""
