"""Words by which people agree, refuse, forbid, allow and change their mind, in six languages.

One table for English, German, French, Spanish, Japanese and Chinese, shared by what reads the words of a person
(`derive.intent`, `derive.open_items`, `derive.session_state`) and by what holds a model's statement against the record
(`restore.claim_polarity`, `restore.claim_acts`, `restore.claim_speech`).
"""

from __future__ import annotations

import re

from everturn.text.lazy_pattern import lazy_pattern

_AGREES = (
    r"y|yes|yep|yeah|yup|ya|ok(?:ay)?|k|sure|fine|good|go|go ahead|go for it|do it|do that|do so|please do|yes please|proceed|"
    r"sounds good|looks good|lgtm|perfect|great|correct|right|exactly|agreed|approved?|ship it|make it so|let['’]?s do it|let['’]?s go|"
    r"ja|jo|gut|einverstanden|gern(?:e)?|klar|passt|mach(?: das| es)?|bitte|genau|oui|d['’]accord|vas-y|parfait|sí|si|vale|dale|claro|adelante|de acuerdo|"
    r"はい|お願い|いいね|お願いします|よろしく(?:お願いします)?|了解|いいです(?:ね)?|進めて(?:ください)?|是|是的|好|好的|可以|行|没问题|继续|同意|对"
)
#: A reply that does no more than agree, to be matched in full.
APPROVAL = lazy_pattern(
    rf"(?:{_AGREES})"
    r"(?:[ ,.!、。！]+(?:please|thanks?|thank you|do it|go ahead|do that|proceed|go for it|sounds good|looks good|bitte|danke|merci|gracias|お願いします))*",
    re.I,
)
#: The beginning of a message that agrees.
AGREEMENT = lazy_pattern(rf"\s*(?:{_AGREES})(?!\w)", re.I)
#: Phrases with a negation that deny nothing, or take a negation back.
NO_NEGATION = lazy_pattern(
    r"\b(?:not (?:only|just|least|sure)|whether or not|no matter|no doubt|why not|if not|nicht nur|pas seulement|no s[óo]lo"
    r"|no objections?|(?:not|n['’]t) (?:mind|object|opposed|against)|nichts dagegen|aucune objection|pas d['’]objection|ninguna objeción|no le importa)\b"
    r"|(?:構|かま)(?:わない|いません)|不介意|不反对",
    re.I,
)
#: What is neither demanded nor forbidden.
OPTIONAL = lazy_pattern(
    r"\b(?:not (?:strictly |really )?(?:necessary|needed|required|mandatory|obligatory|compulsory)|no need|need not|needn['’]?t"
    r"|(?:do|does|did)(?: not|n['’]?t) (?:have to|need|require|insist)|unnecessary|optional(?:ly)?|superfluous|dispensable"
    r"|nicht (?:nötig|notwendig|erforderlich)|(?:muss|musst|müssen|brauchst?|brauchen)\b.{0,40}\bnicht|unnötig"
    r"|pas (?:nécessaire|besoin|obligatoire)|facultati\w+|no (?:hace falta|es necesari\w|es obligatori\w)|opcional)\b"
    r"|必要(?:は|が)?(?:ない|ありません)|しなくても?(?:いい|よい)|不必|不需要|无需|無需|没必要",
    re.I,
)
#: Negations that reach forward to the end of the clause.
DENIAL = lazy_pattern(
    r"\b(?:not|never|no longer|no|nor|neither|none|nobody|nothing|cannot|without|instead of|rather than|except"
    r"|forbid(?:s|den|ding)?|forbade|prohibit(?:s|ed|ing)?|ban(?:s|ned|ning)?|bars|barred|disallow(?:s|ed)?|avoid(?:s|ed|ing)?"
    r"|refrain(?:s|ed|ing)?|refus(?:e|es|ed|ing)|reject(?:s|ed|ing)?|rul(?:es?|ed|ing) out|(?:decide[sd]?|advise[sd]?|is|are|was|were|vote[sd]?|argue[sd]?|warn(?:s|ed)?) against|stop|stay away|keep away"
    r"|hands off|objects? to|opposes?|opposed|vetoe[sd]|must\s?n['’]?t|(?:do|does|did|wo|ca|should|must|is|are|was|were|has|have|had|would|could)n['’]t"
    r"|dont|doesnt|statt|anstatt|anstelle|ohne|niemals|nie|verbietet|verboten|untersagt|vermeide\w*"
    r"|jamais|sans|plutôt que|au lieu de?|interdit|éviter?|évitez|nunca|jamás|sin|en (?:lugar|vez) de|prohíbe|prohibido|evitar?|evite)\b",
    re.I,
)
#: Negations that cover the clause they stand in.
DENIED_CLAUSE = lazy_pattern(
    r"\b(?:is|are|was|were|be|remains?|stays?)\s+(?:strictly |explicitly |currently )?(?:forbidden|prohibited|banned|disallowed|off[- ]limits|unwanted"
    r"|taboo|out of the question|ruled out|refused|rejected|avoided|skipped|omitted|left out|untouched|not (?:allowed|permitted|wanted|acceptable|okay|ok|an option|to be))\b"
    r"|\b(?:must|should|may|can|shall|will)(?: not|n['’]t|not) be\b|\bleave\b.{1,60}\b(?:alone|untouched|as (?:is|it is|they are))\b"
    r"|\bnicht\b|\bkein\w*\b|\bn['’e]\s?.{0,40}\b(?:pas|jamais|plus|aucun\w*)\b|^\s*pas\b"
    r"|ない(?:で|こと|よう)|しない|ません|禁止|な(?:いで|くては)|するな|ずに|ではなく|不要|不得|不能|不可|不许|不許|别|勿|没有|未|不是|不用",
    re.I,
)
#: Somebody chooses something else than before.
REVISION = lazy_pattern(
    r"\b(?:on second thought|actually|changed? my mind|scratch that|forget (?:that|it|about)|instead|rather|never ?mind|let['’]?s (?:switch|go back|not)|switch(?:ed)? to|no longer"
    r"|doch lieber|lieber|stattdessen|doch nicht|plutôt|finalement|à la place|mejor|en su lugar|al final)\b|やっぱり|やはり|代わりに|还是|改用|改成|换成",
    re.I,
)
#: Somebody takes back what was decided, whether or not something else takes its place.
TAKEN_BACK = lazy_pattern(
    r"\b(?:revert|undo|roll(?:ed)? back|scrap|drop|remove|forget|cancel|never ?mind|nvm|scratch that|take (?:it|that) back|go back to|no longer (?:want|need)"
    r"|rückgängig|verwirf|vergiss|streich\w*|doch nicht|annule[rz]?|oublie[rz]?|retire[rz]?|deshaz|revierte|olvida|cancela|quita)\b"
    r"|元に戻|取り消|やめて|やめます|撤销|撤回|取消|还原|不要了|算了",
    re.I,
)
#: Said of work that was not done: "not yet", "hasn't been".
NOT_YET = r"(?:(?:not|haven['’]t|hasn['’]t|isn['’]t|aren['’]t|wasn['’]t|nothing|noch nicht|pas encore|todavía no|aún no)(?: yet| been)*)"
#: Conditions: what follows them need not have happened.
CONDITION = lazy_pattern(
    r"\b(?:before|once|if|when|unless|until|whether|bevor|sobald|falls|wenn|avant|quand|si|antes|cuando)\b|たら|なければ|如果|之前",
    re.I,
)
#: Words after which a verb tells of something wanted or planned.
WISH = lazy_pattern(
    r"\b(?:to|should|must|shall|will|would|can|could|may|might|needs?|plan(?:s|ned)?|wants?|wanted|wishes|asks?|asked|requires?|requested|requests|demands?"
    r"|suggest(?:s|ed)?|propos(?:es|ed)|recommend(?:s|ed)?|consider(?:s|ed)?|ready|soll(?:en|te)?|muss|müssen|wird|werden|doit|doivent|debe|deben)\b|べき|必要|予定|应该|需要|将",
    re.I,
)
#: The same with a finite verb: "is still to".
STILL_TO = lazy_pattern(
    r"\b(?:ha(?:s|ve|d) (?:yet )?to|(?:is|are|was|were) (?:yet |still |going |about |supposed |planned |ready |meant )*to)\b",
    re.I,
)
