"""Vectors re-rank what the words have found, never when they are stale, and change nothing when there are none."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from everturn.errors import BadVectors, ModelUnreachable, UsageError
from everturn.model.archive import Session
from everturn.recall.tool import ConversationRecall
from everturn.retrieval.meaning import (
    TOP,
    Coverage,
    HeldVectors,
    MeaningSearch,
    VectorBatch,
    coverage,
    generation,
    make_all_vectors,
    make_batch,
    mix_meaning,
    pack_vectors,
)
from everturn.retrieval.search import Results, search
from everturn.secrets.redaction import redact_text
from everturn.sources.contract import all_sources
from everturn.store.contract import IndexHit
from tests.capture.history import OTHER
from tests.recall.archives import Archive

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
def test_a_hit_of_the_same_meaning_rises(archive: Archive) -> None:
    session = archive.take_in(archive.history.turn("my canoe leaks", "ok"), archive.history.turn("bread is out", "ok"))
    model, vectors = Thesaurus(), HeldVectors()
    update(archive, session, model, vectors)
    meaning = MeaningSearch(model, vectors, plain)
    hits = [IndexHit(session.id, 2, 3.0), IndexHit(session.id, 0, 2.9), IndexHit(session.id, 1, 0.1)]

    assert [hit.seq for hit in meaning.reorder_hits(archive.store, hits, "ship") or []] == [0, 2, 1]
    assert [hit.seq for hit in meaning.reorder_hits(archive.store, hits, "loaf") or []] == [2, 0, 1]


def test_a_search_follows_meaning_when_it_is_given_one_and_says_so(archive: Archive) -> None:
    model, vectors = boats(archive)
    assert seqs(found(archive, "problem ship", None))[0] == 0
    results = found(archive, "problem ship", MeaningSearch(model, vectors, plain, weight=2))

    assert seqs(results)[0] == 2
    assert "the order follows meaning too, by thesaurus" in results.notes
    assert model.seen == ["problem ship"]


def test_the_recall_tool_follows_meaning_too(archive: Archive) -> None:
    model, vectors = boats(archive)
    recall = ConversationRecall(archive.store, all_sources(), meaning=MeaningSearch(model, vectors, plain, weight=2))
    answer = recall(action="search", query="problem ship")

    assert answer.index("[Turn 2] user") < answer.index("[Turn 1] user")
    assert "by thesaurus" in answer


def test_without_vectors_the_hits_stay_as_they_are_and_nothing_is_embedded(archive: Archive) -> None:
    session = archive.take_in(archive.history.turn("my canoe leaks", "ok"))
    model = Thesaurus()
    meaning = MeaningSearch(model, HeldVectors(), plain)

    assert (
        meaning.reorder_hits(archive.store, [IndexHit(session.id, 1, 3.0), IndexHit(session.id, 0, 2.0)], "ship")
        is None
    )
    assert found(archive, "canoe ship", meaning) == found(archive, "canoe ship", None)
    assert model.seen == []


def test_a_model_that_cannot_be_asked_is_a_note_and_the_order_is_that_of_the_words(archive: Archive) -> None:
    model, vectors = boats(archive)
    model.broken = True
    results = found(archive, "problem ship", MeaningSearch(model, vectors, plain, weight=2))

    assert results.items == found(archive, "problem ship", None).items
    assert [note for note in results.notes if note.startswith("the order follows words alone: model thesaurus: it was")]


def test_vectors_that_cannot_be_read_are_a_note(archive: Archive) -> None:
    class Damaged(HeldVectors):
        def get(self, session: int, generation: str, seqs: Sequence[int]) -> dict[int, bytes]:
            raise BadVectors("the file")

    boats(archive)
    results = found(archive, "problem ship", MeaningSearch(Thesaurus(), Damaged(), plain))

    assert len(results.items) == 2 and "makes it again" in results.note


def test_a_model_is_asked_once_for_a_question_however_many_rings_are_looked_at(archive: Archive) -> None:
    _, vectors = boats(archive)
    asked: list[Sequence[str]] = []

    class Broken(Thesaurus):
        def embed(self, texts: Sequence[str]) -> list[list[float]]:
            asked.append(texts)
            raise ModelUnreachable(self.name, "it was unplugged")

    meaning = MeaningSearch(Broken(), vectors, plain)
    found(archive, "problem ship", meaning)
    found(archive, "problem ship", meaning)
    assert len(asked) == 1
    found(archive, "problem loaf", meaning)
    assert len(asked) == 2


def test_secrets_in_a_question_do_not_leave(archive: Archive) -> None:
    key = "AKIA" + "Q7XW2MZP4RTY5LNB"
    model, vectors = boats(archive)
    found(archive, f"problem {key}", MeaningSearch(model, vectors, redact_text))

    assert len(model.seen) == 1 and key not in model.seen[0]


def test_filters_and_unwanted_words_are_no_part_of_the_question(archive: Archive) -> None:
    model, vectors = boats(archive)
    found(archive, "problem ship -loaf role:user", MeaningSearch(model, vectors, plain))

    assert model.seen == ["problem ship"]


# pages ----------------------------------------------------------------------------------------------------------------
def test_pages_fit_together_in_the_order_of_meaning(archive: Archive) -> None:
    model, vectors = boats(archive)
    meaning = MeaningSearch(model, vectors, plain, weight=2)
    whole = seqs(found(archive, "problem ship", meaning))
    first = found(archive, "problem ship", meaning, limit=1)
    second = found(archive, "problem ship", meaning, limit=1, cursor=first.next)

    assert [*seqs(first), *seqs(second)] == whole


def test_a_later_page_is_not_ordered_in_another_way_than_the_first(archive: Archive) -> None:
    model, vectors = boats(archive)
    meaning = MeaningSearch(model, vectors, plain, weight=2)
    first = found(archive, "problem ship", meaning, limit=1)
    model.broken = True
    with pytest.raises(ModelUnreachable):
        found(archive, "problem ship", MeaningSearch(model, vectors, plain), limit=1, cursor=first.next)
    with pytest.raises(UsageError):
        found(archive, "problem ship", None, limit=1, cursor=first.next)

    by_words = found(archive, "problem ship", MeaningSearch(model, vectors, plain), limit=1)
    model.broken = False
    second = found(archive, "problem ship", meaning, limit=1, cursor=by_words.next)
    assert [*seqs(by_words), *seqs(second)] == seqs(found(archive, "problem ship", None))


# generations ----------------------------------------------------------------------------------------------------------
def test_vectors_of_another_model_or_size_are_not_used(archive: Archive) -> None:
    session = archive.take_in(archive.history.turn("my canoe leaks", "ok"))
    vectors = HeldVectors()
    update(archive, session, Thesaurus("old"), vectors)
    hits = [IndexHit(session.id, 1, 3.0), IndexHit(session.id, 0, 3.0)]
    larger = Thesaurus("old")
    larger.dimensions += 1

    for model in (Thesaurus("new"), larger):
        assert MeaningSearch(model, vectors, plain).reorder_hits(archive.store, hits, "ship") is None
        assert model.seen == []
    assert MeaningSearch(Thesaurus("old"), vectors, plain).reorder_hits(archive.store, hits, "ship") == hits[::-1]


def test_vectors_of_texts_taken_in_another_way_are_not_used(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    model, vectors = boats(archive)
    monkeypatch.setattr("everturn.retrieval.meaning.SCHEME", 99)

    assert (
        found(archive, "problem ship", MeaningSearch(model, vectors, plain)).notes
        == found(archive, "problem ship", None).notes
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
    vectors.put(4711, "of an archive that was here before", [(0, b"\1")], 1)
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
    vectors.put(7, "g", [(0, b"\1")], 1)
    vectors.forget(7)

    assert (vectors.get(7, "g", [0]), vectors.upto(7, "g")) == ({}, 0)


def test_a_hit_without_a_vector_counts_as_middling() -> None:
    hits = [IndexHit(1, 0, 2.0), IndexHit(1, 1, 2.0), IndexHit(1, 2, 2.0)]
    vectors = {(1, 0): pack_vectors([0.0, 1.0]), (1, 2): pack_vectors([1.0, 0.0])}

    assert [hit.seq for hit in mix_meaning(hits, vectors, [1.0, 0.0])] == [2, 1, 0]


def test_scores_fall_from_hit_to_hit_after_mixing_too() -> None:
    hits = [IndexHit(1, seq, 100.0 - seq) for seq in range(TOP + 10)]
    vectors = {(1, seq): pack_vectors([seq % 7 - 3.0, 1.0]) for seq in range(TOP + 10)}
    mixed = mix_meaning(hits, vectors, [1.0, 0.0])

    assert [hit.score for hit in mixed] == [hit.score for hit in hits]
    assert mixed[:TOP] != hits[:TOP]
    assert sorted(hit.seq for hit in mixed[:TOP]) == list(range(TOP))
    assert mixed[TOP:] == hits[TOP:]


def test_the_weight_says_how_much_meaning_counts() -> None:
    hits = [IndexHit(1, 0, 9.0), IndexHit(1, 1, 5.0), IndexHit(1, 2, 1.0)]
    vectors = {(1, seq): pack_vectors([float(seq), 3.0 - seq]) for seq in range(3)}

    assert [hit.seq for hit in mix_meaning(hits, vectors, [1.0, 0.0], weight=0)] == [0, 1, 2]
    assert [hit.seq for hit in mix_meaning(hits, vectors, [1.0, 0.0], weight=9)] == [2, 1, 0]


def test_equal_scores_and_empty_vectors_are_no_mistake() -> None:
    hits = [IndexHit(1, 0, 1.0), IndexHit(1, 1, 1.0)]

    assert mix_meaning(hits, {(1, 0): pack_vectors([0.0, 0.0])}, [1.0, 0.0]) == hits
    assert mix_meaning(hits, {(1, 0): pack_vectors([1.0])}, [1.0, 0.0]) == hits
    assert mix_meaning([], {}, [1.0]) == []


def test_packing_keeps_the_direction() -> None:
    assert pack_vectors([0.5, -0.25, 0.0]) == bytes([127, 256 - 64, 0])
    assert pack_vectors([0.0, 0.0]) == b"\0\0"
