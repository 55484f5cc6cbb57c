"""Ways out of the archive: the identical bytes, one JSON document per session, a page to read as Markdown or HTML.

`verbatim.raw` gives the bytes of a version back as they were captured; it is never redacted and callers say so.
`document.as_json`, `markdown.as_markdown` and `page.selfcontained.as_html` take `clean`, which takes secrets out of what
they write. All of them are iterators: memory does not grow with the session.
"""
