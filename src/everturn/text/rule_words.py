"""What a word of a rule means, the same for every language: forbidding, limiting, demanding, keeping, following something.

Weights that were learnt from sentences in one language hold in others through these meanings: `derive.decisions` looks up each
word, and each pair of characters of Chinese, Japanese and Korean, in one table.
"""

from __future__ import annotations

_MEANINGS = {
    "forbid": "don't dont never forbidden prohibited stop mustn't nie niemals keinesfalls verboten jamais interdit nunca jamás "
    "prohibido proibido 不要 不能 不得 不可 不许 不准 禁止 请勿 切勿 别再 别用 别改 别动 别加 不允 しな だめ 하지 마세 말고 금지 mai никогда нельзя запрещено "
    "запрещается ніколи не можна заборонено nigdy zakaz zabronione nooit asla",
    "negate": "not no none nothing isn't doesn't aren't can't cannot nicht kein keine keinen keiner pas ne aucun aucune ni não "
    "nenhum nenhuma 不用 不需 无需 没有 不再 不会 不是 ない せん なく ずに 않 non nessuno нет ні niet geen değil không není",
    "only": "only just solely exclusively nur lediglich ausschließlich bloß seulement uniquement juste solo sólo solamente "
    "únicamente apenas somente só 只能 只用 只在 只要 只有 只需 仅限 仅仅 仅在 仅 只 だけ のみ しか 에만 soltanto только лишь исключительно "
    "тільки лише tylko wyłącznie jedynie alleen slechts sadece yalnızca chỉ pouze jen",
    "must": "must shall should need needs required ought muss musst müssen soll sollen sollte sollten darf dürfen doit "
    "doivent dois devez faut debe deben debes hay deve devem precisa 必须 必需 务必 应该 应当 需要 一定 须要 必ず 必要 べき 必須 해야 devono "
    "bisogna должен должна должны должно нужно надо обязательно необходимо потрібно треба повинен musi muszą należy "
    "trzeba powinien moet moeten gerekir lazım phải musí",
    "every": "always every each all any everything whenever everywhere immer jede jeder jedes jeden alle alles toujours chaque "
    "tous toutes tout siempre cada todo todos toda todas sempre 始终 总是 每次 每个 每一 所有 全部 任何 一律 永远 均 都要 常に 毎回 すべ 全て 各 항상 "
    "모든 ogni tutti tutte всегда каждый каждая каждую все всё весь завжди кожен усі zawsze każdy każda każdą wszystkie "
    "wszystko altijd elke her tüm luôn mọi vždy všechny",
    "keep": "keep remain remains stay stays maintain preserve unchanged same leave intact existing current behalte behalten "
    "bleiben bleibt beibehalten bestehende bestehenden lass garde garder conserve conserver reste rester laisse "
    "existant mantén mantener mantenga conserva conservar deja dejar quede existente mantenha manter mantém deixe "
    "atual 保持 保留 维持 不变 不动 原有 现有 原来 沿用 当前 維持 その まま 残し 既存 今の 유지 그대 기존 mantieni mantenere lascia esistente оставь "
    "оставить сохрани сохранить существующий существующие залиш збережи zostaw zachowaj istniejący istniejące behoud "
    "houd bestaande koru kalsın giữ ponech zachovej",
    "without": "without except avoid excluding ohne außer vermeide vermeiden sans sauf évite éviter évitez sin excepto evita "
    "evitar evite sem exceto 避免 防止 以免 除了 なし 避け 以外 없이 제외 senza без кроме избегай крім bez oprócz unikaj zonder behalve "
    "vermijd olmadan hariç",
    "instead": "instead rather over statt stattdessen anstatt sondern lieber plutôt lieu sino lugar vez 而不 而是 改为 改成 换成 代替 替换 では "
    "代わ 대신 invece anziché вместо лучше замість zamiast lepiej plaats yerine thay místo",
    "use": "use using via verwende verwenden nutze nutzen benutze utilise utiliser utilisez usa usar utiliza utilizar usando "
    "utilize 使用 采用 利用 用 使っ 用い 사용 써 usare utilizzare utilizza используй использовать используя використовуй "
    "використовувати używaj użyj korzystaj gebruik kullan dùng použij používej",
    "follow": "according based follow following consistent match matches matching like per accordance conform reference wie "
    "gemäß entsprechend basierend folge comme selon suivre conforme como según igual basado sigue seguir segundo "
    "baseado siga 参考 参照 根据 按照 基于 遵循 遵守 符合 一致 相同 一样 仿照 合わ 沿っ 従っ 従い 同じ 基づ 準拠 同様 따라 맞게 참고 come secondo base согласно как "
    "также следуй згідно як zgodnie jak według zoals volgens göre gibi theo podle jako",
    "want": "want wants wish prefer preferably i'd möchte will wünsche veux voudrais souhaite préfère quiero quisiera "
    "prefiero quero gostaria prefiro 希望 我想 想要 我要 最好 尽量 ほし 欲し たい 원해 싶 voglio vorrei preferisco хочу хотел хотелось "
    "хотела предпочитаю хотів chcę chciałbym wolę graag istiyorum isterim muốn chci chtěl",
    "please": "please pls bitte merci favor 请 请你 麻烦 くだ ださ お願 願い 주세 해줘 пожалуйста прошу будь proszę alstublieft lütfen prosím",
    "time": "before after until once while bevor nachdem bis sobald avant après jusqu'à antes después hasta depois até 之前 之后 "
    "以后 时候 先 前に 後に 終わ 時は 最後 전에 후에 prima dopo finché перед после пока коли після przed dopóki voordat nadat önce sonra "
    "trước sau před",
    "case": "if when unless case wenn falls quand lorsque cuando si caso quando se 如果 当 若 的话 的时 場合 たら とき 時に 경우 если когда при "
    "якщо jeśli jeżeli gdy wanneer eğer nếu pokud když",
    "tongue": "english german french spanish chinese japanese korean portuguese italian russian language deutsch englisch "
    "deutsche français anglais español inglés português inglês 中文 英文 英语 汉语 日文 语言 日本 英語 言語 한국 영어 本語 italiano inglese "
    "английском русском русский русски українською українська polski polsku angielsku angielski nederlands engels "
    "türkçe ingilizce česky čeština francais espanol portugues ukrainian polish dutch turkish czech vietnamese arabic "
    "hindi tiếng",
    "bound": "max maximum maximal min minimum least most limit limited limits within exceed höchstens mindestens moins plus "
    "máximo mínimo menos límite limite 最多 最少 至少 超过 以内 上限 下限 限制 不超 最大 最小 以下 以上 제한 이내 최대 massimo minimo максимум "
    "минимум лимит максимально maksymalnie maximaal",
    "simple": "simple simply minimal concise short clean lightweight basic einfach schlicht kurz knapp court léger sencillo "
    "corto ligero simples curto 简单 简洁 精简 尽可 シン 簡潔 簡単 간단 semplice semplici просто простой кратко коротко prosty prosto "
    "krótko eenvoudig kort basit jednoduše",
    "role": "user users admin admins role roles permission permissions owner nutzer benutzer rolle utilisateur utilisateurs "
    "rôle usuario usuarios rol usuário usuários 用户 管理 权限 角色 ユー 権限 권한 utente utenti пользователь пользователи "
    "пользователей роль користувач użytkownik użytkownicy gebruiker kullanıcı",
    "allow": "allow allowed allows may can permit erlaubt kann können peut peuvent autorisé puede pueden permitido pode podem "
    "允许 可以 能够 可能 でき 能性 가능 può possono можно может могут może mogą mag mogen",
    "trouble": "error errors bug fails failed failing broken wrong missing issue problem fehler kaputt erreur problème falla "
    "fallo problema erro 报错 错误 问题 失败 异常 エラ 失敗 不具 오류 문제 errore errori ошибка ошибки ошибку помилка błąd błędy fout "
    "hata lỗi chyba",
    "ask": "why what how which who where warum was welche wieso pourquoi quoi quel quelle comment qué cómo cuál dónde por "
    "quê 什么 怎么 为什 为啥 哪个 哪里 吗 呢 なぜ どう 何で どこ 왜 어떻 すか perché cosa почему что какой чому що dlaczego co jaki waarom wat "
    "neden tại proč",
    "data": "data test tests commit commits push branch file files folder build deploy secret secrets key keys token tokens "
    "数据 测试 提交 文件 密钥 テス ファ 파일 тесты тест файл файлы коммит plik pliki",
    "answer": "answer respond reply write speak antworte antworten schreib schreibe sprich réponds "
    "répond répondre répondez parle écris responde responder habla escribe contesta fale escreva rispondi scrivi "
    "parla отвечай ответь пиши говори відповідай odpowiadaj pisz mów antwoord schrijf cevap yaz odpověz 回答 回复 答复 回应 "
    "说明 解释 交流 答え 返信 返答 話し 답변 대답",
}
#: The meaning of a word, of a pair of characters or of a single character.
MEANING_OF: dict[str, str] = {word: meaning for meaning, words in _MEANINGS.items() for word in words.split()}
FIRST_CJK = "\u3040"
