"""Verification of a world: every answer, article and triple is derived again from its universe and compared."""
