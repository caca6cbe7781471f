"""AtomR: a question becomes a tree of atomic operations over sources (Xin et al., KDD 2025).

skills.py  the tree with its checks, operations, conclusions
options.py its options, and those of the paper
agent.py   the reasoner: operations run as soon as what they refer to is answered
"""
