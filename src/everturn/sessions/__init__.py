"""Find a session, and read its messages, turns, lineage and state. Nothing here writes, except marks and the redaction key."""
