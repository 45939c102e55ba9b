"""Families come from one list."""

import numpy as np

import everytree


def test_every_listed_family_can_be_learned(table):
    for name, summary in everytree.families().items():
        model = everytree.MixtureOfAllTrees(name, hidden=2 if name == "hclt" else None, epochs=1).fit(table)
        assert summary and np.isfinite(model.score(table)), name


def test_a_family_is_a_file_and_an_entry_in_the_list(table):
    # For tests only, and compiled into the wheel that is tested (``cargo xtask test``).
    model = everytree.MixtureOfAllTrees("toy").fit(table)
    assert model.family_ == "toy" and "toy" not in everytree.families()
    again = everytree.MixtureOfAllTrees("toy", components=2).fit(table)
    assert again.n_components_ == 2
    answer = model.query()
    assert abs(sum(one.probability for one in answer.answers[:2]) - 1) < 1e-12
