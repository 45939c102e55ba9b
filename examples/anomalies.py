# %% [markdown]
# # Odd rows, and which of their cells are odd
#
# Log-likelihood is an anomaly score with a meaning; the surprise of each cell given the rest of its row says what is wrong.
# Two kinds of damage are hidden among clean orders: cells that were swapped for a value that occurs often elsewhere, and rows
# whose cells do not belong together. None of the values is odd by itself.

# %%
import numpy as np
import pandas as pd
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import OrdinalEncoder

import everytree


def orders(rows: int, seed: int) -> pd.DataFrame:
    """Orders of a shop: the product decides the department, the size and the carrier; the country the currency."""
    rng = np.random.default_rng(seed)
    product = rng.choice(["sofa", "lamp", "desk", "mug", "rug", "pen"], rows, p=[0.1, 0.2, 0.1, 0.3, 0.1, 0.2])
    department = pd.Series(product).map(
        {"sofa": "living", "rug": "living", "lamp": "light", "desk": "office", "pen": "office", "mug": "kitchen"}
    )
    size = np.where(np.isin(product, ["sofa", "desk", "rug"]), "large", np.where(product == "lamp", "medium", "small"))
    carrier = np.where(size == "large", rng.choice(["truck", "ship"], rows), rng.choice(["post", "bike"], rows, p=[0.8, 0.2]))
    country = rng.choice(["DE", "FR", "CH", "UK"], rows, p=[0.5, 0.25, 0.15, 0.1])
    currency = np.select([country == "CH", country == "UK"], ["CHF", "GBP"], "EUR")
    express = (carrier == "bike") | (rng.random(rows) < 0.1)
    day = rng.choice(["mon", "tue", "wed", "thu", "fri", "sat"], rows)
    return pd.DataFrame(
        {
            "product": product,
            "department": department,
            "size": size,
            "carrier": carrier,
            "country": country,
            "currency": currency,
            "express": express,
            "day": day,
        }
    )


train = orders(8000, seed=0)
test = orders(4000, seed=1)
rng = np.random.default_rng(2)
damaged = rng.choice(len(test), 120, replace=False)
culprits = {}
for row in damaged:
    column = rng.choice(["department", "size", "carrier", "currency"])
    others = train[column][train[column] != test.at[row, column]]
    test.at[row, column] = others.iloc[rng.integers(len(others))]
    culprits[row] = column
truth = test.index.isin(damaged)

# %% [markdown]
# ## Rows

# %%
model = everytree.MixtureOfAllTrees("directed", epochs=15).fit(train)
surprisal = model.surprisal(test)
encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1).fit(train)
forest = IsolationForest(random_state=0).fit(encoder.transform(train))
independent = everytree.IndependentColumns().fit(train)
results = pd.DataFrame(
    {
        "mixture of all forests": [roc_auc_score(truth, surprisal.rows)],
        "its most surprising cell": [roc_auc_score(truth, surprisal.cells.max(axis=1))],
        "independent columns": [roc_auc_score(truth, -independent.score_samples(test))],
        "isolation forest": [roc_auc_score(truth, -forest.score_samples(encoder.transform(test)))],
    },
    index=["area under the ROC curve"],
).T.round(3)
results

# %% [markdown]
# ## Cells
#
# The most surprising rows, and the cells that stand out in each. Where two cells contradict each other, both do: one of them
# is the culprit.

# %%
for row, nats, cells in surprisal.top(5, cells=2):
    said = ", ".join(f"{column}={test.at[row, column]} ({own:.1f})" for column, own in cells)
    print(f"row {row}: {nats:.1f} nats; {said}; damaged: {culprits.get(row, 'nothing')}")

# %%
named = [culprits[row] in [surprisal.columns[c] for c in np.argsort(-surprisal.cells[row])[:2]] for row in damaged]
share = float(np.mean(named))
print(f"the damaged cell is among the two most surprising of its row in {share:.0%} of the damaged rows")
