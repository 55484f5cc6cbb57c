"""Slips of the pen: a word that stands nowhere, and the word that was meant."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from everturn.retrieval.query import build_index_query, parse_query
from everturn.retrieval.typos import count_slips, find_replacements, is_english, nearest_words
from everturn.store.contract import Store, open_store
from everturn.store.index import stem_word
from tests.store.building import answer, new_session, prompt, tell


@pytest.fixture
def store() -> Iterator[Store]:
    opened = open_store("memory:")
    tell(
        opened,
        new_session(opened),
        prompt("the festival of education and the database migration"),
        prompt("a database"),
    )
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("databse", "database"),
        ("dataabse", "database"),
        ("databasse", "database"),
        ("databaze", "database"),
        ("educaton", "education"),
        ("fesetival", "festival"),
        ("migraton", "migration"),
    ],
)
def test_one_slip_is_mended(store: Store, typed: str, meant: str) -> None:
    assert nearest_words(store, typed) == [meant]


def test_two_slips_are_mended_in_long_words(store: Store) -> None:
    assert nearest_words(store, "datebasses") == ["databas*"], "the index knows stems, which are open at the end"


@pytest.mark.parametrize("typed", ["teh", "abcd1234", "会话", "unrelated", "deadbeefcafe", ""])
def test_short_words_ids_and_strangers_are_left_alone(store: Store, typed: str) -> None:
    assert nearest_words(store, typed) == []


def test_slips_are_counted() -> None:
    assert (
        count_slips("form", "from")
        == count_slips("form", "farm")
        == count_slips("form", "for")
        == count_slips("form", "forms")
        == 1
    )
    assert count_slips("form", "form") == 0
    assert count_slips("kitten", "sitting") == 3


# --- which words are corrected ---

#: English words, each with a word one slip away that the archive has.
REAL = """
    chess:chest told:toed chat:chart cool:colon hate:hash ankle:angle boast:boost bride:bridge chase:cache cost:host
    crown:crowd diary:dairy dress:press flour:floor ghost:host gold:goals grape:graph groom:group guest:quest
    horse:house jelly:jolly kitten:mitten laugh:launch lemon:demon march:match meant:meat paint:point party:parts
    pasta:paste peach:patch piano:plano quiet:quit ranch:branch sailor:tailor score:scope shirt:short snack:stack
    spoke:spoken stole:store swam:swap table:cable taught:caught thread:threat tiger:tier towel:tower train:trait
    went:west wrote:rote goldfish:goldfinch friendship:friendships unsaved:unshaved
""".split()

TYPOS = """
    databse:database dataabse:database migraton:migration configuraton:configuration fucntion:function retrun:return
    improt:import pytohn:python serach:search sessoin:session archvie:archive mesage:message parsre:parser tokne:token
    cahce:cache jsno:json seperate:separate recieve:receive wich:which adress:address tommorow:tomorrow
    beleive:believe calender:calendar enviroment:environment foriegn:foreign goverment:government gaurd:guard
    happend:happened intresting:interesting knowlege:knowledge langauge:language libary:library neccessary:necessary
    occassion:occasion persue:pursue reccomend:recommend suprise:surprise threshhold:threshold wierd:weird
    festivl:festival educaton:education depoly:deploy kuberntes:kubernetes dockerfle:dockerfile asyncoi:asyncio
    parsejsn:parsejson postgers:postgres
""".split()


@pytest.fixture(scope="module")
def worded() -> Iterator[Store]:
    """An archive in which every word meant stands in three messages beside `walrus`, and no word typed does."""
    opened = open_store("memory:")
    meant = [pair.partition(":")[2] for pair in (*REAL, *TYPOS)]
    for number in range(3):
        tell(opened, new_session(opened, f"s{number}"), *(prompt(f"walrus {word}") for word in meant))
    yield opened
    opened.close()


def replacements(store: Store, words: str) -> dict[str, list[str]]:
    query = build_index_query(parse_query(words))
    return find_replacements(store, query, store.candidates(query, 800))


def test_a_real_word_is_never_replaced(worded: Store) -> None:
    typed = [pair.partition(":")[0] for pair in REAL]
    assert len(typed) >= 40
    changed = {
        word: found for word in typed for words in (word, f"walrus {word}") if (found := replacements(worded, words))
    }
    assert changed == {}


def test_a_typing_error_is_corrected(worded: Store) -> None:
    pairs = [pair.split(":") for pair in TYPOS]
    assert len(pairs) >= 40
    missed = []
    for typed, meant in pairs:
        for words in (typed, f"walrus {typed}"):
            found = replacements(worded, words).get(typed, [])
            if stem_word(meant) not in [stem_word(one.rstrip("*")) for one in found]:
                missed.append((typed, meant, found))
    assert missed == []


def test_a_correction_must_stand_with_the_other_words(store: Store) -> None:
    tell(store, new_session(store, "other"), prompt("a walrus swims"))
    assert replacements(store, "migraton") == {"migraton": ["migration"]}
    assert replacements(store, "migraton festival") == {"migraton": ["migration"]}
    assert replacements(store, "migraton walrus") == {}


def test_a_short_word_needs_a_common_correction(store: Store) -> None:
    tell(store, new_session(store, "other"), prompt("the jolt"))
    assert replacements(store, "jilt") == {}
    tell(store, new_session(store, "more"), prompt("a jolt"), prompt("that jolt"))
    assert replacements(store, "jilt") == {"jilt": ["jolt"]}


def test_a_word_in_another_field_is_known(store: Store) -> None:
    tell(store, new_session(store, "other"), answer("the databaze"))
    query = replace(build_index_query(parse_query("databaze")), fields=("prompt",))
    assert find_replacements(store, query, store.candidates(query, 800)) == {}


@pytest.mark.parametrize(
    "word", ["told", "chess", "chesses", "parties", "unsaved", "goldfish", "friendship", "slowest"]
)
def test_english_is_known(word: str) -> None:
    assert is_english(word)


@pytest.mark.parametrize("word", ["databse", "wlarus", "asyncio", "recieve", "qqqq"])
def test_other_words_are_not_english(word: str) -> None:
    assert not is_english(word)
