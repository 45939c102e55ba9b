"""Tables and questions as people bring them: columns left out, rare and unknown labels, conditions, folds that miss a label."""

import math
import warnings

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV, cross_val_score

import everytree
from everytree import _core


def people(rows=400):
    rng = np.random.default_rng(1)
    smoker = rng.random(rows) < 0.4
    cough = np.where(rng.random(rows) < 0.1, ~smoker, smoker)
    return pandas.DataFrame(
        {
            "id": [f"p{row}" for row in range(rows)],
            "job": np.where(rng.random(rows) < 0.6, "nurse", [f"job {row % 90}" for row in range(rows)]),
            "age": rng.integers(20, 60, rows),
            "smoker": np.where(smoker, "yes", "no"),
            "cough": cough,
        }
    )


@pytest.fixture(scope="module")
def model():
    return everytree.ChowLiuTree(drop="id", other=5, bins={"age": 4}).fit(people())


def test_columns_are_left_out_and_later_tables_may_have_them(model):
    table = people()
    assert list(model.states_) == ["job", "age", "smoker", "cough"]
    assert model.states_["job"][-1] == "other"
    assert np.array_equal(model.score_samples(table), model.score_samples(table.drop(columns="id")))
    only = everytree.ChowLiuTree(columns=["s*", "c?ugh"]).fit(table)
    assert list(only.states_) == ["smoker", "cough"]
    with pytest.raises(ValueError, match='no column "idd".*did you mean "id"'):
        everytree.ChowLiuTree(drop=["idd"]).fit(table)
    filled = model.impute(table.assign(smoker=[None] * len(table)))
    assert list(filled["id"]) == list(table["id"])


def test_ids_are_left_out_and_the_command_line_carries_them(tmp_path):
    table = people()
    model = everytree.ChowLiuTree(id="id", other=5, bins={"age": 4}).fit(table)
    assert list(model.states_) == ["job", "age", "smoker", "cough"]
    model.save(tmp_path / "people.everytree")
    table.to_csv(tmp_path / "people.csv", index=False)
    out = tmp_path / "scores.csv"
    files = [str(tmp_path / "people.everytree"), str(tmp_path / "people.csv")]
    assert _core.main(["everytree", "score", *files, "--out", str(out)]) == 0
    scores = pandas.read_csv(out)
    assert list(scores["id"]) == list(table["id"])
    assert np.allclose(scores["log_likelihood"], model.score_samples(table))
    assert list(model.impute(table.assign(smoker=[None] * len(table)))["id"]) == list(table["id"])


def test_samples_have_ids_like_those_of_the_command(tmp_path):
    table = people()
    model = everytree.ChowLiuTree(id="id", other=5, bins={"age": 4}).fit(table)
    drawn = model.sample(3, random_state=1)
    assert list(drawn) == ["id", "job", "age", "smoker", "cough"]
    assert drawn["id"].tolist() == [1, 2, 3]
    model.save(tmp_path / "people.everytree")
    out = tmp_path / "drawn.csv"
    assert _core.main(["everytree", "sample", str(tmp_path / "people.everytree"), "-n", "3", "--out", str(out)]) == 0
    said = pandas.read_csv(out)
    assert list(said) == list(drawn)
    assert said["id"].tolist() == [1, 2, 3]
    # Texts in place of numbers, other kinds of tables, and a model from a file.
    for kind in (dict, polars.DataFrame, pyarrow.table):
        texts = table.assign(id=[f"person {name}" for name in table["id"]])
        made = everytree.ChowLiuTree(id="id", other=5).fit(kind(texts.to_dict("list")))
        column = made.sample(2)["id"]
        assert list(column.to_pylist() if hasattr(column, "to_pylist") else column) == [1, 2]
    assert everytree.load(tmp_path / "people.everytree").sample(2)["id"].tolist() == [1, 2]
    # What is most probable is nobody.
    assert "id" not in model.most_probable().rows
    # An array stays the array of the model's columns.
    array = np.random.default_rng(0).integers(0, 2, (50, 3))
    assert everytree.ChowLiuTree(id="x0").fit(array).sample(4).shape == (4, 2)


def test_arrays_without_names_leave_columns_out_by_number():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, (100, 3))
    model = everytree.ChowLiuTree(drop="x1").fit(x)
    assert np.array_equal(model.score_samples(x), model.score_samples(x[:, [0, 2]]))


def test_unknown_labels_are_missing_with_a_warning_that_counts(model):
    table = people(20).assign(smoker="perhaps")
    with pytest.warns(UserWarning, match="20 labels were not seen in training"):
        scores = model.score_samples(table)
    assert np.isfinite(scores).all()
    assert np.allclose(scores, model.score_samples(table.assign(smoker=None)))
    with pytest.raises(ValueError, match='unknown value "perhaps"'):
        model.score_samples(table, unknown="error")
    gaps = people(20).assign(smoker="perhaps")
    gaps.loc[0, "smoker"] = None
    with pytest.warns(UserWarning, match="19 labels were not seen in training"):
        filled = model.impute(gaps)
    assert filled["smoker"][0] in ("yes", "no") and filled["smoker"][1] == "perhaps"
    # A job that nobody has seen is one of the others.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        new = model.score_samples(people(1).assign(job="astronaut"))
        rare = model.score_samples(people(1).assign(job="job 3"))
    assert new == rare


def test_folds_that_miss_a_label_have_finite_scores():
    wine = load_wine(as_frame=True).frame
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = cross_val_score(everytree.MixtureOfAllTrees(epochs=2), wine, cv=5)
        assert np.isfinite(scores).all()
        # Numbers as labels, of which every fold misses some, and gaps.
        rng = np.random.default_rng(2)
        chile = pandas.DataFrame(
            {
                "age": rng.integers(18, 70, 300),
                "income": rng.choice([2500, 7500, 15000, None], 300),
                "region": rng.choice(list("ABCDEFGH"), 300, p=[0.3, 0.3, 0.2, 0.1, 0.09, 0.004, 0.003, 0.003]),
            }
        )
        scores = cross_val_score(everytree.MixtureOfAllTrees(epochs=2), chile, cv=10)
        assert np.isfinite(scores).all()
        search = GridSearchCV(everytree.MixtureOfAllTrees(epochs=2), {"components": [1, 2]}, cv=3).fit(chile)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        labels = load_wine().target
        classifier = everytree.MixtureOfAllTreesClassifier(epochs=2)
        assert np.isfinite(cross_val_score(classifier, load_wine(as_frame=True).data, labels, cv=3)).all()


def test_conditions_say_what_texts_say(model):
    def p(given):
        return model.query(given=given, targets=["cough"])["cough", True]

    for condition, text in [
        ({"age": everytree.between(30, 40)}, "age in 30..40"),
        ({"age": everytree.above(45)}, "age>45"),
        ({"age": everytree.below(45, included=True)}, "age<=45"),
        ({"smoker": everytree.isnot("no")}, "smoker!=no"),
        ({"job": everytree.isin(["nurse", "other"])}, "job in {nurse, other}"),
        ({"smoker": everytree.likelihood({"yes": 3, "no": 1})}, "smoker~yes:3, no:1"),
    ]:
        assert math.isclose(p(condition), p(text), rel_tol=1e-12)
        assert math.isclose(p(condition), p([text]), rel_tol=1e-12)
    assert p("smoker=yes") > p({"smoker": everytree.likelihood({"yes": 3, "no": 1})}) > p("smoker=no")
    with pytest.raises(everytree.UnknownColumn, match='did you mean "smoker"'):
        p({"smokr": "yes"})
    with pytest.raises(ValueError, match="an operator is needed"):
        p("smoker")
    table = people(10).assign(smoker=None)
    assert set(model.impute(table, given="smoker!=no")["smoker"]) == {"yes"}


def test_progress_tells_rows(model):
    heard = []
    table = people(50)
    told = model._scoring(0.05, 100, None, missing_as_state=False, unknown="unobserved")
    model._fitted().score(model._table(table), told, lambda rows, of: heard.append((rows, of)))
    # A short table may be done before anybody is told; whatever is told is true.
    assert all(rows <= of == 50 for rows, of in heard)


def test_notes_that_are_not_shown_are_counted():
    rng = np.random.default_rng(0)
    table = pandas.DataFrame({f"c{place}": rng.normal(size=200) for place in range(9)})
    shown = everytree.ChowLiuTree().fit(table)._repr_html_()
    assert "and 4 more notes in notes_" in shown


def test_bins_leave_columns_alone_that_are_left_out():
    table = people()
    for left_out in ({"drop": ["age"]}, {"id": "age"}, {"columns": ["smoker", "cough"]}):
        model = everytree.ChowLiuTree(bins=3, other=5, **left_out).fit(table)
        assert "age" not in model.states_
    # As on the command line: columns of more numbers than bins.
    assert len(everytree.ChowLiuTree(bins=3, columns=["age", "smoker"]).fit(table).states_["age"]) == 3


def test_answers_stand_beside_rows():
    table = people()
    model = everytree.ChowLiuTree(drop="id", other=5, bins={"age": 4}).fit(table)
    answer = model.query({"age": everytree.between(30, 40)}, ["smoker"], data=table)
    rows = table[(table["age"] >= 30) & (table["age"] <= 40)]
    assert answer.matching_rows == len(rows)
    share = (rows["smoker"] == rows["smoker"].iloc[0]).mean()
    of_rows = {found.value: found.observed for found in answer}
    assert of_rows[rows["smoker"].iloc[0]] == pytest.approx(share)
    assert f"{len(rows):,} of {len(table):,} rows in the data agree with the evidence" in repr(answer)
    assert "exact under the model" in repr(model.query())


def test_at_most_twelve_values_are_printed():
    table = pandas.DataFrame({"a": [f"v{i % 30}" for i in range(600)], "b": ["x", "y"] * 300})
    text = repr(everytree.ChowLiuTree().fit(table).query(targets=["a"]))
    assert "(18 others)" in text and len(text.splitlines()) == 14


def test_a_classifier_refuses_what_it_does_not_know_when_asked():
    table = people()[["smoker", "cough"]]
    model = everytree.MixtureOfAllTreesClassifier(epochs=1).fit(table[["cough"]], table["smoker"])
    strange = pandas.DataFrame({"cough": ["perhaps"]})
    with pytest.warns(UserWarning, match="not seen in training"):
        model.predict(strange)
    with pytest.raises(ValueError, match="perhaps"):
        model.predict(strange, unknown="error")


def test_numbers_stay_in_the_range_that_is_given():
    table = {"age": list(range(18, 91)) * 10, "group": ["young"] * 320 + ["old"] * 410}
    table["age"] = sorted(table["age"])
    model = everytree.ChowLiuTree(bins=8).fit(table)
    for given, low, high in [("age>85", 86, 90), ({"age": everytree.between(None, 20)}, 18, 20), ("age in 47..48", 47, 48)]:
        drawn = model.sample(5, given=given)["age"]
        best = model.most_probable(given=given).rows["age"]
        filled = model.impute({"age": [None, 30], "group": ["old", "young"]}, given=given)["age"]
        assert all(low <= age <= high for age in [*drawn, *best, filled[0]]), (given, drawn, best, filled)
        assert filled[1] == 30
    assert everytree.between(20, float("inf")) == everytree.between(20, None) == everytree.above(20, included=True)
    assert everytree.isnot(["a", "b"]) == everytree.isnot("a", "b")


def test_columns_of_types_without_states_may_be_left_out():
    rows = 100
    frame = pandas.DataFrame(
        {
            "f": ["a", "b"] * 50,
            "k": [0, 1] * 50,
            "when": pandas.date_range("2020-01-01", periods=rows),
            "took": pandas.to_timedelta(range(rows), unit="s"),
            "list": [[1, 2]] * rows,
            "dict": [{"a": 1}] * rows,
        }
    )
    odd = ["when", "took", "list", "dict"]
    expected = everytree.ChowLiuTree().fit(frame[["f", "k"]]).score_samples(frame)
    for how in ({"drop": odd}, {"columns": ["f", "k"]}, {"drop": odd[1:], "id": "when"}):
        for table in (frame, {name: list(frame[name]) for name in frame}):
            model = everytree.ChowLiuTree(**how).fit(table)
            assert (model.score_samples(table) == expected).all()
    for name in odd:
        with pytest.raises(ValueError, match=f'column "{name}" has type .*leave it out with drop="{name}"'):
            everytree.ChowLiuTree().fit(frame[["f", "k", name]])


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "dict"])
def test_columns_that_are_dropped_are_not_observed(kind):
    table = {"a": ["x", "y"] * 50, "b": ["x", "y"] * 45 + ["y", "x"] * 5, "c": ["u", "u", "v", "v"] * 25}
    make = {"pandas": pandas.DataFrame, "polars": polars.DataFrame, "arrow": pyarrow.table, "dict": dict}[kind]
    model = everytree.ChowLiuTree().fit(make(table))
    expected = model.score_samples(make({**table, "b": [None] * 100})) if kind != "polars" else None
    if expected is None:
        expected = model.score_samples(polars.DataFrame({**table, "b": [None] * 100}, schema_overrides={"b": polars.String}))
    whole, without = make(table), make({name: values for name, values in table.items() if name != "b"})
    for given in (whole, without):
        assert (model.score_samples(given, drop="b") == expected).all()
        assert (model.log_prob(given, drop=["b"]).log_prob == expected).all()
    assert model.surprisal(without, drop="b").rows.tolist() == (-expected).tolist()
    with pytest.raises(KeyError, match="no column"):
        model.score_samples(whole, drop="d")


@pytest.mark.parametrize("write", ["{:.3f}", "{:.2f} €", "{:.1f} %"])
def test_numbers_that_are_texts_are_hinted_at(write):
    numbers = [write.format(row * 1.7).replace(".", ",") for row in range(300)]
    frame = pandas.DataFrame({"price": numbers, "kind": ["a", "b"] * 150})
    with pytest.raises(ValueError, match="each is a number that is stored as text"):
        everytree.ChowLiuTree().fit(frame)
    with pytest.raises(ValueError, match='different values, more than the 64 allowed; .*leave it out with drop="name"'):
        everytree.ChowLiuTree().fit(pandas.DataFrame({"name": [f"n{row}" for row in range(300)], "kind": ["a", "b"] * 150}))
