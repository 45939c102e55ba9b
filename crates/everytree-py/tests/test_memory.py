"""The memory limit of the process: what would take more is refused, with what it needs."""

import pytest

import everytree


@pytest.fixture
def limit():
    """Whatever a test sets is set back."""
    before = everytree.memory_limit()
    yield
    everytree.set_memory_limit(before)


def test_what_would_not_fit_is_a_memory_error(limit):
    table = {"a": [f"v{i % 50}" for i in range(200)], "b": [f"w{i * 7 % 50}" for i in range(200)]}
    model = everytree.MixtureOfAllTrees(epochs=1).fit(table)
    everytree.set_memory_limit("1MB")
    assert everytree.memory_limit() == 1_000_000
    with pytest.raises(MemoryError, match="would take about .* at most 1 MB may be used"):
        everytree.MixtureOfAllTrees(epochs=1).fit(table)
    with pytest.raises(MemoryError, match="at most 1 MB"):
        model.sample(3)


def test_sizes_are_numbers_or_words(limit):
    everytree.set_memory_limit(2_000_000_000)
    assert everytree.memory_limit() == 2_000_000_000
    everytree.set_memory_limit("1.5 GiB")
    assert everytree.memory_limit() == 1_610_612_736
    with pytest.raises(ValueError, match="such as 500MB"):
        everytree.set_memory_limit("much")
