"""The archive as pages in a browser, and the JSON behind them: on this machine only, offline, without a build step.

`app.application` is the ASGI application, `serving.serve` runs it. A page is one file in `pages/`: a plain function of what
was asked (`asking.Asked`) that calls one job and gives a `Page`. `api.OPERATIONS` lists what programs can ask, and the
OpenAPI document is made from that list. `security` decides who is answered at all. Everything shown has its secrets taken
out and is escaped where it is put into a page.
"""
