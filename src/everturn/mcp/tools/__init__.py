"""The MCP tools, one file each: a module here with a `TOOL` in it is offered."""
