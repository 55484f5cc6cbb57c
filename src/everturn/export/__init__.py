"""Ways out of the archive: the identical bytes, one JSON document per session, a readable page.

`verbatim.raw` gives the bytes of a version back as they were captured; it is never redacted and callers say so.
`document.as_json` and `markdown.as_markdown` take `clean`, which takes secrets out of what they write. All of them are
iterators: memory does not grow with the session.
"""
