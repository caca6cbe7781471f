"""Whether a world says what is true in its universe: every answer, article and triple derived once more."""
