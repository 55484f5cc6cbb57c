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
    r"|forbid(?:s|den|ding)?|forbade|prohibit(?:s|ed|ing)?|ban(?:s|ned|ning)?|bars|barred|disallow(?:s|ed)?|avoid(?:s|ed|ing)?"
    r"|refrain(?:s|ed|ing)?|refus(?:e|es|ed|ing)|reject(?:s|ed|ing)?|rul(?:es?|ed|ing) out|(?:decide[sd]?|advise[sd]?|is|are|was|were|vote[sd]?|argue[sd]?|warn(?:s|ed)?) against|stop|stay away|keep away"
    r"|hands off|objects? to|opposes?|opposed|vetoe[sd]|must\s?n['’]?t|(?:do|does|did|wo|ca|should|must|is|are|was|were|has|have|had|would|could)n['’]t"
    r"|dont|doesnt|statt|anstatt|anstelle|ohne|niemals|nie|verbietet|verboten|untersagt|vermeide\w*"
    r"|jamais|sans|plutôt que|au lieu de?|interdit|éviter?|évitez|nunca|jamás|sin|en (?:lugar|vez) de|prohíbe|prohibido|evitar?|evite)\b"
)
#: Negations that cover the clause they stand in.
DENIED_CLAUSE = _words(
    r"\b(?:is|are|was|were|be|remains?|stays?)\s+(?:strictly |explicitly |currently )?(?:forbidden|prohibited|banned|disallowed|off[- ]limits|unwanted"
    r"|taboo|out of the question|ruled out|refused|rejected|avoided|skipped|omitted|left out|untouched|not (?:allowed|permitted|wanted|acceptable|okay|ok|an option|to be))\b"
    r"|\b(?:must|should|may|can|shall|will)(?: not|n['’]t|not) be\b|\bleave\b.{1,60}\b(?:alone|untouched|as (?:is|it is|they are))\b"
    r"|\bnicht\b|\bkein\w*\b|\bn['’e]\s?.{0,40}\b(?:pas|jamais|plus|aucun\w*)\b|^\s*pas\b"
    r"|ない(?:で|こと|よう)|しない|ません|禁止|な(?:いで|くては)|するな|ずに|ではなく|不要|不得|不能|不可|不许|不許|别|勿|没有|未|不是|不用"
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
BEGUN = _words(
    r"(?:i['’]ll|i will|i['’]m(?: going to)?|let me|now i|next,? i|(?:verify|check|runn|fetch|read|writ|creat|updat|fix|add|implement|test)ing|je vais|ich werde|voy a)\b|これから|接下来|让我"
)
#: A short answer that reports what was done.
REPORTS_DONE = _words(
    r"(?:done|all done|fixed|committed|pushed|created|added|updated|complete|finished|fertig|terminé|listo|完了|完成)\b"
)
AT_ONCE = _words(
    r"(?:now )?let me (?!know)|now,? i['’]?ll\b|i['’]ll now\b|i['’]m (?:now )?going to\b|(?:now )?(?:verifying|checking|running|fetching|reading|writing|creating|updating|fixing|adding|implementing|testing)\b"
    r"|je vais maintenant|ich werde jetzt|ahora voy a|これから|接下来我|让我"
)
#: A question in the form of an order.
ORDERED_ANSWER = _words(
    r"(?:(?:so|then|and),? )?(?:please|kindly) (?:provide|share|confirm|specify|tell me|clarify|choose|select|pick|paste|send|name|advise|let me know (?:which|what|how|whether|where))\b"
    r"|let me know (?:which|what|how|where)\b|bitte (?:gib|geben|nenne|nennen|teile|bestätige|wähle)\w*\b|(?:merci de|veuillez) (?:préciser|fournir|confirmer|indiquer|choisir)\b"
    r"|por favor,? (?:indica|proporciona|confirma|especifica|elige)\w*\b|.{0,60}(?:教えて|指定して|確認して|選んで)ください|请(?:提供|告诉|确认|指定|说明|选择)"
)
#: A question that puts something to the person, wherever it stands near the end.
OFFERED = _words(
    r"\b(?:want me to|would you (?:like|prefer|rather)|do you want|should i\b|shall (?:i|we)\b|which (?:one|option|approach|way)|ok(?:ay)? to\b|"
    r"soll ich|möchtest du|dois-je|voulez-vous|veux-tu|quieres que)|ましょうか|要我|需要我"
)
#: Offers of many kinds, and questions that name a choice.
MILD_OFFER = _words(r"\blet me know\b|\bif you\b")
NAMED_CHOICE = _words(r"\bwhich one|\bsay (?:the )?word\b")
PUT_OFF = _words(
    r"\b(?:pick|come back to|revisit|tackle|handle|address|do|fix|look at)\b[^.?!]{0,40}\b(?:later|in (?:the )?future|another time)\b|\b(?:separate|future|later|follow-?up) (?:phase|pr|issue|session|task)\b"
    r"|\bmachen wir später\b|\bspäter (?:angehen|erledigen)\b|\bon verra plus tard\b|\bplus tard\b|\bmás (?:tarde|adelante)\b|後で|また今度|以后再|稍后再|之后再"
)
#: A sentence that leaves something for another turn.
LASTING = _words(
    r"\bif you(?:['’]d| would)? (?:like|want|prefer|wish)\b.{0,160}\b(?:i can|i['’]ll|i could|me to|let me know|tell me)\b|\b(?:let me know|tell me) (?:if|when|whether)\b|\bsay (?:the )?word\b",
    r"\bfollow-?[ ]?ups?\b|\bfiled as\b|\b(?:separate|future|later|subsequent|another) (?:pass|prs?|issue|commit|session|phase|release|task|ticket|change)\b|\bdeferred\b",
    rf"(?:^\W*|\b(?:branch|commits?|changes|work|tag|release)\b.{{0,40}}\b){NOT_YET} (?:pushed|committed|merged|published|deployed|released)\b|\bnext step\b",
    r"\bwenn du (?:willst|möchtest)|\bfalls du\b|\bbescheid\b|\bnächster schritt\b|\bspäter\b|\bnoch (?:offen|nicht (?:gepusht|committet))\b",
    r"\bsi (?:tu (?:veux|préfères)|vous (?:voulez|souhaitez|préférez))\b|\bdi(?:s|tes)-moi\b|\bprochaine étape\b|\bplus tard\b|\breste à\b",
    r"\bsi (?:quieres|prefieres|lo deseas)\b|\bavísame\b|\bdime si\b|\bpróximo paso\b|\bmás adelante\b|\bqueda(?:n)? por\b|\bpendiente",
    r"必要(?:であれば|なら)|ご希望|次のステップ|今後|後ほど|別途|未(?:対応|実装)|如果(?:你|您)?(?:需要|想|希望)|下一步|后续|稍后|以后|尚未|还没",
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
#: Rules in German, French, Spanish, Japanese and Chinese.
OTHER_RULE = _words(
    r"^(?:bitte\s+)?(?:nie(?:mals)?|immer|kein(?:e[nrs]?)?)\s+\w|\b(?:darf|dürfen|soll(?:en|st|te)?|muss|müssen)\b[^.?!]{0,60}\b(?:nicht|nie|immer|nur|kein\w*|bleiben)\b|\bachte darauf\b|\bstelle? sicher\b|\bab (?:jetzt|sofort)\b",
    r"^(?:ne\s|n['’])\w+[^.?!]{0,40}\b(?:pas|jamais|plus)\b|^(?:toujours|jamais|uniquement|pas de)\s+\w|\b(?:il ne faut pas|assure-toi|assurez-vous|dorénavant|désormais)\b|\bdoi(?:t|vent)\b[^.?!]{0,60}\b(?:toujours|jamais|rester|pas)\b",
    r"^(?:nunca|siempre|únicamente)\s+\w|^no\s+(?:uses|toques|cambies|modifiques|hagas|borres|elimines|agregues|añadas|crees)\b|\b(?:asegúrate|de ahora en adelante|no deben?|debe[ns]? (?:siempre|quedar))\b",
    r"しないで|しないこと|してはいけ|禁止|必ず|絶対に|常に|使わないで|触らない|変更しない",
    r"不要|不能|不许|必须|务必|一定要|只能|只用|始终|永远不|别再?(?:用|改|动|加)|请勿",
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
#: Limits and preferences: rules where they stand among rules.
LIMIT = _words(
    r"\bonly\b|\b(?:you )?can(?:not|['’]t)\b|\b(?:avoid|prefer|minimi[sz]e)\b|^(?:keep|limit|try to|reject|never|always|do not)\b|\b(?:must|forbidden|not allowed|required)\b"
    r"|\b(?:nur|nicht|vermeide\w*|bevorzuge\w*)\b|\b(?:seulement|évite[rz]?|préfère[rz]?)\b|\b(?:solo|sólo|evita|prefiere)\b|のみ|だけ|避け|只|仅|避免|优先"
)
#: "No, use X": what the person corrects once holds from then on.
CORRECTION = _words(
    r"(?:no|nope|nah|nein|non)\b[,.!]?\s+[^?]{0,120}\b(?:just|use|only|instead|should|nur|seulement|solo)\b|(?:不|いや)[，、,]"
)
LISTED_ORDER = _words(
    r"(?:commit|push|search|use|write|run|mark|check|report|stop|exit|follow|respond|return|include|read|update|create|complete|process|execute|analy[sz]e|review|keep)\b"
)
CHOSEN = _words(
    r"\b(?:decision|decided|settled|agreed|chosen|chose|picked|opted|(?:go|going|goes|went)\s+with|(?:stick|stay|keep)\s+(?:to|with)|"
    r"from\s+now\s+on|instead\s+of|rather\s+than|in\s+favou?r\s+of|(?:we|i)(?:['’]ll|\s+will)?\s+(?:use|take|keep|adopt|prefer)|"
    r"let(?:['’]s|\s+us)\s+(?:use|take|keep|go|make|do)|(?:is|are)\s+now)\b|\b(?:use|take|keep|set)\b.{1,60}\b(?:not|because|for|to)\b"
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
