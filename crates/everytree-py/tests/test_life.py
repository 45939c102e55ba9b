"""Learning from outside: callbacks, interrupts, time, threads, pictures."""

import multiprocessing
import os
import signal
import threading
import time
import warnings
import xml.dom.minidom
from pathlib import Path

import numpy as np
import pytest

import everytree
from conftest import survey


def slow_table(rows=3000, columns=60):
    return np.random.default_rng(0).integers(0, 2, size=(rows, columns))


def test_callbacks_hear_every_epoch_and_may_stop():
    events = []
    model = everytree.MixtureOfAllTrees(epochs=4).fit(survey(200), callbacks=events.append)
    assert [event["epoch"] for event in events] == [0, 1, 2, 3, 4]
    assert [event["valid"] for event in events] == [epoch["valid"] for epoch in model.history_]
    assert model.stopped_by_ == "done"
    model = everytree.MixtureOfAllTrees(epochs=50).fit(survey(200), callbacks=[lambda event: event["epoch"] < 3])
    assert model.stopped_by_ == "stopped"
    # However slow the listener is: the end is asked for, and comes.
    slow = everytree.MixtureOfAllTrees(epochs=50).fit(
        survey(200), callbacks=lambda event: (time.sleep(0.02), event["epoch"] < 3)[1]
    )
    assert len(slow.history_) == len(model.history_) == 4
    assert slow._model.to_bytes() == model._model.to_bytes()
    calls = []
    with pytest.raises(ZeroDivisionError):
        everytree.MixtureOfAllTrees().fit(survey(200), callbacks=lambda event: calls.append(1) or 1 / 0)
    assert len(calls) == 1


def test_an_interrupt_keeps_the_best_model():
    def interrupt():
        time.sleep(0.7)
        os.kill(os.getpid(), signal.SIGINT)

    # Whatever this was started from: a shell lets nobody interrupt what runs in the background.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    killer = threading.Thread(target=interrupt)
    killer.start()
    try:
        with pytest.warns(UserWarning, match="interrupted: the best model so far is kept"):
            model = everytree.MixtureOfAllTrees(epochs=100_000, batch_size=64).fit(slow_table())
    finally:
        killer.join()
        signal.signal(signal.SIGINT, before)
    assert model.stopped_by_ == "interrupted"
    assert np.isfinite(model.score(slow_table(10)))


def test_an_interrupt_in_a_callback_keeps_the_best_model():
    def interrupt(event):
        if event["epoch"] == 3:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="interrupted"):
        model = everytree.MixtureOfAllTrees().fit(survey(200), callbacks=interrupt)
    assert model.stopped_by_ == "interrupted" and len(model.history_) == 4


def test_other_signals_are_heard():
    def ring(number, frame):
        raise TimeoutError("enough")

    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(TimeoutError, match="enough"):
            everytree.MixtureOfAllTrees(epochs=100_000, batch_size=64).fit(slow_table())
        model = everytree.MixtureOfAllTrees(epochs=1).fit(slow_table(500, 40))
        gaps = np.where(np.random.default_rng(1).random((4000, 40)) < 0.5, np.nan, 1.0)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        begin = time.monotonic()
        with pytest.raises(TimeoutError, match="enough"):
            model.score_samples(gaps, tolerance=1e-6)
        assert time.monotonic() - begin < 20
    finally:
        signal.signal(signal.SIGALRM, before)


def scored(number):
    """In a child: the model comes along with the fork."""
    return FORKED[0].score_samples(survey(50, seed=number)).sum()


FORKED = []


def test_forked_children_work():
    FORKED[:] = [everytree.MixtureOfAllTrees(epochs=2).fit(survey(100))]
    expected = [scored(number) for number in range(3)]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(scored, range(3)).get(timeout=60) == expected


def test_time_runs_out():
    model = everytree.MixtureOfAllTrees(epochs=100_000, batch_size=64, timeout=0.5).fit(slow_table())
    assert model.stopped_by_ == "timeout" and len(model.history_) > 1


def test_threads_do_not_matter_and_do_not_block_python():
    table = slow_table(800, 30)
    one, two = (everytree.MixtureOfAllTrees(epochs=3, threads=threads).fit(table) for threads in (1, 2))
    assert one._model.to_bytes() == two._model.to_bytes()
    ticks = []
    done = threading.Event()

    def tick():
        while not done.wait(0.01):
            ticks.append(1)

    ticker = threading.Thread(target=tick)
    ticker.start()
    begin = time.monotonic()
    everytree.MixtureOfAllTrees(epochs=100_000, timeout=1.0, batch_size=64).fit(table)
    elapsed = time.monotonic() - begin
    done.set()
    ticker.join()
    # Python goes on meanwhile: a tenth of the ticks would show that the interpreter is let go.
    assert len(ticks) > elapsed / 0.01 / 10


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"family": "oak"}, "oak"),
        ({"components": 0}, "components=0: a number from 1"),
        ({"components": "many"}, 'components: "many": a number, or auto'),
        ({"learning_rate": -1.0}, "learning rate"),
        ({"pseudocount": 0.0}, "pseudocount=0: must be positive"),
        ({"max_states": 1}, "max_states=1: between 2"),
        ({"missing": "drop"}, "missing: unknown variant drop, expected one of category, marginalise, error"),
        ({"holdout": 2.0}, "holdout=2: between 0 and 1"),
        ({"threads": 0}, "threads 0"),
        ({"bins": {"region": 4}}, 'column "region" cannot be cut into bins'),
        ({"blocks": "colour_*"}, r'blocks="colour_\*": 0 columns'),
        ({"blocks": [["smoker", "colour"]]}, 'no column "colour"'),
        ({"init": "zeros"}, "init: unknown variant zeros, expected counts or random"),
        ({"random_state": "seed"}, "random_state"),
        ({"family": "chow-liu", "components": 2}, 'family="chow-liu": is one tree'),
        ({"device": "abacus"}, '"abacus" is no device: auto, cpu, cuda, or cuda:N'),
        ({"learning_rate": float("inf")}, "learning_rate inf: a finite number"),
        ({"holdout": float("nan")}, "holdout nan: a finite number"),
        ({"components": 1.0}, "components 1.0: a whole number"),
        ({"random_state": 2**64}, "random_state"),
        ({"epochs": -1}, "epochs -1"),
    ],
)
def test_mistakes_are_named(keywords, words):
    with pytest.raises(ValueError, match=words):
        everytree.MixtureOfAllTrees(**keywords).fit(survey(100))


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_named():
    model = everytree.MixtureOfAllTrees(epochs=1).fit(survey(100))
    scores = model.score_samples(survey(100))
    with pytest.raises(ValueError, match='device="cuda:0": there is no'):
        everytree.MixtureOfAllTrees(device="cuda").fit(survey(100))
    with pytest.raises(ValueError, match='device="cuda:1": there is no'):
        model.set_params(device="cuda:1").score_samples(survey(100))
    assert (model.set_params(device="cpu").score_samples(survey(100)) == scores).all()


@pytest.mark.skipif(not Path("/dev/nvidiactl").exists(), reason="there is no GPU")
@pytest.mark.parametrize("family", ["moat", "directed"])
def test_a_gpu_learns_and_scores_the_same(family):
    table = slow_table(1200, 150)
    table[:, 1::2] &= table[:, ::2]
    fits = {}
    for device in ["cpu", "cuda", "auto"]:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fits[device] = everytree.MixtureOfAllTrees(family=family, epochs=3, device=device).fit(table)
    # Steps are f32 there.
    valid = {device: fit.history_[-1]["valid"] for device, fit in fits.items()}
    assert abs(valid["cuda"] - valid["cpu"]) < 0.02 < valid["cpu"] - fits["cpu"].history_[0]["valid"]
    assert valid["auto"] == valid["cuda"]
    # Scores are f64.
    model = fits["cuda"]
    on_gpu, on_cpu = (model.set_params(device=device).score_samples(table[:100]) for device in ["cuda", "cpu"])
    assert np.abs(on_gpu - on_cpu).max() < 1e-9


def test_questions_that_make_no_sense_are_named():
    model = everytree.ChowLiuTree().fit({"a": [0, 1] * 50, "b": [0, 1] * 50})
    with pytest.raises(ValueError, match="n -1"):
        model.sample(-1)
    with pytest.raises(ValueError, match="cells at once"):
        model.sample(10**12)
    with pytest.raises(ValueError, match="n -1: at least one row"):
        model.most_probable(n=-1)
    with pytest.raises(ValueError, match="tolerance nan"):
        model.query(tolerance=float("nan"))
    with pytest.raises(ValueError, match="not fitted"):
        everytree.ChowLiuTree().mutual_information("a", "b")
    assert model.query({"a": np.array(0)}).answers == model.query({"a": range(1)}).answers
    with pytest.raises(TypeError, match="given: a dict"):
        model.query([1])
    with pytest.raises(ValueError, match="an operator is needed: a=VALUE"):
        model.query(["a"])
    with pytest.raises(ValueError, match="at least one value"):
        model.query({"a": []})
    with pytest.raises(ValueError, match='method: unknown method "guess"'):
        model.query({"a": 0}, method="guess")


def test_numbers_are_binned_and_said():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    model = everytree.MixtureOfAllTrees(epochs=3).fit(X)
    assert all("cut into 8 quantile bins" in note for note in model.notes_)
    assert [len(values) for values in model.states_.values()] == [8, 8, 8]
    drawn = model.sample(20)
    assert drawn.dtype == np.float64 and np.isfinite(model.score_samples(drawn)).all()
    assert np.isfinite(model.score_samples(rng.normal(size=(50, 3)) * 100)).all()
    model = everytree.MixtureOfAllTrees(epochs=3, bins=4).fit(X[:30])
    assert [len(values) for values in model.states_.values()] == [4, 4, 4]


def test_a_notebook_shows_a_picture(model):
    page = model._repr_html_()
    assert "everytree.MixtureOfAllTrees" not in page and "MixtureOfAllTrees" in page
    pictures = page.split("<svg")[1:]
    assert len(pictures) == 2
    for picture in pictures:
        xml.dom.minidom.parseString("<svg" + picture.split("</svg>")[0] + "</svg>")
    assert "not fitted" in everytree.MixtureOfAllTrees()._repr_html_()
    hostile = {"<script>": [0, 1] * 20, "b": [0, 1] * 20}
    assert "<script>" not in everytree.MixtureOfAllTrees(epochs=2).fit(hostile)._repr_html_()
    wide = everytree.ChowLiuTree().fit(slow_table(200, 60))
    assert wide._repr_html_().count("<circle") <= 41


def test_plots(model):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    assert len(model.plot_edges().texts) >= 5
    assert len(everytree.IndependentColumns().fit(survey(100)).plot_edges().texts) == 5
    assert len(model.plot_history().lines) == 3


def test_edges(model):
    assert model.edge_probabilities_.shape == (5, 5)
    # Every column has a parent or is a root.
    assert np.allclose(model.edge_probabilities_.sum(axis=1), 1, atol=1e-6)
    u, v, p = model.edges_[0]
    names = list(model.states_)
    assert model.edge_probabilities_[names.index(v), names.index(u)] == pytest.approx(p)
    undirected = everytree.MixtureOfAllTrees(epochs=3).fit(survey(300))
    assert np.array_equal(undirected.edge_probabilities_, undirected.edge_probabilities_.T)
    assert undirected.edge_probabilities_.sum() == pytest.approx(2 * 4, abs=1e-6)
    explained = model.query({"cough": "yes"}, ["smoker"], edges=True).edges
    assert sum(p for _, _, p, _ in explained) == pytest.approx(5, abs=1e-3)


def test_progress_is_one_line(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        everytree.MixtureOfAllTrees(epochs=3000, verbose=True).fit(slow_table(400, 20))
    shown = capsys.readouterr()
    assert "\n" not in shown.err and "epoch" in shown.err and "left" in shown.err
