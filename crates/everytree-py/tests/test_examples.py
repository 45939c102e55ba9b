"""The notebooks under `examples` run, and come to the tables that are kept beside them."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pandas
import pytest

pytestmark = pytest.mark.full

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["census", "anomalies", "imputation"])
def test_notebooks_run(name, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    found = runpy.run_path(str(EXAMPLES / f"{name}.py"))["results"]
    found = found.drop(columns="seconds", errors="ignore")
    if found.index.dtype != "int64":
        found = found.reset_index(names="method")
    kept = EXAMPLES / "results" / f"{name}.csv"
    if os.environ.get("EVERYTREE_KEEP_RESULTS"):
        found.to_csv(kept, index=False)
    expected = pandas.read_csv(kept)
    texts = list(expected.select_dtypes(exclude="number"))
    assert found[texts].astype(str).values.tolist() == expected[texts].values.tolist()
    numbers = list(expected.select_dtypes("number"))
    # Other machines round otherwise.
    assert (found[numbers] - expected[numbers]).abs().to_numpy().max() <= 0.005


@pytest.mark.parametrize("job", sorted(path.name for path in (EXAMPLES / "jobs").glob("*.sh")))
def test_jobs_run_in_at_most_five_commands(job, tmp_path):
    script = EXAMPLES / "jobs" / job
    commands = [line for line in script.read_text().splitlines() if line.startswith(("everytree ", "python "))]
    assert 2 <= len(commands) <= 5
    where = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path)}
    done = subprocess.run(["bash", "-e", script], cwd=tmp_path, env=where, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
