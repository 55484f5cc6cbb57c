"""Words by which a model's statement is held against the record: those that tell languages apart, rule each other out or replace.

They know English, German, French, Spanish, Portuguese, Japanese, Chinese and a little Korean. `restore.claim_language` and
`restore.claim_polarity` use them.
"""

from __future__ import annotations

import re

from everturn.text.lazy_pattern import lazy_pattern


def _words(pattern: str) -> re.Pattern[str]:
    return lazy_pattern(pattern, re.IGNORECASE)


#: The small words that tell languages apart.
LANGUAGE_WORDS = {
    "en": frozenset(
        "the and is was were to of for with not in that by from be are it this which has have should will they their there what why how "
        "because into cannot out an or only when after before at on as its been but you your we can".split()
    ),
    "de": frozenset(
        "der die das und ist wurde wurden nicht mit für auf ein eine einen den dem des von zu zum zur im werden soll sollen wird sich auch "
        "aus bei noch nach als oder kein keine ohne sind war hat haben dass ich du wir sie es laut nur alle alles".split()
    ),
    "fr": frozenset(
        "le la les des et est pour dans avec une un du de que sur pas qui a été au aux en ne se ce cette sont il elle par mais plus sans "
        "je tu nous vous l d n qu c tout tous ont".split()
    ),
    "es": frozenset(
        "el la los las y es para con una un del de que por no se en fue al lo como más sin está son su sus ya pero cuando hay le qué "
        "este esta yo hacer ha han quiere".split()
    ),
    "pt": frozenset(
        "o a os as e é para com uma um do da dos das que não no na nos nas foi por se em ao mais sem está são seu sua já mas quando há "
        "este esta eu isso ele pelo pela deixa só agora".split()
    ),
}
#: Names of languages, which a statement in another language writes in its own way.
LANGUAGE_NAMES = frozenset(
    "English German French Spanish Portuguese Italian Japanese Chinese Korean Russian Mandarin Latin Markdown Monday Tuesday Wednesday Thursday Friday Saturday "
    "Sunday January February March April June July August September October November December".split()
)
#: Pairs of words that rule each other out: what is the one is not the other.
OPPOSITES = tuple(
    (_words(one), _words(other))
    for one, other in (
        (r"\b(?:keep(?:s|ing)?|kept|retain(?:s|ed|ing)?|stay(?:s|ed)?|remain(?:s|ed)?|preserve[sd]?|behalten|beibehalten|bleib\w*|garder?|gardée?s?|conserv\w+|mantener|mantenid\w+|manter|mantid[oa]s?)\b|保留|残す|残し|維持|유지",
         r"\b(?:remov(?:e[sd]?|ing)|delet(?:e[sd]?|ing)|drop(?:s|ped|ping)?|get(?:s|ting)? rid of|discard(?:s|ed)?|entfern\w*|lösch\w*|supprim\w+|retir(?:er?|ée?s?)|elimin\w+|borr(?:ar|ad\w+)|quitar|remov(?:er|id\w+)|apagar?)\b|删除|移除|去掉|削除|除去|삭제"),
        (r"\b(?:show(?:s|n|ed|ing)?|display(?:s|ed|ing)?|visible|anzeig\w*|sichtbar|affich\w+|mostrar|muestra\w*|visível)\b|显示|表示(?:する|し|さ)",
         r"\b(?:hid(?:e|es|den|ing)|suppress(?:es|ed|ing)?|invisible|ausblend\w*|versteck\w*|masqu\w+|ocult\w+|escond\w+)\b|隐藏|非表示|隠"),
        (r"\b(?:public|öffentlich\w*|publi(?:c|que)s?|públic[oa]s?)\b|公开的?|公開", r"\b(?:private|privat\w*|privée?s?|privad[oa]s?)\b|私有|非公開|プライベート"),
        (r"\b(?:enabl(?:e[sd]?|ing)|activat(?:e[sd]?|ing)|turn(?:s|ed|ing)? on|switched on|aktivier\w*|eingeschaltet|activ(?:er?|ée?s?|ar|ad[oa]s?)|habilitad?\w*|ativ(?:ar|ad[oa]s?))\b|启用|有効|활성화",
         r"\b(?:disabl(?:e[sd]?|ing)|deactivat(?:e[sd]?|ing)|turn(?:s|ed|ing)? off|switched off|deaktivier\w*|abgeschaltet|désactiv\w+|desactiv\w+|deshabilit\w+|desativ\w+)\b|禁用|停用|無効|비활성"),
        (r"\b(?:increas(?:e[sd]?|ing)|rais(?:e[sd]?|ing)|grow(?:s|n|ing)?|larger|bigger|higher|longer|erhöh\w*|größer|höher|länger|augment\w+|aument\w+|mayor|maior)\b|增加|增大|变大|放大|増や|大きく|늘",
         r"\b(?:decreas(?:e[sd]?|ing)|reduc(?:e[sd]?|ing)|lower(?:s|ed|ing)?|shrink(?:s|ing)?|smaller|shorter|verringer\w*|kleiner|kürzer|niedriger|rédui\w+|diminu\w+|reduc\w+|menor)\b|减少|减小|变小|缩小|減ら|小さく|줄"),
        (r"\b(?:horizontal\w*|level|waagerecht)\b|水平|横向", r"\b(?:vertical\w*|tilt(?:s|ed|ing)?|slant\w*|senkrecht|vertikal|schräg|inclin\w+)\b|垂直|倾斜|竖|斜め|傾"),
        (r"\b(?:automatic(?:ally)?|automatisch\w*|automatique\w*|automátic\w+)\b|自动|自動", r"\b(?:manual(?:ly)?|by hand|manuell\w*|von Hand|manuelle?(?:ment)?)\b|手动|手動"),
        (r"\b(?:synchron(?:ous|ously|e)?|sync)\b|同期", r"\b(?:async(?:hronous|hronously)?|asynchron\w*)\b|非同期"),
        (r"\b(?:local(?:ly)?|lokal\w*|locale?s?|localmente)\b|本地|ローカル", r"\b(?:remote(?:ly)?|entfernt\w*|distante?s?|remot[oa]s?)\b|远程|リモート"),
        (r"\b(?:includ(?:e[sd]?|ing)|einschließ\w*|inclu(?:re|s|ent|ir|ye|id[oa]))\b|包含|包括|含め", r"\b(?:exclud(?:e[sd]?|ing)|ausschließ\w*|exclu(?:re|s|ent|ir|ye|id[oa]))\b|排除|除外|除く"),
        (r"\b(?:match(?:es|ed|ing)?|identical|consistent|agrees? with|in line with|überein\w*|identisch\w*|conforme?s?|coincid\w+|idéntic\w+)\b|(?<!не )\bсовпада\w+|一致(?!し(?:ない|て(?:い)?ない))|相符",
         r"\b(?:mismatch\w*|differ(?:s|ed|ent|ence|ences|ing)?|diverg\w+|inconsisten\w+|deviat\w+|abweich\w*|unterschied\w*|différ\w+|difier\w+|diferen\w+)\b|не совпада\w+|отлича\w+|不一致|不符|差异|差分|ズレ|ずれ|異なる"),
        (r"\b(?:light|hell\w*|clair\w*|clar[oa]s?)\b|浅色|ライト", r"\b(?:dark|dunk\w*|sombre\w*|oscur[oa]s?|escur[oa]s?)\b|深色|暗色|ダーク"),
        (r"\b(?:new|newest|latest|neue?[nrsm]?|nouve(?:au|lle)s?|nuev[oa]s?|nov[oa]s?)\b|新的|最新|新しい|새로운", r"\b(?:old|older|outdated|obsolete|stale|alte?[nrsm]?|veraltet\w*|ancien(?:ne)?s?|viej[oa]s?|antigu[oa]s?|antig[oa]s?|velh[oa]s?)\b|旧的?|过时|古い|오래된"),
        (r"\b(?:exists?|present|available|in place|vorhanden|existier\w+|existe|disponibles?|disponível)\b|存在(?!し(?:ない|ません))|(?<!不)存在|可用", r"\b(?:missing|absent|lack(?:s|ing)?|unavailable|fehl(?:t|en|end\w*)|manqu\w+|falta\w*|ausente)\b|缺失|缺少|不存在|存在し(?:ない|ません)|見つから|없(?:다|음)"),
        (r"\b(?:fast(?:er)?|quick(?:er|ly)?|schnell\w*|rapide\w*|rápid\w+)\b|更快|速い", r"\b(?:slow(?:er|ly)?|langsam\w*|lente?s?|lent[oa]s?)\b|更慢|遅い"),
        (r"\b(?:optional(?:ly)?|facultati\w+|opcional\w*)\b|可选|任意", r"\b(?:mandatory|required|compulsory|obligator\w+|verpflichtend\w*|obligatoire\w*)\b|必填|必须|必須"),
        (r"\b(?:left|links|gauche|izquierd\w+|esquerd\w+)\b|左", r"\b(?:right[- ](?:hand|side|corner)|on the right|rechts|droite|derech[oa]|direit[oa])\b|右"),
    )
)  # fmt: skip
#: Words that replace one thing by another: what stands before them is new, what follows is old.
IN_PLACE_OF = _words(
    r"\b(?:instead of|rather than|in place of|statt|anstatt|anstelle von|au lieu de|plutôt que|en (?:lugar|vez) de|em vez de)\b|而不是|而非|代わりに|ではなく"
)
#: Says that something is as it was.
STILL = _words(
    r"\b(?:still|remains?|unchanged|weiterhin|immer noch|bleibt|toujours|reste|sigue|todavía|aún|continua|ainda)\b|仍|还是|依旧|まだ|のまま|여전히"
)
