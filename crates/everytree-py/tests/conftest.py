"""Tables that several tests share, and the command line program of the same installation."""

import os
import subprocess
import sys

import numpy as np
import pytest

import everytree


def survey(rows, seed=0, holes=0.0):
    """A small survey with every type of column, as a dict of lists."""
    rng = np.random.default_rng(seed)
    smoker = rng.random(rows) < 0.4
    age = rng.choice([20, 30, 40, 50], size=rows)
    region = rng.choice(["north", "south", "west"], size=rows, p=[0.5, 0.3, 0.2])
    cough = rng.random(rows) < np.where(smoker, 0.7, 0.1 + 0.1 * (region == "north"))
    score = np.where(cough, 2.5, 0.5) * (age >= 40)
    table = {
        "smoker": smoker.tolist(),
        "age": age.tolist(),
        "region": region.tolist(),
        "cough": ["yes" if some else "no" for some in cough],
        "score": score.tolist(),
    }
    if holes:
        for name in table:
            table[name] = [None if rng.random() < holes else value for value in table[name]]
    return table


@pytest.fixture(scope="session")
def table():
    return survey(600)


@pytest.fixture(scope="session")
def model(table):
    return everytree.MixtureOfAllTrees("directed", epochs=15).fit(table)


@pytest.fixture
def command():
    """Runs `everytree` and returns what it printed."""

    def run(*arguments, code=0):
        call = [sys.executable, "-m", "everytree._command", *map(os.fspath, map(str, arguments))]
        done = subprocess.run(call, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr

    return run
