"""One tree against pgmpy."""

import itertools

import numpy as np
import pandas
import pytest

import everytree
from conftest import survey

pytest.importorskip("pgmpy")

from pgmpy.factors.discrete import TabularCPD  # noqa: E402
from pgmpy.inference import VariableElimination  # noqa: E402
from pgmpy.models import DiscreteBayesianNetwork  # noqa: E402


@pytest.fixture(scope="module")
def frame():
    return pandas.DataFrame(survey(800)).astype(str)


@pytest.fixture(scope="module")
def tree(frame):
    return everytree.ChowLiuTree().fit(frame, valid=frame)


def test_the_tree_has_the_highest_mutual_information(frame, tree):
    def information(one, other):
        joint = pandas.crosstab(frame[one], frame[other]).to_numpy() + 1 / len(frame)
        p = joint / joint.sum()
        return (p * np.log(p / p.sum(axis=1, keepdims=True) / p.sum(axis=0, keepdims=True))).sum()

    names = list(frame)
    pairs = {frozenset(pair): information(*pair) for pair in itertools.combinations(names, 2)}
    ours = sum(pairs[frozenset((u, v))] for u, v, _ in tree.edges_)
    every = itertools.combinations(pairs, len(names) - 1)

    def spans(edges):
        seen, grown = {names[0]}, True
        while grown:
            grown = False
            for edge in edges:
                if len(edge & seen) == 1:
                    seen |= edge
                    grown = True
        return len(seen) == len(names)

    best = max(sum(pairs[edge] for edge in edges) for edges in every if spans(edges))
    assert ours == pytest.approx(best, rel=1e-3)


def test_answers_are_those_of_the_same_network(frame, tree):
    arrows = [(u, v) for u, v, _ in tree.edges_]
    children = {v for _, v in arrows}
    network = DiscreteBayesianNetwork(arrows)
    for name, values in tree.states_.items():
        parents = [u for u, v in arrows if v == name]
        if name not in children:
            column = [[tree.query(targets=[name])[name, value]] for value in values]
            cpd = TabularCPD(name, len(values), column, state_names={name: values})
        else:
            (parent,) = parents
            given = tree.states_[parent]
            table = [[tree.query({parent: state}, [name])[name, value] for state in given] for value in values]
            names = {name: values, parent: given}
            cpd = TabularCPD(name, len(values), table, [parent], [len(given)], state_names=names)
        network.add_cpds(cpd)
    assert network.check_model()
    theirs = VariableElimination(network)
    for evidence in [{}, {"cough": "yes"}, {"smoker": "True", "region": "north"}]:
        for name in (name for name in frame if name not in evidence):
            answer = theirs.query([name], evidence=evidence, show_progress=False)
            for value in tree.states_[name]:
                ours = tree.query(evidence, [name])[name, value]
                assert ours == pytest.approx(answer.get_value(**{name: value}), abs=1e-9)
