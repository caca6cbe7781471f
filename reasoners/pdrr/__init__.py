"""PDRR: predict, decompose, retrieve, reason (AAAI 2026): a question becomes triples whose unknowns are filled in.

triples.py  triples with numbered unknowns, their checks, and the order in which they can be completed
options.py  the options, and those of the paper
skills.py   the typed calls: structure, decomposition, relations, pruning, best chain, answer
facts.py    finds the facts that complete a triple, in the graph or in texts
agent.py    the reasoner: facts are kept as sets that code joins, in chains that branch, or in a beam
"""
