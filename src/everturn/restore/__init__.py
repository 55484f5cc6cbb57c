"""What happened in a session, with evidence for every statement. `job` is the one path of all surfaces."""

from everturn.restore.document import Document, Statement

__all__ = ["Document", "Statement"]
