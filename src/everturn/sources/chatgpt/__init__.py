"""ChatGPT: the data export, `conversations.json` by itself or inside the zip file that the service sends."""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_import, named_folders, no_workspace

SOURCE = Source(
    name="chatgpt",
    title="ChatGPT export",
    parser=1,
    roots=named_folders("chatgpt"),
    find=lazy_import("everturn.sources.chatgpt.reader:find"),
    sniff=lazy_import("everturn.sources.chatgpt.reader:sniff"),
    reader=lazy_import("everturn.sources.chatgpt.reader:reader"),
    view=lazy_import("everturn.sources.chatgpt.reader:view"),
    workspace=no_workspace,
    unpack=lazy_import("everturn.sources.chatgpt.reader:unpack"),
    option="chatgpt-dir",
)
