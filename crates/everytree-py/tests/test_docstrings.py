"""The examples in docstrings, and the stubs."""

import doctest
import importlib

import pytest

MODULES = ["everytree", *(f"everytree.{name}" for name in ("_estimators", "_classifier", "_inference", "_density"))]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    module = importlib.import_module(name)
    failed, tried = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0 and tried > 0
