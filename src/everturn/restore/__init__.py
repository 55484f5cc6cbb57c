"""Restore a session: a document of what happened, with evidence for every statement. `job` is the path of all surfaces."""

from everturn.restore.document import Document, Statement

__all__ = ["Document", "Statement"]
