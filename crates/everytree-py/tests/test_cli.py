"""The same file through the command line program and through Python: the same bits."""

import csv
import io
import json

import numpy as np
import pandas
import polars
import pytest

import everytree
from conftest import survey

FITS = [
    ({}, ["--family", "moat"]),
    (
        {"family": "directed", "components": 2, "epochs": 6},
        ["--family", "directed", "--components", "2", "--epochs", "6"],
    ),
    ({"family": "mixture-of-trees"}, ["--family", "mixture-of-trees"]),
    ({"family": "hclt", "hidden": 3, "epochs": 4}, ["--family", "hclt", "--hidden", "3", "--epochs", "4"]),
    ({"blocks": "auto", "epochs": 4}, ["--family", "moat", "--blocks", "auto", "--epochs", "4"]),
    ({"missing": "marginalise", "epochs": 4}, ["--family", "moat", "--missing", "marginalise", "--epochs", "4"]),
    ({"refit": True, "epochs": 4}, ["--family", "moat", "--refit", "--epochs", "4"]),
]


@pytest.mark.parametrize(("keywords", "options"), FITS, ids=[" ".join(options) or "default" for _, options in FITS])
def test_fits_are_the_same_file(tmp_path, command, keywords, options):
    holes = 0.05 if "missing" in keywords else 0.0
    frame = polars.DataFrame(survey(400, seed=2, holes=holes))
    frame.write_parquet(tmp_path / "table.parquet")
    command("fit", tmp_path / "table.parquet", "--seed", 3, "--out", tmp_path / "cli.everytree", "--quiet", *options)
    # What the command line takes for missing, unless it is told otherwise.
    keywords = {**keywords, "na": ["", "NA", "NaN", "null", "?"]}
    model = everytree.MixtureOfAllTrees(**keywords, random_state=3).fit(frame)
    model.save(tmp_path / "python.everytree")
    assert (tmp_path / "python.everytree").read_bytes() == (tmp_path / "cli.everytree").read_bytes()
    # From pandas too, which comes another way.
    again = everytree.MixtureOfAllTrees(**keywords, random_state=3, threads=1).fit(frame.to_pandas())
    assert again._model.to_bytes() == model._model.to_bytes()


@pytest.fixture
def saved(tmp_path, model):
    model.save(tmp_path / "model.everytree")
    return tmp_path / "model.everytree"


@pytest.mark.parametrize("holes", [0.0, 0.1])
def test_scores_are_the_same_numbers(tmp_path, command, saved, model, holes):
    frame = polars.DataFrame(survey(300, seed=4, holes=holes))
    frame.write_parquet(tmp_path / "new.parquet")
    command("score", saved, tmp_path / "new.parquet", "--out", tmp_path / "scores.csv")
    lines = list(csv.DictReader(io.StringIO((tmp_path / "scores.csv").read_text())))
    found = model.log_prob(frame)
    assert [float(line["log_likelihood"]) for line in lines] == found.log_prob.tolist()
    if holes:
        assert [float(line["standard_error"]) for line in lines] == found.standard_error.tolist()
    assert np.array_equal(model.score_samples(frame.to_pandas()), found.log_prob)
    assert np.array_equal(model.score_samples(frame.to_arrow()), found.log_prob)
    assert np.array_equal(everytree.load(saved).score_samples(frame), found.log_prob)


def test_questions_have_the_same_answers(command, saved, model):
    text = command("query", saved, "--given", "smoker=true", "--given", "age=20,30", "--seed", 5, "--json")
    cli = json.loads(text)
    found = model.query(given={"smoker": True, "age": [20, 30]}, random_state=5)
    assert [answer.probability for answer in found] == [answer["probability"] for answer in cli["answers"]]
    assert [answer.standard_error for answer in found] == [answer["standard_error"] for answer in cli["answers"]]
    assert (found.method, found.log_evidence) == (cli["method"], cli["log_evidence"])
    rows = list(csv.DictReader(io.StringIO(command("sample", saved, "-n", 20, "--seed", 7, "--given", "cough=yes"))))
    drawn = model.sample(20, given={"cough": "yes"}, random_state=7)
    assert [row["region"] for row in rows] == drawn["region"]
    assert [int(row["age"]) for row in rows] == drawn["age"]
    best = json.loads(command("map", saved, "-n", 3, "--json"))["rows"]
    found = model.most_probable(n=3)
    assert [row["log_likelihood"] for row in best] == found.log_prob.tolist()
    assert [row["values"]["region"] for row in best] == found.rows["region"]


@pytest.mark.parametrize("how", ["map", "sample", "mean-state"])
def test_holes_are_filled_alike(tmp_path, command, saved, model, how):
    frame = pandas.DataFrame(survey(60, seed=6, holes=0.1))
    frame["note"] = "kept"
    frame.to_csv(tmp_path / "holes.csv", index=False)
    command("impute", saved, tmp_path / "holes.csv", "--out", tmp_path / "whole.csv", "--how", how, "--seed", 2)
    filled = model.impute(frame, how=how, random_state=2)
    cli = pandas.read_csv(tmp_path / "whole.csv")
    assert not filled.isna().any().any()
    for name in frame:
        assert filled[name].astype(str).str.lower().tolist() == cli[name].astype(str).str.lower().tolist() or np.allclose(
            filled[name].astype(float), cli[name].astype(float)
        )
    untouched = frame.notna()
    assert (filled.where(untouched).astype(object).fillna("") == frame.where(untouched).astype(object).fillna("")).all().all()


def test_errors_have_the_same_words(tmp_path, command, saved, model):
    pandas.DataFrame({**survey(3), "region": ["north", "east", "west"]}).to_csv(tmp_path / "new.csv", index=False)
    words = command("score", saved, tmp_path / "new.csv", code=2)
    with pytest.raises(ValueError) as error:
        model.score_samples({**survey(3), "region": ["north", "east", "west"]}, unknown="error")
    said, remedy = str(error.value).rsplit("; ", 1)
    assert said == 'X: row 1, column "region": unknown value "east"; known: "north", "south", "west"'
    assert "unknown=" in remedy
    told, remedy = words.split(": ", 2)[2].strip().rsplit("; ", 1)
    assert told.replace("row 1 (line 3)", "row 1") in said
    assert "--unknown unobserved" in remedy
    assert "everytree" in command("--version")
    assert "no column" in command("query", saved, "--given", "colour=red", code=2)
    with pytest.raises(KeyError, match='there is no column "colour"; the columns are smoker, age'):
        model.query(given={"colour": "red"})
    with pytest.raises(ValueError, match='column "region": unknown value "east"'):
        model.query(given={"region": "east"})
    with pytest.raises(FileNotFoundError):
        everytree.load(tmp_path / "nothing.everytree")
    (tmp_path / "damaged.everytree").write_bytes(saved.read_bytes()[:100])
    with pytest.raises(ValueError, match="damaged.everytree"):
        everytree.load(tmp_path / "damaged.everytree")
