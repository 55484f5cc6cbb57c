"""Words for times in English, German, French, Spanish, Japanese and Chinese, as tables for `text.time_phrases`.

Alternatives are separated by bars, in lower case, without signs of regular expressions. Japanese and Chinese do not separate
words, so their tables are apart from the others.
"""

from __future__ import annotations

MONTHS = {
    1: "january|jan|januar|jänner|janvier|enero",
    2: "february|feb|februar|février|fevrier|febrero",
    3: "march|mar|märz|maerz|mars|marzo",
    4: "april|apr|avril|abril",
    5: "may|mai|mayo",
    6: "june|jun|juni|juin|junio",
    7: "july|jul|juli|juillet|julio",
    8: "august|aug|août|aout|agosto",
    9: "september|sept|sep|septembre|septiembre|setiembre",
    10: "october|oct|oktober|okt|octobre|octubre",
    11: "november|nov|novembre|noviembre",
    12: "december|dec|dezember|dez|décembre|decembre|diciembre",
}
WEEKDAYS = {
    0: "monday|montag|lundi|lunes",
    1: "tuesday|dienstag|mardi|martes",
    2: "wednesday|mittwoch|mercredi|miércoles|miercoles",
    3: "thursday|donnerstag|jeudi|jueves",
    4: "friday|freitag|vendredi|viernes",
    5: "saturday|samstag|sonnabend|samedi|sábado|sabado",
    6: "sunday|sonntag|dimanche|domingo",
}
#: Short names are words of their own (`sat`, `sun`, `mon`), so only these, and only after `on` or `last`.
SHORT_WEEKDAYS = {1: "tues|tue", 2: "wed", 3: "thurs|thur|thu", 4: "fri"}
CJK_WEEKDAYS = {0: "月|一", 1: "火|二", 2: "水|三", 3: "木|四", 4: "金|五", 5: "土|六", 6: "日|天"}

UNITS = {
    "second": "seconds|second|secs|sec|sekunden|sekunde|secondes|seconde|segundos|segundo",
    "minute": "minutes|minute|mins|min|minuten|minutos|minuto",
    "hour": "hours|hour|hrs|hr|stunden|stunde|heures|heure|horas|hora",
    "day": "days|day|nights|night|tagen|tage|tag|jours|jour|días|día|dias|dia",
    "week": "weeks|week|wochen|woche|semaines|semaine|semanas|semana",
    "month": "months|month|monaten|monate|monats|monat|mois|meses|mes",
    "year": "years|year|jahren|jahre|jahres|jahr|ans|an|années|année|annee|años|año",
}
CJK_UNITS = {
    "second": "秒钟|秒",
    "minute": "分钟|分間|分",
    "hour": "个小时|小时|時間",
    "day": "天|日",
    "week": "週間|个星期|星期|个礼拜|礼拜|周",
    "month": "か月|ヶ月|カ月|个月",
    "year": "年",
}
#: By the lowest and the highest number that is meant.
NUMBERS = {
    (1, 1): "an|a|one|eine|einem|einer|einen|ein|une|un|una|一",
    (2, 2): "two|a couple of|couple of|a couple|zwei|deux|dos|二|两",
    (3, 3): "three|drei|trois|tres|三",
    (4, 4): "four|vier|quatre|cuatro|四",
    (5, 5): "five|fünf|cinq|cinco|五",
    (6, 6): "six|sechs|seis|六",
    (7, 7): "seven|sieben|sept|siete|七",
    (8, 8): "eight|acht|huit|ocho|八",
    (9, 9): "nine|neun|neuf|nueve|九",
    (10, 10): "ten|zehn|dix|diez|十",
    (11, 11): "eleven|elf|onze|once",
    (12, 12): "twelve|zwölf|douze|doce",
    (2, 6): "a few|few|several|ein paar|einigen|wenigen|quelques|unos|unas|几|数",
}

#: Days back, by name.
NAMED_DAYS = {
    0: "earlier today|later today|today|heute|aujourd'hui|aujourd’hui|hoy",
    1: "yesterday|gestern|ayer",
    2: "the day before yesterday|day before yesterday|vorgestern|avant-hier|anteayer|antier",
}
CJK_NAMED_DAYS = {0: "今日|今天", 1: "昨日|昨天", 2: "一昨日|おととい|前天"}
#: `hier` is yesterday in French and here in German: it counts beside one of these words only.
FRENCH_YESTERDAY = {1: "hier"}
FRENCH_WORDS = "que|quoi|qu|ai|je|tu|nous|avons|avez|ont|le|la|les|une|du|des|dit|quel|quelle|quels|quelles|matin|soir"

#: The hours of a part of the day; 29 is 5 o'clock of the next day.
DAY_PARTS = {
    (5, 12): "morning|in the morning|früh|morgen|vormittag|matin|por la mañana",
    (12, 18): "afternoon|in the afternoon|nachmittag|après-midi|por la tarde",
    (17, 24): "evening|in the evening|abend|soir",
    (20, 29): "night|at night|nacht|nuit|por la noche",
}
CJK_DAY_PARTS = {
    (5, 12): "の朝|朝|の午前|午前|早上|上午",
    (12, 18): "の午後|午後|下午",
    (17, 24): "の夕方|夕方|傍晚",
    (18, 29): "の夜|夜|の晩|晩|晚上",
}

# Calendar units: the current one, and the one before.
THIS = "this|earlier this|later this|dieser|diese|diesen|dieses|diesem|cette|ce|esta|este"
LAST = "last|previous|letzte|letzter|letzten|letztes|letztem|vorige|vorigen|voriger|voriges|vergangene|vergangenen|vergangenes"
LAST_AFTER = "dernière|derniere|dernier|passée|passé|pasada|pasado"  # la semaine dernière, el mes pasado
ARTICLES = "la |le |l'|l’|el "
#: Of a unit, how many back.
CJK_CALENDAR = {
    ("week", 0): "今週|这周|本周|这星期|这个星期",
    ("week", 2): "先々週|上上周",
    ("week", 1): "先週|上周|上星期|上个星期|上个礼拜",
    ("month", 0): "今月|这个月|本月",
    ("month", 1): "先月|上个月|上月",
    ("year", 0): "今年",
    ("year", 1): "去年|昨年",
}

#: Times that are not exact: days back, from and to.
VAGUE = {
    (14, 0): "recently|lately|neulich|kürzlich|letztens|récemment|recemment|recientemente|hace poco",
    (7, 1): "the other day|other day|l'autre jour|l’autre jour|el otro día|otro día",
}
CJK_VAGUE = {(14, 0): "最近", (7, 1): "先日|前几天"}

# Words before a time: how it is meant.
SINCE = "since|ever since|seit|seit dem|seit der|ab|depuis|desde|starting|à partir de|à partir du|a partir de"
AFTER = "after|later than|nach|nach dem|nach der|après|después de|despues de"
BEFORE = "before|prior to|earlier than|older than|vor|vor dem|vor der|bevor|avant|antes de"
UNTIL = "until|till|up to|up until|by|bis|bis zum|bis zur|jusqu'à|jusqu’à|jusqu'au|jusqu’au|jusqu'en|jusqu’en|hasta"
BETWEEN = "between|from|zwischen|von|vom|entre"
#: Words that only lead to a time. After one of them, a bare month is meant as one.
LEADING = "in|on|during|of|around|about|early|late|mid|last|this|back in|end of|im|am|anfang|mitte|ende|en"
FILLING = "the|at|for|some|roughly|approximately|dem|der|den|le|la|el|de|del|du|au|à|circa|within|over|year|año|jahr"
YEAR_LEADING = "in|during|since|of|by|year|until|till|en|seit|depuis|desde|año|jahr"
JOINTS = "to|through|thru|-|–|—|bis|à|au|al|hasta|から|到|至"
AND_JOINTS = "and|und|et|y|と|和"

# Words after a time, in Japanese and Chinese.
CJK_SINCE = "以来|以降|以后|之后|から"
CJK_BEFORE = "以前|之前|より前"
CJK_UNTIL = "まで|为止"
CJK_FILLING = "の|に|は|的"
