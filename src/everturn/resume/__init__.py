"""Continue a session elsewhere: handoff to another agent, native sessions, diagnosis and repair."""


def __getattr__(name: str) -> object:
    """Find names that were documented here before `loop` and `evaluation` became packages of their own."""
    from everturn.deprecations import moved_name

    return moved_name("resume", name)
