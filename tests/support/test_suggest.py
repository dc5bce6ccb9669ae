from hypothesis import given
from hypothesis import strategies as st

from transun.support.suggest import did_you_mean


def test_at_most_two_names_the_closest_first():
    assert did_you_mean("price", ["item", "rice", "prices", "pr"]) == "did you mean 'prices' or 'rice'?"


def test_case_alone_settles_it():
    assert did_you_mean("TRE", ["tre", "tre_low", "tre_high"]) == "did you mean 'tre'?"
    assert did_you_mean("PRICE", ["Price", "price", "prices"]) == "did you mean 'Price' or 'price'?"


def test_letters_are_compared_without_their_case():
    assert did_you_mean("TRR", ["tre", "pgr"]) == "did you mean 'tre'?"


def test_nothing_close_is_an_empty_hint():
    assert did_you_mean("colour", ["price", "item"]) == ""
    assert did_you_mean("price", []) == ""


@given(st.lists(st.text(min_size=1), min_size=1, unique=True), st.data())
def test_a_known_name_is_always_found(known, data):
    name = data.draw(st.sampled_from(known))
    assert repr(name) in did_you_mean(name, known)
