"""GEEK: gradual excavation (Liu et al., EMNLP 2023 Findings): sub-questions, pseudo-answers, facts, a vote over lanes.

options.py  the options, and those of the paper
skills.py  the typed calls: next action, decomposition, retrieval or not, extraction, conclusion
agent.py   the reasoner: rounds in a lane, lanes at the same time, majority
"""
