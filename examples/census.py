# %% [markdown]
# # A census, end to end
#
# Twenty thousand people with eleven columns of every type: learn a model, see what depends on what, ask questions with error
# bars, draw people that do not exist, and compare with simpler models. The data are made up here, so that everything runs
# anywhere; a frame of your own takes its place.

# %%
import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

import everytree


def people(rows: int, seed: int) -> pd.DataFrame:
    """A made-up population: age drives education and marriage, those drive work, work drives income."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, rows)
    sex = np.where(rng.random(rows) < 0.5, "female", "male")
    region = rng.choice(["north", "south", "east", "west"], rows, p=[0.35, 0.3, 0.2, 0.15])
    school = 0.4 * rng.normal(size=rows) + (age > 25) * 0.5 - (age > 60) * 0.4 + (region == "north") * 0.3
    education = pd.cut(school, [-9, 0, 0.5, 1, 9], labels=["primary", "secondary", "bachelor", "master"])
    married = rng.random(rows) < 1 / (1 + np.exp(-(age - 32) / 6))
    widowed = (age > 60) & (rng.random(rows) < 0.25)
    status = np.where(widowed, "widowed", np.where(married, "married", "single"))
    works = rng.random(rows) < np.where(age > 66, 0.08, 0.8)
    level = education.codes + rng.normal(size=rows) * 0.8
    work = np.where(~works, "none", np.where(level > 2, "office", np.where(level > 0.8, "service", "manual")))
    hours = np.where(~works, 0, np.clip(np.round(rng.normal(38, 8, rows)), 5, 70)).astype(int)
    income = np.where(works, np.exp(9.5 + 0.3 * education.codes + 0.01 * hours + 0.3 * rng.normal(size=rows)), 0)
    owns = rng.random(rows) < 1 / (1 + np.exp(-(income / 30_000 + (status == "married") - 2)))
    frame = pd.DataFrame(
        {
            "age": age,
            "sex": pd.Categorical(sex),
            "region": region,
            "education": education,
            "status": status,
            "work": work,
            "hours": hours,
            "income": np.round(income, -2),
            "owns_home": owns,
            "rooms": np.clip(np.round(1.5 + owns * 1.5 + rng.normal(size=rows)), 1, 7).astype(int),
            "children": np.clip(rng.poisson((status != "single") * 1.3), 0, 5),
        }
    )
    # One in twenty does not say what they earn.
    frame.loc[rng.random(rows) < 0.05, "income"] = np.nan
    return frame


train, test = train_test_split(people(20_000, seed=0), random_state=0, test_size=0.25)
train.head()

# %% [markdown]
# ## Learning
#
# Labels stay labels. Incomes have too many values to be labels and are cut into quantile bins; ages and hours would pass as
# labels, but a new row may have an age that nobody here has, so they are cut too. The notes say what was done. The family
# with arrows usually fits best.

# %%
bins = {"age": 8, "hours": 6}
model = everytree.MixtureOfAllTrees("directed", components=2, epochs=12, bins=bins).fit(train)
model

# %%
for note in model.notes_:
    print(note)

# %% [markdown]
# ## What depends on what

# %%
for explains, explained, probability in model.edges_[:8]:
    print(f"{explains:>10} → {explained:<10} {probability:.2f}")

# %% [markdown]
# ## Questions
#
# Every answer has a standard error; 0 means exact.

# %%
answer = model.query(given={"education": "master", "work": ["office", "service"]}, targets=["owns_home", "status"])
answer

# %%
master, primary = (model.query({"education": level}, ["owns_home"])["owns_home", True] for level in ("master", "primary"))
print(f"owns a home: {primary:.2f} with primary school, {master:.2f} with a master's degree")

# %% [markdown]
# ## People who do not exist
#
# A table of the same types; numbers come from the middle of their bins.

# %%
drawn = model.sample(2000, given={"region": "west"}, random_state=1)
drawn.describe(include="all")

# %% [markdown]
# ## Is it worth it?
#
# Mean log-likelihood of the test rows, in nats: higher is better.

# %%
contenders = {
    "independent columns": everytree.IndependentColumns(bins=bins),
    "Chow–Liu tree": everytree.ChowLiuTree(bins=bins),
    "mixture of trees": everytree.MixtureOfTrees(bins=bins),
    "mixture of all forests": model,
}
results = pd.DataFrame(
    [(name, contender.fit(train).score(test)) for name, contender in contenders.items()],
    columns=["model", "test_log_likelihood"],
).round(3)
results
