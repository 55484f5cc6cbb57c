"""A conversation with a model that can be closed, compacted, taken up again and is never lost.

Read first: `setting` (what a chat stands on), `conversation` (one live session), `talk` (lines in, answers out). Then

    commands, picking, screen     what is typed, which session is meant, what is seen
    files, contained              the built-in tools, all below the workspace
    summaries, restoration        what a session was about; how the next one is told
    compaction, strategies        going on in a child session; how a session is taken up again, and why that way
    meter, saved, agents          how full the window is; the conversation as Markdown; agents written in Python

Everything said is in the archive before it is acted upon (`everturn.resume`). Nothing here prints, reads the environment
or asks for the time: the surface passes in streams, folders and the clock.
"""
