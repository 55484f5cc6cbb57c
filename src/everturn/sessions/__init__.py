"""Which session is meant, and what was said in it. Nothing here writes, except marks."""
