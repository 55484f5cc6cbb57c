"""The acts a statement claims: the kind of act, whether it is denied, and what it was done to.

Only what is told as done counts. "Merge it next", "should be merged" and "before it is merged" tell of no act; "was not merged"
denies one. Verbs are known in English, German, French, Spanish, Japanese and Chinese.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from everturn.restore.claim_polarity import is_denied
from everturn.restore.grounds import NamedThings, find_named_things
from everturn.text.stance_words import CONDITION, STILL_TO, WISH

_REQUEST = r"(?:pull[- ]requests?|merge[- ]requests?|PRs?|MRs?|プルリクエスト|プルリク|拉取请求|合并请求)"
_OPENED = (
    r"(?:opened|created|raised|filed|submitted|sent|put up|made|open|up|under review|in review|awaiting review|waiting for review"
    r"|eröffnet|erstellt|geöffnet|gestellt|ouverte?|créée?|abiert[oa]|cread[oa]|作成|開[いか]|出し|创建|打开|提交|开启)"
)
#: How each act is told. The Romance participles take gender and number.
_ACTS: dict[str, re.Pattern[str]] = {
    kind: re.compile(pattern, re.I)
    for kind, pattern in {
        "pr": rf"\b{_OPENED}\b[^.;]{{0,50}}?\b{_REQUEST}\b|\b{_REQUEST}\b[^.;]{{0,60}}?\b{_OPENED}\b|{_REQUEST}.{{0,20}}{_OPENED}",
        "push": r"\bpushed\b|\bgepush?t\b|\bhochgeladen\b|\bpoussée?s?\b|\b(?:empujad|subid)[oa]s?\b|プッシュ(?:した|しました|済|され|完了)|(?:已|被)?推送(?:了|到|至)|\b(?:is|are) (?:now )?on (?:the remote|origin|github|gitlab)\b|\benviad[oa]s? (?:ao|para o|à)\b|푸시(?:했|하였|되|됨|완료)",
        "merge": r"\bmerged\b|\bgemergt\b|\blanded\b|\bzusammengeführt\b|\bfusionnée?s?\b|\bfusionad[oa]s?\b|マージ(?:した|しました|済|され|完了)|已?合并(?:了|到|至)|已合并|\bmesclad[oa]s?\b|병합(?:했|하였|되|됨|완료)",
        "commit": r"\bcommitted\b|\bchecked in\b|\bgecommitt?et\b|\beingecheckt\b|\bcommitt?ée?s?\b|\bcommitead[oa]s?\b|\bconfirmad[oa]s? en git\b|コミット(?:した|しました|済|され|完了)|已(?:经)?提交|提交了|\bcommitad[oa]s?\b|\bcomitad[oa]s?\b|커밋(?:했|하였|되었|됨|완료)",
        "tag": r"\btagged\b|\bgetaggt\b|\btag\b.{0,30}\b(?:created|set|added|erstellt|gesetzt|créé|creado)\b|タグ(?:を)?(?:付け|打っ|作成)|打了.{0,6}(?:标签|tag)",
        "release": r"\breleased\b|\bwent out\b|\b(?:is|are) out (?:now|in|with)\b|\bpublished\b|\bshipped\b|\bveröffentlicht\b|\bpubliée?s?\b|\bpublicad[oa]s?\b|\blanzad[oa]s?\b|リリース(?:した|しました|済|され|完了)|公開(?:した|され)|已?发布(?:了|到|至)|已发布",
        "deploy": r"\bdeployed\b|\brolled out\b|\bwent live\b|\b(?:is|are) (?:now )?(?:live|in production|running in production)\b|\bausgerollt\b|\bdeployt\b|\bdéployée?s?\b|\bdesplegad[oa]s?\b|デプロイ(?:した|しました|済|され|完了)|已?部署(?:了|到|至)|已部署|\bimplantad[oa]s?\b|배포(?:했|하였|되|됨|완료)",
        "delete": r"\bdeleted\b|\b(?:un|de|dés|des)instal+(?:ed|iert|ée?s?|ad[oa]s?)\b|アンインストール(?:した|され)|已?卸载了?|\bremoved\b|\berased\b|\bgot rid of\b|\b(?:is|are) gone\b|\bno longer exists?\b|\bwiped\b|\bdropped\b|\bgelöscht\b|\bentfernt\b|\bsupprimée?s?\b|\beffacée?s?\b|\beliminad[oa]s?\b|\bborrad[oa]s?\b|削除(?:した|しました|済|され)|(?:已|被)?删除了?|移除了|被?移除(?!了)|\bremovid[oa]s?\b|\bexcluíd[oa]s?\b|\bapagad[oa]s?\b|\bdeletad[oa]s?\b|\beliminó\b|\bborró\b|삭제(?:했|하였|되|됨|완료)",
        "rename": r"\brenamed\b|\bmoved (?:to|into|from)\b|\bumbenannt\b|\bverschoben\b|\brenommée?s?\b|\bdéplacée?s?\b|\brenombrad[oa]s?\b|\bmovid[oa]s?\b|リネーム(?:した|され)|名前を変更(?:した|され)|重命名",
        "create": r"\bcreated\b|\bnewly added\b|\bnew file\b|\bgenerated\b|\bscaffolded\b|\berstellt\b|\bangelegt\b|\bcréée?s?\b|\bcread[oa]s?\b|作成(?:した|しました|済|され)|新規|(?:已|被)?创建了?|新建了?|\bcriad[oa]s?\b|(?:생성|작성)(?:했|하였|되|됨|완료)",
        "edit": r"\bedited\b|\bcorrected\b|\breplaced\b(?! by| with)|\bkorrigiert\b|\bersetzt\b|\bcorrigid[oa]s?\b|\bcorregid[oa]s?\b|\bmodified\b|\bchanged\b|\bupdated\b|\brewritten\b|\brewrote\b|\bpatched\b|\badjusted\b|\brefactored\b|\bgeändert\b|\bbearbeitet\b|\bangepasst\b|\bmodifiée?s?\b|\bmodificad[oa]s?\b|\beditad[oa]s?\b|編集(?:した|しました|され)|変更(?:した|しました|され)|(?:已|被)?修改了?|\balterad[oa]s?\b|\batualizad[oa]s?\b|(?:수정|변경)(?:했|하였|되|됨|완료)|\badded\b|\bhinzugefügt\b|\bajoutée?s?\b|\bañadid[oa]s?\b|\badicionad[oa]s?\b|追加(?:した|しました|され|済)|(?:添加|增加|新增|加入)了|추가(?:했|하였|되|됨)|更新(?:した|しました|され|済)|(?:已|被)更新|更新了|업데이트(?:했|하였|되|됨)",
        "install": r"\binstalled\b|\binstalliert\b|\binstallée?s?\b|\binstalad[oa]s?\b|インストール(?:した|しました|済|され)|已?安装了?",
        "undo": r"\breverted\b|\brestored\b|\bundone\b|\brolled back\b|\bzurückgenommen\b|\bzurückgesetzt\b|\brückgängig gemacht\b|\bannulée?s?\b|\brestaurée?s?\b|\brevertid[oa]s?\b|\brestaurad[oa]s?\b|\bdesfeit[oa]s?\b|元に戻(?:した|しました|され)|(?:已|被)(?:还原|恢复|回滚|撤销)(?:了)?",
        "verify": r"\b(?:was|were|been|is|are)\s+(?:\w+ly\s+)?(?:tested|verified|validated)\b|\bgetestet\b|\bverifiziert\b|\b(?:testée?s?|vérifiée?s?)\b|\b(?:probad|verificad|testad)[oa]s?\b|已验证|已测试|测试过|(?:動作確認|検証|テスト)(?:した|しました|済)|검증(?:했|되|됨)",
        "pass": r"\b(?:no|without(?: any)?|free of) (?:\w+ )?(?:errors?|failures?|warnings|complaints|issues|problems)\b|\bpass(?:es|ed|ing)?\b|\bsucceed(?:s|ed|ing)?\b|\bsuccessful(?:ly)?\b|\bgreen\b|\bfixed\b|\bresolved\b|\bsolved\b|\bworks? (?:now|again|fine)\b|\bclean\b|\bokay\b|\bwent through\b|\bsin errores\b|\b(?:com|con) (?:sucesso|éxito)\b|\bpass(?:ou|aram|am)\b|\bsans (?:aucune )?erreurs?\b|\bfehlerfrei\b|\bohne Fehler\b|\bsem erros?\b"
        r"|\bbestanden\b|\berfolgreich\b|\bgrün\b|\bbehoben\b|\bréussi\w*|\bpassent\b|\bcorrigée?s?\b|\bpasan\b|\bpasaron\b|\bexitos\w+|\bverdes?\b|成功|通過|合格|通过|パス(?:した|して|しました)|修正(?:済|され)|已修复|通过了|통과|성공",
        "fail": r"\bfail(?:s|ed|ing|ures?)?\b|\bbroken\b|\bbreaks?\b|\bred\b|\berrored\b|\bcrash(?:es|ed)\b|\bfehlgeschlagen\b|\bfehlschl\w+|\bschl(?:agen|ägt)\b.{0,30}\bfehl\b|\béchou\w+|\bfall(?:an|ó|aron|a)\b|\brot\b|\bfalh(?:ou|aram|am?)\b|失敗|失败|落ち|실패",
    }.items()
}  # fmt: skip
#: Says that something fails, told as done or not.
FAILURE = _ACTS["fail"]
_FINITE = re.compile(
    r"\b(?:was|were|is|are|has|have|had|got|been|wurden?|worden|hat|haben|ist|sind|a été|ont été|est|sont|fue|fueron|ha sido|han sido)\b",
    re.I,
)
#: Words that name what failed once, not a state: "the failing tests".
_ADJECTIVE = re.compile(
    r"\b(?:failing|failed|broken|fehlgeschlagene?n?|fehlschlagende?n?)\s+(?=(?:\w+\s+)?(?:tests?|checks?|build|suite|specs?|jobs?|runs?)\b)"
    r"|(?<=\bthe )(?:failing|failed|broken)\s+(?=[a-z]{3,})(?!in\b|with\b|after\b|because\b|when\b|again\b|since\b|and\b|but\b)"
    r"|(?<=\b(?:of|to|if) )(?:failing|failed|broken)\s+(?=[a-z]{3,})|(?<=\b(?:any|for|all) )(?:failing|failed|broken)\s+(?=[a-z]{3,})",
    re.I,
)
_CHECK = re.compile(r"\b(?:tests?|specs?|suite|builds?|lint(?:er|ing)?|type ?checks?|checks?|CI|pipeline|compil\w+|mypy|pytest|ruff|eslint|tsc|pruebas|compilación)\b|テスト|ビルド|测试|测验|构建", re.I)  # fmt: skip
_OTHER_RUN = re.compile(r"\b(?:edit|edits|patch|write|call|request|download|upload|copy|rename|search|query)\b", re.I)
_COMMAND = re.compile(
    r"\S+\s+\S|(?:pytest|tox|nox|mypy|pyright|ruff|eslint|tsc|jest|vitest|mocha|make|just|rspec|phpunit|gradle\w*|mvn\w*|\./|cargo|go|npm|pnpm|yarn|bun)\b"
)
_PARTS = re.compile(
    r"[;,:](?=\s)|\.(?=\s|$)|[，、；。]|\s+(?:and|but|while|und|aber|et|mais|y|pero)\s+|\s+(?=(?:although|though|whereas|obwohl|bien que|aunque|embora)\b)",
    re.I,
)
_ASIDE = re.compile(r"(?:although|though|whereas|obwohl|bien que|aunque|embora)\b", re.I)  # has a subject of its own
#: What follows is not what an act was done to.
_OTHER_ROLE = re.compile(r"\b(?:to|so|that|from|in|into|with|by|for|via|using|because|instead|like|as|um|damit|aus|mit|für|von|wie|pour|par|avec|dans|comme|para|con|por|com|em|como)\b", re.I)  # fmt: skip
_QUOTATION = re.compile(r"\"[^\"]*\"|“[^”]*”|„[^“”]*[“”]|«[^»]*»|「[^」]*」|『[^』]*』")


_VERBS = tuple(pattern for kind, pattern in _ACTS.items() if kind not in ("pr", "tag"))


class ClaimedAct(Struct, frozen=True):
    """An act that a statement tells of."""

    kind: str  # of _ACTS
    denied: bool
    clause: str
    text: str  # of the statement
    things: NamedThings
    past: bool  # told as past, so a later state does not contradict it
    is_check: bool  # of a test, build or other check


def find_acts(text: str) -> Iterator[ClaimedAct]:
    """Yield the acts of a statement without its citations."""
    prose = _QUOTATION.sub(" ", text)
    whole, about_checks = find_named_things(prose), _is_about_checks(prose)
    for part in _PARTS.split(prose):
        clause = _ADJECTIVE.sub("", part)
        bare = _hide_names(clause)
        own = find_named_things(clause)
        things = own if own.files or own.code or own.commits or _ASIDE.match(clause.strip()) else whole
        for kind, pattern in _ACTS.items():
            for match in pattern.finditer(bare):
                before = bare[: match.start()]
                if _is_not_done(before, match[0]):
                    continue
                past = match[0].lower().endswith("ed") and not re.search(r"\b(?:now|still|currently|is|are)\b", before)
                is_check = about_checks or any(map(_COMMAND.match, own.code))
                yield ClaimedAct(
                    kind, is_denied(before, bare), clause, prose, _narrow(things, clause, bare, match), past, is_check
                )


def _is_about_checks(prose: str) -> bool:
    """Whether a statement speaks of a check: by its words, or by the name of a file of tests that nothing else was done to."""
    bare = _hide_names(prose)
    return bool(_CHECK.search(bare) or (_CHECK.search(prose) and not _OTHER_RUN.search(bare)))


def _narrow(things: NamedThings, clause: str, bare: str, verb: re.Match[str]) -> NamedThings:
    """Keep the files that an act is done to: those before its verb, else those that follow it before a preposition."""
    if len(things.files) < 2:
        return things
    end = _OTHER_ROLE.search(bare, verb.end())
    before = find_named_things(clause[: verb.start()]).files
    after = find_named_things(clause[verb.end() : end.start() if end else len(clause)]).files
    return replace(things, files=before or after or things.files)


def _is_not_done(before: str, verb: str) -> bool:
    """Whether the words before a verb say that it is wanted, planned or a condition."""
    if CONDITION.search(before) or STILL_TO.search(before):
        return True
    if _FINITE.match(verb):  # "the connection to the server was tested"
        return False
    last = max((match.end() for match in _FINITE.finditer(before)), default=0)
    return bool(WISH.search(before, last))


def hide_acts(text: str) -> str:
    """Blank out the verbs of acts, which are held against the record and not against its words."""
    for pattern in _VERBS:
        text = pattern.sub(" ", text)
    return text


def _hide_names(clause: str) -> str:
    """Blank out code and files, whose parts are no verbs."""
    clause = re.sub(r"`[^`]*`", lambda match: "_" * len(match[0]), clause)
    return re.sub(r"\S*[/\\.]\w\S*", lambda match: "_" * len(match[0]), clause)
