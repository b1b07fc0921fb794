"""Blocks of work on a Dask cluster: the same tasks as on this machine, so that the results are the same to the bit.

The work is sent once, as a task of its own, which the scheduler repeats on another worker if the one that has it is
lost. What is shared by much work, such as a question, is made once in each worker. Few tasks are under way at a time:
neither the scheduler nor this process ever holds more than those.
"""

import concurrent.futures
import importlib
import io
import math
import pickle
import random
import sys
import threading
import time
import types
import weakref
from asyncio import CancelledError
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import uuid4

from privug import interruption, settings
from privug.errors import ClusterError, PrivugError
from privug.runtime.pickling import Shared
from privug.runtime.processes import read_reply, reply_of, run_forked

Task = TypeVar("Task")
Result = TypeVar("Result")

AHEAD = 3  # batches for each thread of the cluster that are under way or done before the one whose turn it is
BATCH_SECONDS = 0.25
MOST_BATCHES_A_SECOND = 400  # that a scheduler can hand out without being what all workers wait for
POLL_SECONDS = 1.0
CONNECT_SECONDS = 10.0
PATIENCE_SECONDS = 300.0  # without any worker
REFRESH_SECONDS = 5.0  # between two looks at how many workers there are
MOST_SHARED = 32  # things that a worker keeps, the latest used


@dataclass(frozen=True)
class Parcel:
    """Something as bytes, with what it shares with other parcels."""

    name: str
    content: bytes
    shared: tuple["Parcel", ...]


@dataclass(frozen=True)
class _Order:
    """What all tasks of a run have in common."""

    work: Parcel
    limits: dict[str, Any]


def run_on(client: Any, tasks: Sequence[Task], work: Callable[[Task], Result]) -> Iterator[Result]:
    """Yield `work(task)` for each task in order, each computed by a worker of a Dask cluster."""
    cluster = _Cluster(connected(client), work)
    start = 0
    try:
        while start < len(tasks) or cluster.is_busy:
            while start < len(tasks) and cluster.has_room():
                size = cluster.batch(len(tasks) - start)
                cluster.send(tasks[start : start + size])
                start += size
            yield from cluster.next_results()
    finally:
        cluster.stop()


class _Cluster:
    """The tasks of one run on a cluster, those under way in their order; short ones travel together."""

    def __init__(self, client: Any, work: Callable[[Any], Any]) -> None:
        self._client, self._work = client, work
        self._distributed = importlib.import_module("distributed")
        order = _Order(parcel(work), {**settings.current().limits, "workers": 1, "progress": False})
        self._name = f"privug-{uuid4().hex}"
        with _connection():
            self._order = client.submit(_ordered, order, key=f"{self._name}-work")
        self._waiting: deque[tuple[Sequence[Any], Any]] = deque()
        self._sent = 0
        self._seconds: float | None = None  # that a task takes
        self._threads, self._looked = 1, -math.inf
        self._alone_since: float | None = None

    @property
    def is_busy(self) -> bool:
        """Whether tasks were sent whose results were not taken."""
        return bool(self._waiting)

    def has_room(self) -> bool:
        """Say whether more may be sent before results are taken."""
        now = time.monotonic()
        if now - self._looked > REFRESH_SECONDS:
            self._threads, self._looked = self._asked_threads(), now
        return len(self._waiting) < AHEAD * max(1, self._threads)

    def batch(self, remaining: int) -> int:
        """Return how many tasks to send together: some for each thread, and so many that sending them is worth it."""
        if self._seconds is None:
            return 1
        wanted = max(BATCH_SECONDS, self._threads / MOST_BATCHES_A_SECOND)
        worth = math.ceil(wanted / max(self._seconds, 1e-6))
        return max(1, min(worth, remaining // max(1, self._threads)))

    def send(self, tasks: Sequence[Any]) -> None:
        """Send tasks, all to one worker."""
        self._sent += 1
        key, left, sent = f"{self._name}-{self._sent}", interruption.seconds_left(), parcel(tasks)
        with _connection():
            future = self._client.submit(_performed, self._order, sent, left, key=key)
        self._waiting.append((tasks, future))

    def next_results(self) -> Iterator[Any]:
        """Yield the results of the tasks whose turn it is, or raise what one raised."""
        tasks, future = self._waiting[0]
        with _connection():
            self._await(future)
            error = future.exception() if future.status == "error" else None
            replies, seconds = ([], 0.0) if error is not None else future.result()
        if error is not None:
            yield from self._seen_here(tasks, error)
        else:
            self._seconds = seconds / len(replies)
            for task, content in zip(tasks, replies, strict=True):
                reply = read_reply(content)
                yield self._work(task) if reply is None else reply()
        self._waiting.popleft()

    def _await(self, future: Any) -> None:
        """Wait until a task is done, as long as the run may take and there is a cluster."""
        while not future.done():
            left = interruption.seconds_left()
            try:
                with self._client.as_current():
                    self._distributed.wait([future], timeout=POLL_SECONDS if left is None else min(left, POLL_SECONDS))
            except TimeoutError:
                interruption.check()
                self._look_for_workers()
            interruption.check()

    def _asked_threads(self) -> int:
        with _connection():
            return sum(self._client.nthreads().values())

    def _look_for_workers(self) -> None:
        """Have patience while the cluster has no worker, but not for ever."""
        if self._asked_threads():
            self._alone_since = None
            return
        self._alone_since = self._alone_since or time.monotonic()
        if time.monotonic() - self._alone_since > PATIENCE_SECONDS:
            raise ClusterError(
                f"the Dask cluster has had no worker for {PATIENCE_SECONDS:.0f} s; start one, or run without"
            )

    def _seen_here(self, tasks: Sequence[Any], error: BaseException) -> Iterator[Any]:
        """Do tasks that kill workers in a process of this machine, which tells on which input; refuse all others."""
        if isinstance(error, self._distributed.KilledWorker):
            yield from run_forked(self._work, tasks, 1)
            return
        if isinstance(error, ModuleNotFoundError):
            raise ClusterError(
                f"a worker of the Dask cluster cannot make the program: {error}; hand its module to all of them by "
                "client.upload_file(...), or install it there"
            ) from error
        raise ClusterError(f"a worker of the Dask cluster failed with {type(error).__name__}: {error}") from error

    def stop(self) -> None:
        """Cancel what is under way and forget what is done."""
        futures = [self._order, *(future for _, future in self._waiting)]
        self._waiting.clear()
        with suppress(Exception):  # whatever the cluster has come to, it is not told here
            for future in futures[1:]:
                if not future.done():
                    future.cancel()
            for future in futures:
                future.release()


# ---- connections ----


@contextmanager
def _connection() -> Iterator[None]:
    """Say in one way that the scheduler is gone, which Dask has many for."""
    try:
        yield
    except PrivugError:
        raise
    except (CancelledError, concurrent.futures.CancelledError) as error:
        raise ClusterError(
            f"the Dask cluster has dropped the work: its scheduler was closed or is gone ({error})"
        ) from None
    except Exception as error:  # of a client that is closed, of a connection that is, of whatever comes with Dask
        raise ClusterError(f"the scheduler of the Dask cluster does not answer: {error}") from None


_PROCESS_WIDE: Any = random.random.__self__  # type: ignore[attr-defined]
_DASK = {"distributed", "dask", "tornado"}
_modules_looked_at = 0
_clients: dict[str, Any] = {}
_connecting = threading.Lock()


def connected(on: Any) -> Any:
    """Return a client of Dask: the one given, or one of the scheduler at an address, which is kept."""
    if not isinstance(on, str):
        _keep_generators_apart()
        return on
    with _connecting:
        known = _clients.get(on)
        if known is None or known.status != "running":
            try:
                _clients[on] = importlib.import_module("distributed").Client(
                    on, set_as_default=False, timeout=CONNECT_SECONDS
                )
            except Exception as error:
                raise ClusterError(f"there is no Dask scheduler at {on!r}: {error}") from error
        _keep_generators_apart()
        return _clients[on]


def _keep_generators_apart() -> None:
    """Let the threads of Dask draw from a generator of their own: programs are seeded by way of the process's."""
    global _modules_looked_at
    if _modules_looked_at == len(sys.modules):  # nothing was imported since
        return
    _modules_looked_at = len(sys.modules)
    own = random.Random()
    names = [name for name, value in vars(random).items() if getattr(value, "__self__", None) is _PROCESS_WIDE]
    private = types.ModuleType("random")
    vars(private).update({**vars(random), **{name: getattr(own, name) for name in names}})
    for module in [module for name, module in sys.modules.items() if name.partition(".")[0] in _DASK]:
        for name, value in list(vars(module).items()):
            if value is random:
                setattr(module, name, private)
            elif getattr(value, "__self__", None) is _PROCESS_WIDE:
                setattr(module, name, getattr(own, value.__name__))


# ---- what is sent ----

_parcels: dict[int, tuple[weakref.ref[Shared], Parcel]] = {}


def parcel(value: Any) -> Parcel:
    """Return a value as bytes, functions of any kind included; what is shared goes by name."""
    cloudpickle = importlib.import_module("cloudpickle")
    shared: list[Parcel] = []

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc, name-defined]
        def persistent_id(self, part: Any) -> str | None:
            if not isinstance(part, Shared) or part is value:
                return None
            shared.append(_shared_parcel(part))
            return shared[-1].name

    content = io.BytesIO()
    Pickler(content).dump(value)
    return Parcel(uuid4().hex, content.getvalue(), tuple(dict.fromkeys(shared)))


def _shared_parcel(part: Shared) -> Parcel:
    known = _parcels.get(id(part))
    if known is not None and known[0]() is part:
        return known[1]
    made = parcel(part)
    number = id(part)
    _parcels[number] = weakref.ref(part, lambda _: _parcels.pop(number, None)), made
    return made


_made: OrderedDict[str, Any] = OrderedDict()
_making = threading.RLock()


def opened(sent: Parcel, *, keep: bool = True) -> Any:
    """Return what a parcel holds; in one process it is made once."""
    with _making:
        if sent.name in _made:
            _made.move_to_end(sent.name)
            return _made[sent.name]
        parts = {one.name: opened(one) for one in sent.shared}
        unpickler = pickle.Unpickler(io.BytesIO(sent.content))
        unpickler.persistent_load = parts.__getitem__  # type: ignore[method-assign]
        value = unpickler.load()
        if keep:
            _made[sent.name] = value
            while len(_made) > MOST_SHARED:
                _made.popitem(last=False)
        return value


# ---- what workers do ----


def _ordered(order: _Order) -> _Order:
    """Be a task whose result is the work, so that the scheduler can have it again if it is lost."""
    return order


def _performed(order: _Order, tasks: Parcel, left: float | None) -> tuple[list[bytes], float]:
    """Do tasks in a worker and say how long that took; what they raise is sent back as well."""
    _keep_generators_apart()
    work = opened(order.work)
    # Classes that were sent with the program are known here, but not by their names.
    written = importlib.import_module("cloudpickle").dumps
    started = time.perf_counter()
    with settings.limited(**order.limits), interruption.within(left):
        replies = [reply_of(work, task, written) for task in opened(tasks, keep=False)]
    return replies, time.perf_counter() - started
