"""Answers against sums over all rows."""

import itertools

import numpy as np
import pytest

import everytree
from conftest import survey

MODELS = {
    "moat": everytree.MixtureOfAllTrees(epochs=8),
    "directed": everytree.MixtureOfAllTrees("directed", components=2, epochs=8),
    "blocks": everytree.MixtureOfAllTrees("directed", blocks=[["smoker", "cough"]], epochs=8),
    "chow-liu": everytree.ChowLiuTree(),
    "mixture-of-trees": everytree.MixtureOfTrees(3),
    "hclt": everytree.HiddenChowLiuTree(3, epochs=8),
    "independent": everytree.IndependentColumns(),
}


@pytest.fixture(scope="module", params=MODELS)
def whole(request):
    """A model, all rows there can be, and their probabilities."""
    model = MODELS[request.param].fit(survey(500))
    names = list(model.states_)
    rows = list(itertools.product(*model.states_.values()))
    table = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    return model, table, np.exp(model.score_samples(table))


def where(table, **given):
    rows = len(next(iter(table.values())))
    fits = np.ones(rows, dtype=bool)
    for name, value in given.items():
        some = value if isinstance(value, list) else [value]
        fits &= np.array([cell in some for cell in table[name]])
    return fits


def test_probabilities_sum_to_one(whole):
    _, _, p = whole
    assert p.sum() == pytest.approx(1, abs=1e-9)


def test_queries(whole):
    model, table, p = whole
    given = {"smoker": True, "age": [20, 30]}
    known = where(table, **given)
    found = model.query(given=given, targets=["cough", ("region", "west")], tolerance=0.002)
    assert len(found) == 3
    for answer in found:
        exact = p[known & where(table, **{answer.column: answer.value})].sum() / p[known].sum()
        assert abs(answer.probability - exact) <= 5 * answer.standard_error + 1e-9
    assert found["cough", "no"] + found["cough", "yes"] == pytest.approx(1)
    assert abs(found.log_evidence - np.log(p[known].sum())) <= 5 * found.log_evidence_standard_error + 1e-9
    value, error = model.probability(given)
    assert abs(value - p[known].sum()) <= 5 * error + 1e-9
    other = everytree.IndependentColumns().fit(survey(300, seed=8))
    q = np.exp(other.score_samples(table))
    value, error = model.divergence(other)
    assert abs(value - (p * np.log(p / q)).sum()) <= 5 * error + 1e-9
    both = np.array([[p[where(table, smoker=s, cough=c)].sum() for c in ("no", "yes")] for s in (False, True)])
    alone = both.sum(axis=1, keepdims=True) * both.sum(axis=0, keepdims=True)
    value, error = model.mutual_information("smoker", "cough")
    assert abs(value - (both * np.log(both / alone)).sum()) <= 5 * error + 1e-6
    value, error = model.entropy()
    assert abs(value + (p * np.log(p)).sum()) <= 5 * error + 1e-9


def test_conditionals_and_surprise(whole):
    model, table, p = whole
    asked = {name: values[::7] for name, values in table.items()}
    rows = len(asked["age"])
    for name in table:
        found = model.conditional(asked, name)
        for row in range(rows):
            rest = where(table, **{other: asked[other][row] for other in table if other != name})
            exact = [p[rest & where(table, **{name: value})].sum() / p[rest].sum() for value in model.states_[name]]
            assert np.allclose(found[row], exact, rtol=0, atol=1e-9)
    surprisal = model.surprisal(asked)
    assert np.allclose(surprisal.rows, -model.score_samples(asked), rtol=0, atol=1e-12)
    for place, name in enumerate(surprisal.columns):
        own = [model.states_[name].index(value) for value in asked[name]]
        exact = -np.log(model.conditional(asked, name)[np.arange(rows), own])
        assert np.allclose(surprisal.cells[:, place], exact, rtol=0, atol=1e-9)
    worst, how_much, cells = surprisal.top(1)[0]
    assert how_much == surprisal.rows.max() == surprisal.rows[worst] and len(cells) == 3


def test_incomplete_rows(whole):
    model, table, p = whole
    asked = {name: values[:40:3] for name, values in table.items()}
    asked["region"] = [None] * len(asked["region"])
    asked["score"] = [None] + asked["score"][1:]
    found = model.log_prob(asked, tolerance=0.01)
    for row in range(len(asked["age"])):
        known = where(table, **{name: asked[name][row] for name in table if asked[name][row] is not None})
        assert abs(found.log_prob[row] - np.log(p[known].sum())) <= 5 * found.standard_error[row] + 1e-9
    surprisal = model.surprisal(asked)
    assert np.isnan(surprisal.cells[:, 2]).all() and not np.isnan(surprisal.cells[:, 0]).any()
    filled, cells = model.impute(asked, return_probabilities=True)
    assert None not in filled["region"] and len(cells) == len(asked["age"]) + 1
    row, _, value, probability, error = cells[-1]
    known = where(table, **{name: asked[name][row] for name in table if asked[name][row] is not None})
    exact = p[known & where(table, region=value)].sum() / p[known].sum()
    assert abs(probability - exact) <= 5 * error + 1e-9


def test_the_most_probable_row(whole):
    model, table, p = whole
    known = where(table, cough="yes")
    best = model.most_probable(given={"cough": "yes"}, n=2)
    order = np.argsort(-np.where(known, p, -1))
    assert best.log_prob[0] == pytest.approx(np.log(p[order[0]]))
    assert [best.rows[name][0] for name in table] == [table[name][order[0]] for name in table]


def test_samples_are_as_frequent_as_probable(whole):
    model, table, p = whole
    drawn = model.sample(4000, random_state=11)
    rows = {row: place for place, row in enumerate(zip(*table.values()))}
    counts = np.bincount([rows[row] for row in zip(*drawn.values())], minlength=len(p))
    # Rows that are expected less than five times are counted together.
    rare = p * 4000 < 5
    expected = np.append(p[~rare], p[rare].sum()) * 4000
    seen = np.append(counts[~rare], counts[rare].sum())
    chi = ((seen - expected) ** 2 / expected)[expected > 0].sum()
    freedom = (expected > 0).sum() - 1
    # Wilson and Hilferty: one in a hundred thousand.
    bound = freedom * (1 - 2 / (9 * freedom) + 4.26 * np.sqrt(2 / (9 * freedom))) ** 3
    assert chi < bound
    given = model.sample(50, given={"age": 40}, random_state=1)
    assert set(given["age"]) == {40}
