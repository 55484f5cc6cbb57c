"""Words by which people agree, refuse, forbid, allow, change their mind, offer and put off, in six languages.

One table for English, German, French, Spanish, Japanese and Chinese, shared by what reads the words of a person or an agent
(`derive.intent`, `derive.decisions`, `derive.open_items`, `derive.session_state`) and by what holds a model's statement against the record
(`restore.claim_polarity`, `restore.claim_acts`, `restore.claim_speech`).
"""

from __future__ import annotations

import re

from everturn.text.lazy_pattern import lazy_pattern


def _words(*alternatives: str) -> re.Pattern[str]:
    """Return the pattern of these words, in any case."""
    return lazy_pattern("|".join(alternatives), re.IGNORECASE)


_AGREES = (
    r"y|yes|yep|yeah|yup|ya|ok(?:ay)?|k|sure|fine|good|go|go ahead|go for it|do it|do that|do so|please do|yes please|proceed|"
    r"sounds good|looks good|lgtm|perfect|great|correct|right|exactly|agreed|approved?|ship it|make it so|let['’]?s do it|let['’]?s go|"
    r"ja|jo|gut|einverstanden|gern(?:e)?|klar|passt|mach(?: das| es)?|bitte|genau|oui|d['’]accord|vas-y|parfait|sí|si|vale|dale|claro|adelante|de acuerdo|"
    r"はい|お願い|いいね|お願いします|よろしく(?:お願いします)?|了解|いいです(?:ね)?|進めて(?:ください)?|是|是的|好|好的|可以|行|没问题|继续|同意|对"
)
#: A reply that does no more than agree, to be matched in full.
APPROVAL = _words(
    rf"(?:{_AGREES})"
    r"(?:[ ,.!、。！]+(?:please|thanks?|thank you|do it|go ahead|do that|proceed|go for it|sounds good|looks good|bitte|danke|merci|gracias|お願いします))*"
)
#: The beginning of a message that agrees.
AGREEMENT = _words(rf"\s*(?:{_AGREES})(?!\w)")
#: Phrases with a negation that deny nothing, or take a negation back.
NO_NEGATION = _words(
    r"\b(?:not (?:only|just|least|sure)|whether or not|no matter|no doubt|why not|if not|nicht nur|pas seulement|no s[óo]lo"
    r"|no objections?|(?:not|n['’]t) (?:mind|object|opposed|against)|nichts dagegen|aucune objection|pas d['’]objection|ninguna objeción|no le importa)\b"
    r"|(?:構|かま)(?:わない|いません)|不介意|不反对"
)
#: What is neither demanded nor forbidden.
OPTIONAL = _words(
    r"\b(?:not (?:strictly |really )?(?:necessary|needed|required|mandatory|obligatory|compulsory)|no need|need not|needn['’]?t"
    r"|(?:do|does|did)(?: not|n['’]?t) (?:have to|need|require|insist)|unnecessary|optional(?:ly)?|superfluous|dispensable"
    r"|nicht (?:nötig|notwendig|erforderlich)|(?:muss|musst|müssen|brauchst?|brauchen)\b.{0,40}\bnicht|unnötig"
    r"|pas (?:nécessaire|besoin|obligatoire)|facultati\w+|no (?:hace falta|es necesari\w|es obligatori\w)|opcional)\b"
    r"|必要(?:は|が)?(?:ない|ありません)|しなくても?(?:いい|よい)|不必|不需要|无需|無需|没必要"
)
#: Negations that reach forward to the end of the clause.
DENIAL = _words(
    r"\b(?:not|never|no longer|no|nor|neither|none|nobody|nothing|cannot|without|instead of|rather than|except"
    r"|forbid(?:s|den|ding)?|forbade|prohibit(?:s|ed|ing)?|ban(?:s|ned|ning)?|barred|disallow(?:s|ed)?|avoid(?:s|ed|ing)?"
    r"|refrain(?:s|ed|ing)?|refus(?:e|es|ed|ing)|reject(?:s|ed|ing)?|rul(?:es?|ed|ing) out|(?:decide[sd]?|advise[sd]?|is|are|was|were|vote[sd]?|argue[sd]?|warn(?:s|ed)?) against|stop|stay away|keep away"
    r"|hands off|objects? to|opposes?|opposed|vetoe[sd]|must\s?n['’]?t|(?:do|does|did|wo|ca|should|must|is|are|was|were|has|have|had|would|could)n['’]t"
    r"|dont|doesnt|statt|anstatt|anstelle|ohne|niemals|nie|verbietet|verboten|untersagt|vermeide\w*"
    r"|jamais|sans|plutôt que|au lieu de?|interdit|éviter?|évitez|nunca|jamás|sin|en (?:lugar|vez) de|prohíbe|prohibido|evitar?|evite"
    r"|n[ãa]o|nem|sem|em vez de|proibid[oa]|proíbe|не|нет|нельзя|без|никогда)\b|금지"
)
#: Negations that cover the clause they stand in.
DENIED_CLAUSE = _words(
    r"\b(?:is|are|was|were|be|remains?|stays?)\s+(?:strictly |explicitly |currently )?(?:forbidden|prohibited|banned|disallowed|off[- ]limits|unwanted"
    r"|taboo|out of the question|ruled out|refused|rejected|avoided|skipped|omitted|left out|untouched|not (?:allowed|permitted|wanted|acceptable|okay|ok|an option|to be))\b"
    r"|\b(?:must|should|may|can|shall|will)(?: not|n['’]t|not) be\b|\bleave\b.{1,60}\b(?:alone|untouched|as (?:is|it is|they are))\b"
    r"|\bnicht\b|\bkein\w*\b|\bn['’e]\s?.{0,40}\b(?:pas|jamais|plus|aucun\w*)\b|^\s*pas\b"
    r"|\b(?:ist|sind|bleib\w+)\b.{0,40}\b(?:verboten|untersagt|unerwünscht|ausgeschlossen)\b|\b(?:est|sont|reste)\b.{0,40}\b(?:interdite?s?|proscrite?s?|exclue?s?)\b"
    r"|\b(?:está|están|es|son|é|são|estão|fica)\b.{0,40}\b(?:prohibid[oa]s?|proibid[oa]s?|descartad[oa]s?)\b"
    r"|ない(?:で|こと|よう)|て(?:い)?ない|ておらず|[はもが]なく|なかった|れない|できない|[はがも]ない|ない$|しない|ません|禁止|な(?:いで|くては)|するな|ずに|ではなく|지\s?(?:않|마|말|못)|안\s?(?:된|돼|되)|없(?:다|음|이|는)|(?<![差要是])不(?![仅但过同断只管论久错少妨如])|不要|不得|不能|不可|不许|不許|别|勿|没有|未|不是|不用"
)
#: Somebody chooses something else than before.
REVISION = _words(
    r"\b(?:on second thought|actually|changed? my mind|scratch that|forget (?:that|it|about)|instead|rather|never ?mind|let['’]?s (?:switch|go back|not)|switch(?:ed)? to|no longer"
    r"|doch lieber|lieber|stattdessen|doch nicht|plutôt|finalement|à la place|mejor|en su lugar|al final)\b|やっぱり|やはり|代わりに|还是|改用|改成|换成"
)
#: Somebody takes back what was decided, whether or not something else takes its place.
TAKEN_BACK = _words(
    r"\b(?:revert|undo|roll(?:ed)? back|scrap|drop|remove|forget|cancel|never ?mind|nvm|scratch that|take (?:it|that) back|go back to|no longer (?:want|need)"
    r"|rückgängig|verwirf|vergiss|streich\w*|doch nicht|annule[rz]?|oublie[rz]?|retire[rz]?|deshaz|revierte|olvida|cancela|quita)\b"
    r"|元に戻|取り消|やめて|やめます|撤销|撤回|取消|还原|不要了|算了"
)
#: Said of work that was not done: "not yet", "hasn't been".
NOT_YET = r"(?:(?:not|haven['’]t|hasn['’]t|isn['’]t|aren['’]t|wasn['’]t|nothing|noch nicht|pas encore|todavía no|aún no)(?: yet| been)*)"
#: Conditions: what follows them need not have happened.
CONDITION = _words(
    r"\b(?:before|once|if|when|unless|until|whether|bevor|sobald|falls|wenn|avant|quand|si|antes|cuando)\b|たら|なければ|如果|之前"
)
#: Words after which a verb tells of something wanted or planned.
WISH = _words(
    r"\b(?:to|should|must|shall|will|would|can|could|may|might|needs?|plan(?:s|ned)?|wants?|wanted|wishes|asks?|asked|requires?|requested|requests|demands?"
    r"|suggest(?:s|ed)?|propos(?:es|ed)|recommend(?:s|ed)?|consider(?:s|ed)?|ready|soll(?:en|te)?|muss|müssen|wird|werden|doit|doivent|debe|deben)\b|べき|必要|予定|应该|需要|将"
)
#: The same with a finite verb: "is still to".
STILL_TO = _words(
    r"\b(?:ha(?:s|ve|d) (?:yet )?to|(?:is|are|was|were) (?:yet |still |going |about |supposed |planned |ready |meant )*to)\b"
)
STEPS_HEADING = lazy_pattern(
    r"^[ \t]*(?:#{1,6}[ \t]+|\*\*|__)?(?:(?:recommended|suggested|possible|immediate|concrete|your|the|my)[ ])?"
    r"(?:next[ ](?:\w+[ ])?steps?|next|remaining(?:[ ](?:work|tasks|steps|items|issues))?|(?:still[ ])?to[ -]?dos?|still[ ](?:open|to[ ]do|missing)|"
    r"follow-?[ ]?ups?|what(?:['’]s|[ ]is|[ ]remains)?(?:[ ](?:left|next|remaining))?(?:[ ]to[ ]do)?|left[ ]to[ ]do|open[ ]items|"
    r"deferred|not[ ]done(?:[ ]yet)?|known[ ](?:gaps|limitations|issues)|loose[ ]ends|blockers?|blocked|caveats?|action[ ](?:required|items)|recommendations|suggested[ ](?:changes|improvements)|manual[ ]steps|what[ ]you[ ]need[ ]to[ ]do|pending(?:[ ]\w+)?)"
    r"[ \t]*(?:\([^()\n]{0,80}\))?[ \t]*(?:\*\*|__)?[ \t]*:?[ \t]*(?:\*\*|__)?[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
NEXT_STEP = _words(
    r"(?:(?:natural|logical|suggested|recommended|possible|immediate|good) next steps?\b|next,|next(?: up| step| i['’]?ll| i will| we)\b|the next step\b|remaining\b[^:\n]{0,60}:|still (?:to do|open|missing):|"
    r"(?:i['’]ll|i will) next\b|(?:what['’]s|what is) left\b|"
    r"(?:next(?: steps?| up)?|remaining(?: work)?|pending|to-?do|follow-?ups?|deferred|not done(?: yet)?|left to do|blocked on)(?:\*\*|__)?:)"
)
#: Sentences at the end of an answer that leave something to do.
LEFT_TO_DO = _words(
    r"\bif you(?:['’]d)? (?:like|want|prefer) (?:me|us) to\b|\b(?:just )?(?:let me know|say the word|tell me) (?:if|when|and|whether)\b|\bsay the word\b",
    r"\b(?:once|after|when|as soon as) (?:you|that|it|this|the [\w ]{2,40})\b.{2,80}\b(?:i['’]ll|i will|i can|we can|you can|we['’]ll)\b|\bonce you\b",
    r"\bready (?:for|to be|when)\b(?! use)|\bwhen(?:ever)? you(?:['’]re| are)(?: ready)?\b|\bwhenever you\b",
    rf"\b{NOT_YET} (?:pushed|committed|merged|published|deployed|released|implemented)\b|\b(?:still|remains?|left) (?:uncommitted|unpushed|unmerged|untested)\b",
    r"\bwon['’]t (?:take effect|work|apply|be visible) until\b|\bstill (?:open|stale|pending|needs?|missing|queued|requires?|has to|have to|to be done|outstanding)\b",
    r"\bworth (?:watching|a (?:separate|follow|quick|look|second|thank)|checking|doing)\b|\b(?:as )?a follow-?up\b",
    r"\b(?:another|the next|a later) (?:agent|session|phase|pr)\b.{0,40}\b(?:will|can|should|adds?)\b|\bwill (?:pick up|catch) th",
    r"^\W*(?:task|step|phase) \d+\b.{0,60}\b(?:manual|pending|remains?|left|you)\b|\bci is (?:queued|running|pending)\b|\b(?:run|job|build|workflow) is (?:queued|still running)\b",
    r"\b(?:sag(?:en)? (?:sie|du)? ?(?:mir )?bescheid|wenn du (?:willst|möchtest)|noch nicht (?:gepusht|committet)|als nächstes)\b",
    r"\b(?:si vous (?:voulez|souhaitez)|dites-moi|prochaine étape|reste à)\b|\b(?:si quieres|avísame|próximo paso|queda(?:n)? por)\b",
    r"\b(?:nếu (?:bạn|anh|chị|em|cần|muốn)|(?:jika|kalau|bila|apabila) (?:anda|kamu|mau|ingin|perlu|butuh)|если (?:вы |ты )?(?:хотите|хочешь|нужно|захотите)|якщо (?:хочете|хочеш|потрібно)|jeśli (?:chcesz|wolisz)|ister(?:seniz|sen)|se (?:vuoi|preferisci|quiser|preferir|desejar)|als je (?:wilt|wil)|pokud (?:chcete|chceš)|om du vill|hvis du vil)\b|원하(?:시면|신다면)|필요하(?:시|)면|إذا (?:أردت|كنت تريد)|यदि आप|अगर आप",
    r"\b(?:bước tiếp theo|langkah (?:selanjutnya|berikutnya)|следующи[йм] шаг|наступний крок|następny krok|sonraki adım|prossim[oi] pass[oi]|volgende stap|próximos? passos?|další krok|nästa steg|(?:chưa|belum) (?:di)?(?:commit|push|deploy|merge|test|uji)|ещё не|дайте знать|fammi sapere|daj znać|laat (?:me|het) weten|me avis[ae]|avise-me)\b|다음 단계|아직 [^.\n]{0,24}(?:않|안 )",
    r"(?:次のステップ|必要であれば|必要なら|残りの|まだ.{0,12}(?:していません|未)|下一步|如果(?:你|您)?需要|尚未|还没有)",
)
#: The same in the last paragraphs, where milder words are enough: conditions, limits, what was not done, what somebody has to do.
LEFT_AT_END = _words(
    r"\bif you(?:['’]d| would)? (?:like|want|prefer|need|wish|decide|see|hit|notice)\b|\bif (?:anything|something|any|it|that|the|validation|this)\b.{3,80}\b(?:tell|ping|let me|i['’]ll|i can|we can)\b",
    r"\b(?:happy|glad) to\b|\bi can (?:also|then|next)\b|\bcan be added\b|\bup to you\b|\byour (?:call|decision|turn)\b|\buntil (?:you|we|the next|it)\b",
    r"\b(?:is|are|remains?|left|leaves|still|stays?) (?:\w+ )?(?:uncommitted|unpushed|unmerged|untested|unverified|unresolved)\b|\bnot yet\b",
    r"\b(?:has|have)(?:n['’]t| not)(?: yet| been| officially)* \w{3,}|\b(?:not|nothing)(?: been)? (?:tested|verified|run|installed|reviewed|addressed|started|wired|checked)\b",
    r"\b(?:could(?: not|n['’]t)|unable to|was(?: not|n['’]t) able|cannot|can['’]t) (?:be )?(?:\w+ly )?(?:run|test|verif|confirm|check|push|reach|connect|access|reproduce|complete|build|install)\w*",
    r"\bworth \w+ing\b|\b(?:future|later|separate|follow-?up) (?:prs?|work|release|change|session|phase|task|pass|issue|step|run)\b",
    r"\byou(?:['’]ll| will)? (?:still )?(?:need|have) to\b|\byou (?:should|must) (?!see|now|be able|get|find|have)|\bneeds? (?:your|manual|review|an?other|to be|to land)\b|\b(?:make sure|remember|don['’]t forget) to\b|\brequires? (?:your|manual|a restart)\b",
    r"\bwaiting (?:on|for)\b|\bahead (?:of (?:origin|main|the remote)\b|by \d|\W?\d)|\bbut (?:it|this|that|they) failed\b|\bfailed (?:due to|because)\b|\bfollow-?up (?:\w+ )?(?:issue|ticket|pr|task)\b|\b(?:this|that|it|which) should (?:now )?(?:fix|work|resolve|solve)\b|\bdid(?: not|n['’]t) (?:succeed|complete|finish)\b|\bremain(?:s\b|ing (?!~?\d))|\bpending\b|\boutstanding\b|\bout of scope\b|\bdeferred\b|\bblocked (?:on|by)\b|\bnot (?:included|covered|part of)\b|\bstill (?:fail|ha[sv]e?|need|open|todo|to)\w*",
    r"\b(?:noch (?:offen|nicht|zu)|falls du|du musst|bei bedarf|übrig)\b|\b(?:il reste|si tu (?:veux|préfères)|il faut encore|pas encore|vous devez)\b|\b(?:falta(?:n)?|todavía|aún no|si (?:prefieres|necesitas)|tienes que)\b",
    r"まだ|残って|未(?:対応|実装|確認|完了)|今後|もし.{0,20}(?:場合|なら|たら)|必要があり|还需要|尚|未(?:完成|提交|测试)|如果.{0,12}(?:想|要|希望)|接下来|后续",
)
#: An order at the very end of an answer.
ORDER_TO_PERSON = _words(
    r"(?:(?:then|now|please|finally|just|next),?\s+)?(?:run|push|restart|reload|rerun|re-run|test (?:it|this|that|the|with|by)|try|verify|merge|tag|review|deploy|install|retry|"
    r"confirm|suspend|rebuild|publish|release|refresh|approve|starte?|teste|führe|lance[rz]?|ejecuta|prueba)\b(?!\s+(?:passe?[sd]|is|are|was|were|time|suite)\b)"
)
DONE_WITH = _words(
    r"\b(?:files?|changes?)\b.{0,40}\b(?:pre-?existing|unrelated)\b|\bunrelated\b.{0,60}\bremains?\b|\b(?:but|and) now (?:pass|work)|\b(?:further|any|more|additional) (?:assistance|help|questions|changes|adjustments|modifications|refinements?)\b|\bany of (?:those|these|the above)\b(?! .{0,40}\bcan\b)|\beven if\b|\bfeel free to\b|\bweitere fragen\b|\bautre chose\b|\balgo más\b|他に何か|其他(?:问题|需要)|\bno more tasks\b|\bnothing (?:left|remaining|more)\b|\bdifferent format\b|\bany (?:other |further )?questions\b|\banything else\b|\b(?:0|no|zero|none) [\w ]{0,30}\b(?:remain|left|pending|outstanding)"
)
#: The beginning of a sentence or an item that says what was done, however long it is.
DID = _words(
    r"(?:✅|☑|✔|🎉|\[x\])|(?:i(?:['’]ve| have)? )?(?:now |also |already |successfully )*(?:added|updated|created|fixed|removed|deleted|renamed|moved|replaced|changed|implemented|refactored|improved|installed|configured|committed|pushed|merged|cleaned|converted|corrected|enabled|disabled|extracted|introduced|rewrote|rewritten|resolved|set up|switched|simplified|verified|wrote|built|applied|adjusted|wired|deployed|completed|documented|generated|made|reverted)\b|(?:ich habe|wurden?|habe|es wurde)\b|(?:[\wäöüß-]+ ){0,6}(?:hinzugefügt|erstellt|behoben|entfernt|geändert|angepasst|aktualisiert|umgesetzt|eingebaut|korrigiert|ersetzt)\b|(?:j['’]ai|ajouté|créé|corrigé|supprimé|modifié|mis à jour|remplacé|déplacé|ajout|suppression|correction)e?s?\b|(?:he|se ha|añad[ií]|añadid|cread|corregid|eliminad|actualizad|modificad|agregu|agregad|cambi[éa]d?|implementad|adicionad|criad|corrigid|removid|atualizad|alterad|adicionei|criei|corrigi|atualizei)\w{0,3}\b|(?:добав|исправ|обнов|созда|удал|измен|реализова)\w{1,8}\b|(?:现在|我|目前)?已(?!知)|(?:新增|修复|移除|删除|更新|调整|优化|添加|完成|重写|创建)了?(?!后|之后|前)|(?:[^。、：:\n]{1,40}(?:を|は|に))?(?:追加|修正|実装|作成|変更|削除|更新|対応|設定)(?:しました|済み|済)"
)
#: The beginning of a sentence that warns, or tells a limit of what was done.
CAUTION = _words(
    r"(?:⚠️?|❗|❌|🔴)|(?:one |an? |the (?:only |one )?|important |small |quick |known )*(?:notes?|caution|warnings?|caveats?|heads[ -]?up|important|limitations?|known issues?|careful|however|unfortunately|be aware|keep in mind|please note|note that|beware|nb|fyi)\b|(?:achtung|hinweis|wichtig|vorsicht|leider|einschränkung|zu beachten|attention|remarque|à noter|important|malheureusement|limite|nota|ojo|atención|importante|advertencia|ten en cuenta|aviso|observação|atenção|infelizmente|uwaga|внимание|важно|примечание|обратите внимание)\b|(?:请|需要?)?注意|(?:重要)?(?:提示|提醒)|说明|限制|但(?:是)?|不过|只是|遗憾|注[：:]|ただし|なお|残念|制限|補足|주의|참고"
)
#: Asks the person to check, try or do something.
ASKS_TO_CHECK = _words(
    r"\bplease (?:also |now |then |just )?(?:re-?)?(?:check|confirm|verify|test|try|run|refresh|reload|start|restart|review|make sure|ensure|install|update|add|set|let me know|share|send|paste|open|rotate|fill)\b|\byou(?:['’]ll)? (?:still |may |might |will |now |also )*(?:need|have|want) to\b|\bbitte (?:\w+ ){0,4}(?:prüfe\w*|teste\w*|bestätige\w*|starte\w*|überprüfe\w*|lade\w*|führe\w*|stelle? sicher)\b|\b(?:vérifie[rz]?|teste[rz]?|relance[rz]?|redémarre[rz]?|recharge[rz]?|confirme[rz]?|assure[-z])\b|\b(?:verifica|comprueba|prueba|reinicia|recarga|confirma|asegúrate|revisa|verifique|teste|reinicie|recarregue|confirme)\b|(?:请|麻烦|需要你|你(?:需要|可以先|再|先))[^。，,；;\n]{0,12}(?:确认|检查|验证|测试|刷新|重启|重新|试|运行|执行|核对|更新|添加|提供|安装|替换)|(?:確認|テスト|実行|再起動|試し|リロード|更新|設定|お試し)[^。\n]{0,6}(?:ください|お願い|必要)|(?:проверьте|запустите|перезапустите|обновите|попробуйте|убедитесь)"
)
BEGUN = _words(
    r"(?:i['’]ll|i will|i['’]m(?: going to)?|let me|now i|next,? i|(?:verify|check|runn|fetch|read|writ|creat|updat|fix|add|implement|test)ing|je vais|ich werde|voy a)\b|これから|接下来|让我"
)
#: The line of a client's notice with which the service of a model stops the work.
SERVICE_STOPS = lazy_pattern(
    r"^[^\n]{0,160}?(?:\b(?:hit|reached|exceeded) (?:your|the|my) (?:[\w-]+ ){0,3}(?:limit|quota)\b|\b(?:usage|session|weekly|daily|\d{1,3}-hour|rate|spend(?:ing)?) limit (?:was )?(?:reached|exceeded|hit)\b|\brate[- ]limited\b|\bAPI Error\b|\bbalance is too low\b|\binsufficient (?:credits?|quota|balance)\b|\bprompt is too long\b|\b(?:context|tokens?) (?:window|length|limit)[^\n]{0,20} exceeded\b|\bNot logged in\b|\bOAuth token (?:has )?expired\b|\bissue with the selected model\b|\bmodel is (?:currently )?overloaded\b|\b(?:NotFound|APIConnection|RateLimit|Authentication|ContextWindowExceeded)Error\b|\bstream (?:disconnected|error)\b)[^\n]{0,160}",
    re.IGNORECASE | re.MULTILINE,
)
#: A short answer that reports what was done.
REPORTS_DONE = _words(
    r"(?:done|all done|fixed|committed|pushed|created|added|updated|complete|finished|fertig|terminé|listo|完了|完成)\b"
)
AT_ONCE = _words(
    r"(?:now )?let me (?!know)|now,? i['’]?ll\b|i['’]ll now\b|i['’]m (?:now )?going to\b|(?:now )?(?:verifying|checking|running|fetching|reading|writing|creating|updating|fixing|adding|implementing|testing)\b(?=[^\n]{0,40}$)"
    r"|je vais maintenant|ich werde jetzt|ahora voy a|これから|接下来我|让我"
)
#: The beginning of a sentence that announces what its author is about to do or look at.
ANNOUNCED = _words(
    r"\W{0,4}(?:(?:now|next|first|then|great|perfect|good|ok(?:ay)?)[,!.:]? )?(?:let me\b|let['’]s (?:check|look|see|verify|start)\b|I(?:['’]m| am) (?:now )?(?:going to|planning|considering|exploring|examining|looking|checking)\b|I(?:['’]ll| will) (?:now |first |also |then )?(?:help|check|look|verify|start|prepare|explore|examine|read|inspect|search|review|analy[sz]e)\b)",
    r"\W{0,4}(?:jetzt |nun |als nächstes )?(?:ich (?:prüfe|schaue|sehe mir|beginne)|lass(?:en sie)? mich)\b",
    r"\W{0,4}(?:maintenant[, ]+)?(?:je vais (?:vérifier|regarder|commencer)|laissez-moi|laisse-moi)\b",
    r"\W{0,4}(?:ahora )?(?:voy a (?:revisar|ver|verificar|comprobar|empezar)|déjame|vou (?:verificar|analisar|ver)|deixe-me)\b",
    r"\W{0,4}(?:现在|接下来|下面|首先|好的)?[，,]?\s?(?:正在|让我|我来|我(?:会|将|需要|要)?(?:先|再|现在))", r"\W{0,4}(?:まず|次に|では)?、?[^。\n]{0,60}(?:確認します|確認中です|調べます|読み込みます)",
)  # fmt: skip
#: What could be or is recommended, as opposed to what is.
WOULD_BE = _words(
    r"\b(?:would|could|might|recommend\w{0,5}|suggest\w{0,4})\b",
    r"\b(?:empfehle|empfohlen|empfiehlt|würde|könnte)n?\b", r"\brecommand(?:e|é|ons)\b|\bpourrai[st]\b",
    r"\brecomiendo|\brecomendad[oa]|\bpodría", r"おすすめ|推奨|でしょう", r"建议|推荐|可以考虑",
)  # fmt: skip
#: A question in the form of an order.
ORDERED_ANSWER = _words(
    r"(?:(?:so|then|and),? )?(?:please|kindly) (?:provide|share|confirm|specify|tell me|clarify|choose|select|pick|paste|send|name|advise|let me know (?:which|what|how|whether|where))\b"
    r"|let me know (?:which|what|how|where)\b|bitte (?:gib|geben|nenne|nennen|teile|bestätige|wähle)\w*\b|(?:merci de|veuillez) (?:préciser|fournir|confirmer|indiquer|choisir)\b"
    r"|por favor,? (?:indica|proporciona|confirma|especifica|elige)\w*\b|.{0,60}(?:教えて|指定して|確認して|選んで)ください|请(?:提供|告诉|确认|指定|说明|选择)"
)
#: A question that puts something to the person, wherever it stands near the end.
OFFERED = _words(
    r"\b(?:want me to|would you (?:like|prefer|rather)|do you want|should i\b|shall (?:i|we)\b|which (?:one|option|approach|way)|ok(?:ay)? to\b|"
    r"soll ich|möchtest du|dois-je|voulez-vous|veux-tu|quieres que|quer que|deseja que|gostaria (?:que|de)|vuoi che|preferisci|wil je (?:dat|nog)|zal ik|хотите|хочешь|мне (?:сделать|добавить)|czy (?:chcesz|mam)|ister misin\w*|(?:bạn|anh) (?:có )?muốn|(?:mau|ingin|perlu) (?:saya|aku)|apakah (?:anda|kamu))|ましょうか|할까요|드릴까요|하시겠|要我|需要我"
)
#: Offers of many kinds, and questions that name a choice.
MILD_OFFER = _words(r"\blet me know\b|\bif you\b")
NAMED_CHOICE = _words(r"\bwhich one|\bsay (?:the )?word\b")
PUT_OFF = _words(
    r"\b(?:pick|come back to|revisit|tackle|handle|address|do|fix|look at)\b[^.?!]{0,40}\b(?:later|in (?:the )?future|another time)\b|\b(?:separate|future|later|follow-?up) (?:phase|pr|issue|session|task)\b"
    r"|\bmachen wir später\b|\bspäter (?:angehen|erledigen)\b|\bon verra plus tard\b|\bplus tard\b|\bmás (?:tarde|adelante)\b|後で|また今度|以后再|稍后再|之后再"
)
#: Work that is done and still has to be committed, pushed, merged or released.
NOT_RELEASED = _words(
    rf"\b{NOT_YET} (?:been )?(?:pushed|committed|merged|released|deployed)\b|\b(?:uncommitted|unpushed|unmerged)\b|\b(?:don['’]t forget|remember) to (?:commit|push|merge|deploy|tag)\b|\b(?:commit|push|merge|tag) (?:\w+ ){{0,3}}when(?:ever)? you(?:['’]re| are)? ready\b|\bnoch nicht (?:gepusht|committet|gemergt|deployt)\b|\bpas encore (?:poussé|commité|fusionné|déployé)|\b(?:aún|todavía|ainda) (?:no|não) (?:se ha |foi )?(?:subid|confirmad|fusionad|desplegad|enviad|commit)\w*|(?:未|まだ)(?:プッシュ|コミット|マージ)|(?:别忘了|记得|尚未|还没有?|未)[^。，\n]{{0,20}}(?:推送|提交|合并|发布|push|commit)"
)
#: A sentence that leaves something for another turn.
LASTING = _words(
    r"\bif you(?:['’]d| would)? (?:like|want|prefer|wish)\b.{0,160}\b(?:i can|i['’]ll|i could|me to|let me know|tell me)\b|\b(?:let me know|tell me) (?:if|when|whether)\b|\bsay (?:the )?word\b",
    r"\bfollow-?[ ]?ups?\b|\bfiled as\b|\b(?:separate|future|later|subsequent|another) (?:pass|prs?|issue|commit|session|phase|release|task|ticket|change)\b|\bdeferred\b",
    rf"(?:^\W*|\b(?:branch|commits?|changes|work|tag|release)\b.{{0,40}}\b){NOT_YET} (?:pushed|committed|merged|published|deployed|released)\b|\bnext step\b",
    r"\bwenn du (?:willst|möchtest)|\bfalls du\b|\bbescheid\b|\bnächster schritt\b|\bspäter\b|\bnoch (?:offen|nicht (?:gepusht|committet))\b",
    r"\bsi (?:tu (?:veux|préfères)|vous (?:voulez|souhaitez|préférez))\b|\bdi(?:s|tes)-moi\b|\bprochaine étape\b|\bplus tard\b|\breste à\b",
    r"\bsi (?:quieres|prefieres|lo deseas)\b|\bavísame\b|\bdime si\b|\bpróximo paso\b|\bmás adelante\b|\bqueda(?:n)? por\b|\bpendiente|\b(?:se (?:vuoi|quiser|preferir)|если (?:вы )?хотите|nếu bạn muốn|(?:jika|kalau) (?:anda|kamu|mau)|ister(?:seniz|sen)|jeśli chcesz)\b|원하시면",
    r"必要(?:であれば|なら)|ご希望|次のステップ|今後|後ほど|別途|未(?:対応|実装)|如果(?:你|您)?(?:需要|想|希望)|下一步|后续(?=[^。，,；]{0,4}(?:可以?|再|还?需|工作|计划|版本|迭代|补|优化|扩展|任务|改进))|稍后|(?<!便于)(?<!方便)(?<!以便)以后|尚未|还没有?(?=实现|处理|添加|支持|提供|完成|接入|测试|做)",
)
THANKS = _words(
    r"\W*(?:(?:ok(?:ay)?|great|perfect|awesome|nice|cool|good|excellent|super|prima|parfait|perfecto|genial)\b\W*)*"
    r"(?:thanks?\b|thank you|thx\b|that['’]?s all\b|bye\b|danke\b|merci\b|gracias\b|ありがとう|谢谢|多谢)"
)
MORE_WANTED = _words(
    r"[?？]|\b(?:but|please|can you|could you|also|next|then|let['’]?s|aber|bitte|jetzt|mais|maintenant|pero|ahora|luego)\b|次|もう|还|再|请"
)
#: A message that only says that it works.
PRAISE = _words(
    r"\W*(?:(?:ok(?:ay)?|yes|yeah|wow|yay|great|perfect|awesome|nice|cool|good|excellent|amazing|super|prima|parfait|perfecto|genial|perfeito|[óo]timo)\W+)*"
    r"(?:(?:it|that|this|everything|all|they)(?:['’]?s| is| are| all| both)*\s+)?(?:(?:is|are|now|both|really|just|finally|all)\s+)*"
    r"(?:work(?:s|ed|ing)?|perfect|great|awesome|amazing|excellent|good|nice|cool|wonderful|brilliant|beautiful|well done|good job|nice work|great job|love it)"
    r"(?:\s+(?:great|perfectly|fine|well|nicely|good|now|again|so far|as expected|like a charm|job|work|perfect|correctly))*\W*",
    r"\W*(?:(?:es|das|alles|jetzt)\s+)*(?:funktioniert|läuft|klappt|passt|perfekt|super|prima)(?:\s+(?:es|das|jetzt|alles|super|gut|perfekt|wieder|so))*\W*",
    r"\W*(?:ça|c['’]est|tout|maintenant|\s)*(?:marche|fonctionne|parfait|génial|super|excellent)(?:\s+(?:bien|parfaitement|maintenant|super|très))*\W*",
    r"\W*(?:(?:ya|ahora|todo|agora|tudo|está|isso)\s+)*(?:funcion(?:a|ó|ou|ando)|perfect[oa]|perfeito|genial|excelente|[óo]timo)(?:\s+(?:bien|bem|perfecto|genial|ahora|agora|perfeitamente))*\W*",
    r"\W*(?:うまく(?:いき|動き)ました|動きました|完璧(?:です)?|素晴らしい(?:です)?|いい感じ(?:です)?|(?:现在)?(?:可以了|能用了|好了|成功了?|没问题了?|搞定了?|完美|很好|太好了|太棒了)|잘 ?(?:되네요|됩니다|돼요|작동합니다)|완벽해요?|좋아요)\W*",
)
#: A message that only tells the agent to go on.
GO_ON = _words(
    r"\W*(?:(?:ok(?:ay)?|yes|please|bitte|oui|sí|sim|好的?|はい|네)\W+)*(?:(?:continue|resume|pick up|carry on)(?: (?:from|with))? (?:where|what) (?:you|we) [\w ]{2,20}|(?:understand|see) where (?:you|we) [\w ]{2,20}|continue[sz]?|go on|keep (?:going|on)|proceed|resume|carry on|next|try again|retry|(?:mach )?weiter|fortfahren|"
    r"vas-y|poursui[st]|sigue|contin[uú]a|prossiga|続けて(?:ください)?|続行|进行|继续(?:吧)?|接着|계속(?: ?(?:해줘|해주세요|진행))?|ㄱㄱ)(?:\W+(?:please|bitte|svp|por favor))?\W*"
)
#: What a client writes in the place of a message that was given up.
GIVEN_UP = _words(
    r"\W*(?:cancel(?:l?ed)?|aborted|interrupted|skip(?:ped)?|no response requested|abgebrochen|annulé|cancelad[oa]|キャンセル(?:されました)?|已?取消|취소(?:됨)?)\W*"
)
#: Words by which a person asks for something, wherever they stand in a sentence.
ASKING = _words(
    r"\b(?:can|could|would|will) (?:you|we|u)\b(?! like me)|\b(?:please|pls|plz)\b|\blet['’]?s\b|\b(?:i|we)(?:['’]d| would)? (?:(?:just|really|also|now|only) )?(?:want|need|like)\b|\bi(?:['’]m| am) (?:(?:trying|looking) to|building|making|creating|developing|writing|working on)\b"
    r"|\bhelp (?:me|us)\b|\bwe (?:should|have to|must|are going to)\b|\byour (?:task|job)\b|\byou(?:['’]re| are) going to\b|\bmake sure\b|\bthe (?:goal|task|aim|idea) is\b|\bhow (?:do|can|should) (?:i|we)\b",
    r"\b(?:kannst|könntest) du\b|\bkönnen sie\b|\bbitte\b|\bich (?:möchte|will|brauche|hätte gern)\b|\bwir (?:müssen|sollten|brauchen|wollen)\b|\blass uns\b|\bhilf mir\b|\bdu (?:sollst|musst)\b",
    r"\b(?:peux|pourrais)[- ]tu\b|\btu (?:peux|pourrais|dois)\b|\b(?:pouvez|pourriez)[- ]vous\b|s['’]il (?:te|vous) pla[iî]t|\b(?:stp|svp)\b|\bje (?:veux|voudrais|souhaite)\b|j['’]aimerais|\bil fa(?:ut|udrait)\b|\bon (?:doit|va)\b|\baide[sz]?-moi\b",
    r"\b(?:puedes|podrías|puede usted)\b|\bpor favor\b|\b(?:quiero|quisiera|necesito|queremos|me gustaría|hay que|vamos a|ayúdame)\b",
    r"\b(?:você pode|voce pode|poderia|quero|queria|preciso (?:de|que|d[oa])|gostaria|precisamos|vamos|me ajud[ea])\b",
    r"ください|下さい|(?:し|り|き|い|え|べ)たい|ほしい|欲しい|お願い|できますか|しましょう|てくれ|してみて|请|請|帮我|幫我|帮忙|我(?:想|要|需要|希望|现在要|們要|们要)|给我|給我|需要你|能否|能不能|可不可以|改成|改为|換成|换成|加上|去掉|(?:し|っ)て(?:ね|よ|おいて)?[。！!]?\s*$"
    r"|해 ?(?:줘|주세요|봐|줄래)|주세요|하고 싶|싶어|부탁|(?:할|될) 수 있(?:나|을까|어)",
)
#: The beginning of a sentence that orders something.
ORDER = _words(
    r"(?:(?:please|now|then|also|first|next|after that|finally|and|so|ok(?:ay)?|just|go ahead and|bitte|ahora|luego|agora|maintenant|ensuite|請|请|@\S+)[ ,:]+){0,3}"
    r"(?:(?:process|implement|add|fix|create|build|write|update|review|refactor|make|find|investigate|analy[sz]e|execute|complete|perform|generate|remove|delete|migrate|port|document|"
    r"test|design|plan|check|run|set up|read|help|change|move|rename|replace|convert|use|deploy|install|improve|optimi[sz]e|translate|rewrite|extract|split|integrate|research|explain|clean|"
    r"configure|ensure|extend|support|show|give|put|turn|start|do(?! not|n)|develop|prepare|debug|look into|go through|summari[sz]e|finish|reuse|revert|merge|commit|push|pick|take|continue|bring|allow|apply|decide|compare|keep|enable|disable|wire|train)\b"
    r"|(?:erstelle?|füge?|behebe?|schreibe?|ändere?|prüfe?|baue?|mache?|implementiere?|lösche?|entferne?|aktualisiere?|teste?|starte?|analysiere?|ersetze?|verschiebe?)\b"
    r"|(?:crée[rz]?|ajoute[rz]?|corrige[rz]?|écri(?:s|re|vez)|modifie[rz]?|vérifie[rz]?|implémente[rz]?|supprime[rz]?|mets|met(?:s|tre|tez)? à jour|fai(?:s|tes)|analyse[rz]?|génère[rz]?|remplace[rz]?|continue[rz]?)\b"
    r"|(?:crea|agrega|añade|corrige|arregla|escribe|modifica|verifica|implementa|elimina|borra|actualiza|haz|analiza|revisa|genera|cambia|mueve)\b"
    r"|(?:crie|adicione|corrija|escreva|altere|verifique|implemente|remova|atualize|faça|analise|ajuste|gere|mude)\b)"
    r"|(?:把|将|將|修改|修复|修復|添加|增加|新增|删除|刪除|实现|實現|创建|創建|生成|检查|檢查|优化|優化|更新|分析|阅读|閱讀|看看|写|編寫|编写|设计|設計|完成|整理)"
)
PUT_TO_PERSON = _words(
    r"\bif you\b|\blet me know\b|\bsay the word\b|\btell me\b|\bwenn du\b|\bfalls du\b|\bbescheid\b|\bsi (?:tu|vous|quieres|prefieres)\b|\bdi(?:s|tes)-moi\b|\bavísame\b|必要(?:であれば|なら)|如果"
)
#: Sentences of a report that tell of routine: checks that went well, commits, boxes that were ticked, causes, offers, bare paths.
ROUTINE = _words(
    r"\b(?:tests?|suite|lint(?:er|ing)?|type-?check\w*|builds?|checks?|validation|everything|ci|options?)\b.{0,80}\b(?:pass(?:e[sd]|ing)?|clean|green|succe\w+|works? as expected)\b(?!.{0,80}\b(?:per your|instead|rather)\b)",
    r"^\W*(?:i(?:['’]ve)? )?(?:also )?(?:verified|validated|ran|re-?ran|passed|tested)\b|^\W*(?:committed|pushed|not (?:pushed|committed)|nothing (?:is )?(?:pushed|committed)|the change is uncommitted)\b",
    r"\bno more tasks\b|\bi(?:['’]m| am) (?:now )?(?:done|finished|exiting)\b|\btask is (?:fully |now )?complete\b|\banother agent\b|^\W*(?:all|both) .{0,40}\b(?:are|were) (?:re-?applied|done|completed?|finished)\b",
    r"\bfeel free\b|\blet me know\b|\bremaining for you\b|\bworth (?:validating|checking)\b|\bretest\b|\bretry with\b",
    r"^\W*(?:what (?:broke|was wrong|happened)|(?:the )?(?:root )?cause|the (?:issue|problem) (?:is|was)|current(?:ly)?:)",
    r"^\W*`?[~.\w@-]*/[\w./@-]+`?\W*$|^\W*(?:now,? )?you(?:['’]re| are)\b|^\W*now that\b",
    r"^\W*(?:i (?:can )?(?:see|notice)|it (?:seems|looks|appears)|looks like|the issue suggests|if|then (?:run|restart|open|fully|quit|check|reload|verify))\b(?!.{0,200}\b(?:instead|rather than|pinning|i['’]ll (?:pin|keep|use|only))\b)",
    r"^\W*(?:we['’]ll|let['’]s|let us|i will|i need to|we need to|now i) (?:now |also )?(?:create a new|run|submit|start|see|look|try|check|write the|add the \S+ import)\b|\bis (?:now )?ready(?: at| for|\W*$)|\bworked\W*$",
    r"\b(?:alle tests|die tests)\b.{0,40}\b(?:grün|bestanden|laufen)\b|\btous les tests\b.{0,40}\bpass|\btodas las pruebas\b.{0,40}\bpasa|テスト.{0,20}(?:成功|通過|パス)|测试.{0,12}通过",
)
#: A sentence of a person that chooses something.
CHOICE = _words(
    r"\b(?:we|i)(?:\s+have|['’]ve)?\s+(?:decided|agreed|settled|opted|chose|chosen)\b(?!\s+(?:if|whether|yet))",
    r"\b(?:let['’]?s|lets|we['’]?ll|i['’]?ll|we\s+will|i\s+will|we\s+should|i\s+want\s+to|i['’]d\s+like\s+to|we\s+are|we['’]re|i['’]m)\s+(?:go(?:ing)?|stick(?:ing)?|stay(?:ing)?)\s+with\b",
    r"^(?:go(?:ing)?|stick|stay)\s+with\b",
    r"\b(?:let['’]?s|lets|we['’]?ll|we\s+will|we\s+should|i\s+want\s+(?:you\s+)?to)\s+(?:use|keep|switch\s+to|move\s+to|drop|skip)\b",
    r"^(?:use|switch\s+to|keep|prefer|replace|put|change|move|make|do)\b[^?]{1,100}\b(?:instead(?:\s+of)?|rather\s+than)\b",
    r"\bi(?:['’]d)?\s+(?:would\s+)?prefer\b(?!\s+not\b)",
    r"\b(?:let['’]s|lets)\s+(?:address|do\s+(?:this|it|that)\s+(?:in|with|by|as|on)|make\s+it|name|call\s+it|start\s+with|leave|limit|defer|postpone|ship)\b",
    r"^we['’]?re\s+going\s+to\s+[a-z]|^start\s+with\s+\S+,?\s+then\b|^leave\s+(?:it|that|them|this)\s+(?:alone|as)",
)
CHOSEN = _words(
    r"\b(?:decision|decided|settled|agreed|chosen|chose|picked|opted|(?:go|going|goes|went)\s+with|(?:stick|stay|keep)\s+(?:to|with)|"
    r"from\s+now\s+on|instead\s+of|rather\s+than|in\s+favou?r\s+of|(?:we|i)(?:['’]ll|\s+will)?\s+(?:use|take|keep|adopt|prefer)|"
    r"let(?:['’]s|\s+us)\s+(?:use|take|keep|go|make|do)|(?:is|are)\s+now)\b|\b(?:use|take|keep|set)\b.{1,60}\b(?:not|because|for|to)\b"
)

# --- What a person says does not work ---
_NOT = r"\b(?=[acdhinw])(?:(?:does|did|is|are|was|were|has|have|ca|wo)n['’]?t|(?:does|did|is|are|was|were|has|have|can|will|do) not|(?<=[a-z]s )don['’]?t|(?<=\bthey )don['’]?t|cannot|never|no longer)"
_ENGLISH = (
    rf"(?:{_NOT})(?: (?:seem|even|really|actually|to|been|be|being|get|properly|correctly|yet|quite|it))*"
    r" (?:work(?:ing|s)?|show(?:ing|n)?(?: up)?|appear(?:ing)?|visible|load(?:ing|ed)?|render(?:ing|ed)?|start(?:ing)?|compil(?:e|ing)|"
    r"build(?:ing)?|open(?:ing)?|pass(?:ing)?|respond(?:ing)?|display(?:ed|ing)?|fixed|part of|recogni[sz]ed|updat(?:e|ing)|run(?:ning)?)\b",
    r"\bnot (?:working|visible|showing|loading|rendering|appearing|fixed|passing|compiling|displayed|responding)\b",
    r"\bstill (?:broken|fail(?:s|ing)?|crash(?:es|ing)?|wrong|an? (?:issue|problem|error|bug)|(?:get|getting|see|seeing|throws?|shows?|having|have|gives?) (?:an?|the|this|that|no|same|those|these)\b|"
    r"happen(?:s|ing)|no\b|the same (?:error|issue|problem)|stuck|hang(?:s|ing)|red\b|visible|there\b|present|the (?:same|old)\b|truncated|getting truncated|cut off|don['’]?t see|can['’]?t|not (?!sure|certain|clear)|isn['’]?t|doesn['’]?t|aren['’]?t|wasn['’]?t)",
    r"\b(?:crashes|crashed|is crashing|keeps crashing|hangs|freezes|bomb(?:s|ing) out|blows up|errors out|segfaults)\b",
    r"\b(?:it|that|this|build|tests?|ci|pipeline|workflow|app|page|deploy(?:ment)?|release|server|lint(?:er|ing)?|\w+) (?:is|are|was|went|seems?|seems to be) (?:now |all |totally |completely |still |also )?"
    r"(?:broken|failing|red|crashing|stuck|cut off|truncated|corrupt(?:ed)?)\b(?! down)",
    r"\w(?<!\bthey)(?<!\bwe)(?<!\byou)(?<!\bwho) (?:just |always |also |now |again )?fail(?:s|ed)(?= (?:with|to|on|at|in|because|due|again|for|when|after|here|now)\b|\s*[,.:;!(]|\s*$|\s+https?:)",
    r"\w fail with\b", r"\bkeeps? failing\b",
    r"^\W*(?:\w+ )?(?:lint|tests?|build|type|ci|compile|compilation)\w*(?:,? (?:and )?\w+){0,2} (?:failures?|errors?)\b.{0,12}$",
    r"\bI (?:still )?(?:do not|don['’]?t|can['’]?t|cannot) (?:see|find) (?:it|them|any|the|that|this)\b", r"\bI (?:still )?(?:can['’]?t|cannot|am unable to) (?:open|access|log ?in|connect|run|build|install|start)\b",
    r"\b(?:seems?|looks? like|appears?)\b[^.;]{0,60}\b(?:not|never|(?:is|are|does|do)n['’]?t) \w+(?:ed|ing|work)?\b", r"\bI (?:still )?see no (?!issue|problem|reason|need|harm|point)\w+", r"\bnothing (?:happens|shows up|is shown|appears)\b", r"\b(?:now |effectively |still )breaks\b", r"\b(?:remains?|stays?|gets?|got|getting) stuck\b",
    r"\b(?:has|have)(?: not|n['’]?t) been (?:updated|fixed|applied|changed|moved|removed)\b",
    r"\b(?:get|gets|getting|got|seeing|see|throws?|hit|hitting) (?:this|an?|the(?: same| following)?|these|that)(?: [\w`'-]+){0,2} (?:error|exception|failure|crash|traceback|stack ?trace|segfault)s?\b",
    r"\b(?:seems? to have|has|have|just|now) broken\b(?! (?:down|up|out|it into))", r"\b(?:errors?|exceptions?) (?:occur|appear|com\w+ up|came up|show\w* up|pop\w* up|happen)(?:s|ed|red)?\b",
    rf"(?:{_NOT}) (?:\w+ )?(?:fix|solve|resolve|help)(?:ed)?\b(?! (?:me|us|you|with)\b)",
    r"\b(?:is|are) missing (?:from|in) ", r"\bnone of (?:\S+ ){1,4}?(?:work|appl|chang)\w*", r"\bnothing (?:was |has |is )?(?:changed|happened|worked|works|updated)\b",
    r"\b(?:you|u|this|that|it|we|which|changes?|updates?|commit) (?:\w+ ){0,2}?(?:broke|messed up|ruined|destroyed|screwed up)\b",
)  # fmt: skip
#: "Why is there …", "why does it not …": whoever asks for the reason of a behaviour mostly wants it changed.
_WHY = (
    r"\bwhy (?:is|are(?! (?:you|we)\b)|does|is ?n['’]?t|are ?n['’]?t|does ?n['’]?t|am i|can['’]?t i|do (?!you\b|we\b|i\b)|did (?!you\b|we\b|i\b))(?![^.?\n]{0,60}\b(?:needed|necessary|required|important|better|recommended|allowed|supported|called|named|used|chosen|ne+ded)\b)"
    r"|\bwarum (?:ist|sind|wird|werden|geht|zeigt|funktioniert|kann)\b|\bpourquoi (?:est|il|elle|ça|cela|les? \w+|la \w+)\b|\bpor qué (?:no|sigue|est[áa]n?|sale|aparece)\b"
    r"|(?:为什么|怎么|なぜ|どうして)"
)
#: What counts in a short message only: something does not do what it is there for, or there is an error, a gap, damage.
_BRIEF_ENGLISH = (
    r"\b(?=[adciw])(?<!\bI )(?<!\bI really )(?<!\bI actually )(?<!\bwe )(?<!\byou )(?<!\bto )(?:does|did|is|are|was|were|(?<=\bit )wo|(?<=\bthey )wo|(?<=\bit )ca|(?<=\bthey )ca)(?:n['’]?t| not) (?:(?:\w+ly|even|seem to|being|been) )*"
    r"(?!(?:need|matter|mean|want|like|know|care|think|make sense|sense|require|have|include|contain|exist|limited|belong|depend|use|support|allow|sure|necessary|required|needed|going to|allowed|just|only|"
    r"the|an?|in|for|my|our|your|about|part|what|how|that|this|too|so|very|as|to|clear|done|ready|implement\w*|be|it|yet|possible|worth|want\w*|you|we|i|u|they|even|seem|being|been|\w+ly|great|good|nice|ideal|cool|enough|much|many)\b)[a-z]{2,}"
    r"|(?<=[a-z] )never (?!mind|again|use|commit|add|change|do|run|push|edit|touch|write|have|be|ever|been)[a-z]{3,}(?:s|ed)\b"
    r"|\b(?:get|gets|getting|got|gave|gives|giving|see|sees|seeing|shows?|throws?|threw|hit|(?<!\byou )have|has|having|there(?:['’]s| is| are| was| were)|facing|receiv\w+|encounter\w*)\b(?: (?:\"[^\"]{1,80}\"|[^\s.,;:?]+)){0,5}? "
    r"(?:errors?|exceptions?|crash(?:es)?|traceback|bugs?)\b(?! (?:handl|boundar|case|count|rate|class|stat|type|log))"
    r"|^\W*(?:(?:multiple|same|another|new|more|build|console|type|lint|some|many|still|additional|runtime|login|network|server|and) ){0,3}errors?\b(?! (?:handl|messag|stat|boundar|page|code))(?:.{0,60}:|\W*$| (?:on|in|when|again|while|after)\b)"
    r"|^\W*(?:\w+ ){0,3}same (?:\w+ )?(?:error|issue|problem|result)s?\b|(?<!\bthat )(?<!\bwhich )\bstill (?!needs?\b|works?\b|wants?\b|has\b|is\b|was\b|work)[a-z]{3,}(?:s|ing)\b"
    r"|\bI(?:['’]m| am) (?:still )?not (?:seeing|getting|able|receiving)\b|\bkeeps? (?!working|going|running|in\b|adding)[a-z]+ing\b"
    r"|(?<!\berror )(?<!\berrors )(?<!\bissue )(?<!\bissues )(?<!\bproblem )(?<!\bbug )\b(?:is|are|was|were|now|shows?|just) (?:\w+ )?(?:empty|blank|gone|messed up|misaligned|duplicated|unresponsive|unreadable|unreachable|detached)\b",
    # what somebody looks for and does not see, or what has no effect
    r"\bI (?:still |also |just )?(?:do ?n['’o]?t|did ?n['’o]?t|can ?not|can['’]?t|could ?n['’o]?t) (?:even |really |currently )?(?:see|find|access|open|log ?in|sign|hear|play)\b(?! (?:why|how|what|where|myself|an? (?:need|reason)|the (?:need|point|reason)|that as|it as))",
    r"\b(?:see|notice|is|was|made|makes|has|had|have) (?:\w+ )?(?:no|any) (?:change|difference|effect)s?\b",
    r"\b(?:exact(?:ly)?|still|just)? ?(?:the )?same (?:behaviou?r|result|output|thing|as before)\b|\bnot the case\b",
    rf"(?:{_NOT}) [^.;,\n]{{0,40}}\bany ?more\b",
    r"\b(?:is|are|was|were) still (?!need|requir|open\b|pending|to ?do\b|in progress|wip\b|valid|work|true|ok|fine|good|possible|unclear|the\b)\w+",
    r"\bthere(?:['’]s| is| are| was| were)(?: still| also| now)? (?:no|nothing)\b(?! (?:need|point|reason|rush|hurry|way|doubt|problem|issue|error))[^.;\n]{0,60}\b(?:in|on|at|when|for|under|after)\b",
    r"\b(?:no|not a single) (?:\w+ ){1,3}(?:is|are|gets?|was|were) (?!needed|required|allowed|expected|necessary)(?:\w+ing|\w+ed|shown|there|sent|visible)\b",
    # issues that are named as such
    r"\b(?:there(?:['’]s| is| are|['’]re)|has|have|having|found|noticed|got|hit|ran into|running into|facing)(?: still| also| now)? (?:an?|some|one|two|three|several|multiple|many|more|another|(?:the )?following|\d+) (?:\w+ ){0,2}(?:issues?|problems?|bugs?|glitch(?:es)?)\b(?! (?:report|track|fix|template|number))",
    r"^\W*(?:so |ok(?:ay)?,? |also |and )*(?:an?|one|two|three|another|other|\d+|next) (?:\w+ )?(?:issues?|problems?|bugs?|errors?)\b(?: here| now)?\W*(?:[:-]|$)",
    r"\berrors?(?: messages?| logs?| trace| output)?\s*:\s*$",
    # how something looks or behaves
    r"(?:\b(?:is|are|was|were|looks?|looking|feels?|seems?|acts?|acting|behaves?|gets?|im|its)|['’](?:s|re))(?: (?:a|bit|little|lil|super|very|really|still|quite|so|all|also|now|just|kinda|totally|completely|always|pretty|tad|abit|clearly|definitely|even))* "
    r"(?:weird(?:ly)?|strange(?:ly)?|odd|ugly|wrong(?:ly)?|buggy|laggy|glitchy|slow(?:er)?|incorrect|inaccurate|inconsistent|misplaced|overcrowded|cluttered|cramped|clipped|distorted|blurry|invisible|illegible|missing|outdated|jumpy|choppy|terrible|horrible|awful|garbage|worse|"
    r"too (?:slow|long|big|large|small|tiny|high|low|dark|bright|close|wide|narrow|thin|thick|short|much|many))\b(?! (?:to (?:do|use|change|say)|way))",
    r"^\W*(?:still |very |super |now |also |so |pretty |a bit )*(?:weird|strange|ugly|buggy|laggy|wrong|slow)\b.{0,40}$",
    r"\b(?:disappear(?:s|ed)|vanish(?:es|ed)|flicker(?:s|ed|ing)?|overlap(?:s|ped|ping)|lags|lagging|glitch(?:es|ing)|erroring|misbehav\w+|(?:is|its|it['’]s|now|still|just|keeps?) crashing)\b",
    r"\b(?:says?|saying|shows?|returns?|returned|gets?|got|prints?|tells me|reports?)(?: me)?:? [\"“'‘«`][^\"“”«»`\n]{0,60}\b(?:no|not|n['’]t|empty|cannot|error|failed|invalid|denied|missing|undefined|null|unavailable|wrong|unable)\b",
    r"(?:\b(?:it|he|she|they|this|that)s|['’](?:s|re)) (?:still )?not (?!the\b|an?\b|that\b|need|necess|import|about|just|only|what|m?y\b|your|our|in\b|for\b|so\b|to\b|possible|ready|done|clear|sure|like)\w+",
    r"\b(?:is|are|looks?|feels?) not (?:very|really|quite|that|so|fully) (?:responsive|visible|readable|good|nice|accurate|fast|great|smooth|right|correct)\b",
    # what the agent did to it
    r"(?<!\bif )\b(?:you|u)(?:['’]ve)? (?:just |also |have |had |accidentally )*(?:removed|deleted|lost|forgot|got rid of|overwrote|erased|undid|hallucinated)\b",
    rf"{_WHY}",
)  # fmt: skip
_GERMAN = (
    r"\b(?:geht|funktioniert|klappt|läuft|lädt|startet|kompiliert|erscheint)\b(?: \w+){0,3} nicht\b", r"\bstürzt\b.{0,60}\bab\b", r"\bschl(?:ägt|agen)\b.{0,60}\bfehl\b", r"\bwird\b.{0,40}\bnicht angezeigt\b",
    r"\b(?:immer noch|weiterhin|noch immer) (?:kaputt|rot|falsch|ein(?:en)? Fehler|der(?:selbe)? Fehler|nicht)\b", r"\bist (?:kaputt|rot|fehlgeschlagen)\b",
    r"\bbekomme\b.{0,30}\bFehler", r"\bhängt sich\b.{0,20}\bauf\b",
)  # fmt: skip
_FRENCH = (
    r"\bne (?:fonctionne|marche|compile|démarre|passe)(?:nt)? (?:toujours |plus |encore )?pas\b", r"\bne (?:fonctionne|marche|compile|démarre) plus\b", r"\b(?:ça|cela) (?:plante|échoue)\b", r"\bmarche (?:toujours )?pas\b", r"\b(?:plante|échoue)(?:nt)? (?:toujours|encore|quand|avec|à)\b",
    r"\btoujours (?:cassée?|en échec|la même erreur|rouge|une erreur)\b", r"\best (?:cassée?|rouge|en échec)\b", r"\bj['’]ai (?:toujours |encore )?(?:une|cette|la même) erreur\b", r"\bne s['’]affiche(?:nt)? (?:toujours )?pas\b",
)  # fmt: skip
_SPANISH = (
    r"\bno (?:funciona|compila|arranca|carga|aparece|se muestra|pasan?)\b", r"\bsiguen? (?:fallando|sin funcionar|rot[oa]s?|igual|dando)\b", r"\bse (?:cuelga|cae|rompe|bloquea)\b", r"\bfallan? (?:al|con|cuando|en|otra vez)\b",
    r"\bestán? (?:rot[oa]s?|en rojo|fallando)\b", r"\bme (?:da|sale|aparece) (?:un|el|este) error\b",
)  # fmt: skip
_BRIEF_GERMAN = (
    r"\bfehl(?:t|en)\b(?! noch zu)", r"\b(?:ist|sind|wird|werden|war|waren|sieht|bleibt)\b[^.;,\n]{0,40}\b(?:falsch|leer|weg|verschwunden|komisch|seltsam|hässlich|abgeschnitten|doppelt|zu (?:langsam|groß|klein|breit|schmal|dunkel|hell))\b",
    r"\bich (?:sehe|finde|bekomme|kriege)\b[^.;,\n]{0,40}\b(?:nicht|kein\w*|nichts)\b", r"\b(?:gibt|kommt|erscheint|habe|bekomme|kriege)\b[^.;\n]{0,30}\b(?:Fehler(?:meldung)?|Problem)\b",
    r"\b(?:lässt sich|reagiert|speichert|zeigt|öffnet|passiert|aktualisiert)\b[^.;,\n]{0,40}\b(?:nicht|nichts|kein\w*)\b", r"^\W*Fehler(?:meldung)?\b.{0,60}:?$",
)  # fmt: skip
_BRIEF_FRENCH = (
    r"(?<=\w )n(?:['’]|e )(?:(?:me|te|se|nous|vous) |[mst]['’])?(?:appara[iî](?:t|ssent)|affichent?|chargent?|répond(?:ent)?|ouvrent?|trouve|voi[st]|pla[iî]t|change|bouge|réagit|correspond(?:ent)?|lance|arrive|peu[xt]|enregistre)\b[^.;,\n]{0,25}\b(?:pas|plus|rien|aucune?|jamais)\b",
    r"\bil (?:manque|y a (?:toujours |encore )?(?:une?|des|plusieurs) (?:erreur|problème|bug|souci)s?)\b", r"\b(?:est|sont|c['’]est)(?: \w+)? (?:vides?|cassée?s?|fau(?:x|sse)|lente?s?|moches?|bizarres?|incorrecte?s?|manquante?s?|trop \w+)\b",
    r"(?:m['’]indique|me dit|affiche|renvoie|retourne) [\"«“'‘`][^\"»”\n]{0,60}\b(?:no|not|error|erreur|aucune?|impossible|pas)\b", r"^\W*erreur\b.{0,60}:?$",
)  # fmt: skip
_BRIEF_SPANISH = (
    r"(?<=\w )no (?:se |me |lo |la )?(?:ven?|muestran?|abren?|actualizan?|guardan?|inicia|conecta|responden?|hace|salen?|deja|llegan?|puedo|encuentro|veo|reconoce|detecta)\b", r"\bfaltan?\b(?! por)",
    r"\b(?:están?|es|son|salen?|se ven?|quedó)(?: \w+)? (?:mal|vac[ií][oa]s?|lent[oa]s?|fe[oa]s?|incorrect[oa]s?|rar[oa]s?|en blanco)\b", r"\b(?:hay|tengo|tiene|da|dio|sale|salió|aparece|apareció|marca|lanza) (?:un|unos|el|este|otro|varios) (?:error|problema|fallo|bug)",
)  # fmt: skip
BRIEF_TROUBLE = _words(*_BRIEF_ENGLISH, *_BRIEF_GERMAN, *_BRIEF_FRENCH, *_BRIEF_SPANISH)
#: A question that reports something all the same.
ASKS_WHY = _words(_WHY)
BRIEF_CJK = lazy_pattern(
    r"おかし[いく]|違います|違って|変わらない|変わりません|変わらず|ままです|ままでした|見え(?:ない|ません|なく)|見つから|反映され(?:ない|ません|てい)|され(?:ません|ていません|ていない)|出(?:ない|ません)(?!か)|"
    r"でき(?:ない|ません(?!か)|なくな)|なくな(?:った|りました)|消え(?:た|ました)|崩れ|ずれて|重複して|エラー(?:です|が|になる|になり)|解消し(?:ない|ません)|固まっ|足りない|足りません|開(?:かない|きません|けない|けません)|効か(?:ない|ません)|"
    r"有(?:点|些|个|一个|几个|很多)?(?:问题|错误|bug|BUG|异常)|出现(?:了)?[^，。；\n]{0,12}(?:问题|错误|异常|报错)|报错|出错|失败|(?<!对)不对|不正确|不(?:显示|生效|起作用|刷新|响应|见了|出来|一致)|"
    r"(?<!有)没有?(?:显示|反应|反映|回复|生效|修复|看到|变化|响应|效果|加载|解决|对齐|声音|成功)|[看找](?:不到|不见)|打不开|进不去|连不上|[用点]不了|(?<!为啥)(?<!什么)不能(?:拖|点|用|打开|播放|看到|显示|正常|登录|访问|滚动|选)|无法|丢失|缺少|缺失|消失|闪烁|卡[住死顿]|闪退|"
    r"乱码|重叠|错位|[盖遮挡]住|挤[在成到]|太[慢丑卡]|黑屏|白屏|还是(?:没|不|一样|老|旧|原来|之前)|仍[然旧]|依然|(?:为什么|怎么)[^，。？\n]{0,30}(?:没|不(?!错|能用)|还|显示|只有|一直)|一直(?:在)?(?:转|加载|报|飙升|刷新|提示)|每次都"
)
#: The end of a clause, within which a condition counts.
CLAUSE_END_CJK = lazy_pattern(r"[，。；、,;!！?？\n]")
TROUBLE = lazy_pattern("|".join((*_ENGLISH, *_GERMAN, *_FRENCH, *_SPANISH)), re.IGNORECASE)
TROUBLE_CJK = lazy_pattern(
    r"動かない|動きません|動作しない|動作しません|落ちます|落ちる|クラッシュ(?:する|します|した|しました)|失敗し(?:ます|ている|ています|ました|た)|エラーが(?:出|発生)|エラーになり|"
    r"直って(?:い)?(?:ない|ません)|表示され(?:ない|ません)|壊れて|うまくいかない|うまくいきません|"
    r"不工作|还是(?:不行|报错|失败|有问题|崩溃|不对)|仍然(?:报错|失败|崩溃|不行)|报错了|又报错|崩溃了|失败了|跑不起来|无法(?:运行|启动|编译|打开|加载|显示)|不能(?:运行|启动|编译)|没有显示|不显示|出错了"
)
CONDITION_CJK = lazy_pattern(
    r"場合|たら|れば|ように|しないで|如果|假如|是否|有没有|有無|かどうか|要是|避免|防止|确保|不要|请勿|的话|以免"
)
#: What an answer says about a change of which nobody knows yet whether it helped, or which did not.
NOT_VERIFIED = _words(
    r"\b(?:not|never|n['’]t)(?: yet| been| fully| actually| able to| possible to)* (?:verif(?:y|ied)|test(?:ed)?|confirm(?:ed)?|reproduced?)\b|\b(?:un(?:tested|verified)|partial(?:ly)? (?:fix|solv|resolv)\w*)\b",
    r"\bstill (?:fail(?:s|ing)?|broken|(?:does|is|do|are)(?:n['’]t| not)|see(?:s|ing)? (?:the|an?) (?:error|issue|problem))\b|\b(?:could|can|did)(?: ?not|n['’]t) (?:fix|find|solve|resolve|determine|identify)\b",
    r"\bnicht (?:geprüft|getestet|verifiziert|bestätigt|behoben)\b|\bungetestet\b|\bnur teilweise\b|\bpas (?:encore )?(?:vérifié|testé|confirmé|résolu|corrigé)|\bpartiellement\b|\b(?:sin|no (?:lo )?he|no está) (?:probar|verificar|probado|verificado|resuelto)\b|\bparcialmente\b",
    r"(?:未検証|未確認|確認(?:でき|してい)ま?せん|まだ(?:直って|解決)|一部のみ)|(?:未|没有?|尚未|还没)(?:测试|验证|确认|解决|修复)|部分(?:修复|解决)",
)
#: An answer that says that checks pass, and what takes it back.
CLAIMS_PASS = lazy_pattern(
    r"\b(builds?|tests?|lint(?:er|ing)?|type[ -]?checks?|tsc|eslint|compilation)\b[^.;:\n]{0,30}?"
    r"\b(?:pass(?:es|ed|ing)?|succeed(?:s|ed)?|clean(?:ly)?|green|(?:no|0|without|zero) errors)\b"
    r"|\b(builds?|built|compil(?:es|ed)) successfully\b|✅ ?(builds?|tests?|lint\w*)\b",
    re.IGNORECASE,
)
UNSURE = lazy_pattern(
    r"\b(?:not|fail\w*|still|except|but|should|will|would|once|if|until|unrelated|pre-?existing|could|can)\b|n['’]t\b",
    re.I,
)
#: Messages that go on with the same work: questions, consent, committing and releasing it.
GOES_ON = lazy_pattern(
    r"\W*(?:what|how|why|which|where|when|who|is|are|do|does|did|should|would|will|has|have|was|were|yes|yeah|yep|ok(?:ay)?|no|go|sure|continue|"
    r"proceed|commit|push|merge|release|deploy|publish|bump|tag|run|rerun|test|try|write a test|start|stop|undo|revert|<)\b", re.IGNORECASE,
)  # fmt: skip
#: Words that say nothing about the subject, and those of committing, reviewing and releasing any work.
NO_TOPICS = frozenset(
    ("this that when with still have from they them then there where what which your just like only also into some does doesn isn seem seems better again error errors "
     "issue problem fails failed failing work working about after because here same show shows look looks need want please would could should made make makes well everything "
     "going else update updated change changes changed good great commit commits push merge merged branch main conflict conflicts regression regressions version versions "
     "release deploy review docs changelog readme test tests okay sure thanks think know").split()
)  # fmt: skip
#: A greeting, or a word to see whether somebody is there.
SMALL_TALK = lazy_pattern(
    r"^(?:hi|hello|hey|yo|hola|olá|ola|oi|bonjour|salut|hallo|moin|안녕(?:하세요)?|こんにちは|你好|ping|test(?:ing)?|clear|cls)\b[\s\w,!.]{0,30}$",
    re.IGNORECASE,
)
#: A greeting before a request.
GREETING = lazy_pattern(
    r"^(?:hi|hello|hey|hallo|bonjour|hola|olá|你好|こんにちは)(?: there)?[!,.，！。、 ]+", re.IGNORECASE
)
#: What may stand before a routine request, and requests that say nothing about how the work is to be done.
ROUTINE_LEAD = lazy_pattern(
    r"^(?:(?:please|ok(?:ay)?|yes|yep|great|good|perfect|nice|now|and|then|also|let['’]?s|go ahead and|can you|could you|just|bitte|ja|oui|sí)\b[ ,.!]*)+",
    re.IGNORECASE,
)
ROUTINE_ORDER = lazy_pattern(
    r"(?:commit|push|continue|proceed|go on|go ahead|redo|do (?:it|that|so)|implement the(?: following)? plan|open (?:a|the) pr|merge|tag|next|weiter|committe|pushe|continue[sz]?|sigue|コミット|プッシュ|続けて|提交|推送|继续)",
    re.IGNORECASE,
)
#: A question that is a request.
ASKS = lazy_pattern(
    r"\b(?:can|could|would|will) (?:you|we)\b|\bplease\b|\blet['’]?s\b|\bkannst du\b|\b(?:peux-tu|tu peux)\b|\bpuedes\b|\bpode\b|でき(?:ます|る)か|能不能|能否|可以.{0,40}吗|请|[해줘]줘",
    re.IGNORECASE,
)
#: Answers that hand the choice back or only move on, and questions about the conversation.
NO_CHOICE = lazy_pattern(
    r"(?:you (?:decide|choose|pick)|up to you|next\b|done\b|continue|move on|skip|hm+|not sure|i don['’]?t know|whatever|either|wait[.!]*$|show me|(?:i want|let me) (?:to )?see|"
    r"yes, (?:continue|proceed|generate)|no more|let me think|du entscheidest|comme tu veux|tú decides|任せます|你决定)",
    re.IGNORECASE,
)
ABOUT_TALK = lazy_pattern(
    r"more questions|next area|anything else|which (?:areas|topics)|ready to (?:continue|proceed|move)|are we done",
    re.IGNORECASE,
)
#: Questions that `yes` or `no` answers.
YES_NO = lazy_pattern(
    r"(?:want|would|do|does|did|shall|should|can|could|is|are|may|any|good|ok(?:ay)?|ready|soll|möchte|willst|kann|veux-tu|voulez|dois-je|quieres|puedo|debo)\b",
    re.IGNORECASE,
)
#: Replies to such a question.
TAKES_SIDE = lazy_pattern(
    r"(?:yes|yep|yeah|no|nope|nah|just|only|do|leave|keep|use|let['’]?s|start|first|both|neither|skip|go|don['’]?t|never ?mind|ja|nein|oui|non|sí|si)\b",
    re.IGNORECASE,
)
#: The order in a prompt that a program wrote for an agent.
TASK_ORDER = _words(
    r"(?:please\s+)?(?:process|implement|add|fix|create|build|write|update|review|refactor|make|find|investigate|analy[sz]e|execute|complete|continue|perform|generate|remove|migrate|port|"
    r"document|test|design|plan|check|run|set up|read|help|verarbeite|erstelle|behebe|traite[rz]?|corrige[rz]?|procesa|implementa|处理|實現|实现)\b"
)
#: Replies that answer no question.
IDLE_REPLY = lazy_pattern(
    r"^(?:continue|go on|weiter|thanks?|thank you|done|hi|hello|\[|/|<|what|why|how|where|when|who|which|is|are|can|could|did|does|it|i['’]?m|there|still)\b|^[\[</]",
    re.I,
)
