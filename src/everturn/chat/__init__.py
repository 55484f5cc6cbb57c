"""A conversation with a model that can be closed, compacted and resumed, and is never lost.

Read first: `setup` (what a chat is made of), `conversation` (one live session), `program` (lines in, answers out). Then

    screen                        input and output, on a terminal or through pipes
    file_tools                    the built-in tools, all below the workspace
    earlier_sessions              which session is meant, its saved file, and how a new session learns of it
    summaries                     the summary of a session, by a model or from its state
    compaction, resumption        continue in a child session; how a session is resumed, and why that way
    python_agent                  agents written in Python

Every message is in the archive before it is acted upon (`everturn.loop`). Nothing here prints, reads the environment or
the clock: the surface passes in streams, folders and the clock.
"""
