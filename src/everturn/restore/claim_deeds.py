"""What the record shows to have been done: pushes, merges, pull requests, releases, installations, and how checks ended.

A deed is a command or tool call that succeeded. A command whose output reports an error did not. What happened to files is known
from `Ground.touches`, commits from the session state.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from everturn.derive.failures import split_shell
from everturn.derive.open_failures import CheckResult, judge_checks
from everturn.model.archive import Call
from everturn.model.conversation import CallStart
from everturn.restore.grounds import Ground

_MAX_CHARS = 20_000

_LEAD = r"^[\s({!]*(?:(?:sudo|time|env|command|then|do|else)\s+|\w+=\S*\s+)*"
_GIT = r"git(?:\s+-[cC]\s+\S+|\s+--?[\w-]+(?:=\S+)?)*\s+"
_PACKAGES = r"(?:pip3?|uv(?:\s+pip)?|python3?\s+-m\s+pip|npm|pnpm|yarn|bun|apt(?:-get)?|brew|cargo|gem|go|poetry|conda|dnf|yum|apk|pacman|composer|dotnet|winget|choco)"
#: The commands that do each thing.
_COMMANDS: dict[str, re.Pattern[str]] = {
    kind: re.compile(_LEAD + pattern)
    for kind, pattern in {
        "push": rf"(?:{_GIT}push\b(?!.*(?:--dry-run|--delete|\s-d\b))|(?:jj|sl|hg)\s+(?:git\s+)?push\b)",
        "merge": rf"(?:{_GIT}merge\b(?!-)(?!.*--(?:abort|quit))|(?:gh|glab|hub)\s+(?:pr|mr)\s+merge\b|{_GIT}pull\b)",
        "pr": r"(?:(?:gh|glab)\s+(?:pr|mr)\s+(?:create|new)\b|hub\s+pull-request\b|az\s+repos\s+pr\s+create\b|tea\s+pulls?\s+create\b)",
        "tag": rf"(?:{_GIT}tag\s+(?!-[ldv]\b|--(?:list|delete|verify|contains|sort))\S|gh\s+release\s+create\b|npm\s+version\b)",
        "release": r"(?:(?:gh|glab)\s+release\s+create\b|(?:npm|pnpm|yarn|bun|cargo|poetry|uv|flutter|dart\s+pub)\s+(?:npm\s+)?publish\b|(?:python3?\s+-m\s+)?twine\s+upload\b"
        r"|gem\s+push\b|docker\s+push\b|goreleaser\b|(?:npx\s+)?semantic-release\b|(?:make|just|npm run|pnpm|yarn)\s+\S*(?:release|publish)\S*|\S*(?:release|publish)\S*\.(?:sh|py|js)\b)",
        "deploy": r"(?:kubectl\s+(?:apply|rollout|set\s+image)\b|helm\s+(?:install|upgrade)\b|(?:terraform|tofu|pulumi)\s+(?:apply|up)\b|vercel\b|netlify\s+deploy\b|fly(?:ctl)?\s+deploy\b"
        r"|(?:gcloud|aws|az|serverless|sls|cdk|firebase|wrangler|railway|eb|cap|amplify)\b.*\b(?:deploy|publish|sync|up)\b|ansible-playbook\b|git\s+push\s+(?:heroku|dokku)\b"
        r"|(?:make|just|npm run|pnpm(?: run)?|yarn|bash|sh|python3?|invoke|fab|mage|task)\s+\S*deploy\S*|\S*deploy\S*(?:\.(?:sh|py|js))?(?:\s|$)|docker(?:-|\s)compose\s+(?:.*\s)?up\b)",
        "install": rf"{_PACKAGES}\s+(?:install|add|i|ci|sync|get|require|reinstall)\b",
        "rename": rf"(?:{_GIT})?mv\s",
        "delete": rf"(?:(?:{_GIT})?rm\s|rmdir\s|unlink\s|{_GIT}(?:branch|tag)\s+(?:-[dD]|--delete)\b|{_GIT}push\b.*--delete\b|docker\s+(?:rmi?|volume\s+rm)\b|dropdb\s"
        r"|(?:npm|pnpm|yarn|bun|pip3?|uv|poetry|cargo|apt(?:-get)?|brew)\s+(?:uninstall|remove|rm|purge)\b|kubectl\s+delete\b)",
        "revert": rf"{_GIT}(?:revert|reset|restore|checkout\s+--)\b",
    }.items()
}  # fmt: skip
_TOOLS = {
    "pr": re.compile(r"create_?(?:pull|merge)_?request|pull_request_create|open_?pr", re.I),
    "merge": re.compile(r"merge_?(?:pull|merge)?_?(?:request|branch|pr)", re.I),
    "push": re.compile(r"push_?files|git_?push|create_or_update_file", re.I),
    "release": re.compile(r"create_?release|publish_?package", re.I),
    "deploy": re.compile(r"deploy", re.I),
    "tag": re.compile(r"(?:create|git)_?tag", re.I),
}
_REFUSED = re.compile(
    r"^\s*(?:!\s*\[(?:remote )?rejected\]|error:|fatal:|remote: (?:error|fatal)|CONFLICT\b|Automatic merge failed|npm ERR!|HTTP [45]\d\d"
    r"|pull request create failed|GraphQL:|Error:|ERROR:)|\[rejected\]|Permission denied|command not found",
    re.MULTILINE,
)


class RecordedDeed(Struct, frozen=True):
    """A command or call that did something, and what it printed."""

    kind: str
    text: str
    turn: int
    seq: int


class RecordedCheck(Struct, frozen=True):
    """How a test, build or other check ended."""

    result: CheckResult
    command: str
    turn: int
    seq: int

    @property
    def passed(self) -> bool:
        return self.result.verdict == "passed"


class Deeds:
    """All deeds of a session, in order. Reads its calls once."""

    def __init__(self, ground: Ground) -> None:
        self.done: list[RecordedDeed] = []
        self.checks: list[RecordedCheck] = []
        for call, start, output in ground.calls():
            self.done += _call_deeds(call, start, output)
            checks = judge_checks(call, start, output, ground.state.workspace)
            self.checks += [RecordedCheck(one, start.command, call.turn, call.seq) for one in checks]

    def of(self, kind: str) -> list[RecordedDeed]:
        return [one for one in self.done if one.kind == kind]


def _call_deeds(call: Call, start: CallStart, output: str) -> Iterator[RecordedDeed]:
    if call.status != "ok" or call.exit_status:
        return
    shown = output[:_MAX_CHARS]
    if start.kind == "shell" and start.command:
        kinds = list(_command_kinds(start.command[:_MAX_CHARS]))
        if kinds and _REFUSED.search(shown):
            return
        yield from (RecordedDeed(kind, f"{text}\n{shown}", call.turn, call.seq) for kind, text in kinds)
        return
    words = str(start.input)[:_MAX_CHARS]
    for kind, pattern in _TOOLS.items():
        if pattern.search(start.name):
            yield RecordedDeed(kind, f"{words}\n{shown}", call.turn, call.seq)


def _command_kinds(command: str) -> Iterator[tuple[str, str]]:
    for simple, _ in split_shell(command):
        for kind, pattern in _COMMANDS.items():
            if pattern.search(simple):
                yield kind, simple
