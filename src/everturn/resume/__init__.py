"""Continue a session elsewhere: handoff to another agent, native sessions, diagnosis and repair."""
