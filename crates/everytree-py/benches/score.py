"""Scores of a million rows: Python from a polars frame beside the command line program from a Parquet file, in one run.

cargo xtask bench python [--csv FILE]
"""

import gc
import os
import platform
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import polars

import everytree

ROWS, COLUMNS, PASSES = 1_000_000, 16, 5


def table() -> polars.DataFrame:
    """Columns of two to five labels that depend on each other."""
    rng = np.random.default_rng(0)
    hidden = rng.integers(0, 4, ROWS)
    columns = {}
    for column in range(COLUMNS):
        states = 2 + column % 4
        own = np.where(rng.random(ROWS) < 0.6, hidden % states, rng.integers(0, states, ROWS))
        labels = np.array([f"label {state}" for state in range(states)])
        columns[f"c{column}"] = polars.Series(labels[own]) if column % 2 else polars.Series(own)
    return polars.DataFrame(columns)


def memory() -> float:
    """The memory that this process has, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


class Watch(threading.Thread):
    """Looks at the memory every few milliseconds."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.before = self.most = memory()
        self.done = threading.Event()
        self.start()

    def run(self) -> None:
        while not self.done.wait(0.005):
            self.most = max(self.most, memory())

    def extra(self) -> float:
        self.done.set()
        self.join()
        return self.most - self.before


def child(folder: Path) -> None:
    """Scores the table in a process of its own and prints time and memory of it."""
    # Made, not read: memory that Parquet hands out on first touch would be counted as ours.
    frame = table()
    model = everytree.load(folder / "model.everytree")
    model.score_samples(frame.head(1000))
    gc.collect()
    watch = Watch()
    times = []
    for _ in range(PASSES):
        begin = time.perf_counter()
        scores = model.score_samples(frame)
        times.append(time.perf_counter() - begin)
    assert len(scores) == ROWS
    print(min(times), watch.extra(), sum(series.to_arrow().nbytes for series in frame) / 1e6)


def machine() -> str:
    """The processor, as the system calls it."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.machine()


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        frame = table()
        frame.write_parquet(folder / "table.parquet")
        model = everytree.MixtureOfAllTrees(epochs=3).fit(frame.head(20_000))
        model.save(folder / "model.everytree")
        program = Path("target/release/everytree")
        files = [os.fspath(folder / file) for file in ("model.everytree", "table.parquet", "scores.csv")]
        call = [os.fspath(program), "score", files[0], files[1]]
        times = {"command to a CSV file": [], "command summary only": []}
        for _ in range(PASSES):
            for what, more in zip(times, (["--out", files[2]], ["--summary", "--json"])):
                begin = time.perf_counter()
                subprocess.run([*call, *more], check=True, capture_output=True)
                times[what].append(time.perf_counter() - begin)
        done = subprocess.run([sys.executable, __file__, name], check=True, capture_output=True, text=True)
        python, memory, size = map(float, done.stdout.split())
        scores = model.score_samples(frame)
        written = np.loadtxt(files[2], delimiter=",", skiprows=1, usecols=1)
        assert np.array_equal(scores, written), "the same numbers"
    reference = min(times["command summary only"])
    lines = ["what,rows,columns,seconds,ratio_to_command,extra_memory_mb,input_mb"]
    lines += [f"{what},{ROWS},{COLUMNS},{min(some):.3f},{min(some) / reference:.2f},," for what, some in times.items()]
    lines.append(f"Python from a polars frame,{ROWS},{COLUMNS},{python:.3f},{python / reference:.2f},{memory:.0f},{size:.0f}")
    print("\n".join(lines))
    if len(sys.argv) > 1:
        head = f"# {machine()}, {os.cpu_count()} threads\n"
        command = f"# cargo xtask bench python --csv {sys.argv[1]}\n"
        Path(sys.argv[1]).write_text(head + command + "\n".join(lines) + "\n")


if __name__ == "__main__":
    if len(sys.argv) > 1 and Path(sys.argv[1]).is_dir():
        child(Path(sys.argv[1]))
    else:
        main()
