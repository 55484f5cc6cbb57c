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
        (r"\b(?:(?<!-)light|hell\w*|clair\w*|clar[oa]s?)\b|浅色|ライト", r"\b(?:dark|dunk\w*|sombre\w*|oscur[oa]s?|escur[oa]s?)\b|深色|暗色|ダーク"),
        (r"\b(?:new|newest|latest|neue?[nrsm]?|nouve(?:au|lle)s?|nuev[oa]s?|nov[oa]s?)\b|新的|最新|新しい|새로운", r"\b(?:old|older|outdated|obsolete|stale|alte?[nrsm]?|veraltet\w*|ancien(?:ne)?s?|viej[oa]s?|antigu[oa]s?|antig[oa]s?|velh[oa]s?)\b|旧的?|过时|古い|오래된"),
        (r"\b(?:exists?|present|available|installed|in place|vorhanden|existier\w+|existe|disponibles?|disponível)\b|存在(?!し(?:ない|ません))|(?<!不)存在|可用", r"\b(?:missing|absent|lack(?:s|ing)?|unavailable|fehl(?:t|en|end\w*)|manqu\w+|falta\w*|ausente)\b|缺失|缺少|不存在|存在し(?:ない|ません)|見つから|없(?:다|음)"),
        (r"\b(?:fast(?:er)?|quick(?:er|ly)?|schnell\w*|rapide\w*|rápid\w+)\b|更快|速い", r"\b(?:slow(?:er|ly)?|langsam\w*|lente?s?|lent[oa]s?)\b|更慢|遅い"),
        (r"\b(?:optional(?:ly)?|facultati\w+|opcional\w*)\b|可选|任意", r"\b(?:mandatory|required|compulsory|obligator\w+|verpflichtend\w*|obligatoire\w*)\b|必填|必须|必須"),
        (r"\b(?:accept(?:s|ed)?|approve[sd]?|went through|angenommen|akzeptiert|accept\w+|acept\w+|aceit[aeo]s?|aprobad\w+|aprovad\w+)\b|接受|通过了|受け入れ|承認",
         r"\b(?:reject(?:s|ed|ing)?|refuse[sd]?|declin(?:e[sd]?|ing)|denied|block(?:s|ed|ing)|abgelehnt|blockiert|rejet\w+|refus\w+|rechaz\w+|rejeit\w+|bloque\w+|recusad\w+)\b|拒绝|被拒|拒否|却下|ブロック"),
        (r"\b(?:at the same time|in parallel|parallel|concurrent(?:ly)?|simultaneous(?:ly)?|all at once|gleichzeitig|en même temps|simultan\w+|al mismo tiempo|en paralelo|ao mesmo tempo|em paralelo)\b|同时|并行|同時に|並行|並列",
         r"\b(?:one after (?:the other|another)|one (?:by one|at a time)|sequential(?:ly)?|in sequence|in turn|waits? (?:for|until)|nacheinander|der Reihe nach|l['’]une? après l['’]autre|uno (?:por uno|tras otro)|um (?:por um|após o outro)|secuencial\w*|sequencial\w*)\b|依次|逐个|串行|順番に|一つずつ|順次"),
        (r"\b(?:complete[ds]?|finished|fully done|abgeschlossen|fertiggestellt|terminée?s?|achevée?s?|completad[oa]s?|terminad[oa]s?|concluíd[oa]s?)\b|已完成|完成了|完了",
         r"\b(?:interrupted|aborted|cancell?ed|cut off|timed out|unterbrochen|abgebrochen|interrompue?s?|annulée?s?|interrumpid\w+|cancelad\w+|interrompid\w+)\b|中断|取消|中止|キャンセル"),
        (r"\b(?:(?:a|one|the) single|(?<=no )single|one (?:file|place|list|document|folder)|in one|einer? einzige\w*|une? seule?|un(?:a)? (?:solo|sola|único|única)|um(?:a)? (?:só|único|única))\b|(?:一|ひと)つの|単一|まとまって|单一|一个文件|集中在",
         r"\b(?:several|multiple|scattered|spread (?:over|across)|distributed|separate(?:ly)?|mehrere\w*|verteilt|verstreut|plusieurs|dispersée?s?|vari[oa]s|dispers[oa]s|vári[oa]s|espalhad[oa]s|separad[oa]s)\b|複数|分散|別々|多个|分散在|各自"),
        (r"\b(?:first|initial(?:ly)?|zuerst|erste[nrsm]?|premi(?:er|ère)s?|primer[oa]?|primeir[oa])\b|最初|首先|まず", r"\b(?:last|final(?:ly)?|zuletzt|letzte[nrsm]?|derni(?:er|ère)s?|últim[oa]s?)\b|最后|最後"),
        (r"\b(?:at least|no (?:less|fewer) than|minimum(?: of)?|mindestens|au moins|al menos|como mínimo|pelo menos|no mínimo)\b|至少|最少|以上|少なくとも", r"\b(?:at most|no more than|maximum(?: of)?|up to|höchstens|maximal|au plus|como máximo|a lo sumo|no máximo)\b|至多|最多|最大|以下|以内"),
        (r"\b(?:permanent(?:ly)?|dauerhaft|permanente?s?|en permanence)\b|永久|恒久", r"\b(?:temporar(?:y|ily)|for now|vorübergehend|vorläufig|temporaire\w*|temporal\w*|temporári\w+)\b|临时|暂时|一時的|暫定"),
        (r"\b(?:correct(?:ly)?|accurate|richtig\w*|korrekt\w*|correcte?(?:ment)?s?|correct[oa]s?|corret[oa]s?)\b|(?<!不)正确|正しい", r"\b(?:incorrect(?:ly)?|wrong(?:ly)?|inaccurate|falsch\w*|inkorrekt\w*|incorrecte?s?|fausse?s?|incorrect[oa]s?|errad[oa]s?|incorret[oa]s?)\b|错误的?|不正确|写错|間違|誤り|誤っ"),
        (r"\b(?:ascending|increasing order|oldest first|aufsteigend|croissante?|ascendente|crescente)\b|升序|昇順", r"\b(?:descending|decreasing order|newest first|absteigend|décroissante?|descendente|decrescente)\b|降序|降順"),
        (r"\b(?:online|connected|verbunden)\b|在线|オンライン", r"\b(?:offline|disconnected|getrennt)\b|离线|オフライン"),
        (r"\b(?:active|running|alive|aktiv|läuft|actif|active|activ[oa]s?|ativ[oa]s?)\b|运行中|稼働中|実行中", r"\b(?:inactive|stopped|dead|not running|inaktiv|gestoppt|inactif|inactive|arrêtée?s?|inactiv[oa]s?|detenid[oa]s?|inativ[oa]s?|parad[oa]s?)\b|已停止|停止中"),
        (r"\b(?:strict(?:ly)?|streng\w*|stricte?s?|estrict[oa]s?|estrit[oa]s?)\b|严格|厳格", r"\b(?:lenient(?:ly)?|loose(?:ly)?|relaxed|tolerant|locker|laxe?s?|flexible)\b|宽松|緩い"),
        (r"\b(?:safe|harmless|sicher|sûre?s?|segur[oa]s?)\b(?! to assume)|安全", r"\b(?:unsafe|dangerous|risky|harmful|unsicher|gefährlich\w*|dangereu(?:x|se)s?|risquée?s?|peligros[oa]s?|perigos[oa]s?)\b|危险|危険"),
        (r"\b(?:upgrad(?:e[sd]?|ing)|newer version|höhere Version)\b|升级|アップグレード", r"\b(?:downgrad(?:e[sd]?|ing)|older version|rolled back to)\b|降级|ダウングレード"),
        (r"\b(?:reus(?:e[sd]?|ing)|existing one|wiederverwend\w*|réutilis\w+|reutiliz\w+)\b|复用|沿用|再利用|流用", r"\b(?:from scratch|rewrit(?:e|ten|ing)|von Grund auf|neu schreiben|à partir de zéro|desde cero|do zero)\b|从零|重写|一から|作り直"),
        (r"\b(?:absolute?(?:ly)?|absolut\w*)\b|绝对|絶対", r"\b(?:relative?(?:ly)?|relativ\w*)\b|相对|相対"),
        (r"\b(?:static(?:ally)?|statisch\w*|statique\w*|estátic\w+)\b|静态|静的", r"\b(?:dynamic(?:ally)?|dynamisch\w*|dynamique\w*|dinámic\w+|dinâmic\w+)\b|动态|動的"),
        (r"\b(?:separate(?:ly)?|on their own|getrennt|séparé\w*|por separado|separad\w+)\b|分开|単独|別々", r"\b(?:together|combined|merged into one|zusammen|gemeinsam|ensemble|junt[oa]s)\b|一起|一緒|まとめて"),
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

_SIDE = r"(?:[^,;.。，、；\n]|\.(?=\w)){2,60}"
#: Says that things are told in the order in which they come.
SEQUENCE = _words(
    r"\b(?:first|then|next|finally|last(?:ly)?|zuerst|dann|danach|zuletzt|d['’]abord|ensuite|puis|enfin|primero|luego|después|por último|primeiro|depois|por fim)\b"
    r"|先.{1,200}(?:再|然后|最后|接着)|まず.{1,200}(?:次に|最後に|その後)"
)
#: Relations of which one side comes first, and the other second.
FIRST_AND_SECOND = {
    "order": (
        _words(rf"(?P<first>{_SIDE}?)\s+(?:before|bevor|vor|avant|antes de|antes do|antes da|antes que)\s+(?P<second>{_SIDE})"),
        _words(rf"(?P<second>{_SIDE}?)\s+(?:after|nachdem|nach|après|después de|tras|depois de|depois do|depois da)\s+(?P<first>{_SIDE})"),
        _words(rf"\bfirst\s+(?P<first>{_SIDE}?),?\s+(?:and\s+)?(?:then|afterwards|next)\s+(?P<second>{_SIDE})"),
        _words(rf"(?P<first>{_SIDE})\s*(?:→|->|=>)\s*(?P<second>{_SIDE})"),
        _words(rf"先(?P<first>{_SIDE})[，,]?\s?(?:再|然后|后)(?P<second>{_SIDE})"),
        _words(rf"(?P<first>{_SIDE}?)(?:してから|した後に?|の後に?)[、,]?(?P<second>{_SIDE})"),
    ),
    "preference": (
        _words(rf"(?P<first>{_SIDE}?)\s+(?:first|preferred|takes? precedence|has priority)[,;]?\s+(?:and\s+)?(?:then|over|before|with|falling back to|falls? back to|otherwise|else)\s+(?P<second>{_SIDE})"),
        _words(rf"\bprefer(?:s|red|ring)?\s+(?P<first>{_SIDE}?),?\s+(?:over|to|and (?:only )?(?:falls?|falling) back (?:to|on))\s+(?P<second>{_SIDE})"),
        _words(rf"(?P<first>{_SIDE}?),?\s+(?:and\s+|with\s+)?(?:falls? back (?:to|on)|falling back (?:to|on)|fallback to)\s+(?P<second>{_SIDE})"),
        _words(rf"(?P<second>{_SIDE}?)\s+(?:is|as|serves as)\s+(?:the|a)\s+fallback\s+(?:for|of|to)\s+(?P<first>{_SIDE})"),
        _words(rf"(?P<first>{_SIDE})を?(?:優先|第一)[^、,。]{{0,6}}[、,]\s?(?:失敗時|失敗したら|なければ|できなければ|失敗した場合)(?:は|に|には)?(?P<second>{_SIDE})"),
        _words(rf"优先(?:使用|采用|用)?(?P<first>{_SIDE})[，,](?:失败|否则|若失败|失败时|没有)(?:则|时|就|再)?(?:用|使用|回退到)?(?P<second>{_SIDE})"),
    ),
}  # fmt: skip
#: The one thing that something is restricted to, where it has a name of its own.
RESTRICTED = lazy_pattern(
    r"\b(?i:only|solely|exclusively|nur|seulement|uniquement|solo|sólo|solamente|somente|apenas|só)\s+(?:(?:in|on|for|by|with|the|to|at|from|im|auf|für|dans|en|sur|pour|la|el|para|em|na|no)\s+){0,2}([A-Z][A-Za-z0-9_.-]{1,30})"
    r"|\b([A-Z][A-Za-z0-9_.-]{1,30})[ -]only\b|([A-Z][A-Za-z0-9_.-]{1,30}|[\u30a1-\u30fa\u30fc]{2,12})\s?[版側]?(?:に|で|は|を)?(?:のみ|だけ)|(?:只|仅|僅)(?:能|可以|会|有|支持)?在?\s?([A-Z][A-Za-z0-9_.-]{1,30})"
)
