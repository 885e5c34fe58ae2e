# SPDX-License-Identifier: Apache-2.0
"""Prints results in the form that people and the Makefile read, and keeps what failed."""
import json
import os


def report_line(result, number):
    case = result.case
    if result.skip:
        print("ok %d - %s # SKIP %s" % (number, case.name, result.skip), flush=True)
        return
    mark = "not ok" if result.problems else "ok"
    print("%s %d - %s: %s (%.1f s)" % (mark, number, case.name, result.got, result.seconds), flush=True)
    for problem in result.problems:
        print("    # " + problem, flush=True)


def print_table(results):
    rows = [("case", "expected", "got", "line", "exit", "seconds")]
    for r in sorted(results, key=lambda r: r.case.name):
        got = "skipped: " + r.skip if r.skip else r.got
        rows.append((r.case.name, r.case.expected(), got, r.line, str(r.exit), "%.1f" % r.seconds))
    widths = [max(len(row[i]) for row in rows) for i in range(6)]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip())


def summary(results):
    """Prints the last line, which everything that starts the tests reads, and gives the status."""
    failed = sum(bool(r.problems) for r in results)
    skipped = sum(bool(r.skip) for r in results)
    print("%d passed, %d failed, %d skipped" % (len(results) - failed - skipped, failed, skipped))
    return 1 if failed else 0


def save_artifacts(results, folder):
    """Saves what failing cases printed to a folder, for debugging."""
    for result in results:
        if not result.problems:
            continue
        place = os.path.join(folder, result.case.name)
        os.makedirs(place, exist_ok=True)
        for name, text in result.artifacts.items():
            with open(os.path.join(place, name), "w", encoding="utf-8") as stream:
                stream.write(text)
        with open(os.path.join(place, "problems"), "w", encoding="utf-8") as stream:
            stream.write("\n".join(result.problems) + "\n")


def finish(results, json_path, artifacts):
    """The common end of a run: files for later, then the last line."""
    if json_path:
        with open(json_path, "w", encoding="utf-8") as stream:
            json.dump([r.as_dict() for r in results], stream, indent=1)
    if artifacts:
        save_artifacts(results, artifacts)
    return summary(results)
