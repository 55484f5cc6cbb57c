"""What the words of a rule mean, in any language.

Weights that were learnt from sentences in one language hold in others through these meanings (`derive.decisions`). A word that ends in `*`
stands for all words that begin so. Accents do not count. Chinese, Japanese and Korean are looked up by pairs of characters, or by one.
"""

from __future__ import annotations

import re

from everturn.text.lazy_pattern import lazy_pattern

MEANINGS = {
    "forbid": "don't dont never stop mustn't nie niemals keinesfalls jamais nunca jamás 不要 不能 不得 不可 不许 不准 禁止 请勿 切勿 别再 别用 别改 别动 别加 不允 しな だめ 하지 "
    "마세 말고 금지 mai никогда нельзя ніколи не можна nigdy zakaz nooit asla запрещ* заборон* proíb* proib* prohib* interdi* verbiet* "
    "verbot* vietat* untersa* forbid* 别 勿 莫 禁 止め 안돼 안되 마라 마 unterla* evitez parem pare прекрат* переста* zabron* yasak",
    "negate": "not no none nothing isn't doesn't aren't can't cannot nicht kein keine keinen keiner pas ne aucun aucune ni não nenhum nenhuma "
    "不用 不需 无需 没有 不再 不会 不是 ない せん なく ずに 않 non нет ні niet geen değil không není nada nichts rien niente ничего nic niets hiçbir nessun* "
    "nikt weder 勿论 无 非 不 没 別に 없",
    "only": "only just solely nur lediglich bloß seulement uniquement juste solo sólo solamente apenas somente só 只能 只用 只在 只要 只有 只需 仅限 仅仅 仅在 "
    "仅 只 だけ のみ しか 에만 soltanto только лишь исключительно тільки лише tylko wyłącznie jedynie alleen slechts sadece yalnızca chỉ pouze "
    "jen exclusi* ausschl* únic* unic* 单独 只是 唯一 만을 만 오직 限り 限定",
    "must": "must shall should need needs required ought muss musst müssen soll sollen sollte sollten darf dürfen doit doivent dois devez "
    "faut debe deben debes hay deve devem 必须 必需 务必 应该 应当 需要 一定 须要 必ず 必要 べき 必須 해야 devono bisogna должен надо треба повинен muszą "
    "należy trzeba powinien moet moeten gerekir lazım phải musí mandatory obligatory obligatorio obligatoire zwingend unbedingt "
    "pflicht debemos deberí* deverá deveri* tiene tienes tienen devrai* needed necesit* precis* benötig* brauch* muse мусить должн* "
    "обязате* нужн* необход* потрібн* musi* powinn* trebuie 须 必 须在 需 须先 하도",
    "every": "always every each all any everything whenever everywhere immer jede jeder jedes jeden alle alles toujours chaque tous toutes "
    "tout siempre cada todo todos toda todas sempre 始终 总是 每次 每个 每一 所有 全部 任何 一律 永远 均 都要 常に 毎回 すべ 全て 各 항상 모든 ogni tutti tutte все всё "
    "весь кожен усі zawsze wszystkie wszystko altijd elke her tüm luôn mọi vždy všechny throughout jeweils sämtliche partout chacun "
    "qualquer кажд* всегд* завжд* każd* всі 每 都 全 毎 전부 모두 매번",
    "keep": "keep remain remains stay stays maintain unchanged same leave existing current bleiben bleibt bestehende bestehenden lass reste "
    "rester laisse existant deja dejar quede existente deixe atual 保持 保留 维持 不变 不动 原有 现有 原来 沿用 当前 維持 その まま 残し 既存 今の 유지 그대 기존 lascia "
    "esistente существующий существующие istniejący istniejące behoud houd bestaande koru kalsın giữ ponech zachovej kept untouched "
    "behalt* beibeha* belass* unverändert gard* conserv* mant* manten* preserv* mantien* intact* сохран* остав* збереж* залиш* "
    "zachow* pozosta* zostaw* 照旧 依然 仍然 仍 残す 保っ",
    "without": "without except avoid excluding ohne außer vermeide vermeiden sans sauf évite éviter évitez sin excepto evita evitar evite sem "
    "exceto 避免 防止 以免 除了 なし 避け 以外 없이 제외 senza без кроме избегай крім bez oprócz unikaj zonder behalve vermijd olmadan hariç excludes "
    "окрім 不带 不含 不包 不加 抜き 除い",
    "instead": "instead rather over statt stattdessen anstatt sondern lieber plutôt lieu sino lugar vez 而不 而是 改为 改成 换成 代替 替换 では 代わ 대신 invece "
    "anziché вместо лучше замість zamiast lepiej plaats yerine thay místo replace replaced ersetz* remplac* reempla* sustitu* "
    "substit* sostitu* замен* замін* zamień zastąp* vervang 换 取代 而非 대체",
    "use": "use using via nutze nutzen usa usando 使用 采用 利用 用 使っ 用い 사용 써 użyj dùng použij používej stick verwend* benutz* utilis* utiliz* "
    "usar* usi использ* викорис* korzyst* używa* gebruik* kullan* 用了 用这 使う 使い 이용 활용",
    "follow": "according based follow following match matches matching like per accordance conform reference wie gemäß entsprechend basierend "
    "folge comme selon suivre conforme como según basado sigue seguir segundo baseado siga 参考 参照 根据 按照 基于 遵循 遵守 符合 一致 相同 一样 仿照 合わ 沿っ "
    "従っ 従い 同じ 基づ 準拠 同様 따라 맞게 참고 come secondo base согласно как также следуй згідно як zgodnie jak według zoals volgens göre gibi theo "
    "podle jako identical pattern convention conventions style standards guideline guidelines ähnlich gleich* identisch einheit* même "
    "cohéren* mism* similar* igual* coheren* consist* mesm* stess* simil* coerent* похож* одинако* аналоги* podobn* 类似 统一 跟 像 統一 似た "
    "揃え 똑같 일관 비슷",
    "want": "want wants wish i'd will veux préfère quisiera prefiero quero prefiro 希望 我想 想要 我要 最好 尽量 ほし 欲し たい 원해 싶 voglio vorrei хотів chcę "
    "graag istiyorum isterim muốn chtěl wanted wishes would möcht* wünsch* bevorzu* voudr* souhait* préfér* querem* quier* prefer* "
    "desej* gosta* preferi* desider* хоч* хотел* предпоч* бажа* wol* chci* 需求 要求 想 要 바라 원합",
    "please": "please pls bitte merci favor 请 请你 麻烦 くだ ださ お願 願い 주세 해줘 пожалуйста прошу будь proszę alstublieft lütfen prosím",
    "time": "before after until once while bevor nachdem bis sobald avant après jusqu'à antes después hasta depois até 之前 之后 以后 时候 先 前に 後に 終わ "
    "時は 最後 전에 후에 prima dopo finché перед после пока коли після przed dopóki voordat nadat önce sonra trước sau před während "
    "anschließend jusque mientras enquanto durante mentre aż zanim 等到 直到 直至 再 完了 まで 後 까지 다음",
    "case": "if when unless case wenn falls quand lorsque cuando si caso quando se 如果 当 若 的话 的时 場合 たら とき 時に 경우 если когда при якщо jeśli "
    "jeżeli gdy wanneer eğer nếu pokud když",
    "tongue": "german french spanish chinese japanese korean russian language englisch français 中文 英文 英语 汉语 日文 语言 日本 英語 言語 한국 영어 本語 polski "
    "polsku angielsku angielski nederlands engels türkçe ingilizce česky čeština francais espanol ukrainian polish dutch turkish "
    "czech vietnamese arabic hindi tiếng deutsch* französ* english* angl* ingl* español* portugu* italien* italian* русс* англ* "
    "україн* польс* 汉 영문",
    "bound": "max min least most within exceed moins plus máximo mínimo menos 最多 最少 至少 超过 以内 上限 下限 限制 不超 最大 最小 以下 以上 제한 이내 최대 massimo максимум "
    "минимум лимит максимально maksymalnie exceeding höchste* mindest* maxim* minim* límit* limit* 超 之内 越",
    "simple": "short clean lightweight basic schlicht court léger corto ligero curto 简单 简洁 精简 尽可 シン 簡潔 簡単 간단 eenvoudig kort basit jednoduše "
    "einfach* kurz* minimal* knapp* bref concis* sencill* simpl* brev* semplic* прост* кратк* коротк* prost* krótk* 短 简短 轻量 简要 短く 간결",
    "role": "user users admin admins role roles permission permissions owner nutzer benutzer rolle utilisateur utilisateurs rôle usuario "
    "usuarios rol usuário usuários 用户 管理 权限 角色 ユー 権限 권한 utente utenti пользователь пользователи пользователей роль користувач "
    "użytkownik użytkownicy gebruiker kullanıcı",
    "allow": "allow allowed allows may can permit erlaubt kann können peut peuvent autorisé puede pueden permitido pode podem 允许 可以 能够 可能 でき "
    "能性 가능 può possono можно может могут może mogą mag mogen",
    "trouble": "bug fails failed failing broken wrong missing issue problem kaputt problème falla fallo problema erro 报错 错误 问题 失败 异常 エラ 失敗 不具 오류 "
    "문제 błąd fout hata lỗi chyba errore* error* fehl* erreur* ошиб* помил* błęd* 崩溃 失效 坏 不行 不对 バグ 안됨",
    "ask": "why what how which who where warum was welche wieso pourquoi quoi quel quelle comment qué cómo cuál dónde por quê 什么 怎么 为什 为啥 哪个 "
    "哪里 吗 呢 なぜ どう 何で どこ 왜 어떻 すか perché cosa почему что какой чому що dlaczego co jaki waarom wat neden tại proč",
    "data": "data test tests commit commits push branch file files folder build deploy secret secrets key keys token tokens 数据 测试 提交 文件 密钥 テス "
    "ファ 파일 тесты тест файл файлы коммит plik pliki",
    "answer": "answer reply write speak antworte antworten schreib schreibe sprich parle écris habla escribe contesta fale escreva scrivi parla "
    "ответь пиши говори pisz mów schrijf cevap yaz odpověz 回答 回复 答复 回应 说明 解释 交流 答え 返信 返答 話し 답변 대답 respond* beantwo* répond* rispond* "
    "отвеч* відпов* odpow* antwoor*",
    "ensure": "ensure ensures sure guarantee asegur* garant* veille veiller veillez assur* sichers* sicher stelle achte achten darauf zorg "
    "certifi* assicur* убеди* прослед* гаранти* перекон* upewnij dopilnuj 确保 保证 确认 注意 保証 확실 꼭 emin sağla zajisti",
    "damage": "break breaks breaking broke damage lose losing destroy disturb affect affects affecting interfere regression regressions "
    "kaputtmachen zerstör* beschäd* casser casse cassez abîm* perdre rompas romper rompe rompan dañ* afect* pierd* quebr* estrag* "
    "perder rompere rotto dannegg* perdere слома* ломай* испорт* зламай* zepsu* popsuj* kapot bozma bozul* nerozb* rozbít 破坏 影响 损坏 弄坏 "
    "丢失 改坏 壊さ 壊れ 影響 망가 깨지",
    "touch": "touch change changes changing edit delete deleting overwrite rename move rewrite änder* anfassen lösch* entfern* verschi* touche "
    "toucher touchez modif* supprim* changer enlève* toques toque tocar cambi* borr* elimin* quit* mexa mexer alter* mude mudar apag* "
    "remov* tirar toccare tocca cancell* rimuov* трога* меня* измен* удал* убер* зміню* видал* zmieni* usuwaj usuń wijzig* verwijd* "
    "değişti* sil* změ* smaž* 修改 改动 删除 删掉 去掉 覆盖 移除 变更 変更 削除 触ら 消し 수정 변경 삭제 없애",
    "wait": "wait ask asking approval approve consult clarify warte warten frag frage fragen rückfra* bestäti* freigabe attends attendre "
    "demandez confirm* espera esperar pregunt* pregúnt* espere pergunt* attendi chied* conferm* подожд* спрос* спраш* подтвер* запит* "
    "poczekaj zapytaj pytaj vraag wacht sor bekle 等待 问我 询问 同意 批准 先问 再问 先告 等我 待っ 待機 聞い 質問 承認 確認 기다 물어 질문 확인 승인",
    "format": "format formatted markdown json csv table list bullet bullets output html pdf yaml xml columns column sentence sentences "
    "paragraph paragraphs words characters tag tags tabelle ausgabe liste spalten sätze tableau phrases tabla lista formato salida "
    "frases palabras tabela saída tabella формат* таблиц* список* вывод* 格式 输出 表格 列表 字数 句话 形式 出力 表で 一覧 文字 형식 출력 문장",
    "scope": "scope skip focus later first phase mvp step otherwise überspr* zuerst erst zunächst später d'abord ensuite ignora* primero luego "
    "primeiro ignor* poi сначала потом позже игнор* спочатку потім najpierw później eerst 忽略 跳过 暂时 目前 范围 首先 然后 无视 無視 まず 今回 後で 무시 먼저 "
    "일단 나중",
    "verify": "verify check checks validate lint passes pass passing typecheck prüf* überprü* testen vérifi* teste tester compr* prueba probar "
    "verific* prov* провер* протест* перевір* sprawdź* przetes* controleer kontrol 验证 检查 通过 测一 検証 動作 통과 검증 점검",
    "task": "add make implement show fix run explain generate do set install put start help give tell find look let füge erstell* mach* zeig* "
    "baue bau erklär* behebe hilf ajout* crée* fais faire montre* corrig* expliqu* agreg* añad* crea* haz hacer muestr* explic* "
    "arregl* ayud* adicion* crie criar faça fazer mostr* ajud* aggiung* fai fare mostra* spieg* добав* созда* сдела* исправ* покаж* "
    "объясн* помог* додай* створи* зроби* dodaj* stwórz zrób popraw pokaż maak voeg ekle yap oluştur 添加 增加 创建 实现 生成 修复 解决 显示 帮我 写一 做一 "
    "加一 追加 作成 作っ 実装 修正 表示 教え 추가 만들 구현 고쳐 보여 알려",
    "person": "i me my we our us you your ich mir mein* wir uns unser* du dein* es je moi mon ma mes nous notre tu ton vous votre yo mi mis "
    "nosotros nuestr* tú tus eu meu minha nós nosso você voce io mio mia noi я мне мой моя мои мы наш* ты мені мій ми ja mój moje ik "
    "mijn wij ben biz 我 我们 你 您 我的 私は 私の 僕 내 나는 저는 우리",
    "works": "work works working worked loads appears appear shows happens funktio* geht klappt fonctio* marche march* funcion* sirve carga cargan "
    "aparec* sale salen persist* funzion* работа* запуска* отображ* реагир* działa dziala werkt çalış* funguje 工作 生效 响应 起作 动く 動く "
    "動き 動作 作動 작동 나와",
}
#: Frequent words by which English is told from other languages in Latin letters.
ENGLISH = frozenset("the to of and is in it that for this with be on are you not i we can add fix make please".split())
OTHER_LATIN = frozenset(
    "der die das und ist nicht ein eine ich wir mit auf für den dem bitte le la les des est une dans pour je pas vous et du sur el los las "
    "una para con por es en que lo se os um com não nao da voce você eu il che per non di sono nie jest na że do het een niet van de bir ve için".split()
)

#: The end of a line above a list whose items are rules, whatever their own words say: `Key rules:`, `The report must include:`.
RULES_ABOVE = lazy_pattern(
    r"(?:\b(?:(?:rules?|guidelines|constraints|restrictions|conventions|important|must(?: (?:not|never|be|have|include|contain|pass|always|only))?|always|never"
    r"|regeln|richtlinien|vorgaben|einschränkungen|wichtig|règles|contraintes|consignes|reglas|restricciones|importante|normas"
    r"|regras|restrições|regole|vincoli|правила|ограничения|важно|zasady|ograniczenia|kurallar)(?: \w+){0,2})"
    r"|规则|规范|约束|限制|注意事项|注意点?|重要|ルール|制約(?:条件|事項)?|規則|규칙|제약(?:조건| 사항)?|주의(?:사항)?)[\W_]*$",
    re.IGNORECASE,
)

# --- rules in English ---
_DONT = r"(?:do\s+not|don['’]?t|dont)"
#: Where an order may begin: a sentence or a clause.
_OPENS = r"(?:^|[,;:(–—-]\s+|\b(?:please|pls|and|but|also|so|then|you\s+(?:should|must|can|need\s+to)|to|just)\s+)"
#: The same without a purpose clause: `do it to make sure` is not an order.
_ASKS = r"(?:^|[,;:(–—-]\s+|\b(?:please|pls|and|but|also|so|then|you\s+(?:should|must|can)|need\s+to)\s+)"
#: Orders in form, not in meaning.
_IDLE = r"(?!\s+(?:you\s+think|worry|bother|mind|know|think\s+so|get\s+me|have|need|see|want|remember|understand|forget\s+about|like|get|seem|care|believe|recall)\b)"
_NO = (
    r"^no\s+(?!(?:it|its|it['’]s|that|this|i|i['’]m|you|we|they|need|problem|worries|one|longer|idea|thanks|thank|way|point|the|"
    r"a|an|please|don['’]?t|do|not|just|wait|still|but|and|if|because|since|there|what|why|luck|clue|go|use|keep|make|let)\b)"
    r"(?![^\n]*\b(?:el|la|los|las|lo|un|una|de|del|en|que|se|me|te|le|les|nos|es|ha|has|han|he|hay|o|os|da|das|na|di|il|che|al|con|por|para|mi|su|ya)\b)"
    r"[a-z][\w-]*(?:\s+(?!(?:applied|found|needed|required|changed)\b)[\w/-]+){0,7}[.!]*$"
)
#: A sentence of a person that lays down a rule.
RULE = lazy_pattern(
    "|".join(
        (
            rf"{_OPENS}{_DONT}{_IDLE}\s+(?:ever\s+)?[a-z]{{2,}}",
            rf"{_OPENS}(?:never|always)\s+(?!mind\b|forget\s+the\b|again\b|been\b|had\b|was\b|were\b|did\b|a\b|the\b)(?!\w+(?:ed|s)\b(?!\s*:))[a-z]{{2,}}",
            r"\bwe\s+(?:never|always)\s+(?!had\b|were\b|did\b|got\b|\w+ed\b)[a-z]{2,}",
            r"\b(?:must|should|may)\s+(?:never|always|only)\s+(?!happen)[a-z]{2,}",
            r"\bmust\s+(?:not\s+)?(?!have\s+(?:been|got|had|\w+ed)\b|admit|say|confess)[a-z]{2,}",
            rf"{_ASKS}(?:make\s+sure\b(?!\s+(?:everything|it|that|this|all)\b[^.,;]{{0,20}}\b(?:works?|working|pass(?:es)?|runs?)\b)|(?:ensure|avoid)\s+(?!me\b)[a-z]{{2,}})",
            r"\bfrom\s+now\s+on\b|\bgoing\s+forward\b",
            r"^only\s+(?!if\b|when\b|then\b|one\b|thing\b|the\s+\w+\s+(?:is|was|has)\b|a\b|\d|issue\b|problem\b|question\b)[a-z]{2,}",
            rf"{_ASKS}(?:be|being)\s+sure\s+(?:to|that|you)\b",
            rf"\b(?:we|i)\s+(?:explicitly\s+|really\s+|definitely\s+)?{_DONT}\s+(?:ever\s+)?want\s+(?!to\s+(?:know|think)\b)[a-z]",
            rf"^we\s+{_DONT}\s+need\s+(?!to\b)[a-z]",
            r"\b(?:i|we)(?:['’]?d|\s+would)\s+rather\s+(?!not\s+say)[a-z]{2,}",
            r"\bshould(?:\s+not|n['’]?t)\s+(?!happen|be\s+happening|it\b|we\b|this\b|that\b|have\b)[a-z]{2,}|\bshould\s+(?:remain|stay)\b",
            r"\b(?:should|must|needs?\s+to)\b[^.?!]{1,80}(?:,\s*|\bbut\s+)not\b|\bwe\s+want\b[^.?!]{1,60},\s*not\b",
            r"^(?:the\s+only\s+\w+|each|every|all|any)\b[^.?!]{1,80}\bshould\b",
            r"(?:^|[,;]\s+|\bbut\s+|\band\s+|\w\s+)(?:it|they|these(?:\s+\w+)?|everything)\s+(?:also\s+|all\s+)?needs?\s+to\s+be\b",
            r"\b(?:after|before)\s+(?:each|every)\s+[a-z]|\bas\s+you\s+go\b|\bas\s+each\b|\bone\s+at\s+a\s+time\b|\bwhere(?:ver)?\s+possible\b",
            r"^keep\s+(?:all|everything|the)\s+[a-z]|^nothing\s+else[.!]*$|[a-z],\s+no\s+[a-z]{3,}(?:\s+[a-z]+){0,2}!*$",
            r"^(?:use|using|prefer|choose|pick|take)\s+[^.?!]{1,80}?,?\s+(?:and\s+)?(?:not|instead\s+of|rather\s+than|over)\s+\S",
            _NO,
        )
    ),
    re.IGNORECASE,
)
#: In a pasted document only an order at the very beginning counts, and what is written in capitals or holds by default.
STRICT = lazy_pattern(
    rf"(?:{_DONT}{_IDLE}|never|always|must\s+(?:not|never)|you\s+must|make\s+sure)\s+[a-z]{{2,}}"
    r"|(?:[\w*'’]+\s+){1,4}(?-i:MUST)\s+[a-z]|\W{0,3}before\s+\w+ing\b[^.?!,]{1,40},\s*[a-z]|(?:for|when)\b[^.?!]{5,120},\s*use\b[^.?!]{1,60}\bby\s+default\b",
    re.IGNORECASE,
)


def _pattern(*alternatives: str) -> re.Pattern[str]:
    return lazy_pattern("|".join(alternatives), re.IGNORECASE)


#: Rules in German, French, Spanish, Japanese and Chinese.
OTHER_RULE = _pattern(
    r"^(?:bitte\s+)?(?:nie(?:mals)?|immer|kein(?:e[nrs]?)?)\s+\w|\b(?:darf|dürfen|soll(?:en|st|te)?|muss|müssen)\b[^.?!]{0,60}\b(?:nicht|nie|immer|nur|kein\w*|bleiben)\b|\bachte darauf\b|\bstelle? sicher\b|\bab (?:jetzt|sofort)\b",
    r"^(?:ne\s|n['’])\w+[^.?!]{0,40}\b(?:pas|jamais|plus)\b|^(?:toujours|jamais|uniquement|pas de)\s+\w|\b(?:il ne faut pas|assure-toi|assurez-vous|dorénavant|désormais)\b|\bdoi(?:t|vent)\b[^.?!]{0,60}\b(?:toujours|jamais|rester|pas)\b",
    r"^(?:nunca|siempre|únicamente)\s+\w|^no\s+(?:uses|toques|cambies|modifiques|hagas|borres|elimines|agregues|añadas|crees)\b|\b(?:asegúrate|de ahora en adelante|no deben?|debe[ns]? (?:siempre|quedar))\b",
    r"しないで|しないこと|してはいけ|禁止|必ず|絶対に|常に|使わないで|触らない|変更しない",
    r"不要|不能|不许|必须|务必|一定要|只能|只用|始终|永远不|别再?(?:用|改|动|加)|请勿",
)
#: Limits and preferences: rules where they stand among rules.
LIMIT = _pattern(
    r"\bonly\b|\b(?:you )?can(?:not|['’]t)\b|\b(?:avoid|prefer|minimi[sz]e)\b|^(?:keep|limit|try to|reject|never|always|do not)\b|\b(?:must|forbidden|not allowed|required)\b"
    r"|\b(?:nur|nicht|vermeide\w*|bevorzuge\w*)\b|\b(?:seulement|évite[rz]?|préfère[rz]?)\b|\b(?:solo|sólo|evita|prefiere)\b|のみ|だけ|避け|只|仅|避免|优先"
)
#: "No, use X": what the person corrects once holds from then on.
CORRECTION = _pattern(
    r"(?:no|nope|nah|nein|non)\b[,.!]?\s+[^?]{0,120}\b(?:just|use|only|instead|should|nur|seulement|solo)\b|(?:不|いや)[，、,]"
)
LISTED_ORDER = _pattern(
    r"(?:commit|push|search|use|write|run|mark|check|report|stop|exit|follow|respond|return|include|read|update|create|complete|process|execute|analy[sz]e|review|keep)\b"
)
