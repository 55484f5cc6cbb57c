"""A session as HTML: the parts that the standalone file and the web pages share.

Pure functions from the model to markup. `turn_html` draws one turn, `head_html` the facts of a session, `draw_minimap` a
picture of all its turns, `list_turns` a list of them. `markdown_html`, `diff_html` and `show_text` draw single texts.
`STYLE` and `SCRIPT` are the style sheet and the few keys. `PageLook` says what is shown, how much of it, and where links
lead. `standalone.as_html` writes it all into one file.

Text of a transcript stays text: no script, style, address or element of it reaches the page. Characters that hide or
reorder text are made visible. Links lead to the web or to mail, and nothing is loaded from anywhere. There are no `style`
attributes and no inline handlers, so that a page can forbid both.
"""
