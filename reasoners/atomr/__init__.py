"""AtomR: a question becomes a tree of atomic operations over sources (Xin et al., KDD 2025).

plan.py   the tree: its form, its checks and its skill
agent.py  the reasoner: operations run as soon as what they refer to is answered
"""
