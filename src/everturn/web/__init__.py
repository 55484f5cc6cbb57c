"""The archive as pages in a browser, and the JSON API behind them: on this machine only, offline, without a build step.

`app.application` is the ASGI application, `app.serve_site` runs it. A page is one file in `pages/`: a plain function that
takes a `WebRequest`, calls one job and returns a `PageReply`. `addresses` lists the pages and the operations of the API; the
OpenAPI document is made from that list. `security` decides which requests are answered. Everything shown is masked, and
escaped where it is put into a page.
"""
