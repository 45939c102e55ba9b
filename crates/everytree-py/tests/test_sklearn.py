"""scikit-learn's own checks, and life inside its tools."""

import pickle

import numpy as np
import pyarrow
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import KBinsDiscretizer
from sklearn.utils.estimator_checks import parametrize_with_checks

import everytree
from conftest import survey

ESTIMATORS = [
    everytree.MixtureOfAllTrees(),
    everytree.IndependentColumns(),
    everytree.ChowLiuTree(),
    everytree.MixtureOfTrees(),
    everytree.HiddenChowLiuTree(),
    everytree.MixtureOfAllTreesClassifier(),
]

#: Checks that cannot apply, and why.
CANNOT_APPLY = {
    "MixtureOfAllTreesClassifier": {
        "check_sample_weight_equivalence_on_dense_data": (
            "a row of weight 2 and two rows are held out for validation by different chances, and the fifteen numbers of a "
            "column are labels, not bins: those that one fit has not seen are errors"
        )
    }
}


def reasons(estimator):
    return CANNOT_APPLY.get(type(estimator).__name__, {})


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=reasons)
def test_contract(estimator, check):
    check(estimator)


def numbers(rows=300, seed=1):
    rng = np.random.default_rng(seed)
    base = rng.normal(size=(rows, 1))
    return base + 0.5 * rng.normal(size=(rows, 4))


def test_a_pipeline_scores_what_the_model_scores():
    X = numbers()
    steps = [
        ("cut", KBinsDiscretizer(5, encode="ordinal", quantile_method="averaged_inverted_cdf")),
        ("trees", everytree.ChowLiuTree()),
    ]
    pipeline = Pipeline(steps).fit(X)
    cut = pipeline.named_steps["cut"].transform(X)
    assert pipeline.score(X) == pytest.approx(everytree.ChowLiuTree().fit(cut).score(cut), abs=0)


def test_a_grid_chooses_by_mean_log_likelihood():
    X = numbers()
    search = GridSearchCV(everytree.MixtureOfAllTrees(epochs=10), {"family": ["independent", "directed"]}, cv=3).fit(X)
    assert search.best_params_ == {"family": "directed"}
    scores = cross_val_score(everytree.MixtureOfAllTrees("directed", epochs=10), X, cv=3)
    assert search.best_score_ == pytest.approx(scores.mean(), abs=1e-12)
    held = search.best_estimator_.score_samples(X)
    assert search.score(X) == pytest.approx(held.mean(), abs=1e-12)


def test_clones_pickles_and_parameters(model, table):
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.score_samples(table), model.score_samples(table))
    assert again.sample(5, random_state=3) == model.sample(5, random_state=3)
    assert again.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        clone(model).score(table)
    with pytest.raises(ValueError, match="Invalid parameter 'colour'"):
        model.set_params(colour=3)
    assert repr(everytree.MixtureOfAllTrees("directed", epochs=3)) == "MixtureOfAllTrees(family='directed', epochs=3)"


def test_weights_count_rows():
    table = survey(300)
    rng = np.random.default_rng(5)
    weights = rng.integers(0, 4, size=300)
    twice = {name: np.repeat(np.array(values), weights).tolist() for name, values in table.items()}
    fresh = survey(100, seed=9)
    # Counting is the whole of learning here, and both have the rows of their own for validation.
    tree = everytree.ChowLiuTree()
    weighted = tree.fit(table, sample_weight=weights, valid=fresh).score_samples(fresh)
    repeated = tree.fit(twice, valid=fresh).score_samples(fresh)
    assert np.allclose(weighted, repeated, rtol=0, atol=1e-12)
    # And where gradients do it, halves are as good as wholes up to the length of steps.
    learned = everytree.MixtureOfAllTrees("directed", epochs=5, batch_size=10_000)
    halves = learned.fit(table, sample_weight=np.full(300, 0.5), valid=fresh).score(fresh)
    wholes = learned.fit(table, valid=fresh).score(fresh)
    assert halves == pytest.approx(wholes, abs=0.02)
    for bad, words in [([1.0] * 299, "sample_weight.shape"), ([-1.0] * 300, "not negative"), ([0.0] * 300, "zero")]:
        with pytest.raises(ValueError, match=words):
            everytree.ChowLiuTree().fit(table, sample_weight=bad)


def test_classifier(table, tmp_path):
    features = {name: values for name, values in table.items() if name != "cough"}
    classifier = everytree.MixtureOfAllTreesClassifier(epochs=15).fit(features, table["cough"])
    assert classifier.classes_.tolist() == ["no", "yes"]
    probabilities = classifier.predict_proba(features)
    assert np.allclose(probabilities.sum(axis=1), 1)
    assert classifier.score(features, table["cough"]) > 0.75
    # The conditional of the joint model: p(label, features) / Σ p(label', features).
    joint = classifier.joint_
    logs = np.column_stack([joint.score_samples({**features, "label": [label] * 600}) for label in ("no", "yes")])
    exact = np.exp(logs - np.logaddexp.reduce(logs, axis=1, keepdims=True))
    assert np.allclose(probabilities, exact, rtol=0, atol=1e-12)
    again = everytree.MixtureOfAllTreesClassifier(epochs=15)
    again.fit(pyarrow.table(features), pyarrow.array(table["cough"]), valid=(features, table["cough"]))
    again.save(tmp_path / "joint.everytree")
    loaded = everytree.MixtureOfAllTreesClassifier.load(tmp_path / "joint.everytree", "label")
    assert np.array_equal(loaded.predict_proba(features), again.predict_proba(features))
    assert loaded.predict(features).tolist() == again.predict(features).tolist()
    # A missing feature is summed out.
    hole = {**{name: values[:1] for name, values in features.items()}, "region": [None]}
    assert classifier.predict_proba(hole).sum() == pytest.approx(1)
