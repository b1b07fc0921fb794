"""The explorer's server: one page and its answers on this machine, for whoever has the token in its address.

Nothing that comes from the page is evaluated: a request names an attack and gives numbers for parameters. Answers go
out as server-sent events. Every tab of a browser has one run at most: a newer position ends an older one.
"""

import asyncio
import contextlib
import itertools
import json
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from importlib.resources import files
from typing import Any

from privug.errors import ArgumentError
from privug.explorer.runs import Nursery, keep

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response, StreamingResponse
    from starlette.routing import Route
except ImportError:
    raise ArgumentError("explore needs a web server: pip install 'privug[web]'") from None

HOST = "127.0.0.1"
NAMES = (HOST, "localhost")
ROUGH_AFTER = 0.2  # seconds without an answer, after which a rough one is drawn
HEARTBEAT = 10.0  # seconds
GRACE = 10.0  # seconds beyond the limit of a run, after which it is ended
LONGEST_LINE = 1 << 26
MOST_BYTES = 1 << 20  # of a request
STATIC = {
    "app.js": "text/javascript",
    "charts.js": "text/javascript",
    "style.css": "text/css",
    "uplot.js": "text/javascript",
    "uplot.css": "text/css",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors {ancestors}"
)
Handler = Callable[[Request], Awaitable[Response]]


class Tab:
    """One tab of a browser: the events that wait for it, its latest run, and whether its latest answer was sampled.

    One run at most is `kept` after its end: from it, others of the same question are forked.
    """

    def __init__(self) -> None:
        self.events: asyncio.Queue[str] = asyncio.Queue()
        self.run = 0
        self.task: asyncio.Task[None] | None = None
        self.is_sampled = False
        self._kept: tuple[str, socket.socket] | None = None

    def kept(self, question: str) -> socket.socket | None:
        """Return the run that is kept, if it was about a question."""
        return self._kept[1] if self._kept is not None and self._kept[0] == question else None

    def keep(self, question: str, run: socket.socket) -> None:
        """Keep a run that has ended in place of another, unless there is one about the same question."""
        if self.kept(question) is None and keep(run):
            self.drop()
            self._kept = question, run.dup()

    def drop(self) -> None:
        """End the run that is kept."""
        if self._kept is not None:
            self._kept[1].close()
            self._kept = None

    def tell(self, run: int, answer: Mapping[str, Any]) -> None:
        """Put an answer in the queue, unless a newer run was asked for."""
        if run == self.run:
            self.events.put_nowait(json.dumps({"run": run, **answer}))

    def end(self) -> None:
        """End the latest run."""
        if self.task is not None:
            self.task.cancel()
            self.task = None


class Site:
    """The page's addresses and what stands behind them."""

    def __init__(self, nursery: Nursery, state: Mapping[str, Any], token: str, *, framed: bool) -> None:
        self._nursery = nursery
        self._begins = state
        self._token = token
        self._seconds: float = state["seconds"]
        self._framed = framed
        self._tabs: dict[str, Tab] = {}
        self._answering: set[asyncio.Task[dict[str, Any]]] = set()
        self._seen = {name: _seen_alone(attack["parameters"]) for name, attack in state["attacks"].items()}
        self._numbers = itertools.count(1)
        self.port = 0

    def application(self) -> Starlette:
        """Return the application."""
        base = "/{token}/"
        routes = [
            Route(base, self._guarded(self._page)),
            Route(base + "state", self._guarded(self._state)),
            Route(base + "events", self._guarded(self._events)),
            Route(base + "run", self._guarded(self._run), methods=["POST"]),
            Route(base + "cancel", self._guarded(self._cancel), methods=["POST"]),
            Route(base + "answer", self._guarded(self._answer), methods=["POST"]),
            Route(base + "report", self._guarded(self._report), methods=["POST"]),
            Route(base + "script", self._guarded(self._script), methods=["POST"]),
            Route(base + "{name}", self._guarded(self._static)),
        ]
        application = Starlette(routes=routes, exception_handlers={404: _nothing, 405: _nothing})
        application.router.redirect_slashes = False
        return application

    def _guarded(self, handler: Handler) -> Handler:
        """Return a handler that serves those alone who have the token, from this page, at this address."""

        async def guarded(request: Request) -> Response:
            if not self._is_allowed(request):
                return Response(status_code=404)
            response = await handler(request)
            ancestors = "'self' http://localhost:* http://127.0.0.1:*" if self._framed else "'none'"
            response.headers["Content-Security-Policy"] = POLICY.format(ancestors=ancestors)
            response.headers["X-Content-Type-Options"] = "nosniff"
            response.headers["Referrer-Policy"] = "no-referrer"
            response.headers["Cache-Control"] = "no-store"
            response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
            return response

        return guarded

    def _is_allowed(self, request: Request) -> bool:
        if not secrets.compare_digest(request.path_params["token"].encode(), self._token.encode()):
            return False
        hosts = [f"{name}:{self.port}" for name in NAMES]
        host = request.headers.get("host", "")
        if host not in hosts:
            return False
        origin = request.headers.get("origin")
        if origin is not None or request.method == "POST":
            return origin == f"http://{host}"
        is_page = request.headers.get("sec-fetch-mode", "navigate") == "navigate"
        return is_page or request.headers.get("sec-fetch-site") == "same-origin"

    async def _page(self, request: Request) -> Response:
        return Response(_file("index.html"), media_type="text/html; charset=utf-8")

    async def _static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in STATIC:
            return Response(status_code=404)
        return Response(_file(name), media_type=f"{STATIC[name]}; charset=utf-8")

    async def _state(self, request: Request) -> Response:
        return JSONResponse(self._begins)

    async def _answer(self, request: Request) -> Response:
        return await self._told(request, "run")  # of which the first answer is enough

    async def _report(self, request: Request) -> Response:
        return await self._told(request, "report")

    async def _script(self, request: Request) -> Response:
        return await self._told(request, "script")

    async def _told(self, request: Request, what: str) -> Response:
        """Answer a request by a run, which ends when the page is closed or the server is to end."""
        asked = await _body(request)
        if asked is None:
            return Response(status_code=400)
        answering = asyncio.create_task(self._asked({**asked, "what": what}))
        leaving = asyncio.create_task(_gone(request))
        self._answering.add(answering)
        try:
            await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
            done = answering.done() and not answering.cancelled()
            return JSONResponse(answering.result()) if done else Response(status_code=503)
        finally:
            answering.cancel()
            leaving.cancel()
            self._answering.discard(answering)

    def end(self) -> None:
        """End all runs and streams of events, so that nothing waits for the server to end."""
        for answering in self._answering:
            answering.cancel()
        for tab in self._tabs.values():
            tab.end()
            tab.drop()
            tab.events.put_nowait("")

    async def _asked(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the first answer of a run, or why there is none."""
        try:
            async with asyncio.timeout(self._seconds + GRACE):
                async for answer in self._answers(request):
                    if "parameters" not in answer:  # those come before what is asked for
                        return answer
        except TimeoutError:
            return {"error": self._too_long}
        return {"error": ENDED}

    @property
    def _too_long(self) -> str:
        return f"no answer after {self._seconds + GRACE:.0f} seconds: the run was ended"

    async def _answers(self, request: Mapping[str, Any], tab: Tab | None = None) -> AsyncIterator[dict[str, Any]]:
        """Yield the answers of a run: one forked from the run that is kept, unless that has died, or a new one."""
        question = self._question(request)
        kept = None if tab is None else tab.kept(question)
        for waiting in (None,) if kept is None else (kept, None):
            run, answered = self._nursery.start(request, waiting), False
            reader, writer = await asyncio.open_connection(sock=run, limit=LONGEST_LINE)
            try:
                while line := await reader.readline():
                    answer, answered = json.loads(line), True
                    if answer.pop("waits", False) and tab is not None:
                        tab.keep(question, run)
                    yield answer
            finally:
                writer.close()  # which ends the run, unless it is kept
            if answered:
                return
            if tab is not None:
                tab.drop()

    def _question(self, request: Mapping[str, Any]) -> str:
        """Return what is equal for positions of an attack at which no more than what is seen differs."""
        name, seen = request["attack"], self._seen.get(request["attack"], set())
        return json.dumps([name, sorted(item for item in request["position"].items() if item[0] not in seen)])

    async def _run(self, request: Request) -> Response:
        asked = await _body(request)
        tab = self._tabs.get(request.query_params.get("tab", ""))
        if asked is None or tab is None:
            return Response(status_code=400)
        tab.end()
        tab.run = next(self._numbers)
        tab.tell(tab.run, {"asked": asked})
        tab.task = asyncio.create_task(self._follow(tab, tab.run, asked))
        return JSONResponse({"run": tab.run})

    async def _cancel(self, request: Request) -> Response:
        tab = self._tabs.get(request.query_params.get("tab", ""))
        if tab is None:
            return Response(status_code=400)
        tab.end()
        tab.tell(tab.run, {"error": "cancelled", "done": True})
        return JSONResponse({})

    async def _follow(self, tab: Tab, run: int, asked: Mapping[str, Any]) -> None:
        """Hand on the answers of a run as they come, and a rough one before them where they take their time."""
        drawing = asyncio.create_task(self._draw(tab, run, asked))
        ended, answered = False, False
        try:
            async with asyncio.timeout(self._seconds + GRACE):
                async for answer in self._answers({**asked, "what": "run"}, tab):
                    if "answer" in answer or "error" in answer:
                        drawing.cancel()
                    ended = bool(answer.get("done"))
                    if "answer" in answer:
                        answered, tab.is_sampled = True, not answer["answer"]["exact"]
                    tab.tell(run, answer)
        except TimeoutError:
            told = f"the run was ended after {self._seconds + GRACE:.0f} seconds; what is missing took too long"
            tab.tell(run, {"error": told if answered else self._too_long, "done": True})
            return
        finally:
            drawing.cancel()
        if not ended:
            tab.tell(run, {"error": ENDED, "done": True})

    async def _draw(self, tab: Tab, run: int, asked: Mapping[str, Any]) -> None:
        await asyncio.sleep(0 if tab.is_sampled else ROUGH_AFTER)
        async for answer in self._answers({**asked, "what": "rough"}):
            if "rough" in answer:  # what is wrong is told by the other run
                tab.tell(run, answer)

    async def _events(self, request: Request) -> Response:
        name = request.query_params.get("tab", "")
        if not name or name in self._tabs:
            return Response(status_code=400)
        tab = self._tabs[name] = Tab()
        return StreamingResponse(self._stream(name, tab), media_type="text/event-stream")

    async def _stream(self, name: str, tab: Tab) -> AsyncIterator[str]:
        try:
            yield "event: open\ndata: {}\n\n"
            while True:
                try:
                    async with asyncio.timeout(HEARTBEAT):
                        told = await tab.events.get()
                except TimeoutError:
                    yield ": still there\n\n"
                    continue
                if not told:
                    return
                yield f"data: {told}\n\n"
        finally:
            tab.end()
            tab.drop()
            self._tabs.pop(name, None)


def _seen_alone(parameters: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the names of what is seen, which no other parameter has."""
    seen, others = (
        {one["name"] for one in parameters if (one["group"] == "seen") is is_seen} for is_seen in (True, False)
    )
    return seen - others


ENDED = "the run's process ended: the program ended it, or it ran out of memory"


async def _nothing(request: Request, error: Exception) -> Response:
    return Response(status_code=404)


async def _body(request: Request) -> dict[str, Any] | None:
    """Return the attack and the position that a request names, and its number on the page; None if it is no such."""
    if int(request.headers.get("content-length") or 0) > MOST_BYTES:
        return None
    with contextlib.suppress(ValueError, RecursionError):
        asked = json.loads(await request.body())
        if isinstance(asked, dict) and isinstance(asked.get("attack"), str) and _is_position(asked.get("position")):
            move = asked.get("move")
            return {"attack": asked["attack"], "position": asked["position"], "move": move if type(move) is int else 0}
    return None


async def _gone(request: Request) -> None:
    """Return when nobody waits for the answer of a request any more."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _is_position(position: Any) -> bool:
    return isinstance(position, dict) and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in position.values()
    )


def _file(name: str) -> bytes:
    return files("privug.explorer").joinpath("page", name).read_bytes()


def bound(port: int) -> socket.socket:
    """Return a socket on this machine alone, at a port, or at any that is free."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
        listening.listen(128)  # whoever has the address may come before the server is there
    except OSError as error:
        listening.close()
        raise ArgumentError(f"port {port} cannot be used: {error.strerror}; give another one, or none") from None
    return listening


class Server(uvicorn.Server):
    """A server that ends what a site does before it waits for it."""

    def __init__(self, settings: uvicorn.Config, site: Site) -> None:
        super().__init__(settings)
        self._site = site

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the server."""
        self._site.end()
        await super().shutdown(sockets)


def server_of(site: Site) -> Server:
    """Return the server of a site."""
    settings = uvicorn.Config(
        site.application(), log_level="error", access_log=False, lifespan="off", timeout_graceful_shutdown=1
    )
    return Server(settings, site)
