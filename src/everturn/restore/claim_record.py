"""Hold the acts of a statement against the record: what was done to a file, which commands succeeded, how checks ended.

An act is confirmed by a successful call that did it, or by a person who says that they did it. A statement that denies an act is
contradicted by such a call. An act that could leave no trace in the record is not judged.

What the record shows to have been done: pushes, merges, pull requests, releases, installations, and how checks ended.

A deed is a command or tool call that succeeded. A command whose output reports an error did not. What happened to files is known
from `Ground.touches`, commits from the session state.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from weakref import WeakKeyDictionary, proxy

from msgspec import Struct

from everturn.derive.call_results import CheckResult, judge_checks
from everturn.derive.failures import split_shell
from everturn.derive.file_book import UNRECORDED
from everturn.derive.session_state import SessionState, unresolved_failures
from everturn.derive.version_control import CommitState
from everturn.model.archive import Call
from everturn.model.conversation import CallStart
from everturn.restore.claim_acts import ClaimedAct, find_acts, hide_acts
from everturn.restore.claim_polarity import split_sentences
from everturn.restore.evidence import normalise_quotes, quote_short
from everturn.restore.grounds import Ground, all_stems, same_file, stems

#: What is said of an act that no call did.
_DEEDS = {
    "push": "push", "merge": "merge", "pr": "pull request", "tag": "tag", "release": "release", "deploy": "deployment",
    "install": "installation",
}  # fmt: skip
_RECORDS: WeakKeyDictionary[Ground, ActRecord] = WeakKeyDictionary()
_ON_FILES = ("delete", "create", "edit", "rename")
_TARGET = re.compile(r"\b(?:to|into|onto|auf|nach|sur|vers|a|en)\s+(?:the\s+)?[`'\"]?([\w./-]*\w)", re.I)
_BRANCH = re.compile(r"main|master|develop|trunk|release\S*|[\w.-]+/[\w./-]+", re.I)
_TESTS = re.compile(r"\b(?:tests?|specs?|pruebas|testes)\b|テスト|测试|테스트", re.I)
_KINDS = (("lint", re.compile(r"\blint|\bruff\b|\beslint\b", re.I)), ("types", re.compile(r"\btype|\bmypy\b|\btsc\b", re.I)),
          ("build", re.compile(r"\bbuild|\bcompil|ビルド|构建", re.I)))  # fmt: skip
_LEAST_LIKENESS = 0.6
_LEAST_REMOVED = 0.5  # share of the words of a removal that a sentence about one must have
_MAX_CHARS = 20_000


def act_record(ground: Ground) -> ActRecord:
    """Return the record of a ground. It is read once."""
    if ground not in _RECORDS:
        _RECORDS[ground] = ActRecord(ground)
    return _RECORDS[ground]


def _recorded(state: SessionState) -> list[CommitState]:
    """Return the commits that the record shows to be made, not one that the session only began."""
    return [one for one in state.commits if one.by != UNRECORDED]


def record_counts(ground: Ground) -> frozenset[int]:
    """Return the numbers that can be computed from the record: of files by what was done to them, commits and turns."""
    state = ground.state
    actions = [one.action for one in state.files.values()]
    return frozenset({
        len(_recorded(state)), state.turn_count, sum(one != "read" for one in actions), *(actions.count(one) for one in set(actions)),
    })  # fmt: skip


class ActRecord:
    """The record of one session, for checks of acts."""

    def __init__(self, ground: Ground) -> None:
        self.ground = proxy(ground)
        self.deeds = Deeds(ground)

    def find_faults(
        self, acts: list[ClaimedAct], turns: list[int], at_end: bool, foreign: bool = False
    ) -> Iterator[str]:
        """Yield what the record does not show, or shows otherwise: at the end, or when the cited turns were over."""
        verdicts = {act.kind for act in acts if not act.denied} & {"pass", "fail"}
        has_counts = len(verdicts) > 1 and any(map(str.isdigit, acts[0].text))  # "3 failed, 40 passed"
        for act in acts:
            if act.kind in _DEEDS:
                yield from self._deed_faults(act, turns)
            elif act.kind == "commit":
                yield from self._commit_faults(act, turns)
            elif act.kind == "verify":
                yield from self._verification_faults(act, turns)
            elif act.kind == "undo":
                yield from self._undo_faults(act)
            elif act.kind in _ON_FILES and (act.things.files or not foreign):
                yield from self._file_faults(act, turns, None if at_end else max(turns))
            elif act.kind not in _ON_FILES and not has_counts:
                yield from self._check_faults(act, turns, at_end)

    # --- commands ---
    def _deed_faults(self, act: ClaimedAct, turns: list[int]) -> Iterator[str]:
        found = [one for one in self.deeds.of(act.kind) if self._is_about(act, one)]
        if act.denied:
            if found:
                yield f"turn {found[-1].turn + 1} has a successful {_DEEDS[act.kind]}"
            return
        known = any(one.turn >= min(turns) for one in found) or (found and self._is_told(act, turns))
        if not known and not self._says_person(act):
            yield f"the record shows no successful {_DEEDS[act.kind]} of this kind"

    def _is_about(self, act: ClaimedAct, deed: RecordedDeed) -> bool:
        """Whether a deed may be the one meant: the branch it names, the package, and files that were changed before."""
        if act.kind in ("push", "merge"):
            target = next((one for one in _TARGET.findall(act.clause) if _BRANCH.fullmatch(one)), "")
            if target and not re.search(rf"(?<![\w-]){re.escape(target)}(?![\w-])", deed.text):
                return act.kind == "push" and not re.search(r"\bpush\s+\S+\s+\S", deed.text) and "->" not in deed.text
        if act.kind == "install":
            names = all_stems(act.clause) - _INSTALL_WORDS
            return not names or bool(names & all_stems(deed.text))
        changes = [seq for path in act.things.files for seq in self._changes(path)]
        return not changes or deed.seq > min(changes)

    def _commit_faults(self, act: ClaimedAct, turns: list[int]) -> Iterator[str]:
        commits = _recorded(self.ground.state)
        changes = [seq for path in act.things.files for seq in self._changes(path)]
        found = [one for one in commits if one.turn >= min(turns) and (not changes or one.seq > min(changes))]
        if act.denied:
            if found and not any(_names(path, self.deeds.status) for path in act.things.files):
                yield f"turn {found[-1].turn + 1} has a commit"
        elif not found and not (commits and self._is_told(act, turns)) and not self._says_person(act):
            yield "the record shows no such commit"

    def _is_told(self, act: ClaimedAct, turns: list[int]) -> bool:
        """Whether a cited turn tells of the act too, which was done before."""
        return any(
            one.kind == act.kind and not one.denied
            for turn in turns
            for one in find_acts(self.ground.words(turn).text[:20_000])
        )

    def _says_person(self, act: ClaimedAct) -> bool:
        """Whether a person says that they did it."""
        words = stems(act.clause)
        return any(
            not told.denied and told.kind == act.kind and (not words or words & stems(sentence))
            for _, text in self.ground.spoken
            for sentence in split_sentences(text)
            if not sentence.endswith("?") and not _PRINTED.search(sentence)
            for told in find_acts(sentence)
        )

    # --- files ---
    def _changes(self, path: str) -> list[int]:
        return [seq for _, action, seq in self._touches(path) if action != "read"]

    def _touches(self, path: str) -> list[tuple[int, str, int]]:
        ground = self.ground
        found = [(turn, action, seq) for turn in ground.turns_of(path) for action, seq in ground.touches(turn, path)]
        return sorted(found, key=lambda one: one[2])

    def _verification_faults(self, act: ClaimedAct, turns: list[int]) -> Iterator[str]:
        """Report that something was tested or verified after which nothing was run, and of which nobody says so."""
        ran = any(one.turn >= min(turns) for one in self.deeds.runs)
        if not (act.denied or ran or self._says_person(act) or self._is_told(act, turns)):
            yield "the record shows no run that verifies it"

    def _undo_faults(self, act: ClaimedAct) -> Iterator[str]:
        """Report that something was taken back in a session in which nothing was changed."""
        shell = any(self.deeds.of(kind) for kind in ("revert", "rename", "delete"))
        if not (act.denied or self.ground.has_changes or shell or self.deeds.hidden or self._says_person(act)):
            yield "the record shows no change of a file"

    def may_be_done(self, act: ClaimedAct, path: str, turns: list[int]) -> bool:
        """Whether something else than a call on the file speaks for an act: a command, a person, a listing of Git."""
        if self._has_command(act.kind, path) or self._says_person(act):
            return True
        if act.kind == "edit" and _names(path, self.deeds.listed):
            return True
        return self.ground.has_unnamed(act.kind) and any(
            one.kind == act.kind and not one.denied and any(same_file(name, path) for name in one.things.files)
            for turn in turns
            for row in self.ground.rows(turn)
            for sentence in split_sentences(self.ground.speech(row)[:_MAX_CHARS])
            if _names(path, sentence)
            for one in find_acts(sentence)
        )

    def _file_faults(self, act: ClaimedAct, turns: list[int], until: int | None) -> Iterator[str]:
        if not act.things.files:
            if act.kind == "delete" and not act.denied:
                yield from self._removal_faults(act)
            return
        for path in act.things.files if len(act.things.files) > 1 and act.kind != "rename" else act.things.files[:1]:
            if act.kind == "delete" and not act.denied and self._is_untracked(path):
                if not _INDEX.search(act.clause):
                    yield f"{quote_short(path)} was only taken out of version control"
                continue
            touches = self._touches(path)
            actions = [action for turn, action, _ in touches if until is None or turn <= until]
            if fault := _file_fault(act, actions):
                if not act.denied and self.may_be_done(act, path, turns):
                    continue
                yield f"{quote_short(path)} {fault}"

    def _is_untracked(self, path: str) -> bool:
        """Whether a file was taken out of the index of Git, and not deleted otherwise."""
        taken_out = any(_names(path, one.text) for one in self.deeds.of("untrack"))
        return taken_out and not self._has_command("delete", path)

    def _has_command(self, kind: str, path: str) -> bool:
        """Whether a command that succeeded names the file, or a folder it lies in. Git may delete what it renames."""
        name = path.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
        folders = [one for one in path.replace("\\", "/").split("/")[:-1] if len(one) > 2]
        return any(
            re.search(rf"(?<![\w.-]){re.escape(one)}(?![\w.-])", deed.command if kind == "delete" else deed.text)
            for deed in self.deeds.of(kind)
            for one in (name, *(folders[-1:] if kind == "delete" and re.search(r"\s-\w*r", deed.text) else ()))
        )

    def _removal_faults(self, act: ClaimedAct) -> Iterator[str]:
        """Report the removal of something that is no file, if nothing in the session speaks of a removal of it."""
        words = stems(hide_acts(act.clause))
        told = (
            len(words & stems(sentence)) >= _LEAST_REMOVED * len(words)
            for turn in range(self.ground.state.turn_count)
            if self.ground.has_turn(turn)
            for row in self.ground.rows(turn)
            for sentence in split_sentences(self.ground.speech(row)[:_MAX_CHARS])
            if REMOVAL.search(sentence)
        )
        by_command = (one.command for one in self.deeds.runs if not one.failed and REMOVAL.search(one.command))
        is_named = act.things.code and any(all(code in one for code in act.things.code) for one in by_command)
        if not (is_named or any(told) or any(words & all_stems(one.text) for one in self.deeds.of("delete"))):
            yield "the record shows no such removal"

    # --- checks ---
    def _check_faults(self, act: ClaimedAct, turns: list[int], at_end: bool) -> Iterator[str]:
        wants = (act.kind == "pass") != act.denied
        if not act.is_check:
            yield from self._open_faults(act) if wants else ()
            return
        for kind in _kinds_of(act):
            yield from self._run_faults(act, self._runs(act, kind), turns, at_end)

    def _run_faults(self, act: ClaimedAct, runs: list[RecordedCheck], turns: list[int], at_end: bool) -> Iterator[str]:
        wants = (act.kind == "pass") != act.denied
        cited = [one for one in runs if one.turn in turns]
        told = cited if cited and (act.past or not at_end) else runs
        last = told[-1] if told else None
        if last is None:
            if wants and not self._says_person(act):
                yield "the record shows no run of it that passed"
        elif wants and not last.passed:
            yield f"{quote_short(last.command)} failed in turn {last.turn + 1} and has not succeeded since"
        elif not wants and last.passed and not (told is cited and self._has_failed_run(act, cited)):
            yield f"{quote_short(last.command)} passed in turn {last.turn + 1}"

    def _has_failed_run(self, act: ClaimedAct, runs: list[RecordedCheck]) -> bool:
        """Whether one of some runs failed, or another of the same command in their turns."""
        turns = {one.turn for one in runs}
        again = (one for one in self.deeds.runs if one.failed and one.turn in turns)
        return any(not one.passed for one in runs) or any(
            _is_part(code, one.command) for one in again for code in act.things.code
        )

    def _runs(self, act: ClaimedAct, kind: str) -> list[RecordedCheck]:
        """Return the runs that are meant: of the command or the files that are named, else of the kind of check."""
        checks = self.deeds.checks
        for code in act.things.code:
            if named := [one for one in checks if _is_part(code, one.command)]:
                return named
        of_kind = [one for one in checks if one.result.run.kind in (kind, "check")]
        if not of_kind and kind == "test" and not _TESTS.search(act.clause):
            of_kind = checks
        for path in act.things.files:
            if named := [one for one in of_kind if any(same_file(path, scope) for scope in one.result.run.scope)]:
                return named
        return of_kind

    def _open_faults(self, act: ClaimedAct) -> Iterator[str]:
        """Report a failure that is still open and has most of the words of what is said to be solved."""
        words = stems(hide_acts(act.clause))
        words = words if len(words) > 1 else stems(hide_acts(act.text))
        if not words:
            return
        for one in unresolved_failures(self.ground.state):
            row = self.ground.row(one.last_seq)
            printed = " ".join(map(self.ground.text, self.ground.with_results(row))) if row is not None else ""
            if len(words & stems(f"{one.what} {one.text} {printed[:_MAX_CHARS]}")) >= _LEAST_LIKENESS * len(words):
                yield f"{quote_short(one.what)} failed in turn {one.last_turn + 1} and has not succeeded since"
                return


def _kinds_of(act: ClaimedAct) -> list[str]:
    """Return the kinds of checks that are meant: those of the clause, else the first of the statement, else tests."""
    own = [kind for kind, pattern in _KINDS if pattern.search(act.clause)]
    if own or _TESTS.search(act.clause):
        return [*own, *(("test",) if _TESTS.search(act.clause) else ())]
    return [next((kind for kind, pattern in _KINDS if pattern.search(act.text)), "test")]


def _names(path: str, text: str) -> bool:
    return bool(re.search(rf"(?<![\w.-]){re.escape(path.replace(chr(92), '/').rsplit('/', 1)[-1])}(?![\w-])", text))


REMOVAL = re.compile(
    r"\b(?:delet|remov|eras|drop|rm\b|uninstall|lösch|entfern|supprim|elimin|borra)|削除|删除|移除|消して", re.I
)
_INSTALL_WORDS = all_stems("installed installation package packages dependency dependencies version globally locally successfully library via pip npm")  # fmt: skip


def _file_fault(act: ClaimedAct, actions: list[str]) -> str:
    """Return what the actions on a file say against an act; "" if they bear it out."""
    changed = [one for one in actions if one != "read"]
    if act.denied:
        is_so = {"delete": actions[-1:] == ["deleted"], "create": "created" in actions, "edit": bool(changed)}
        return f"was {changed[-1]}" if is_so.get(act.kind) and changed else ""
    if act.kind == "delete" and actions[-1:] != ["deleted"]:
        return f"was {actions[-1]}, not deleted" if actions else "was not deleted in the record"
    if act.kind == "create" and "created" not in actions:
        return (
            f"was {changed[-1] if changed else 'only read'}, not created"
            if actions
            else "was not created in the record"
        )
    if act.kind == "rename" and not {"deleted", "created"} & set(actions):
        return "was not renamed in the record"
    if act.kind == "edit" and not changed:
        return "was only read" if actions else "was not changed in the record"
    if act.kind == "edit" and changed and set(changed) == {"deleted"}:
        return "was deleted, not changed"
    return ""


def _is_part(code: str, command: str) -> bool:
    one, other = normalise_quotes(code), normalise_quotes(command)
    return len(one) >= 4 and (one in other or other in one)


# --- What the record shows to have been done: pushes, merges, pull requests, releases, installations, and how checks ended ---

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
        "delete": rf"(?:(?:{_GIT})?rm\s(?!.*--cached)|(?i:Remove-Item|del|erase|rd|ri)\s|rmdir\s|unlink\s|{_GIT}(?:branch|tag)\s+(?:-[dD]|--delete)\b|{_GIT}push\b.*--delete\b|docker\s+(?:rmi?|volume\s+rm)\b|dropdb\s"
        r"|(?:npm|pnpm|yarn|bun|pip3?|uv|poetry|cargo|apt(?:-get)?|brew)\s+(?:uninstall|remove|rm|purge)\b|kubectl\s+delete\b)",
        "untrack": rf"{_GIT}rm\b.*--cached",
        "revert": rf"{_GIT}(?:revert|reset|restore|checkout\s+--)\b",
    }.items()
}  # fmt: skip
_LISTS = re.compile(rf"\b{_GIT}(?:diff|status|show|log|commit|stash|add)\b")
_INDEX = re.compile(
    r"\b(?:track\w*|index\w*|git|version control|history|repo\w*|staging|stage|cached|commits?|histor\w*|Versions\w*)\b|跟踪|索引|仓库|追跡|履歴|历史",
    re.I,
)
_PRINTED = re.compile(
    r"[✓✔✗✘×❯│┃]|\d\s?ms\b|^\s*(?:at |>|\$ )|\b\d+ (?:failed|passed)\b"
)  # output that a person pasted
_STATUS = re.compile(rf"\b{_GIT}status\b")
_MAY_CHANGE = re.compile(
    r"(?:^|[\s;&|(])(?:sed\s+-i|perl\s+-\w*i|tee|python3?|node|npx|npm|make|bash|sh|pwsh|powershell|cp|mv|patch|Set-Content|Out-File)\b|>\s*[\w./$~]"
)
_TOOLS = {
    "pr": re.compile(r"create_?(?:pull|merge)_?request|pull_request_create|open_?pr", re.I),
    "merge": re.compile(r"merge_?(?:pull|merge)?_?(?:request|branch|pr)", re.I),
    "push": re.compile(r"push_?files|git_?push|create_or_update_file", re.I),
    "release": re.compile(r"create_?release|publish_?package", re.I),
    "deploy": re.compile(r"deploy", re.I),
    "tag": re.compile(r"(?:create|git)_?tag", re.I),
}
_SHOWN = 4_000  # characters of each end of an output in which a failure would be reported
_FAILED = re.compile(
    r"^\s*(?:\[?(?:ERROR|FATAL)\]?[\s:]|Traceback \(most recent call last\)|BUILD FAIL|FAILED\b|\w*Error: |Error (?:fetching|reading|loading|opening|creating|connecting|while|parsing|running|executing)\b|(?:Process )?[Ee]xit(?:ed with)? code:? [1-9])"
    r"|\b(?:FullyQualifiedErrorId|error TS\d+|npm ERR!|exited with code [1-9]|failed with exit code [1-9]|Failed to (?:execute|compile)|hit your (?:usage )?limit)",
    re.MULTILINE,
)
_REFUSED = re.compile(
    r"^\s*(?:!\s*\[(?:remote )?rejected\]|error:|fatal:|remote: (?:error|fatal)|CONFLICT\b|Automatic merge failed|npm ERR!|HTTP [45]\d\d"
    r"|pull request create failed|GraphQL:|Error:|ERROR:|Process running with session ID|(?:Output:\s*)?(?:Username|Password) for ')|\[rejected\]|Permission denied|command not found",
    re.MULTILINE,
)


class RecordedDeed(Struct, frozen=True):
    """A command or call that did something, and what it printed."""

    kind: str
    text: str  # with what it printed
    turn: int
    seq: int
    command: str = ""


class RecordedCheck(Struct, frozen=True):
    """How a test, build or other check ended."""

    result: CheckResult
    command: str
    turn: int
    seq: int

    @property
    def passed(self) -> bool:
        return self.result.verdict == "passed"


class RecordedRun(Struct, frozen=True):
    """A command, and whether its status or its output says that it failed."""

    command: str
    turn: int
    seq: int
    result_seq: int | None
    failed: bool


class Deeds:
    """All deeds of a session, in order. Reads its calls once."""

    def __init__(self, ground: Ground) -> None:
        self.done: list[RecordedDeed] = []
        self.checks: list[RecordedCheck] = []
        self.runs: list[RecordedRun] = []
        self.listed = ""  # what Git showed of the changes of anybody
        self.status = ""  # what Git showed last of what is not committed
        self.hidden = False  # whether a program ran that may change files unseen
        for call, start, output in ground.calls():
            self.done += _call_deeds(call, start, output)
            failed = call.status == "error" or bool(call.exit_status) or has_failed(output)
            what = start.command or start.name
            self.runs.append(RecordedRun(what, call.turn, call.seq, call.result_seq, failed))
            if _LISTS.search(start.command or ""):
                self.listed += f"\n{output[:_MAX_CHARS]}"
            self.status = output[:_MAX_CHARS] if _STATUS.search(start.command or "") else self.status
            self.hidden = self.hidden or bool(_MAY_CHANGE.search(start.command or ""))
            checks = judge_checks(call, start, output, ground.state.workspace)
            self.checks += [RecordedCheck(one, start.command, call.turn, call.seq) for one in checks]

    def of(self, kind: str) -> list[RecordedDeed]:
        return [one for one in self.done if one.kind == kind]


def has_failed(output: str) -> bool:
    """Whether the beginning or the end of an output reports that the command failed."""
    shown = output if len(output) <= 2 * _SHOWN else f"{output[:_SHOWN]}\n{output[-_SHOWN:]}"
    return bool(_REFUSED.search(shown) or _FAILED.search(shown))


def _call_deeds(call: Call, start: CallStart, output: str) -> Iterator[RecordedDeed]:
    if call.status != "ok" or call.exit_status:
        return
    shown = output[:_MAX_CHARS]
    if start.kind == "shell" and start.command:
        kinds = list(command_kinds(start.command[:_MAX_CHARS]))
        if kinds and _REFUSED.search(shown):
            return
        yield from (RecordedDeed(kind, f"{text}\n{shown}", call.turn, call.seq, text) for kind, text in kinds)
        return
    words = str(start.input)[:_MAX_CHARS]
    for kind, pattern in _TOOLS.items():
        if pattern.search(start.name):
            yield RecordedDeed(kind, f"{words}\n{shown}", call.turn, call.seq)


def command_kinds(command: str) -> Iterator[tuple[str, str]]:
    for simple, _ in split_shell(command):
        for kind, pattern in _COMMANDS.items():
            if pattern.search(simple):
                yield kind, simple
