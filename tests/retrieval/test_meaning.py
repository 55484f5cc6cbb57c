"""Vectors re-rank what the words have found, never when they are stale, and change nothing when there are none."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from everturn.errors import BadVectors, ModelUnreachable, UsageError
from everturn.model.archive import Session
from everturn.recall.tool import ConversationRecall
from everturn.retrieval.meaning import (
    Coverage,
    MeaningSearch,
    VectorBatch,
    coverage,
    generation,
    make_all_vectors,
    make_batch,
    question_share,
)
from everturn.retrieval.query import parse_query
from everturn.retrieval.search import NOTES, Results, SearchFilters, search
from everturn.secrets.redaction import redact_text
from everturn.sources.contract import all_sources
from everturn.store.contract import IndexHit
from everturn.store.vector_file import pack_vectors
from tests.capture.history import OTHER
from tests.recall.archives import Archive
from tests.retrieval.held_vectors import HeldVectors

#: Words of one meaning have one direction.
MEANINGS = (("boat", "canoe", "ship"), ("slow", "lag", "latency"), ("bread", "loaf"))


class Thesaurus:
    """A small model: it knows a few words, and what else means the same."""

    dimensions = len(MEANINGS)
    where = ""
    sent = 0

    def __init__(self, name: str = "thesaurus") -> None:
        self.name = name
        self.seen: list[str] = []
        self.broken = False

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        if self.broken:
            raise ModelUnreachable(self.name, "it was unplugged")
        self.seen += texts
        return [[float(sum(text.count(word) for word in words)) for words in MEANINGS] for text in texts]


def plain(text: str) -> str:
    return text


def update(
    archive: Archive, session: Session, model: Thesaurus, vectors: HeldVectors, clean: Callable[[str], str] = plain
) -> list[VectorBatch]:
    return list(make_batch(archive.store, all_sources(), session, model, vectors, clean))


def of(archive: Archive, session: Session, model: Thesaurus) -> str:
    return generation(archive.store.version(session.version), session, model)


def boats(archive: Archive) -> tuple[Thesaurus, HeldVectors]:
    """An archive in which words alone put the wrong one of two problems first, and its vectors."""
    history = archive.history
    archive.take_in(
        history.turn("the problem with problem of bread: a problem", "noted"),
        history.turn("a problem of the canoe", "noted"),
    )
    model, vectors = Thesaurus(), HeldVectors()
    for _ in make_all_vectors(archive.store, all_sources(), model, vectors, plain):
        pass
    model.seen.clear()
    return model, vectors


def found(archive: Archive, words: str, meaning: MeaningSearch | None, limit: int = 20, cursor: str = "") -> Results:
    return search(archive.store, all_sources(), words, limit=limit, cursor=cursor, meaning=meaning)


def seqs(results: Results) -> list[int]:
    return [one.row.seq for one in results.items if one.row]


# the order ------------------------------------------------------------------------------------------------------------
def order(meaning: MeaningSearch, archive: Archive, hits: list[IndexHit], text: str) -> list[int]:
    mixed = meaning.mix_hits(archive.store, hits, text)
    return [hit.seq for hit in mixed.hits] if mixed else []


def test_a_hit_of_the_same_meaning_rises(archive: Archive) -> None:
    session = archive.take_in(archive.history.turn("my canoe leaks", "ok"), archive.history.turn("bread is out", "ok"))
    model, vectors = Thesaurus(), HeldVectors()
    update(archive, session, model, vectors)
    meaning = MeaningSearch(model, vectors, plain, weight=5)
    hits = [IndexHit(session.id, 2, 3.0), IndexHit(session.id, 0, 2.9), IndexHit(session.id, 1, 0.1)]

    assert order(meaning, archive, hits, "ship") == [0, 2, 1]
    assert order(meaning, archive, hits, "loaf") == [2, 0, 1]


def test_a_search_follows_meaning_when_it_is_given_one_and_says_so(archive: Archive) -> None:
    model, vectors = boats(archive)
    assert seqs(found(archive, "the problem ship", None))[0] == 0
    results = found(archive, "the problem ship", MeaningSearch(model, vectors, plain, weight=40))

    assert seqs(results)[0] == 2
    assert "ranked by words and by meaning (thesaurus)" in results.notes
    assert model.seen == ["the problem ship"]


def test_the_recall_tool_follows_meaning_too(archive: Archive) -> None:
    model, vectors = boats(archive)
    recall = ConversationRecall(archive.store, all_sources(), meaning=MeaningSearch(model, vectors, plain, weight=40))
    answer = recall(action="search", query="the problem ship")

    assert answer.index("[Turn 2] user") < answer.index("[Turn 1] user")
    assert "by meaning (thesaurus)" in answer


def test_without_vectors_the_hits_stay_as_they_are_and_nothing_is_embedded(archive: Archive) -> None:
    session = archive.take_in(archive.history.turn("my canoe leaks", "ok"))
    model = Thesaurus()
    meaning = MeaningSearch(model, HeldVectors(), plain)

    hits = [IndexHit(session.id, 1, 3.0), IndexHit(session.id, 0, 2.0)]
    assert meaning.mix_hits(archive.store, hits, "ship") is None
    assert found(archive, "the canoe ship", meaning) == found(archive, "the canoe ship", None)
    assert model.seen == []


def test_a_model_that_cannot_be_asked_is_a_note_and_the_order_is_that_of_the_words(archive: Archive) -> None:
    model, vectors = boats(archive)
    model.broken = True
    results = found(archive, "the problem ship", MeaningSearch(model, vectors, plain, weight=40))

    assert results.items == found(archive, "the problem ship", None).items
    assert [note for note in results.notes if note.startswith("ranked by words only: model thesaurus: it was")]


def test_vectors_that_cannot_be_read_are_a_note(archive: Archive) -> None:
    class Damaged(HeldVectors):
        def upto(self, session: int, generation: str) -> int:
            raise BadVectors("the file")

    boats(archive)
    results = found(archive, "the problem ship", MeaningSearch(Thesaurus(), Damaged(), plain))

    assert len(results.items) == 2 and "makes it again" in results.note


def test_a_model_is_asked_once_for_a_question_however_many_rings_are_looked_at(archive: Archive) -> None:
    _, vectors = boats(archive)
    asked: list[Sequence[str]] = []

    class Broken(Thesaurus):
        def embed(self, texts: Sequence[str]) -> list[list[float]]:
            asked.append(texts)
            raise ModelUnreachable(self.name, "it was unplugged")

    meaning = MeaningSearch(Broken(), vectors, plain)
    found(archive, "the problem ship", meaning)
    found(archive, "the problem ship", meaning)
    assert len(asked) == 1
    found(archive, "the problem loaf", meaning)
    assert len(asked) == 2


def test_secrets_in_a_question_do_not_leave(archive: Archive) -> None:
    key = "AKIA" + "Q7XW2MZP4RTY5LNB"
    model, vectors = boats(archive)
    found(archive, f"what problem has the leaking canoe with {key}", MeaningSearch(model, vectors, redact_text))

    assert len(model.seen) == 1 and key not in model.seen[0]


def test_filters_and_unwanted_words_are_no_part_of_the_question(archive: Archive) -> None:
    model, vectors = boats(archive)
    found(archive, "the problem ship -loaf role:user", MeaningSearch(model, vectors, plain))

    assert model.seen == ["the problem ship"]


# pages ----------------------------------------------------------------------------------------------------------------
def test_pages_fit_together_in_the_order_of_meaning(archive: Archive) -> None:
    model, vectors = boats(archive)
    meaning = MeaningSearch(model, vectors, plain, weight=40)
    whole = seqs(found(archive, "the problem ship", meaning))
    first = found(archive, "the problem ship", meaning, limit=1)
    second = found(archive, "the problem ship", meaning, limit=1, cursor=first.next)

    assert [*seqs(first), *seqs(second)] == whole


def test_a_later_page_is_not_ordered_in_another_way_than_the_first(archive: Archive) -> None:
    model, vectors = boats(archive)
    meaning = MeaningSearch(model, vectors, plain, weight=40)
    first = found(archive, "the problem ship", meaning, limit=1)
    model.broken = True
    with pytest.raises(ModelUnreachable):
        found(archive, "the problem ship", MeaningSearch(model, vectors, plain), limit=1, cursor=first.next)
    with pytest.raises(UsageError):
        found(archive, "the problem ship", None, limit=1, cursor=first.next)

    by_words = found(archive, "the problem ship", MeaningSearch(model, vectors, plain), limit=1)
    model.broken = False
    second = found(archive, "the problem ship", meaning, limit=1, cursor=by_words.next)
    assert [*seqs(by_words), *seqs(second)] == seqs(found(archive, "the problem ship", None))


# generations ----------------------------------------------------------------------------------------------------------
def test_vectors_of_another_model_or_size_are_not_used(archive: Archive) -> None:
    session = archive.take_in(archive.history.turn("my canoe leaks", "ok"))
    vectors = HeldVectors()
    update(archive, session, Thesaurus("old"), vectors)
    hits = [IndexHit(session.id, 1, 3.0), IndexHit(session.id, 0, 3.0)]
    larger = Thesaurus("old")
    larger.dimensions += 1

    for model in (Thesaurus("new"), larger):
        assert MeaningSearch(model, vectors, plain).mix_hits(archive.store, hits, "ship") is None
        assert model.seen == []
    assert order(MeaningSearch(Thesaurus("old"), vectors, plain), archive, hits, "ship") == [0, 1]


def test_vectors_of_texts_taken_in_another_way_are_not_used(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    model, vectors = boats(archive)
    monkeypatch.setattr("everturn.retrieval.meaning.SCHEME", 99)

    assert (
        found(archive, "the problem ship", MeaningSearch(model, vectors, plain)).notes
        == found(archive, "the problem ship", None).notes
    )
    assert model.seen == []


def test_vectors_of_a_file_that_was_rewritten_are_not_used(archive: Archive) -> None:
    first = archive.take_in(archive.history.turn("my canoe leaks", "ok"))
    model, vectors = Thesaurus(), HeldVectors()
    update(archive, first, model, vectors)
    before = of(archive, first, model)
    second = archive.take_in(archive.history.turn("bread is out of stock today", "ok"))

    assert of(archive, second, model) != before
    assert vectors.upto(second.id, of(archive, second, model)) == 0


def test_coverage_tells_what_is_complete_and_what_is_stale(archive: Archive) -> None:
    history = archive.history
    archive.take_in(history.turn("my canoe leaks", "paint it"))
    model, vectors = Thesaurus(), HeldVectors()
    assert coverage(archive.store, model, vectors) == Coverage(1, 0, 0, 0)
    list(make_all_vectors(archive.store, all_sources(), model, vectors, plain))
    assert coverage(archive.store, model, vectors) == Coverage(1, 1, 0, 2)
    history.grow(history.turn("it still leaks", "use tar"))
    archive.take_in()
    assert coverage(archive.store, model, vectors) == Coverage(1, 0, 0, 2)
    assert coverage(archive.store, Thesaurus("new"), vectors) == Coverage(1, 0, 1, 0)


# making them ----------------------------------------------------------------------------------------------------------
def test_only_what_is_new_is_embedded(archive: Archive) -> None:
    first = archive.history.turn("my canoe leaks", "paint it")
    session = archive.take_in(first)
    model, vectors = Thesaurus(), HeldVectors()
    assert [portion.vectors for portion in update(archive, session, model, vectors)] == [2]
    assert update(archive, session, model, vectors) == []
    archive.history.grow(archive.history.turn("it still leaks", "use tar"))
    session = archive.take_in()

    assert [portion.vectors for portion in update(archive, session, model, vectors)] == [2]
    assert model.seen == ["my canoe leaks", "paint it", "it still leaks", "use tar"]


def test_what_tools_gave_back_is_not_embedded(archive: Archive) -> None:
    session = archive.take_in(archive.history.tool_turn("look at the canoe", "ls boats", "three ships"))
    model = Thesaurus()
    update(archive, session, model, HeldVectors())

    assert model.seen == ["look at the canoe"]


def test_texts_are_cleaned_before_they_leave(archive: Archive) -> None:
    session = archive.take_in(archive.history.turn("the word is sesame", "ok"))
    model = Thesaurus()
    update(archive, session, model, HeldVectors(), lambda text: text.replace("sesame", "[gone]"))

    assert model.seen == ["the word is [gone]", "ok"]


def test_what_was_made_before_a_model_failed_is_kept(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everturn.retrieval.meaning.AT_ONCE", 2)
    history = archive.history
    session = archive.take_in(*(history.turn(f"canoe {number}", "ok") for number in range(3)))
    model, vectors = Thesaurus(), HeldVectors()
    making = make_batch(archive.store, all_sources(), session, model, vectors, plain)
    next(making)
    model.broken = True
    with pytest.raises(ModelUnreachable):
        next(making)
    assert vectors.upto(session.id, of(archive, session, model)) == 2

    model.broken = False
    update(archive, session, model, vectors)
    assert sorted(model.seen) == ["canoe 0", "canoe 1", "canoe 2", "ok", "ok", "ok"]


def test_vectors_of_sessions_that_are_gone_go_with_the_next_making(archive: Archive) -> None:
    model, vectors = boats(archive)
    vectors.put(4711, "of an archive that was here before", [(0, bytes(8))], 1)
    list(make_all_vectors(archive.store, all_sources(), model, vectors, plain))

    assert 4711 not in vectors.held() and len(vectors.held()) == 1


def test_a_session_forgotten_while_its_vectors_are_made_leaves_none(archive: Archive) -> None:
    session = archive.take_in(archive.history.turn("my canoe leaks", "ok"))
    vectors = HeldVectors()

    class Slow(Thesaurus):
        def embed(self, texts: Sequence[str]) -> list[list[float]]:
            with archive.store.write():
                archive.store.delete_file(archive.store.version(session.version).source)
            return super().embed(texts)

    list(make_batch(archive.store, all_sources(), session, Slow(), vectors, plain))
    assert vectors.held() == {}


def test_a_message_that_two_sessions_hold_is_embedded_once(archive: Archive) -> None:
    history = archive.history
    first = history.turn("my canoe leaks", "paint it")
    archive.take_in(first)
    archive.take_in(first.replace(b"11111111", b"99999999"), history.turn("bread", "loaf", OTHER), sid=OTHER)
    model = Thesaurus()
    list(make_all_vectors(archive.store, all_sources(), model, HeldVectors(), plain))

    assert sorted(model.seen) == ["bread", "loaf", "my canoe leaks", "paint it"]


def test_forgotten_sessions_have_no_vectors() -> None:
    vectors = HeldVectors()
    vectors.put(7, "m/1/g", [(0, pack_vectors([[1.0]], [1.0])[0])], 1)
    vectors.forget(7)

    assert (vectors.get(7, "m/1/g", [0]), vectors.upto(7, "m/1/g")) == ({}, 0)


# which queries --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "text",
    ["timeout", "parse error", '"exact phrase" in the log', "why did pars* fail here", "json OR yaml for the config",
     "/line [0-9]+/", "role:user", "where is src/auth/token.py", "the parse_json error", "run with --no-cache flag",
     "commit 3f2a9c again", "what calls resolveSession"],
)  # fmt: skip
def test_exact_words_are_left_to_words(text: str) -> None:
    assert question_share(parse_query(text)) == 0


def test_a_question_follows_meaning_and_one_that_names_code_half_as_much() -> None:
    assert question_share(parse_query("When did Caroline's sister paint the boat?")) == 1
    assert question_share(parse_query("why does parse_json fail when the input file is empty")) == 0.5


@pytest.mark.parametrize(
    "text", ["canoe", "problem canoe", '"problem of the canoe" boat ship', "/can.e/", "the pars* ship"]
)
def test_exact_words_give_the_same_results_with_and_without_vectors(archive: Archive, text: str) -> None:
    model, vectors = boats(archive)

    assert found(archive, text, MeaningSearch(model, vectors, plain, weight=9)) == found(archive, text, None)
    assert model.seen == []


def test_a_line_copied_from_a_message_finds_that_message_first(archive: Archive) -> None:
    history = archive.history
    archive.take_in(
        history.turn("the ship  of this problem\nis a slow one", "ok"),
        history.turn("slow slow ship: problem of this one", ""),
    )
    model, vectors = Thesaurus(), HeldVectors()
    list(make_all_vectors(archive.store, all_sources(), model, vectors, plain))
    for text in ("The ship of this problem is a slow one", "slow slow ship: problem of this"):
        by_words = found(archive, text, None)
        assert found(archive, text, MeaningSearch(model, vectors, plain, weight=10)).items == by_words.items


# messages that meaning adds -------------------------------------------------------------------------------------------
@pytest.mark.needs("module:numpy")
class TestAdded:
    def other_words(self, archive: Archive) -> MeaningSearch:
        """An archive in which the nearest message holds no word of the question."""
        history = archive.history
        archive.take_in(
            history.turn("what is the problem today", "noted"),
            history.turn("paint the hull of the canoe", "a canoe needs tar"),
            history.turn("bread is out of stock", "buy a loaf"),
        )
        model, vectors = Thesaurus(), HeldVectors()
        list(make_all_vectors(archive.store, all_sources(), model, vectors, plain))
        return MeaningSearch(model, vectors, plain, weight=0.5)

    def test_the_nearest_messages_are_found_without_a_word_of_the_question(self, archive: Archive) -> None:
        meaning = self.other_words(archive)
        assert seqs(found(archive, "what problem has my ship", None)) == [0]
        results = found(archive, "what problem has my ship", meaning)

        assert seqs(results) == [0, 2, 3]
        assert NOTES["added"] in results.notes

    def test_a_default_model_is_not_named_and_says_only_what_it_added(self, archive: Archive) -> None:
        meaning = self.other_words(archive)
        meaning.is_default = True

        assert "ranked by" not in found(archive, "what problem has my ship", meaning).note
        assert NOTES["added"] not in found(archive, "what problem has my ship", meaning, limit=1).notes

    @pytest.mark.parametrize(
        ("filters", "added"),
        [("role:assistant", [3]), ("role:user", [2]), ("field:answer", [3]), ("turn:2-2", [2, 3]), ("turn:3-3", []),
         ("since:2030-01-01", []), ("tool:Bash", []), ("-turn:2", []), ("-stock", []), ("agent:gemini", [])],
    )  # fmt: skip
    def test_they_pass_the_same_filters(self, archive: Archive, filters: str, added: list[int]) -> None:
        meaning = self.other_words(archive)
        # "noted", "hull", "tar" and "buy" are in some message of every scope, so that words find something.
        results = found(archive, f"noted hull tar buy ship {filters}", meaning)
        by_words = seqs(found(archive, f"noted hull tar buy ship {filters}", None))

        assert set(seqs(results)) == {*by_words, *added}

    def test_they_stay_in_the_session_and_pages_fit_together(self, archive: Archive) -> None:
        meaning = self.other_words(archive)
        history = archive.history
        other = archive.take_in(history.turn("what is the problem with a ship", "ok", OTHER), sid=OTHER)
        filters = SearchFilters(session=other)
        results = search(archive.store, all_sources(), "what problem has my ship", filters, meaning=meaning)
        assert {one.session.id for one in results.items} == {other.id}

        whole = [
            (one.session.id, one.row.seq)
            for one in found(archive, "what problem has my ship", meaning).items
            if one.row
        ]
        paged: list[tuple[int, int]] = []
        cursor = ""
        while len(paged) < 10:
            page = found(archive, "what problem has my ship", meaning, limit=1, cursor=cursor)
            paged += [(one.session.id, one.row.seq) for one in page.items if one.row]
            cursor = page.next
            if not cursor:
                break
        assert paged == whole and len(set(whole)) == len(whole)

    def test_stale_vectors_add_nothing(self, archive: Archive) -> None:
        meaning = self.other_words(archive)
        history, vectors = archive.history, meaning._vectors
        other = archive.take_in(history.turn("what is the problem", "a slow ship", OTHER), sid=OTHER)
        list(make_all_vectors(archive.store, all_sources(), meaning._embedder, vectors, plain))
        (stale,) = vectors.held().keys() - {other.id}
        current, upto, _ = vectors.held()[stale]
        vectors.put(stale, f"{current}0", vectors.get(stale, current, range(upto)).items(), upto)
        results = found(archive, "what problem has my ship", meaning)

        assert {one.session.id for one in results.items if one.row and one.row.seq} == {other.id}

    def test_a_wider_scope_is_searched_although_meaning_would_find_something_in_the_narrow_one(
        self, archive: Archive
    ) -> None:
        meaning = self.other_words(archive)
        history = archive.history
        other = archive.take_in(history.turn("a canoe", "ok", OTHER), sid=OTHER)
        list(make_all_vectors(archive.store, all_sources(), meaning._embedder, meaning._vectors, plain))
        filters = SearchFilters(session=other, widen=True)
        results = search(archive.store, all_sources(), "stock of the ship", filters, meaning=meaning)

        assert results.scope in ("workspace", "everything") and seqs(results)[0] == 4
