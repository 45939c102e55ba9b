"""The examples in docstrings, and the stubs."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ["everytree", "everytree._estimators", "everytree._classifier"])
def test_examples_run(name):
    module = importlib.import_module(name)
    failed, tried = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0 and tried > 0
