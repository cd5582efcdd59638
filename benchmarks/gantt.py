"""How large and how fast Gantt charts are: seconds to make one, bytes, and what Chromium needs to open and redraw it.

python benchmarks/gantt.py [--traces KTH-SP2 CEA-Curie] [--policies easy] [--width 1920] [--keep FOLDER] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.reports.browser import CHROMIUM, chromium, opened, written

from dovetail.engine.replay import replay
from dovetail.io.read import read_workload
from dovetail.policies.registry import policy
from dovetail.reports.gantt import Chart, fragment

TRACES = Path(os.environ.get("DOVETAIL_TRACES", Path(__file__).resolve().parents[2] / "shared" / "traces"))

REDRAW = """async (action) => {
  const begin = performance.now();
  document.querySelector(`[data-do="${action}"]`).click();
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  return performance.now() - begin;
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", nargs="+", default=["KTH-SP2", "CEA-Curie"])
    parser.add_argument("--policies", nargs="+", default=["easy"])
    parser.add_argument("--width", type=int, default=1920)
    parser.add_argument("--keep", type=Path, help="folder for the pages and pictures of them")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if not CHROMIUM:
        parser.error("no Chromium on this machine")
    with TemporaryDirectory() as scratch:
        for trace in args.traces:
            folder = (args.keep or Path(scratch)) / trace
            folder.mkdir(parents=True, exist_ok=True)
            row = {"trace": trace, **measured(trace, args.policies, folder, args.width)}
            print(
                json.dumps(row) if args.json else "  ".join(f"{key} {value}" for key, value in row.items()), flush=True
            )


def measured(trace: str, policies: list[str], folder: Path, width: int) -> dict[str, float]:
    """Make the page of one trace, open it, and draw it again and again: all of it, and where it opens."""
    workload = read_workload(TRACES / "papers" / f"{trace}.swf.gz")
    charts = [Chart(name, replay(workload, policy(name))) for name in policies]
    clock = time.process_time()
    made = fragment(charts)
    row: dict[str, float] = {"made_cpu_s": round(time.process_time() - clock, 2)}
    file = written(folder, made)
    row["bytes"] = file.stat().st_size
    with chromium() as browser, opened(browser, file, width=width, height=1080) as seen:
        seen.page.evaluate("dovetailGantt.ready.then(() => null)")
        row["open_ms"] = round(seen.page.evaluate("performance.now()"))
        for action in ("all", "worst"):
            row[f"{action}_ms"] = round(median(seen.page.evaluate(REDRAW, action) for _ in range(9)))
            seen.page.screenshot(path=folder / f"{action}.png", full_page=True)
        assert seen.is_quiet(), seen
    return row


if __name__ == "__main__":
    main()
