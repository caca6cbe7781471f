"""Questions over a universe: what they ask, every right answer, and the gold reasoning in every formalism."""
