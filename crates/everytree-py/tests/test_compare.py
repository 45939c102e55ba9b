"""Families side by side: the figures of fits, tests, frames, and what is wrong."""

import numpy as np
import pandas
import pytest

import everytree


def survey(rows, seed):
    rng = np.random.default_rng(seed)
    smoker = rng.random(rows) < 0.4
    cough = np.where(rng.random(rows) < 0.15, ~smoker, smoker)
    job = np.where(rng.random(rows) < 0.3, "none", np.where(cough, "miner", "clerk"))
    return pandas.DataFrame({"smoker": np.where(smoker, "yes", "no"), "cough": cough, "job": job})


def test_figures_are_those_of_fits():
    train, valid, test = survey(400, 1), survey(150, 2), survey(200, 3)
    families = ["independent", "chow-liu", "directed"]
    found = everytree.compare(train, valid=valid, test=test, families=families, time=60)
    assert [line["family"] for line in found.families] == families
    assert (found.n_rows, found.n_valid_rows, found.n_test_rows) == (400, 150, 200)
    best = max(line["test"] for line in found.families)
    for line in found.families:
        alone = everytree.MixtureOfAllTrees(line["family"], refit=False).fit(train, valid=valid)
        assert line["valid"] == pytest.approx(alone.valid_log_likelihood_, abs=1e-12)
        assert line["test"] == pytest.approx(alone.score(test), abs=1e-9)
        assert line["difference"] == pytest.approx(line["test"] - best, abs=1e-12)
        model = found.models[line["family"]]
        assert model.score(test) == pytest.approx(line["test"], abs=1e-9)
    apart = found.models["independent"].score_samples(test) - found.models["chow-liu"].score_samples(test)
    if found.families[1]["difference"] == 0:
        assert found.families[0]["standard_error"] == pytest.approx(apart.std(ddof=1) / np.sqrt(200))
    winner = max(found.families, key=lambda line: line["valid"])["family"]
    assert found.winner == winner and found.best is found.models[winner]
    assert found.families[0]["difference"] < 0 and not found.families[0]["within_error"]
    shown = repr(found)
    assert shown.splitlines()[0].split()[:3] == ["family", "components", "parameters"]
    assert "best" in shown and "test rows" in shown and "<table>" in found._repr_html_()


def test_without_test_rows_it_flatters_and_says_so(capsys):
    found = everytree.compare(survey(300, 4), families="chow-liu", verbose=True)
    assert found.n_test_rows is None and found.families[0]["test"] is None
    assert "give test" in repr(found) and "chow-liu: validation" in capsys.readouterr().out


def test_missing_cells_and_columns_left_out():
    table = survey(300, 5)
    table["number"] = np.arange(300)
    table.loc[::7, "job"] = None
    found = everytree.compare(table, families=["chow-liu"], drop="number", missing="marginalise")
    assert list(found.best.states_) == ["smoker", "cough", "job"]
    assert np.isfinite(found.families[0]["valid"])


def test_unknown_labels_are_counted():
    test = survey(50, 8)
    test.loc[:4, "job"] = "astronaut"
    with pytest.warns(UserWarning, match="5 labels were not seen in training"):
        found = everytree.compare(survey(300, 7), test=test, families=["chow-liu"])
    assert np.isfinite(found.families[0]["test"])
    with pytest.raises(ValueError, match="astronaut"):
        everytree.compare(survey(300, 7), test=test, families=["chow-liu"], unknown="error")


def test_what_is_wrong():
    table = survey(100, 6)
    with pytest.raises(ValueError, match="oak"):
        everytree.compare(table, families=["oak"])
    with pytest.raises(ValueError, match="time"):
        everytree.compare(table, time=-1)
    with pytest.raises(ValueError, match="no family was done"):
        everytree.compare(table, families=["chow-liu"], time=0)
