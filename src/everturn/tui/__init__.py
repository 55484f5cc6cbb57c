"""The archive on a full screen: `everturn browse`.

Each screen is a `Feed` that reads pages of items when they come into view, shown by one widget that holds a few pages at
a time. So the first screen costs one page, whatever the size of the archive. All text goes through `ScreenArchive.text`
or `line`. The archive is read in a thread of its own and never written. Colours are the sixteen of the terminal.
"""
