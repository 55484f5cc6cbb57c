"""Ways out of the archive: identical bytes, one JSON document per session, a page to read as Markdown or HTML.

`original.raw_bytes` returns the bytes of a version as they were captured, never redacted; callers say so.
`json_document.as_json`, `markdown.as_markdown` and `page.standalone.as_html` take `clean`, which removes secrets from
their output. All are iterators: memory does not grow with the session.
"""
