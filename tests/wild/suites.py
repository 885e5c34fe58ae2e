# SPDX-License-Identifier: Apache-2.0
"""The suites and programs of suites.json and programs.json: what they need, which tests, in which pieces."""
import json
import os
import random
import re
import subprocess

ASK = ("import importlib.util as u, importlib.metadata as m, json, sys\n"
       "there = [n for n in sys.argv[1:] if u.find_spec(n)]\n"
       "names = m.packages_distributions() if hasattr(m, 'packages_distributions') else {d.metadata['Name']: [d.metadata['Name']] for d in m.distributions()}\n"
       "print(json.dumps({n: m.version(names[n][0]) if n in names else '' for n in there}))")


def load(path):
    with open(path, encoding="utf-8") as stream:
        return json.load(stream)


def installed(setup, names):
    """{package: version} of those that the Python has."""
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(p for p in (setup.site, os.environ.get("PYTHONPATH")) if p))
    done = subprocess.run([setup.python, "-c", ASK, *sorted(names)], capture_output=True, text=True, env=env)
    return json.loads(done.stdout) if done.returncode == 0 else {}


def how_to_fetch(entry, sources, wild, versions):
    """The command that brings the folder of ENTRY, at the revision of the installed package."""
    source = sources[entry["folder"]]
    revision = source["revision"].format(**{k: v.partition("+")[0] for k, v in versions.items()})
    place = os.path.join(wild, entry["folder"])
    branch = " --branch " + revision if revision else ""
    return "git clone --depth 1%s --filter=blob:none --sparse %s %s && git -C %s sparse-checkout set %s" % (
        branch, source["repository"], place, place, " ".join(source["folders"]))


def usable(entries, sources, setup):
    """The entries that can run here, one sentence for each reason why others cannot, and the packages' versions."""
    versions = installed(setup, {name for entry in entries for name in entry["needs"]} | {"pytest"})
    able, out = [], {}
    for entry in entries:
        missing = sorted((set(entry["needs"]) | ({"pytest"} if "files" in entry else set())) - set(versions))
        if missing:
            out.setdefault("the Python has no " + ", ".join(missing), []).append(entry["name"])
        elif not os.path.isdir(os.path.join(setup.wild, entry["folder"])):
            reason = "'%s' is not in '%s'\n    hint: %s" % (entry["folder"], setup.wild, how_to_fetch(entry, sources, setup.wild, versions))
            out.setdefault(reason, []).append(entry["name"])
        else:
            able.append(entry)
    return able, ["left out: %s: %s" % (", ".join(names), reason) for reason, names in out.items()], versions


def sample(ids, count, seed):
    """At most COUNT of the ids, from as many test functions as possible, in their order."""
    if len(ids) <= count:
        return ids
    chance, functions = random.Random(seed), {}
    for test in ids:
        functions.setdefault(test.partition("[")[0], []).append(test)
    for variants in functions.values():
        chance.shuffle(variants)
    order = sorted(functions, key=lambda name: chance.random())
    taken = set()
    while len(taken) < count:
        for name in order:
            if functions[name] and len(taken) < count:
                taken.add(functions[name].pop())
    return [test for test in ids if test in taken]


def pytest_command(side, suite, paths):
    return [side.setup.python, "-m", "pytest", "-p", "cuwhy_wild", "-p", "no:cacheprovider", "-q", "--color=no", "--continue-on-collection-errors",
            "--rootdir", side.copy_of(suite["folder"]), *suite.get("arguments", []), *paths]


def collect(side, suite, path, seed):
    """The tests of one file or folder that are to run, and what pytest said if there are none."""
    listed = os.path.join(side.setup.scratch, "list-%s-%s" % (suite["name"], re.sub(r"\W", "_", path)))
    env = dict(suite.get("env", {}), WILD_LIST=listed)
    result = side.run(pytest_command(side, suite, [path]), side.copy_of(suite["folder"]), env, suite["seconds"])
    ids = load(listed) if os.path.exists(listed) else []
    wanted, unwanted = suite.get("only"), suite.get("without")
    ids = [i for i in dict.fromkeys(ids) if (not wanted or re.search(wanted, i)) and not (unwanted and re.search(unwanted, i))]
    return sample(ids, suite["files"][path], seed), "" if ids else (result.output.strip().splitlines() or ["nothing"])[-1]


def pieces(suite, ids):
    """IDS in groups that one process runs; as even as they can be."""
    count = max(1, -(-len(ids) // suite["piece"]))
    return [ids[len(ids) * i // count:len(ids) * (i + 1) // count] for i in range(count) if ids]
