"""`everytree fit` beside lace, latent classes (StepMix) and a Chow-Liu tree (pgmpy): log-likelihood of test rows.

    pip install pylace stepmix pgmpy pandas polars
    python experiments/peers.py FOLDER experiments/results/peers.csv --everytree target/release/everytree

FOLDER has NAME_train.csv.gz and NAME_test.csv.gz (experiments/tables.py makes some), or folders NAME with
NAME.train.data.gz, NAME.valid.data.gz and NAME.test.data.gz, whose rows to validate with everybody may learn from.

Everybody gets the same table of labels: columns of more than 64 numbers are cut at eight quantiles of the training rows, a
missing cell is one more label, and test rows with a label that was not seen in training are left out for all.

- everytree: nothing said.
- lace: 8 states of its sampler, which its probabilities are the mean of, for so many seconds (--lace-seconds) or 1,000 steps.
- StepMix: latent classes, 1, 2, 4, ... of them as long as a tenth of the rows, held out, says that it pays; then all rows.
- pgmpy: the tree of Chow and Liu, tables with a prior of five rows (BDeu; without one, test rows are impossible).

A line has the mean over test rows in nats, and the difference to everytree with its standard error, paired row by row: below
zero, everytree is ahead. What a table already has in the file of results is not done again.
"""

import argparse
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas

warnings.simplefilter("ignore")

MANY = 64
HEAD = "table,method,train_rows,test_rows,columns,test_ll,to_everytree,standard_error,seconds,what"


def read(folder: Path, name: str) -> tuple[pandas.DataFrame, pandas.DataFrame]:
    """The training rows and the test rows, as they come."""
    if (folder / name).is_dir():
        parts = [pandas.read_csv(folder / name / f"{name}.{part}.data.gz", header=None) for part in ("train", "valid", "test")]
        train, test = pandas.concat(parts[:2], ignore_index=True), parts[2]
    else:
        train, test = (pandas.read_csv(folder / f"{name}_{part}.csv.gz") for part in ("train", "test"))
    names = [f"c{number}" for number in range(train.shape[1])]
    return train.set_axis(names, axis=1), test.set_axis(names, axis=1)


def labels(train: pandas.DataFrame, test: pandas.DataFrame) -> tuple[pandas.DataFrame, pandas.DataFrame]:
    """Both as labels."""
    made = [{}, {}]
    for name in train:
        both = [train[name], test[name]]
        if pandas.api.types.is_numeric_dtype(train[name]) and train[name].nunique() > MANY:
            edges = np.unique(np.quantile(train[name].dropna(), np.arange(1, 8) / 8))
            both = [
                column.map(lambda x, edges=edges: x if np.isnan(x) else np.searchsorted(edges, x, "right")) for column in both
            ]
        for to, column in zip(made, both, strict=True):
            to[name] = column.map(lambda cell: "missing" if pandas.isna(cell) else f"v{cell}")
    train, test = (pandas.DataFrame(columns) for columns in made)
    seen = np.all([test[name].isin(set(train[name])) for name in test], axis=0)
    return train, test[seen].reset_index(drop=True)


def everytree(train: pandas.DataFrame, test: pandas.DataFrame, how: argparse.Namespace) -> tuple[np.ndarray, str]:
    with tempfile.TemporaryDirectory() as folder:
        paths = {part: f"{folder}/{part}" for part in ("train.csv", "test.csv", "scores.csv", "model.everytree")}
        train.to_csv(paths["train.csv"], index=False)
        test.to_csv(paths["test.csv"], index=False)
        fit = [how.everytree, "fit", paths["train.csv"], "--out", paths["model.everytree"], "--quiet", "--na", "nothing"]
        subprocess.run(fit, check=True, capture_output=True)
        score = [how.everytree, "score", paths["model.everytree"], paths["test.csv"], "--out", paths["scores.csv"]]
        subprocess.run(score, check=True, capture_output=True)
        return pandas.read_csv(paths["scores.csv"])["log_likelihood"].to_numpy(), "nothing said"


def lace(train: pandas.DataFrame, test: pandas.DataFrame, how: argparse.Namespace) -> tuple[np.ndarray, str]:
    import lace as library
    import polars

    frame = polars.from_pandas(train).with_columns(ID=polars.Series([f"r{row}" for row in range(len(train))]))
    engine = library.Engine.from_df(frame, n_states=8, rng_seed=1)
    engine.update(1000, timeout=how.lace_seconds, quiet=True)
    log_p = engine.logp(polars.from_pandas(test).select(train.columns.to_list()))
    return np.asarray(log_p), f"8 states; at most {how.lace_seconds} s"


def stepmix(train: pandas.DataFrame, test: pandas.DataFrame, how: argparse.Namespace) -> tuple[np.ndarray, str]:
    from stepmix.stepmix import StepMix

    states = {name: sorted(set(train[name])) for name in train}
    coded = [
        pandas.DataFrame({name: table[name].map({s: i for i, s in enumerate(states[name])}) for name in table})
        for table in (train, test)
    ]
    rows = np.random.RandomState(0).permutation(len(train))
    # Every label is seen in the part that is learned from: whoever has one alone stays there.
    alone = np.any([coded[0][name].map(coded[0][name].value_counts()) == 1 for name in train], axis=0)
    held_out = [row for row in rows if not alone[row]][: len(rows) // 10]
    learned = np.setdiff1d(rows, held_out)

    def model(classes: int, table: pandas.DataFrame) -> StepMix:
        return StepMix(classes, measurement="categorical", random_state=0, progress_bar=0, max_iter=200, rel_tol=1e-5).fit(
            table
        )

    best, chosen, classes = -np.inf, 1, 1
    while classes <= 128 and time.perf_counter() - how.begin < how.stepmix_seconds:
        found = model(classes, coded[0].iloc[learned]).score(coded[0].iloc[held_out])
        if found <= best:
            break
        best, chosen, classes = found, classes, classes * 2
    whole = model(chosen, coded[0])
    # What `score` is the mean of.
    log_p = np.logaddexp.reduce(whole._mm.log_likelihood(coded[1].to_numpy(float)) + np.log(whole.weights_), axis=1)
    return log_p, f"{chosen} classes"


def pgmpy(train: pandas.DataFrame, test: pandas.DataFrame, how: argparse.Namespace) -> tuple[np.ndarray, str]:
    from pgmpy.estimators import TreeSearch
    from pgmpy.models import DiscreteBayesianNetwork
    from pgmpy.parameter_estimator import DiscreteBayesianEstimator

    tree = TreeSearch(train, n_jobs=1).estimate(estimator_type="chow-liu", show_progress=False)
    model = DiscreteBayesianNetwork(tree.edges())
    model.add_nodes_from(train.columns)
    prior = DiscreteBayesianEstimator(prior_type="BDeu", equivalent_sample_size=5)
    model = model.fit(train, estimator=prior)
    log_p = np.zeros(len(test))
    for table in model.get_cpds():
        places = tuple(
            test[name].map({state: place for place, state in enumerate(table.state_names[name])}).to_numpy()
            for name in table.variables
        )
        log_p += np.log(table.values[places])
    return log_p, "BDeu, 5 rows"


METHODS = {"everytree": everytree, "lace": lace, "StepMix": stepmix, "pgmpy": pgmpy}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("out", type=Path)
    arguments.add_argument("--everytree", default="everytree")
    arguments.add_argument("--tables", default="titanic,penguins,chile,wine,diabetes,cancer,digits,nltcs,jester,diamonds")
    arguments.add_argument("--lace-seconds", type=int, default=120)
    arguments.add_argument("--stepmix-seconds", type=int, default=120)
    how = arguments.parse_args()
    lines = how.out.read_text().splitlines() if how.out.exists() else []
    if not lines:
        lines = [f"# python experiments/peers.py FOLDER {how.out} --tables {how.tables}", HEAD]
    for name in how.tables.split(","):
        if any(line.startswith(f"{name},") for line in lines):
            continue
        train, test = labels(*read(how.folder, name))
        ours = None
        for method, run in METHODS.items():
            how.begin = time.perf_counter()
            log_p, what = run(train, test, how)
            seconds = time.perf_counter() - how.begin
            ours = log_p if ours is None else ours
            apart = log_p - ours
            error = apart.std(ddof=1) / len(apart) ** 0.5
            lines.append(
                f"{name},{method},{len(train)},{len(test)},{train.shape[1]},{log_p.mean():.4f},"
                f"{apart.mean():.4f},{error:.4f},{seconds:.0f},{what}"
            )
            print(lines[-1], flush=True)
        how.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
