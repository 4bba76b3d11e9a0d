"""Bare Tornado, the yardstick: takes a body, returns a constant. ``bare.py PORT BYTES``."""

import asyncio
import logging
import sys

from tornado.web import Application, RequestHandler


class Constant(RequestHandler):
    """Answers every request with the same bytes."""

    def initialize(self, answer: bytes) -> None:
        """Tornado: what to answer."""
        self.answer = answer

    def get(self) -> None:
        """A request without a body."""
        self.finish(self.answer)

    def post(self) -> None:
        """A request whose body is received and not looked at."""
        self.get()


async def serve(port: int, size: int) -> None:
    """Serve until the process is ended."""
    logging.getLogger("tornado.access").setLevel(logging.WARNING)
    application = Application([("/", Constant, {"answer": b"x" * size})])
    application.listen(port, "127.0.0.1")
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(*map(int, sys.argv[1:])))
