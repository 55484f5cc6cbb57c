"""A session as HTML: the parts that the standalone file and the web pages share.

Text of a transcript stays text: no script, style, address or element of it reaches the page. Characters that hide or
reorder text are made visible. Links lead to the web or to mail, and nothing is loaded from anywhere. There are no `style`
attributes and no inline handlers, so that a page can forbid both.
"""
