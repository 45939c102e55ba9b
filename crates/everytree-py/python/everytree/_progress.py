"""How learning goes, in a terminal or a notebook."""

from __future__ import annotations

import sys
import time
from typing import Any


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


class Progress:
    """One line that tells the epoch, the likelihoods and the time left."""

    def __init__(self) -> None:
        self._begin = time.monotonic()
        self._trial: Any = None
        self._first = 0.0
        self._display: Any = None
        self._width = 0
        if _in_notebook():
            from IPython.display import display

            self._display = display({"text/plain": "learning …"}, raw=True, display_id=True)

    def show(self, event: dict[str, Any]) -> None:
        """Shows what an event says."""
        trial = (event["refit"], event["pilot"], event["components"], event["hidden"])
        if event["event"] == "batch":
            done = event["epoch"] - 1 + event["rows"] / max(event["of_rows"], 1)
            if trial != self._trial:
                self._trial, self._begin, self._first = trial, time.monotonic(), done
            share = done / max(event["epochs"], 1)
            rate = (done - self._first) / max(time.monotonic() - self._begin, 1e-9)
            left = f"  {_duration((event['epochs'] - done) / rate)} left" if rate > 0 else ""
            self._write(share, self._words(event) + left)

    @staticmethod
    def _words(event: dict[str, Any]) -> str:
        size = ""
        if event["refit"]:
            size += "all rows: "
        if event["components"] > 1:
            size += f"{event['components']} components: "
        if event["hidden"] > 1:
            size += f"{event['hidden']} hidden states: "
        valid = "" if event["valid"] is None else f"  valid {event['valid']:.3f}"
        return f"{size}epoch {event['epoch']}/{event['epochs']}  train {event['train']:.3f}{valid}"

    def _write(self, share: float, words: str) -> None:
        full = round(30 * min(max(share, 0.0), 1.0))
        line = f"{'█' * full}{'░' * (30 - full)} {words}"
        if self._display is not None:
            self._display.update({"text/plain": line}, raw=True)
        else:
            print(f"\r{line:<{self._width}}", end="", file=sys.stderr, flush=True)
            self._width = len(line)

    def close(self) -> None:
        """Clears the line."""
        if self._display is not None:
            self._display.update({"text/plain": ""}, raw=True)
        elif self._width:
            print(f"\r{'':<{self._width}}\r", end="", file=sys.stderr, flush=True)


class Rows:
    """One line that tells how many rows are done; nothing in the first second."""

    def __init__(self, done: str, wanted: bool) -> None:
        self._done = done
        self._wanted = wanted
        self._begin = time.monotonic()
        self._progress: Progress | None = None

    def __enter__(self) -> Any:
        return self._show if self._wanted else None

    def _show(self, rows: int, of: int) -> None:
        if time.monotonic() - self._begin < 1.0:
            return
        self._progress = self._progress or Progress()
        words = f"{rows:,} of {of:,} rows {self._done}" if of else f"{rows:,} rows {self._done}"
        self._progress._write(rows / of if of else 0.0, words)

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.close()


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
