"""The facts of one turn: requests, calls and their outcomes, files, commits, plan, questions, next steps.

`turn_facts` reads the messages of a turn one by one and keeps excerpts only, so a turn of any length costs the memory of
its facts. The rows say how calls ended (`Call.status`), the messages have the text. Every fact has the seq of the message it
comes from. Nothing is judged here; `derive.session_state` folds turns into a state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from posixpath import basename

from msgspec import Struct
from msgspec.structs import replace

from everturn.derive.artifacts import find_mentions, stated_changes, touched_files
from everturn.derive.call_results import (
    CheckResult,
    answered_failures,
    find_failed_notice,
    judge_call,
    judge_checks,
    printed_error,
    proven_commands,
)
from everturn.derive.choices import ChoicePassage, Spoken, SpokenTurn, find_announcements, find_choices, find_proposed
from everturn.derive.commits import Commit, LoggedCommit, TurnCommits, command_text, find_branch
from everturn.derive.decisions import LONGEST, DecisionMark, find_decisions, find_file_rules, likeness
from everturn.derive.failures import Complaint, attempt_keys, call_outcome, hear_report, proven_keys, proves_anywhere
from everturn.derive.file_book import SUBAGENT, UNRECORDED, NamelessEdits, noted_files
from everturn.derive.file_commands import made_folders
from everturn.derive.intent import Revision, command_words, find_revisions, goal_words, is_role, read_command
from everturn.derive.key_names import KeyName, NameCounter, call_label, given_texts
from everturn.derive.marker_lines import MarkerLine, find_marker_lines
from everturn.derive.offers import Offer, find_offer, is_choice
from everturn.derive.open_items import (
    find_announced,
    find_answers,
    find_begun,
    find_call_questions,
    find_closing_questions,
    find_findings,
    find_lasting_offers,
    find_next_steps,
    find_progress,
    find_put_off,
    find_service_stop,
    find_summary_steps,
    is_no_answer,
)
from everturn.derive.plans import (
    PlanChange,
    PlanUpdate,
    find_manual_steps,
    find_plan,
    find_task_items,
    find_ticked,
    is_task_file,
    writes_ticks,
)
from everturn.derive.pointers import ReferenceFinder, Referent
from everturn.derive.version_control import (
    HistoryChange,
    find_history_changes,
    tree_changes,
)
from everturn.model.archive import Artifact, Call, MessageRow, Step, Turn
from everturn.model.conversation import Block, CallEnd, CallStart, Message
from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.printable import one_line
from everturn.text.tokens import estimate_tokens

# --- the facts ---
_FOCUS, _EXCERPT, _WANTS = 100, 300, 500
_NAMING = ("prompt", "answer", "tool_output", "summary")  # fields in which a mentioned file may matter
_TYPED, _SAID, _NO_RESULT = ("text", "queued"), ("prompt", "answer"), ("open", "orphan")
_ANSWER = 20_000  # characters read of an answer, from its end
_WORK = ("shell", "edit", "create")
_NOTE = 1_500  # characters of a note of the client; a longer one is a summary of the whole session


class Saying(Struct, frozen=True):
    """An excerpt and the message it comes from; `wants` is what a request asks for if its beginning does not say so."""

    text: str
    seq: int
    wants: str = ""
    meant: Referent | None = None  # what it refers to if it does not say it


class CallFact(Struct, frozen=True):
    seq: int
    what: str  # the command, or the tool and its main argument
    kind: str
    status: str  # of CALL_STATUSES
    exit_status: int | None = None
    outcome: str = ""  # of failures.OUTCOMES if it did not succeed
    error: str = ""  # the most telling line of its output then
    keys: tuple[str, ...] = ()  # of the attempt if it failed, of what it proves if it succeeded
    ended: str = ""  # how it ended, in words; "" if nothing is recorded
    tool: str = ""  # its name if `what` begins with it
    checks: tuple[CheckResult, ...] = ()  # how the checks that it ran ended
    ran: tuple[str, ...] = ()  # the commands that went well, by name


class Touch(Struct, frozen=True):
    """A file and the action on it; `by` is SUBAGENT if a subagent did it, REPORT if only an answer says so."""

    path: str
    action: str
    seq: int
    by: str = ""


class FileNamed(Struct, frozen=True):
    """A mentioned file, how often, and the last message that mentions it; `said` if not only an output does."""

    path: str
    count: int
    seq: int
    said: bool = False


class TurnFacts(Struct, frozen=True):
    turn: int  # 0-based
    last_seq: int
    starter: str = "none"
    requests: tuple[Saying, ...] = ()
    focus: str = ""
    marks: tuple[tuple[DecisionMark, int], ...] = ()
    choices: tuple[ChoicePassage, ...] = ()  # what a turn says was chosen
    proposed: tuple[ChoicePassage, ...] = ()  # by an answer without changes: chosen if the person agrees
    lines: tuple[tuple[MarkerLine, int, str], ...] = ()  # marker lines, their message, and `person` or `agent`
    revisions: tuple[tuple[Revision, int], ...] = ()  # of what was decided before
    complaints: tuple[tuple[Complaint, int], ...] = ()
    confirmed: tuple[int, ...] = ()  # prompts that say that it works now
    deeds: tuple[CallFact, ...] = ()
    files: tuple[Touch, ...] = ()
    commits: tuple[tuple[Commit, int], ...] = ()
    logged: tuple[LoggedCommit, ...] = ()  # commits that logs show
    rewrites: tuple[tuple[HistoryChange, int], ...] = ()
    plans: tuple[tuple[PlanUpdate, int], ...] = ()
    asked: tuple[Saying, ...] = ()
    steps: tuple[Saying, ...] = ()
    lasting: tuple[Saying, ...] = ()  # what the last answer and the client's note leave for another turn
    folders: tuple[Touch, ...] = ()  # that commands made
    trees: tuple[Touch, ...] = ()  # files that version control shows as changed, see derive.version_control
    offer: Offer | None = None  # what the last answer puts to the person
    cut_off: bool = False  # the turn ends in calls, without an answer that reports on them
    is_progress: bool = False  # the last answer ends in a heading of what was being done
    begun: Saying | None = None  # work that the last answer announced, if the turn was cut off after it
    recap: Saying | None = None  # what the client noted as the state of the work
    mentions: tuple[FileNamed, ...] = ()
    names: tuple[KeyName, ...] = ()
    branch: str = ""  # and repository: that version control named last
    repository: str = ""
    answer: Saying | None = None  # the beginning of the last answer
    admitted: tuple[Saying, ...] = ()  # what it says failed, if a call did
    model: str = ""
    tokens: int = 0
    token_source: str = ""
    interrupted: bool = False
    stopped: Saying | None = None  # what the client noted when the service of the model stopped the work


def turn_facts(
    turn: Turn,
    messages: Iterable[tuple[MessageRow, Message]],
    calls: Iterable[Call],
    steps: Iterable[Step] = (),
    artifacts: Iterable[Artifact] = (),
    workspace: str = "",
) -> TurnFacts:
    """Return the facts of a turn from its rows and its messages, which are read once and in order."""
    steps = list(steps)
    tokens = sum(step.tokens_in + step.tokens_out + step.tokens_cache_write for step in steps if not step.inherited)
    collector = _FactCollector(calls, workspace, tokens)
    for row, message in messages:
        collector.add(row, message)
    return collector.facts(turn, list(artifacts))


class _FactCollector:
    def __init__(self, calls: Iterable[Call], workspace: str, tokens: int) -> None:
        self.workspace, self.tokens, self.estimated = workspace, tokens, 0
        self.calls = {(call.seq, call.idx): call for call in calls}
        self.waiting: dict[str, tuple[Call, CallStart]] = {}
        self.open: list[tuple[Call, CallStart]] = []  # without a result, in a transcript that leaves something out
        self.last: tuple[Call, CallStart] | None = None  # without a result, in any transcript
        self.requests: list[Saying] = []
        self.focus = self.model = ""
        self.typed = ""  # what a person typed, if the message holds the text of a command too
        self.marks: list[tuple[DecisionMark, int]] = []
        self.prompts: list[tuple[str, int]] = []
        self.answers: list[tuple[str, int]] = []
        self.lines: list[tuple[MarkerLine, int, str]] = []
        self.revisions: list[tuple[Revision, int]] = []
        self.complaints: list[tuple[Complaint, int]] = []
        self.confirmed: list[int] = []
        self.deeds: dict[tuple[int, int], CallFact] = {}
        self.commits = TurnCommits()
        self.rewrites: list[tuple[HistoryChange, int]] = []
        self.trees, self.stated, self.folders = list[Touch](), list[Touch](), list[Touch]()
        self.plans: list[tuple[PlanUpdate, int]] = []
        self.asked: list[Saying] = []
        self.answer = Saying("", -1)
        self.recap: Saying | None = None
        self.stopped: Saying | None = None
        self.noticed: list[CallFact] = []  # what the client ran by itself and could not do
        self.task_items: tuple[tuple[PlanChange, ...], int] = ((), -1)  # of the task file read last
        self.mentions: Counter[str] = Counter()
        self.mentioned_in: dict[str, int] = {}
        self.named: set[str] = set()  # by a person or an answer
        self.names = NameCounter()
        self.nameless = NamelessEdits()
        self.prompt_names: set[str] = set()  # of files with tasks
        self.put_off: list[Saying] = []
        self.references = ReferenceFinder()
        self.called = -1  # the last message of the model or the person with a call: clients commit by themselves

    def add(self, row: MessageRow, message: Message) -> None:
        self.model = message.model or self.model
        self.typed = ""
        self._take_prompt(row, message)
        for idx, block in enumerate(message.blocks):
            if block.field in _NAMING and block.text:
                self._add_mentions(row, block.text, block.field != "tool_output")
            if block.field in _SAID and block.text and row.origin in ("human", "model"):
                said = self.typed if row.origin == "human" and self.typed else block.text
                self.names.add_message(said, row.seq, row.origin == "human")
            self.estimated += estimate_tokens(block.text) if block.text and not self.tokens else 0
            if block.call is not None:
                self.names.add_call(given_texts(block.call), row.seq)
                self.called = self.called if row.origin == "system" else row.seq
                self._add_call(self.calls.get((row.seq, idx)), block.call, message.fidelity == "partial")
            elif block.result is not None:
                self._take_result(block, block.result.call_id)
            elif block.field == "summary" and block.text.strip():
                self.recap = Saying(block.text[-_ANSWER:], row.seq)
            elif block.field == "answer" and row.origin == "model" and block.text.strip():
                self._set_answer(row, block.text)

    def facts(self, turn: Turn, artifacts: list[Artifact]) -> TurnFacts:
        for call, start in self.waiting.values():
            self._add_result(call, start, "")
        self._add_unrecorded()
        ending = self.answer.text
        closing = [] if turn.interrupted else find_closing_questions(ending)
        edited = any(one.kind in ("edit", "create") and not one.outcome for one in self.deeds.values())
        is_noted = any(one.action != "read" for one in artifacts)
        changed, told = edited or is_noted, self._told(artifacts)
        offer = find_offer(ending, self.answer.seq) if ending else None
        return TurnFacts(
            turn=turn.idx, last_seq=turn.last_seq, starter=turn.starter, requests=tuple(replace(one, meant=self.references.find(one.seq)) for one in self.requests),
            focus=self.focus, marks=tuple(self.marks),
            choices=tuple(self._choices(changed or bool(told or self.stated), offer)), proposed=tuple(find_proposed(ending, self.answer.seq)) if not changed else (), lines=tuple(self.lines), revisions=tuple(self.revisions), complaints=tuple(self.complaints), confirmed=tuple(self.confirmed),
            deeds=tuple(sorted((*(self.deeds[key] for key in sorted(self.deeds)), *self.noticed), key=lambda one: one.seq)),
            files=(*(Touch(one.path, one.action, one.seq) for one in artifacts), *self.stated, *told),
            folders=tuple(self.folders), trees=tuple(self.trees), commits=tuple(self.commits.found()), logged=tuple(self.commits.logged), rewrites=tuple(self.rewrites),
            plans=tuple(self.plans), asked=(*self.asked, *(Saying(words, self.answer.seq) for words in closing)),
            steps=tuple(Saying(words, self.answer.seq) for words in (*find_next_steps(ending), *([] if changed else find_findings(ending)))),
            lasting=tuple(self._lasting(ending)),
            offer=offer, recap=self.recap,
            begun=self._begun(turn), is_progress=bool(find_progress(ending)) or ending.rstrip("*_ \n").endswith((":", "：")), cut_off=self.called > self.answer.seq,
            mentions=tuple(FileNamed(path, n, self.mentioned_in[path], path in self.named) for path, n in self.mentions.items()),
            names=self.names.names(), branch=self.names.branch, repository=self.names.repository,
            answer=Saying(one_line(ending, _EXCERPT), self.answer.seq) if ending else None,
            admitted=tuple(Saying(*one) for one in answered_failures(self.answers, [(one.seq, one.outcome, one.what, one.error) for one in self.deeds.values() if one.outcome or one.kind in _WORK])), model=self.model,
            tokens=self.tokens or self.estimated,
            token_source="api" if self.tokens else "estimate" if self.estimated else "",
            interrupted=bool(turn.interrupted), stopped=self.stopped,
        )  # fmt: skip

    def _add_unrecorded(self) -> None:
        """Take a commit that the session ends with, and the calls of a transcript without results: a model goes on only once they have returned."""
        if self.last is not None and self.last[0].seq == self.called > self.answer.seq:
            self.commits.note_begun(self.last[1], self.called, self.names.branch)
        if any(one.status != "open" for one in self.deeds.values()):
            return
        for call, start in self.open:
            if call.seq < max(self.called, self.answer.seq):
                touches = touched_files(start, CallEnd(start.call_id), "")
                self.stated += [Touch(path, action, call.seq, UNRECORDED) for action, path in touches]
                self.commits.note_unrecorded(start, call.seq, self.names.branch)

    def _told(self, artifacts: list[Artifact]) -> list[Touch]:
        """Return the files of calls that name none."""
        changed = {one.path: (one.seq, one.idx) for one in artifacts if one.action != "read"}
        edits = {place for place, call in self.deeds.items() if call.kind in ("edit", "create")}
        shows = any(map(_SHOWS_CHANGES.search, (call.what for call in self.deeds.values())))
        told = self.nameless.told((self.answer.text, self.answer.seq), changed, edits, self.mentions, shows)
        return [Touch(*one) for one in told]

    def _lasting(self, ending: str) -> list[Saying]:
        recap = self.recap if self.recap and len(self.recap.text) <= _NOTE else Saying("", -1)
        said = [(words, self.answer.seq) for words in find_lasting_offers(ending)]
        return [
            *self.put_off,
            *(Saying(*one) for one in (*said, *((one, recap.seq) for one in find_summary_steps(recap.text)))),
        ]

    def _choices(self, changed: bool, offer: Offer | None) -> list[ChoicePassage]:
        """Return what the turn says was chosen. An answer without calls that asks the person only proposes."""
        last = self.answer.seq
        is_proposal = not self.deeds and offer is not None and offer.question != ""
        said = [Spoken(text, seq, "person") for text, seq in self.prompts]
        said += [
            Spoken(text, seq, "end" if seq == last else "between")
            for text, seq in self.answers
            if seq != last or not is_proposal
        ]
        told = {likeness(mark.text) for mark, _ in self.marks}
        return find_choices(SpokenTurn(tuple(said), tuple(seq for seq, _ in sorted(self.deeds)), changed), told)

    def _take_prompt(self, row: MessageRow, message: Message) -> None:
        if row.origin == "injected":
            self.references.add_body("\n".join(block.text for block in message.blocks), row.seq)
            self.marks += [(mark, row.seq) for block in message.blocks for mark in find_file_rules(block.text)]
        if row.kind == "notice":
            notice = "\n".join(block.text for block in message.blocks)
            self.commits.hear_notice(notice, row.seq)
            failed = find_failed_notice(notice)
            self.noticed += [CallFact(row.seq, what, "", "error", None, "failed", one.line, (one.run.tool,), one.line, "", (one,)) for what, one in failed]  # fmt: skip
            self.stated += [Touch(path, "edited", row.seq) for path in noted_files(notice)]
            stops = (find_service_stop(block.text) for block in message.blocks)
            self.stopped = next((Saying(words, row.seq) for words in stops if words), self.stopped)
        prompt = "\n".join(block.text for block in message.blocks if block.field == "prompt" and block.text)
        if prompt and row.origin in ("human", "agent") and row.kind in _TYPED:
            self.nameless.begin(prompt)
            self._add_request(row, prompt, "\n".join(one.text for one in message.blocks if one.field == "meta"))
        elif prompt and row.origin == "human" and row.kind == "command" and (command := command_words(prompt)):
            self.requests.append(_request(command, prompt, row.seq))
            self.references.add_request(command, row.seq, True)
            self._hear(row, command.partition(" ")[2])

    def _begun(self, turn: Turn) -> Saying | None:
        """Return the work that the last answer announced and that no later answer reports on."""
        after = [call for call in self.deeds.values() if call.seq >= self.answer.seq]
        is_stopped = self.stopped is not None and self.stopped.seq > self.answer.seq
        is_cut = turn.interrupted or after or is_stopped
        is_running = is_stopped or any(call.status in _NO_RESULT for call in after)
        words = find_begun(self.answer.text, is_running) if is_cut else find_announced(self.answer.text)
        return Saying(words, self.answer.seq) if words else None

    def _add_request(self, row: MessageRow, text: str, attached: str) -> None:
        said = text.replace("\r\n", "\n")
        command = read_command(said)
        words = said if command is None else command.typed or goal_words(said)
        self.typed = words if command is not None and command.body else ""
        self.requests.append(_request(words, said, row.seq))
        self.references.add_request(words if command is None else "", row.seq, False, attached)
        if branch := find_branch(text):
            self.names.add_branch(branch, row.seq)
        self.prompt_names |= {one for one in _WORD.findall(text[-_ANSWER:]) if is_task_file(one)}
        if row.origin == "human":
            self.focus = one_line(next((line for line in words.splitlines() if line.strip()), ""), _FOCUS)
            self._hear(row, text)

    def _hear(self, row: MessageRow, text: str) -> None:
        """Take what a person lays down, puts off, reports and confirms."""
        self.put_off += [Saying(words, row.seq) for words in find_put_off(text)]
        self.marks += [(mark, row.seq) for mark in find_decisions(text)]
        if not is_role(text):
            self.prompts.append((text, row.seq))
        self.lines += [(line, row.seq, "person") for line in find_marker_lines(text)]
        self.revisions += [(one, row.seq) for one in find_revisions(text)]
        if steps := find_manual_steps(text):
            self.plans.append((PlanUpdate(steps, whole=False), row.seq))
        complaint, confirms = hear_report(text)
        self.complaints += [(complaint, row.seq)] if complaint is not None else []
        self.confirmed += [row.seq] if confirms else []

    def _add_mentions(self, row: MessageRow, text: str, is_said: bool) -> None:
        found = find_mentions(text)
        self.mentions.update(found)
        self.mentioned_in.update(dict.fromkeys(found, row.seq))
        self.named.update(found if is_said else ())

    def _set_answer(self, row: MessageRow, text: str) -> None:
        if is_no_answer(text):
            return
        self.nameless.hear(text)
        self.commits.hear(text, row.seq)
        self.references.add_answer(text, row.seq)
        self.answer = Saying(text[-_ANSWER:], row.seq)
        self.answers.append((text[-_ANSWER:], row.seq))
        if "Deci" in text:
            self.marks += [(mark, row.seq) for mark in find_announcements(text)]
        for line in find_marker_lines(text):
            self.lines.append((line, row.seq, "agent"))
            if line.kind in ("decision", "constraint"):
                self.marks.append((DecisionMark(line.text, "marker", line.kind == "constraint"), row.seq))

    def _add_call(self, call: Call | None, start: CallStart, is_partial: bool) -> None:
        if call is None:
            return
        if call.result_seq is None:
            self.last = call, start
            self.open += [(call, start)] * is_partial
            self._add_result(call, start, "")
        else:
            self.waiting[start.call_id] = call, start

    def _take_result(self, block: Block, call_id: str) -> None:
        if (waiting := self.waiting.pop(call_id, None)) is not None:
            self._add_result(*waiting, block.text)

    def _add_result(self, call: Call, start: CallStart, output: str) -> None:
        went_well = call.status == "ok" and not call.exit_status
        self._note_file(call, start, output, went_well)
        self.deeds[call.seq, call.idx] = self._call_fact(call, start, output, went_well)
        self._add_commits(call, start, output, went_well)
        if start.kind == "task" and went_well:
            self.stated += [Touch(path, action, call.seq, SUBAGENT) for action, path in stated_changes(output)]
        elif start.kind == "shell" and went_well and start.command:
            self._add_places(call, start, output)
            fixed = self.nameless.note_fixer(start.command, output)
            self.stated += [Touch(path, "edited", call.seq) for path in fixed]
        if call.status == "ok":
            if (plan := find_plan(start, output)) is not None:
                self.plans.append((plan, call.seq))
            is_list = is_task_file(start.path or start.command.rstrip("\"' "))
            if is_list or start.kind == "edit" or writes_ticks(start.command):
                self._add_task_file(call, start, output)
            if start.kind == "ask":
                self._add_answers(call, start, output)
        elif start.kind == "ask":
            self.asked += [Saying(words, call.seq) for words in find_call_questions(start)]

    def _note_file(self, call: Call, start: CallStart, output: str, went_well: bool) -> None:
        """Take note of a document that was read, and of an edit that names no file: the one announced, or the one read right before."""
        if went_well and output and start.kind in ("read", "shell"):
            shown_in = call.seq if call.result_seq is None else call.result_seq
            self.references.add_document(start.path or start.command, output, shown_in)
        self.nameless.note(start, (call.seq, call.idx), went_well)

    def _add_places(self, call: Call, start: CallStart, output: str) -> None:
        if "mkdir" in start.command or "clone" in start.command:
            self.folders += [Touch(f"{path}/", "created", call.seq) for path in made_folders(start.command)]
        if "git" in start.command:
            self.trees += [Touch(path, action, call.seq) for action, path in tree_changes(start.command, output)]
            if call.result_seq is not None and (branch := find_branch(output)):
                self.names.add_branch(branch, call.result_seq)
        self.names.add_repository(start.command, output)

    def _add_commits(self, call: Call, start: CallStart, output: str, went_well: bool) -> None:
        shown_in = call.seq if call.result_seq is None else call.result_seq
        self.commits.note(start, output, (call.seq, shown_in), went_well, self.names.branch)
        self.names.add_result(start, output if went_well else "", shown_in)
        if "git" in command_text(start):
            changes = find_history_changes(start, output, went_well, self.names.branch)
            self.rewrites += [(one, call.seq) for one in changes]

    def _add_task_file(self, call: Call, start: CallStart, output: str) -> None:
        """Take the check boxes of a file that was read as a plan once the agent ticks one of them."""
        if start.kind in ("read", "shell") and not writes_ticks(start.command):
            if items := find_task_items(output):
                self.task_items = (items, call.seq)
                if basename(start.path.replace("\\", "/")) in self.prompt_names:
                    self.plans.append((PlanUpdate(items, whole=False), call.seq))
        elif (self.task_items[0] or start.kind == "shell" or is_task_file(start.path)) and (
            ticked := find_ticked(start)
        ):
            listed, seq = self.task_items
            if not {one.id for one in listed}.isdisjoint(one.id for one in ticked):
                self.plans.append((PlanUpdate(listed, whole=False), seq))
                self.task_items = ((), -1)  # once: what was ticked since is not open again
            self.plans.append((PlanUpdate(ticked, whole=False, known=True), call.seq))

    def _add_answers(self, call: Call, start: CallStart, output: str) -> None:
        seq = call.seq if call.result_seq is None else call.result_seq
        for one in find_answers(start.input, output):
            self.put_off += [Saying(words, seq) for words in find_put_off(one.answer)]
            if is_choice(one):
                self.marks.append((DecisionMark(f"{one.question} → {one.answer}", "answer"), seq))

    def _call_fact(self, call: Call, start: CallStart, output: str, went_well: bool) -> CallFact:
        checks = judge_checks(call, start, output, self.workspace)
        ending = judge_call(call, start, output, checks)
        failed = ending.failed
        proven = (*proven_keys(start, self.workspace), *proves_anywhere(start)) if ending.how == "ok" else ()
        return CallFact(
            seq=call.seq, what=call_label(start, LONGEST), kind=start.kind, status=call.status, exit_status=call.exit_status,
            outcome=call_outcome(start, ending.error_class or call.error_class, call.exit_status) if failed else "",
            error=(ending.line or printed_error(output, start.command)) if failed else "", ended=ending.text,
            keys=attempt_keys(start, self.workspace, output) if failed else proven,
            tool="" if start.kind == "shell" and start.command else start.name,
            checks=checks, ran=proven_commands(start, ending),
        )  # fmt: skip


def _request(words: str, prompt: str, seq: int) -> Saying:
    shown, wants = one_line(words, LONGEST), one_line(goal_words(prompt), _WANTS)
    return Saying(shown, seq, wants if wants != shown else "")


_WORD = lazy_pattern(r"[^\s/\\`\"'()<>]+")
#: After these, an answer may list what somebody else changed.
_SHOWS_CHANGES = lazy_pattern(r"\bgit\b[^;&|\n]{0,80}\b(?:diff|log|show|status)\b|\bgh pr\b")
