"""The table of docs/choice.md, and how the defaults stand against their goals.

    python experiments/summary.py experiments/results/defaults.csv

The results are those of `everytree-experiments defaults`. Of every split the best family is the one with the best mean over its
test rows: chosen with hindsight, which the default does not have. "Ahead" is how far the default is above it, row by row, in
standard errors of the difference; of several splits the mean. Goals: at most two standard errors behind on every table, at
most one on 80 % of them, and never more than one below the tree of Chow and Liu.
"""

import csv
import sys
from collections import defaultdict
from statistics import mean

HEAD = "| table | splits | nothing said | Chow–Liu | best family | ahead of it, in standard errors | with a kernel | processor seconds |"
FAMILIES = {"auto", "auto+kernel"}


def number(value: float, digits: int = 3) -> str:
    return f"{value:.{digits}f}".replace("-", "−")


def signed(value: float) -> str:
    return ("+" if value >= 0 else "−") + f"{abs(value):.1f}"


def errors(line: dict[str, str]) -> float:
    """How far the default is ahead, in standard errors."""
    ahead, error = -float(line["to_default"]), float(line["standard_error"])
    return ahead / error if error > 0 else 0.0


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:
        lines = csv.DictReader(line for line in file if not line.startswith("#"))
        splits = defaultdict(dict)
        for line in lines:
            splits[line["table"], line["split"]][line["family"]] = line
    tables = defaultdict(list)
    for (table, _), families in splits.items():
        if "auto" in families and FAMILIES | {"chow-liu"} <= families.keys() | {"auto+kernel"}:
            tables[table].append(families)
    print(HEAD)
    print("|---|---|---|---|---|---|---|---|")
    behind, below_tree = {}, {}
    for table, found in tables.items():
        best = [
            max((f for f in families if f not in FAMILIES), key=lambda f: float(families[f]["test_ll"])) for families in found
        ]
        ahead = [errors(families[family]) for families, family in zip(found, best, strict=True)]
        behind[table], below_tree[table] = mean(ahead), mean(errors(families["chow-liu"]) for families in found)

        def value(family: str, column: str = "test_ll", found: list = found) -> float:
            return mean(float(families[family][column]) for families in found)

        mean_best = mean(float(families[family]["test_ll"]) for families, family in zip(found, best, strict=True))
        kernel = number(value("auto+kernel")) if all("auto+kernel" in families for families in found) else ""
        span = signed(ahead[0]) if len(ahead) == 1 else f"{signed(min(ahead))} to {signed(max(ahead))}"
        names = ", ".join(sorted(set(best)))
        print(
            f"| {table} | {len(found)} | {number(value('auto'))} | {number(value('chow-liu'))} | {number(mean_best)} ({names}) "
            f"| {span} | {kernel} | {value('auto', 'cpu_seconds'):.0f} |"
        )
    count = len(behind)
    within = [sum(ahead >= -most for ahead in behind.values()) for most in (2, 1)]
    print(f"\n{count} tables: {within[0]} at most two standard errors behind the best family, {within[1]} at most one,")
    ahead_of_it, below = sum(ahead > 0 for ahead in behind.values()), sum(ahead < -1 for ahead in below_tree.values())
    print(f"{ahead_of_it} ahead of it; {below} below Chow and Liu's tree by more than one.")


if __name__ == "__main__":
    main()
