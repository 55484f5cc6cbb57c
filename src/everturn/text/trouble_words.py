"""Patterns of what people write when something does not work, and when it does, in six languages.

`derive.failures` says how they are used: a sentence reports trouble if it holds a cue of `text.stance_words` and none of the signs here that it
only sets a condition, asks, demands or tells of another time. Errors that are pasted are known by how they begin.
"""

from __future__ import annotations

import re

from everturn.text.lazy_pattern import lazy_pattern

UNDECIDED = lazy_pattern(
    r"\bno (?:\w+ )?(?:issues?|errors?|problems?)\b|\bquestion is\b|\bwhy (?:we|you|I)\b|\bnot (?:so |quite )?sure\b|\bbut (?:it['’]?s |that['’]?s )?(?:fine|ok(?:ay)?|good)\b",
    re.IGNORECASE,
)
HEADING = lazy_pattern(r"^#+ (?![^\n]{0,60}\b[Ee]rror)", re.MULTILINE)
TYPED_FIRST = lazy_pattern(r"\s*(?:[\w.@~/:-]{1,60} ?)?[$❯%➜»] (\S[^\n]{1,200})\n")
#: An error in the list of problems that an editor copies.
LISTED_ERROR = lazy_pattern(r"\"severity\":\s*8\b[^{}]{0,200}?\"message\":\s*\"([^\"\n]{10,300})\"")
PASTED_ERROR = lazy_pattern(
    r"^(?!.*\b0 errors?\b)((?:[\d.]+ )?(?:npm )?(?:error|fatal|panic|exception|traceback)\b[^\n]{3,300}|[^\n]{0,80}\b\w*(?:Error|Exception): [^\n]{3,300}"
    r"|[^\n]{0,120}\bfailed to\b[^\n]{3,300})$",
    re.IGNORECASE | re.MULTILINE,
)
#: The summary of a test runner with failures.
PASTED_SUMMARY = lazy_pattern(
    r"^[ \t]*(?:(?:Tests?|Test Files|Test Suites):?[ \t]{1,8}[1-9]\d{0,6} failed\b|[=✖✗❌×• ]{0,100}[1-9]\d{0,6} (?:failed|failing)\b(?:,| \||$)|FAILED \((?:failures|errors)=)[^\n]{0,200}$",
    re.MULTILINE,
)
#: How an error begins where no one has caught it: in a browser, a trace, a build.
UNCAUGHT = lazy_pattern(
    r"^[^\n]{0,120}?(?:\bUncaught \S[^\n]{3,300}|\b[A-Z]\w*(?:Error|Exception)\b(?: \[\w+\])?: [^\n]{3,300}|\bTraceback \(most recent[^\n]*|\bUnhandled [A-Z][^\n]{3,300}"
    r"|\bFailed to (?:compile|load|fetch|start|resolve|parse|connect|execute|build|find|create|get)\b[^\n]*|\b[Bb]uild failed\b[^\n]*|\bFailed with result\b[^\n]*|\b(?:[Pp]ars|[Cc]ompil)\w+ [^\n]{0,40}\bfailed\b[^\n]*|\bblocked by CORS policy\b[^\n]*"
    r"|\bnet::ERR_\w+[^\n]*|\b[45]\d\d \((?:[A-Z][a-z]+ ?){1,4}\)|\bHTTP/[\d.]+\]? [45]\d\d\b[^\n]*|\b(?:status(?: code)?|failed|code): ?[45]\d\d\b[^\n]*|\bstatus code [45]\d\d\b[^\n]*|\bECONN(?:REFUSED|RESET)\b[^\n]*|\bno function clause matching\b[^\n]*"
    r"|\bCannot (?:read|set) propert[^\n]*|\bis not (?:a function|defined)\b[^\n]*|\bcommand not found\b[^\n]*|\b[Nn]o such file or directory\b[^\n]*|\b[Uu]nexpected (?:token|identifier|end|indent|EOF|character|symbol)\b[^\n]*|\b(?<!as )(?<!than )(?<!is )(?<!was )expected\.?(?=\n|\Z)|\berror TS\d+:[^\n]*|\bnpm (?:ERR!|error) [^\n]{3,300}|\bERROR:[ \t]{0,4}\S[^\n]{3,300}|^\W{0,4}Error: [a-zA-Z][^\n]{3,300}|\berror: [a-zA-Z][^\n]{3,300}|\bfatal: \S[^\n]{3,300})"
    r"|^\s*File \"[^\"\n]{3,300}\", line \d+, in [^\n]{1,200}"
    r"|^[ \t]{0,8}(?:[\w./\\@-]{1,120}:)?\d{1,6}:\d{1,5}:?[ \t]{1,4}[Ee]rror\b[^\n]{3,300}"
    r"|^[ \t]{0,8}[✗✘❌⨯✖][ \t]{0,3}(?=[^\n]{0,200}\bfailed\b)[^\n]{3,300}"
    r"|^(?!\S{1,120} \()(?=[^\n]{8,300}\n(?:[\w.]{1,80}:\w{1,80} \([^\n]{0,200}\n)?[\w.]{0,60}\b(?:Log|Debug|Logger)[:.]\w{0,20}Error\b)[^\n]{8,300}",
    re.MULTILINE,
)
#: Frames of a stack without line numbers, as programs print them below a warning or an error.
FRAMES = lazy_pattern(r"(?:[\w.]{1,80}:[\w.]{1,80} \([\w.`, ]{0,200}\)\s+){2}")
#: The word for an error in many languages, and words with which a message does not say that there is one.
ERROR_WORD = lazy_pattern(
    r"\b(?:errors?|erro[rs]?|errores|errore|errori|erreurs?|fehler|błąd|błędy|hata|hatası|lỗi|fout|fel|chyba|hiba)\b|ошибк|помилк|σφάλμα|خطأ|त्रुटि|ข้อผิดพลาด|エラー|错误|錯誤|报错|報錯|오류|에러",
    re.IGNORECASE,
)
LEAVES_ERRORS = lazy_pattern(
    r"\b(?:no|any|without|zero|0|if|for|handl\w+|messages?|pages?|codes?|logs?|logging|bound\w+|state|toast|type|class|sem|sin|sans|ohne|keine?|bez|без|нет|eventua\w+)\b|没有|無|ない|如果|없",
    re.IGNORECASE,
)
NAMED_ERROR = lazy_pattern(r"(?:Error|Exception)\b")
#: Reports in Portuguese, Italian, Polish, Russian and Korean, and words that make them a condition or a purpose.
MORE_TROUBLE = lazy_pattern(
    r"\bnão (?:está |estão |estava |mais )?(?:funcion\w+|aparec\w+|abr(?:e|iu|indo)|carreg\w+|salv\w+|atualiz\w+|mostr\w+|vejo)\b|\b(?:deu|dá|dando) erro\b|\bparou de funcionar\b|\best(?:á|ão) (?:quebrad|travad|errad|faltand)\w+"
    r"|\bnon (?:funziona\w*|va\b|si (?:apre|vede|carica|aggiorna)|appare|compare|mostra)|\bd(?:à|anno) errore\b|\bnie (?:działa|widać|otwiera|ładuje|wyświetla)\w*"
    r"|\b(?:по-прежнему |все еще |всё ещё )?не (?:работа|запуска|открыва|отобража|показыва|сохраня|нажима|груз|обновля|приход|вид)\w*|\b(?:пропал|сломал|завис)\w*|\b(?:выда|выпада|появля|вылета|получа)\w+ (?:\w+ )?ошибк\w+"
    r"|(?:안|못) ?(?:돼|되(?!면)|나와|나오(?!면)|열려|보여|보이|됨)|작동하지 않|(?:에러|오류)가 (?:나|발생|떠)",
    re.IGNORECASE,
)
MORE_CONDITION = lazy_pattern(
    r"\b(?:если|чтобы?|когда|caso|para que|quando|se|affinché|jeśli|żeby|gdy)\b|만약|않도록|경우",
    re.IGNORECASE,
)
OPENS_WITH_SO = lazy_pattern(
    r"\W*(?:(?:ok+(?:ay)?|ye(?:ah|s|p)|no|and|but|hm+|right|alright|now|well)\W+)*so\b", re.IGNORECASE
)
ADDRESS = lazy_pattern(r"https?://\S+")
CJK = lazy_pattern(r"[\u3040-\u30ff\u4e00-\u9fff]")
#: A quick look before the sentences of a long message are split.
ANY_CUE = lazy_pattern(
    r"n['’]?t\b|not\b|never|no longer|still|crash|hang|freez|bomb|blows|error|segfault|broken|fail|red\b|stuck|cut off|truncat|corrupt|see no|nothing|none of|missing|break|broke|messed|ruined|keeps?\b|same |gone\b|empty|blank|bug|exception|traceback|duplicat|kaputt|stürzt|fehl|rot\b|nicht|Fehler|"
    r"pas\b|plante|échou|échec|erreur|plus\b|no \w|sigue|cuelga|se (?:cae|rompe|bloquea)|falla|n[ãi][oe]\b|non\b|erro|не\b|ошибк|пропал|сломал|завис|[\uac00-\ud7af]|[\u3040-\u30ff\u4e00-\u9fff]",
    re.IGNORECASE,
)
CONDITION = lazy_pattern(
    r"\b(?:if|unless|should|shouldn['’]?t|would|wouldn['’]?t|might|could(?! ?n['’o]?t\b)|may|must|in case|so (?:that|it|the|we|they|you|\w+ (?:is|are|does|do|will|can))|whether|ensure|make sure|want|wants|need to|needs to|let['’]?s|suppose|imagine|e\.g\.|for example|"
    r"wenn|falls|sollte|damit|si|afin|pour que|devrait|cuando no|para que|debería|until|instead of|rather than|avoid|prevent|expected to|supposed to fail|we can|(?<!as )you can|why not)\b|\bfail(?:s|ing)? (?:loud|fast|closed|open|gracefully)",
    re.IGNORECASE,
)
GENERAL = lazy_pattern(r"\bunless\b|^\W*(?:E\s+)?\w*(?:Error|Exception)\b(?! (?:on|in|when|at|while|after|during)\b)|\b(?:[Yy]ou|u)(?:['’]re| are| were| got| seem)?(?: to be)? (?:stuck|cut off|crash\w*|hanging|frozen)\b|\bquestion is\b|\bhow come\b")  # fmt: skip
#: A clause that says when something happens, up to where the sentence goes on with what "I" see.
CLAUSE = lazy_pattern(
    r"\b(?:when|whenever|where|once|in which|quand|si|cuando)\b(?:(?!\bI(?: (?:still|now|just|also|am|was))? ?\S?$|\bbut\b)[^,;])*$",
    re.IGNORECASE,
)
IMPERATIVE = lazy_pattern(
    r"\W*(?:(?:yes|yeah|ok|okay|sure|please|now|also|then|and|maybe|perhaps|can you|could you),? )*(?:make|add|tweak|adjust|modify|extract|redesign|simplify|read|remember|implement|create|handle|write|check|verify|ensure|update|change|remove|delete|run|rerun|re-run|show|log|return|throw|raise|report|display|skip|ignore|mark|find|"
    r"look|list|explain|describe|review|refactor|move|rename|use|keep|allow|support|test|document|print|retry|catch|replace|don['’]?t|do not|never|always)\b",
    re.IGNORECASE,
)
LEADS_AWAY = lazy_pattern(
    r"\b(?:since|because|though|while|given that)\b[^,;]*$|\bnot (?:so |quite )?sure\b|\b(?:i['’]d|would) rather\b|\bremember that\b",
    re.IGNORECASE,
)
ASKS = lazy_pattern(r"\W*(?:does|do|is|are|can|could|will|would|what|how|which|who|when|did|has|have|was|were)(?:n['’]?t)?\b", re.IGNORECASE)  # fmt: skip
#: A question whose mark is left out.
ASKS_OF = lazy_pattern(r"\W*\w+ (?:it|this|that|these|the|there|my|our|your?|we|i|any|all)\b", re.IGNORECASE)
AGAIN = lazy_pattern(
    r"\b(?:still|again|nope|same (?:error|issue|problem|thing)|keeps|no change|immer noch|weiterhin|wieder|toujours|encore|sigue|otra vez)\b|まだ|また|还是|仍然|又",
    re.IGNORECASE,
)
CHECK_WORDS = lazy_pattern(
    r"\b(?:tests?|lint(?:er|ing)?|builds?|type ?checks?|typecheck|types|ci|pipeline|workflow|actions?|compil(?:e|es|ation)|eslint|tsc|mypy|pytest|jest|ruff)\b",
    re.IGNORECASE,
)
CHECK_KINDS = {
    "ci": "ci", "pipeline": "ci", "workflow": "ci", "action": "ci", "actions": "ci", "linter": "lint",
    "builds": "build", "compiles": "build", "compilation": "build", "type check": "types", "type checks": "types", "pytest": "test", "jest": "test", "ruff": "lint",
}  # fmt: skip
PASTED = lazy_pattern(r":[ \t]*\n\s*(?:(?:```|~~~)[^\n]*\n\s*)?([^\n]+)")
QUOTED = lazy_pattern(r"`([^`\n]{3,120})`")
TYPED = lazy_pattern(
    r"^(?:[$❯%>] )?((?:bun|npm|pnpm|yarn|npx|node|python3?|go|cargo|make|uv|\./)\S* [^\n]{1,120})$", re.MULTILINE
)
COMMAND = lazy_pattern(r"[\w./@-]+(?: [^\s()]+){1,12}")
TERM = lazy_pattern(r"[^\W\d_]{4,}")
COMMON = frozenset(
    ("this that when with still have from they them then there where what which your just like only also into some does "
     "doesn isn seem seems better again error errors issue problem fails failed failing work working about after because "
     "here same show shows look looks need want please would could should").split()
)  # fmt: skip
CONFIRMS = lazy_pattern(
    r"^\W*(?:ok(?:ay)?|yes|yep|yeah|ah|oh|wow|alright)?\W*(?:great|perfect|awesome|nice|excellent|amazing|cool|good(?! morning| idea| question| catch| point)|thanks|thank you|thx|lgtm|brilliant|fantastic|"
    r"super|perfekt|prima|danke|passt|parfait|merci|perfecto|gracias|genial|完璧|ありがとう|谢谢|完美)\b|"
    r"\b(?:it|that|this|everything|all|now|they|tests?|ci|build|fix)(?:['’]s| is| are| all| now)* (?:works?|working|fixed|pass(?:es|ing)?|green|good|solved|resolved|looks? (?:good|great|right))\b|"
    r"\b(?:works|fixed|working|passes) now\b|\bthat did it\b|^\W*(?:works|fixed|solved)\b|"
    r"\b(?:geht|funktioniert|klappt|läuft) (?:jetzt|wieder|nun)\b|\bça (?:marche|fonctionne)(?! pas| plus| toujours pas)\b|\bya funciona\b|"
    r"動きました|動いた|直りました|直った|うまくいきました|好了|可以了|正常了|解决了|修好了|没问题了|成功了",
    re.IGNORECASE,
)
#: A sentence, up to a reservation.
OPENING = lazy_pattern(r"[^.!?:;\n]{1,160}?(?=\b(?:but|however|except|although|aber|mais|pero)\b|[.!?:;\n]|$)[.!?]{0,5}", re.IGNORECASE)  # fmt: skip
WORKS = lazy_pattern(
    r"(?<!\bI )(?<!\bwe )(?<!\bto )(?<!\bI am )(?<!\bI['’]m )\b(?:works?|working|worked|fixed|solved|resolved|passing|(?:is|are|all|seems?) gone|(?:are|is|be) back|(?:looks?|is|are|all) (?:now )?(?:good|fine|right|perfect|correct|accurate)|"
    r"(?:much|lot|way) better|better now|fine now|now I (?:can )?see|I (?:can )?see (?:it|them|that) now|great(?:e)? job|well done|nice work|(?:nice|great|perfect|good|cool|awesome|excellent)\W{1,3}(?:now|next)|no (?:more |longer |\w+ ){0,2}(?:issues?|errors?|problems?))\b|正确了|正常了|できました",
    re.IGNORECASE,
)
SHOWS_SUCCESS = lazy_pattern(r"\b[1-9]\d* passed\b(?![^\n]*\bfailed)|BUILD SUCCESS|✓ built in|[Cc]ompiled successfully|All checks passed")  # fmt: skip
CONFIRMS_REST = lazy_pattern(
    r"\b(?:everything|all the rest|the rest|all) else\b.{0,30}\b(?:works?|good|fine)\b|\bthe rest (?:works|is fine)\b|\bthat works\b(?: now| perfectly| fine| great)?,? but\b|"
    r"\balles andere (?:geht|funktioniert|läuft)\b|\btout le reste (?:marche|fonctionne)\b|\btodo lo demás funciona\b|他は(?:動|問題な)|其他(?:都)?(?:正常|没问题|可以)",
    re.IGNORECASE,
)
DOUBTS = lazy_pattern(
    r"\bdo (?:that|it|this)\b|\bgo ahead\b|\bproceed\b|\bbut\b|\bhowever\b|\bexcept\b|n['’]t\b|\bnot\b|\bstill\b|\bonly\b|\bif\b|\bmake sure\b|\bensure\b|\bshould\b|\?|\baber\b|\bnicht\b|\bmais\b|\bpas\b|\bpero\b|但|不|ない|ません|が、|吗|^\W*good\b.*\bfail",
    re.IGNORECASE,
)
#: A warning, and a line of a program that would print an error.
PRINTS_ERROR = lazy_pattern(
    r"^\W*[Ww]arn(?:ing)?\b|\w\(\s*[frb]?[\"'`]|[;{]$|=>|\binstanceof\b|^\W{0,3}(?:return|if|raise|throw|catch|except|assert)\b"
)
#: What programs print before each line of others: the name of a container, a time.
MARGIN = lazy_pattern(r"^(?:[a-z][\w.-]{0,40}[ \t]*\|[ \t]|\[?\d\d:\d\d:\d\d[\d.,]*\]?[ \t]+)+", re.MULTILINE)
FRAME = lazy_pattern(r"Traceback \(most recent|File \"")


# --- what an answer says of its own calls ---
ADMITS = lazy_pattern(
    r"\b(?:fail(?:s|ed|ing|ure|ures)?|could(?:n['’]t| not)|can(?:not|['’]t)|unable to|(?:did|does|do|was|were|is)(?:n['’]t| not) (?:work|run|start|succeed|able|possible|complete|available|running)\w*|blocked|denied|refused|crash(?:es|ed)?"
    r"|unsuccessful|errors?|pre-existing issues?|timed out|fehlgeschlagen|schlug fehl|scheiter\w+|konnte nicht|échou\w+|échec|erreur|n['’]a pas pu|impossible|fall(?:ó|a|aron)|no (?:pude|se pudo|pudo)|falh(?:ou|a|aram)|não (?:foi possível|consegui)|erro|non (?:è riuscito|riesco)|fallit\w)\b"
    r"|失敗|できません|できなかった|エラー|失败|未成功|无法|報錯|报错|错误|실패|오류|не удалось|ошибк",
    re.IGNORECASE,
)
#: Words that say of a failure that it was there before, or does no harm: whoever says so leaves it as it is.
LETS_BE = lazy_pattern(
    r"\bpre-?existing\b|\b(?:already|also) (?:fail(?:s|ed|ing)?|broken)\b|\b(?:not|un) ?related to (?:my|our|this|these|the)\b|\bnot caused by\b|\bbut (?:it['’]?s|that['’]?s|that is|this is) (?:fine|ok(?:ay)?)\b|\bcan be (?:safely )?ignored\b"
    r"|\b(?:bereits|schon) vorher\b|\bbestand(?:en)? (?:schon|bereits)\b|\bmacht (?:aber )?nichts\b|\bunabhängig von (?:unser|mein|dies)\w*|\bpréexistant\w*|\bpas grave\b|\bsans rapport avec\b|\bpreexistentes?\b|\bno (?:pasa nada|importa|est[áa]n? relacionad\w+)\b|\bpré-?existentes?\b|\bnão (?:tem problema|importa|est(?:á|ão) relacionad\w+)\b"
    r"|既存の|もともと|関係(?:ない|ありません|のない)|無関係|問題(?:ない|ありません)|之前就(?:有|存在)|原本就|已有的|原有的|无关|不影响|没关系|可以忽略|괜찮|기존|무관",
    re.IGNORECASE,
)
#: Words that say that a failure is over, or was expected.
OVERCOME = lazy_pattern(
    r"\b(?:fixed|resolved|solved|instead|work(?:ed|ing)? around|now (?:works?|pass(?:es)?)|initially|at first|retried|succeeded|as expected|expected to|behoben|gelöst|stattdessen|corrigé|résolu|corregid[oa]|resuelto|corrigid[oa]|resolvid[oa])\b|修复|已解决|解決|修正し|改用",
    re.IGNORECASE,
)
WORD = lazy_pattern(r"[A-Za-z0-9_]{3,}")
#: The name of a file, a program or an identifier, without the folders before it: it is the same in every language.
NAME = lazy_pattern(r"(?<![\w.-])([A-Za-z0-9_]+(?:[._-][A-Za-z0-9_]+)+|[a-z]+[A-Z]\w+)(?![\w/\\])", re.ASCII)
PATH_WORD = lazy_pattern(r"\S*[/\\]\S*")
IDLE_WORDS = frozenset(
    "the and for not with from this that was were are has have but you your its could failed fails failure error errors exit code run running command cannot unable usr bin home users".split()
)


# --- requests that point at something else ---
#: What a document is called that says what to do.
_DOCUMENT = (
    r"(?:plans?|specs?|specifications?|briefs?|proposals?|tickets?|stor(?:y|ies)|(?:task )?documents?|docs?|notes?|handover|handoff|prd|rfc|design|instructions?|prompt|"
    r"dokument\w*|spezifikation\w*|vorschlag|cahier|sp[ée]cifications?|propositions?|documento|especificaci[oó]n|especifica[çc][aã]o|propuesta|proposta|plano)"
)
#: A request whose object is a document that stands elsewhere.
POINTS_TO_DOCUMENT = lazy_pattern(
    rf"\b(?:this|that|these|the (?:attached|above|following|referenced|new|same)|attached|dies(?:en|e|es|er|em)|ce(?:tte|t)?|ces|est[ea]s?|es[ea]s?|dess[ea]|n?est[ea])\s+(?:\w+\s+)?{_DOCUMENT}\b"
    rf"|\b(?:implement|execute|follow|carry out|start|do|build|apply|work on|setze|befolge|umsetzen|applique|suis|ex[ée]cute|implementa|ejecuta|sigue|execute|siga)\s+(?:the|den|die|das|le|la|el|o|a)\s+(?:\w+\s+)?{_DOCUMENT}\b"
    r"|(?:この|上記の|添付の|その)(?:\w{0,6})?(?:計画|プラン|仕様書?|設計書?|文書|ドキュメント|指示書?|提案)|(?:这个|该|上述|附件的?|按照?|根据|這個|按照|根據)(?:\w{0,6}?)(?:计划|方案|文档|规格|需求|设计|計劃|文檔|規格)",
    re.IGNORECASE,
)
#: A file that can say what to do.
DOCUMENT_FILE = lazy_pattern(r"[^\s`'\"()\[\]<>，。、]{1,200}\.(?:mdx?|mdc|markdown|txt|rst|adoc|org)\b", re.IGNORECASE)
#: What a request says that has a document carried out, and not changed.
CARRIES_OUT = lazy_pattern(
    r"\b(?:implement|execut|follow|build|do|start|begin|continue|proceed|work|appl|carry|go|see|per|according|based|described?|next|phase|step|task)(?:\w{0,5})\b"
    r"|\b(?:setze?|umsetz\w*|befolge?|ausf[üu]hr\w*|gem[äa](?:ß|ss)|laut|nach|applique[rz]?|suis|suive[rz]|ex[ée]cut\w+|selon|impl[ée]ment\w+|ejecut\w+|sigue|seg[úu]n|siga|fase|etapa)\b"
    r"|根据|按照?|执行|实现|实施|依照|遵循|開始|開發|执行|根據|に従|に沿|を実装|を実行|を進め",
    re.IGNORECASE,
)
#: Words of a request that ask for help with something.
_NEEDY = r"help|fix|solve|resolve|debug|check|wrong|why|error|issue|problem|bug|look|image|screenshot|ajud|ayud|resolv|corrig|arregl|erro|problema|aide|r[ée]sou|probl[èe]me|hilf|beheb|l[öo]se|fehler|修|解决|解決|处理|检查|帮|問題|问题|错|エラー|直|助|教|怎么|为什么|なぜ"
NEEDS_HELP = lazy_pattern(_NEEDY, re.IGNORECASE)
#: Words of a request that do not say what it is about.
_EMPTY = (
    r"please|pls|plz|kindly|can|could|would|will|you|u|we|help|me|us|my|i|i['’]m|im|need|want|to|fix|fixing|fixed|solve|resolve|debug|check|look|looking|at|into|see|read|this|that|it|these|those|them|the|an?|"
    r"errors?|issues?|problems?|bugs?|here|there|out|for|with|what|what['’]?s|whats|is|are|wrong|why|how|do|does|did|again|still|not|now|and|ok|okay|hi|hey|hello|so|image|images|screenshot|picture|"
    r"attached|above|below|following|same|got|getting|get|gives?|shows?|have|has|in|on|of|about|from|happen(?:ed|ing|s)?|go|ahead|try|just|also|all|take|"
    r"me|ajud[ae]r?|ayud[ae](?:me)?|resolv[ae]r?|resolver|corrig[ei]r?|arregl[ae](?:r|lo)?|isso|isto|esto|eso|por|favor|o|a|el|la|os|as|um|uma|un|una|erro|error|problema|que|qué|pode|puedes|"
    r"aide(?:-moi|z-moi)?|corrige[rz]?|r[ée]sou(?:dre|s)|ce(?:ci|la|tte|t)?|[çc]a|le|les|l['’]erreur|erreur|probl[èe]me|s['’]il|te|vous|pla[iî]t|peux-tu|moi|"
    r"bitte|hilf|mir|kannst|du|das|den|die|diesen|dieses|beheb(?:e|en)|l[öo]se|fehler|problem|behebe|mal|an|schau"
)
NO_OBJECT = lazy_pattern(
    rf"\[image[^\]\n]{{0,20}}\]|\b(?:{_EMPTY})\b"
    r"|请|帮我?|帮忙|修复|解决|处理|检查|看看?|一下|这个|这|那个|那|问题|错误|报错|的|吧|了|下|还是|仍然|有|并|没有?|任何|反应|再|為什麼|为什么|怎么|回事|怎么办|如何"
    r"|これ|この|それ|エラー|問題|を|が|の|は|です|ます|か|直し|修正し|解決し|見|教え|助け|て|ください|くれ|お願いします|してほしい|なぜ|どうして",
    re.IGNORECASE,
)
#: How an answer begins that only says what it will do, or agrees.
ONLY_BEGINS = lazy_pattern(
    r"(?:(?:ok(?:ay)?|sure|great|perfect|certainly|of course|alright|right|yes|good|got it|understood|absolutely|excellent|thanks|thank you|sorry|claro|vale|perfecto|bien s[ûu]r|d['’]accord|parfait|gern|klar|natürlich|verstanden|好的|当然|明白了|了解|はい|承知|もちろん)\b[\s,.!—–:。、，！-]*)*"
    r"(?:i['’]ll|i will|i['’]m|i am|let me|let['’]s|first,?|now,? |to (?:fix|help|do)|you['’]re|your? (?:are|is)|here['’]s|here is|here are|i can|i need|i['’]d|i see|i understand|looking|checking|reading|analy[sz]ing|investigating|"
    r"je (?:vais|suis)|ich (?:werde|schaue|sehe)|lass|voy a|vou|deixe|permíteme|vamos|まず|これから|確認し|見て|调?我来|我先|让我|我会|我将|我现在|首先|先|正在|接下来)|(?:ok(?:ay)?|sure|好的|了解|はい)[\W]*$",
    re.IGNORECASE,
)
#: A request that only has something looked at.
ONLY_LOOKS = lazy_pattern(
    r"\W*(?:please |can you |could you |kannst du |peux-tu |puedes |pode )?(?:look|check|scan|review|read|analy[sz]e|explain|understand|see|show|list|go through|explore|study|summari[sz]e|tell me|"
    r"schau|pr[üu]fe?|lies|erkl[äa]re?|zeig|analysiere|regarde|lis|analyse|explique|montre|v[ée]rifie|mira|revisa|lee|analiza|explica|muestra|olha|veja|leia|analis[ae]|explique)\b"
    r"|查看|看看|看一下|检查|阅读|分析|了解|解释|总结|調べ|見て|確認し|説明|読",
    re.IGNORECASE,
)
#: A sentence that demands something without an order.
DEMANDS = lazy_pattern(
    r"\b(?:should|must|needs? to|need(?:s|ed)?|has to|have to|want(?:s|ed)?|would like|soll(?:te|ten|en)?|muss|müssen|doit|doivent|devrait|il faut|debe|deben|debería|tiene que|deve|devem|precisa)\b"
    r"|应该|需要|必须|要求|べき|必要|してほしい|たい",
    re.IGNORECASE,
)
#: What an answer says of a change that shows only later, and of trouble that lasts until something else is done.
TAKES_EFFECT = lazy_pattern(
    r"\b(?:won['’]t|will not|does(?:n['’]t| not)|(?:is|are)(?:n['’]t| not)|not yet|still|remains?)\b[^.\n]{0,100}\buntil\b|\b(?:wirkt|greift|gilt|wirksam)\b[^.\n]{0,60}\berst\b|\berst\b[^.\n]{0,60}\b(?:wirksam|sichtbar|behoben)\b"
    r"|\bhasta que\b|\bjusqu['’]à ce que\b|\bne (?:prendra|sera)\b[^.\n]{0,60}\bqu['’]après\b|\baté que\b|まで(?:は)?[^。\n]{0,40}(?:ません|ない|残)|(?:之后|以后|后)才(?:会|能)|直到[^。\n]{0,40}(?:才|为止)|才会生效",
    re.IGNORECASE,
)
