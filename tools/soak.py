"""Soak and faults: random questions for as long as there is time, while things go wrong around them.

    python tools/soak.py [--seconds 600] [--seed 0] [--only PART ...]

Each part asks for something random again and again and looks at what came of it. At the end it is told how often each
was asked and what was wrong; the exit code is 1 if anything was: a wrong answer, a hang, a loss, a process left over.
"""

import argparse
import contextlib
import hashlib
import json
import os
import random
import resource
import signal
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import scipy

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

import privug as pv  # noqa: E402
from privug.checkpoints import checkpoint  # noqa: E402
from random_programs import random_program  # noqa: E402

HANG_SECONDS = 120
LEAST_LIKELY = 1e-9  # of a count of samples: among ten thousand of them, one false alarm in 1e5 soaks
LARGEST_GROWTH = 4 << 20  # bytes, over thousands of runs


class Hang(BaseException):
    """Something takes longer than anything may."""


def refused(_signal, _frame):
    """End what takes too long."""
    raise Hang


@contextlib.contextmanager
def no_hang():
    """Raise `Hang` in a block that takes longer than anything may."""
    signal.signal(signal.SIGALRM, refused)
    signal.alarm(HANG_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)


def random_prior(rng: random.Random):
    """Return a distribution of a few whole numbers, and the same as a plain dict."""
    values = list(range(-3, 4))
    match rng.randrange(3):
        case 0:
            return pv.DiscreteUniform(-3, 3), dict.fromkeys(values, Fraction(1, 7))
        case 1:
            chosen = rng.sample(values, rng.randint(2, 5))
            shares = [rng.randint(1, 9) for _ in chosen]
            p = [Fraction(share, sum(shares)) for share in shares]
            return pv.Choice(chosen, p=[float(one) for one in p]), dict(zip(chosen, p, strict=True))
        case _:
            return pv.Bernoulli(0.25), {0: Fraction(3, 4), 1: Fraction(1, 4)}


def posterior_by_listing(program, priors, place, seen):
    """Return the posterior of the first input given one part of the output: by plain calls on everything possible."""
    weights: Counter[int] = Counter()
    for values in product(*priors):
        if int(program(*values)[place]) == seen:
            weights[values[0]] += np.prod([float(prior[v]) for prior, v in zip(priors, values, strict=True)])
    total = sum(weights.values())
    return {value: weight / total for value, weight in weights.items()}, total


def pipeline(rng: random.Random, _folder: Path) -> Iterator[str]:
    """Ask a random question of the exact engine and of samples, and list the answer by plain calls."""
    seed = rng.randrange(10**9)
    source, program = random_program(seed)
    made = [random_prior(rng) for _ in range(3)]
    priors = [plain for _, plain in made]
    place = rng.randrange(10)
    seen = int(program(*(rng.choice(list(prior)) for prior in priors))[place])
    truth, evidence = posterior_by_listing(program, priors, place, seen)
    attack = pv.Attack(program, dict(zip("abc", (prior for prior, _ in made), strict=True)), "a")
    observe = pv.such_that(lambda output: output[place] == seen)
    told = f"program {seed}, part {place} seen as {seen}, priors {priors}\n{source}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pv.LiftingWarning)
        exact = attack.run(observe, engine="exact")
        found = {int(value): float(p) for value, p in exact.posterior.distribution().items()}
        for value in truth.keys() | found.keys():
            if abs(truth.get(value, 0.0) - found.get(value, 0.0)) > 1e-9:
                yield f"exact: P(a = {value}) is {found.get(value, 0.0)}, by listing {truth.get(value, 0.0)}: {told}"
        if abs(float(exact.diagnostics.evidence) - evidence) > 1e-9:
            yield f"exact: the evidence is {exact.diagnostics.evidence}, by listing {evidence}: {told}"
        try:
            sampled = attack.run(observe, engine="sample", samples=500, seed=seed % 1000, budget=60_000)
        except (pv.TooFewSamples, pv.ImpossibleObservation):
            if evidence * 60_000 > 1000:
                yield f"sample: an observation of probability {evidence} was not met: {told}"
            return
    samples = [int(value) for value in sampled.posterior.samples(sampled.diagnostics.accepted)]
    counts = Counter(samples)
    for value in truth.keys() | counts.keys():
        chance = scipy.stats.binomtest(counts[value], len(samples), min(1.0, truth.get(value, 0.0))).pvalue
        if chance < LEAST_LIKELY:
            yield f"sample: {counts[value]} of {len(samples)} are {value}, of probability {truth.get(value)}: {told}"
    for result in (exact, sampled):
        if not str(result) or json.loads(result.to_json()) is None:
            yield f"no report: {told}"


def digits(ages):
    """Do what only a call can tell, and take a while."""
    total = 0
    for age in ages:
        for _ in range(20):
            total += int(str(int(age) + 17)[::-1])
    return total % 97, "high" if total > 9000 else "low"


def long_attack():
    """Return an attack on a program that is called."""
    return pv.Attack(digits, {"ages": pv.Array(pv.DiscreteUniform(10, 99), 5)}, secret=lambda ages: ages[0])


def long_run(samples, path=None, **options):
    """Run it on two workers, always with the same seed."""
    with pv.limited(native=False, workers=2, progress=False):
        return long_attack().run(engine="sample", samples=samples, seed=7, checkpoint=path, **options)


def bits(result) -> str:
    """Return a hash of the samples of secret and output."""
    told = repr([batch.values() for batch in result._answer.quantities])
    return hashlib.sha256(told.encode()).hexdigest()


_expected: dict[int, str] = {}


def expected(samples: int) -> str:
    """Return the bits of a run to which nothing happens."""
    if samples not in _expected:
        _expected[samples] = bits(long_run(samples))
    return _expected[samples]


def processes() -> Iterator[tuple[int, int, int, str]]:
    """Yield all processes: their number, their parent's, their session and their state."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                yield int(folder.name), int(fields[1]), int(fields[3]), fields[0]


def left_over(session: int) -> list[int]:
    """Return the processes of a session that are still there after a while; workers look every second."""
    deadline = time.monotonic() + 5
    while True:
        found = [pid for pid, _, of, state in processes() if of == session and state not in "ZX"]
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.05)


def in_a_child(work: Callable[[], int], disturb: Callable[[int], None] = lambda child: None) -> tuple[int | None, int]:
    """Run some work in a process and session of its own; return its exit code, None for a hang, and its number."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 99
        try:
            os.setsid()
            signal.signal(signal.SIGINT, signal.default_int_handler)
            code = work()
        except KeyboardInterrupt:
            code = 77
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    disturb(child)
    deadline = time.monotonic() + HANG_SECONDS
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status), child
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None, child


def killed_workers(rng: random.Random, _folder: Path) -> Iterator[str]:
    """Kill a worker at a random time: its blocks are computed again, and nothing differs."""
    samples = 6000
    known = expected(samples)
    done = threading.Event()
    delay = rng.uniform(0.05, 1.5)

    def kill() -> None:
        deadline = time.monotonic() + 30
        done.wait(delay)
        while not done.is_set() and time.monotonic() < deadline:
            workers = [pid for pid, parent, _, state in processes() if parent == os.getpid() and state not in "ZX"]
            if workers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(rng.choice(workers), signal.SIGKILL)
                return
            done.wait(0.01)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        found = bits(long_run(samples))
    finally:
        done.set()
        killer.join()
    if found != known:
        yield f"a worker was killed after {delay} s, and the samples differ"


def killed_cluster(rng: random.Random, _folder: Path) -> Iterator[str]:
    """Kill one or both workers of a cluster at a random time: others come, and nothing differs."""
    samples = 6000
    known = expected(samples)
    victims, delay = rng.choice([1, 2]), rng.uniform(0.1, 3.0)

    def work() -> int:
        import distributed

        options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": 0}
        with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
            pids = list(client.run(os.getpid).values())[:victims]
            killer = threading.Timer(delay, lambda: [os.kill(pid, signal.SIGKILL) for pid in pids])
            killer.start()
            found = bits(long_run(samples, on=client))
            killer.join()
        return 0 if found == known else 5

    code, session = in_a_child(work)
    if code != 0:
        yield f"{victims} workers of a cluster were killed after {delay} s: exit code {code} (5: the samples differ)"
    if left := left_over(session):
        yield f"processes {left} of a cluster are left"


def signalled(number: int, delay: float) -> Callable[[int], None]:
    """Return what sends a signal to a process after some seconds."""

    def disturb(child: int) -> None:
        time.sleep(delay)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)

    return disturb


def went_on(
    told: str, ended: tuple[int | None, int], allowed: tuple[int, ...], samples: int, path: Path
) -> Iterator[str]:
    """Look at how a run in a child ended, at what it left, and at the one that goes on from its checkpoint."""
    code, child = ended
    if code not in allowed:
        yield f"{told}: exit code {code}"
    if left := left_over(child):
        yield f"{told}: processes {left} are left"
    if bits(long_run(samples, path)) != expected(samples):
        yield f"{told}: the run that went on differs"


def full_disk(rng: random.Random, folder: Path) -> Iterator[str]:
    """Run with a checkpoint and write reports on a disk that is full after some bytes; then go on from there."""
    samples, size = 1500, rng.randrange(600, 90_000)
    known, path = expected(samples), folder / "disk.run"
    reports = [folder / f"report.{ending}" for ending in ("json", "txt")]
    for one in (path, *reports):
        one.unlink(missing_ok=True)

    def work() -> int:
        checkpoint.SECONDS_BETWEEN = 0.0
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                result = long_run(samples, path)
            except pv.CheckpointError:  # not even the question could be written
                return 3
        if bits(result) != known:
            return 4
        is_told = any("could not be written" in remark for remark in result.diagnostics.remarks)
        if is_told != any(issubclass(one.category, pv.CheckpointWarning) for one in caught):
            return 5
        for one in reports:
            try:
                result.save(one)
            except (pv.PrivugError, OSError):
                if one.exists():
                    return 6
        return 0

    yield from went_on(f"a disk full after {size} bytes", in_a_child(work), (0, 3), samples, path)


def interrupted(rng: random.Random, folder: Path) -> Iterator[str]:
    """Interrupt a run at a random time: a result with a remark or KeyboardInterrupt, no process left, none lost."""
    samples, path = 4000, folder / "interrupted.run"
    path.unlink(missing_ok=True)
    known, delay = expected(samples), rng.uniform(0.0, 2.5)

    def work() -> int:
        result = long_run(samples, path)
        if bits(result) == known:
            return 0
        return 0 if any(remark.startswith("interrupted") for remark in result.diagnostics.remarks) else 4

    ended = in_a_child(work, signalled(signal.SIGINT, delay))
    yield from went_on(f"Ctrl-C after {delay:.3f} s", ended, (0, 77, -signal.SIGINT), samples, path)


def killed_run(rng: random.Random, folder: Path) -> Iterator[str]:
    """Kill a run at a random time and go on from its checkpoint."""
    samples, path = 4000, folder / "killed.run"
    path.unlink(missing_ok=True)
    delay = rng.uniform(0.0, 2.5)

    def work() -> int:
        checkpoint.SECONDS_BETWEEN = 0.0
        long_run(samples, path)
        return 0

    ended = in_a_child(work, signalled(signal.SIGKILL, delay))
    yield from went_on(f"SIGKILL after {delay:.3f} s", ended, (0, -signal.SIGKILL), samples, path)


def resident() -> int:
    """Return how many bytes this process has in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def small_runs(number: int) -> None:
    """Ask some small questions anew, exactly and by samples."""
    prior = {"x": pv.DiscreteUniform(0, 9), "y": pv.Normal(0, sd=1)}
    attack = pv.Attack(lambda x, y: x + y, prior, "x", questions={"it is small": lambda x: x < 3})
    attack.run(pv.near(4, within=0.5), engine="sample", samples=200, seed=number).posterior.mean()
    pv.Attack(lambda x: x // 3, {"x": pv.DiscreteUniform(0, 9)}, "x").run(pv.equals(2)).leakage()
    pv.Attack(digits_of_one, {"x": pv.DiscreteUniform(0, 99)}, "x").run(engine="sample", samples=120, seed=number)


def digits_of_one(x):
    """Do what only a call can tell."""
    return int(str(int(x))[::-1])


def memory(seconds: float) -> Iterator[str]:
    """Run small questions for some time in one process, and see that it does not grow."""

    def work() -> int:
        until, sizes = time.monotonic() + seconds, []
        with pv.limited(workers=1, progress=False, native=False):
            while time.monotonic() < until or len(sizes) < 60:
                small_runs(len(sizes))
                sizes.append(resident())
        quarter = len(sizes) // 4
        growth = float(np.median(sizes[-quarter:]) - np.median(sizes[quarter : 2 * quarter]))  # a single step is none
        print(
            f"memory: {3 * len(sizes):,} runs, {growth / 1024:,.0f} KiB more at the end than after a quarter",
            flush=True,
        )
        return 0 if growth < LARGEST_GROWTH else 4

    code, _ = in_a_child(work)
    if code != 0:
        yield f"memory grows, or the process died: exit code {code}"


PARTS: dict[str, tuple[float, Callable[[random.Random, Path], Iterator[str]]]] = {
    "pipeline": (0.34, pipeline),
    "killed workers": (0.08, killed_workers),
    "killed cluster": (0.13, killed_cluster),
    "full disk": (0.10, full_disk),
    "Ctrl-C": (0.10, interrupted),
    "killed runs": (0.10, killed_run),
}
SHARE_OF_MEMORY = 0.08


def soaked(seconds: float, seed: int, only: list[str]) -> int:
    """Go through all parts; return the exit code."""
    pv.configure(progress=False, workers=2)
    counts: Counter[str] = Counter()
    problems: list[str] = []
    rng = random.Random(seed)
    print(f"soak: {seconds:g} s, seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, (share, part) in PARTS.items():
            until = time.monotonic() + share * seconds
            while (name in only or not only) and (time.monotonic() < until or not counts[name]):
                counts[name] += 1
                try:
                    with no_hang():
                        problems += [f"{name}: {problem}" for problem in part(rng, Path(folder))]
                except Hang:
                    problems.append(f"{name}: no end after {HANG_SECONDS} s")
                except Exception:
                    problems.append(f"{name}: {traceback.format_exc()}")
                if len(problems) > 20:
                    break
            print(f"{name}: {counts[name]:,} times", flush=True)
        if not only or "memory" in only:
            problems += memory(SHARE_OF_MEMORY * seconds)
    orphans = [pid for pid, parent, _, state in processes() if parent == os.getpid() and state not in "ZX"]
    problems += [f"processes {orphans} are left"] if orphans else []
    for problem in problems:
        print(f"PROBLEM {problem}")
    print(f"soak: {sum(counts.values()):,} questions, {len(problems)} problems")
    return 1 if problems else 0


def main() -> None:
    """Read the arguments and soak."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=[], choices=[*PARTS, "memory"])
    options = parser.parse_args()
    sys.exit(soaked(min(options.seconds, 600), options.seed, options.only))


if __name__ == "__main__":
    main()
