"""The archive as pages in a browser, and the JSON API behind them: on this machine only, offline, without a build step.

A page is one file in `pages/`: a plain function that takes a `WebRequest`, calls one job and returns a `PageReply`.
`addresses` lists the pages and operations, `security` decides which requests are answered. Everything shown is masked.
"""
