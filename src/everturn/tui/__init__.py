"""The archive on a whole screen: `everturn browse`.

A list of sessions, a session turn by turn, a search, a document: each is a `Feed` that gives pages of items when they are
looked at, shown by one widget (`pages.Pages`) that holds a few of them at a time. So the first screen costs one page,
whatever the size of the archive, and the end of a long session is reached without reading its middle.

What is shown has gone through `Archive.text` first: secrets masked unless `--reveal`, nothing in it that a terminal acts on.
The archive is read in a thread of its own (`archive.Archive`) and never written. Colours are the sixteen of the terminal, so
light and dark are as the user has them.
"""
