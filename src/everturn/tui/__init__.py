"""The archive on a full screen: `everturn browse`.

A list of sessions, a session turn by turn, a search, a document: each is a `Feed` that reads pages of items when they come
into view, shown by one widget (`feed.FeedWidget`) that holds a few pages at a time. So the first screen costs one page,
whatever the size of the archive, and the end of a long session is reached without reading its middle.

All text goes through `ScreenArchive.text` or `line`: secrets are masked unless `--reveal`, and nothing in it controls the
terminal. The archive is read in a thread of its own and never written. Colours are the sixteen of the terminal, so light
and dark are as the user has them.
"""
