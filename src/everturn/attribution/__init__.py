"""Which turn wrote this line, and what was asked for: edits of the archive matched with the history of a repository."""
