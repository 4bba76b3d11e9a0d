"""The management API's part on pools and the devices that they are on."""

from __future__ import annotations

from tornado import web

from ..errors import Code, invalid_argument
from .api_handlers import HINTS, ManagementHandler
from .base_handler import authorized
from .pool_spec import PoolSpec


class PoolsHandler(ManagementHandler):
    """All pools."""

    hints = HINTS | {
        Code.NOT_FOUND: "The server and the kernel have to run on one machine, with one "
        "JUPYTER_RUNTIME_DIR, and the kernel has to belong to this server"
    }

    @web.authenticated
    @authorized("read")
    async def get(self) -> None:
        """List them; starts nothing."""
        self.reply({"pools": await self.manager.overview.pools()})

    @web.authenticated
    @authorized("write")
    async def post(self) -> None:
        """Start another managed pool; or take in the one that a notebook's kernel has announced."""
        asked = self.json_object()
        if "name" in asked:
            self.reply(await self.manager.start_pool(PoolSpec.from_json(asked)), 201)
        elif isinstance(asked.get("id"), str):
            self.reply(await self.manager.adopt(asked["id"]))
        else:
            raise invalid_argument(
                'Expected {"name": POOL, ...} for a new pool, or {"id": POOL} with the id of an '
                "announced one"
            )


class PoolRestartHandler(ManagementHandler):
    """The restart of one pool."""

    @web.authenticated
    @authorized("write")
    async def post(self, pool_id: str) -> None:
        """End a managed pool's process and start another; answers once that one runs."""
        await self.manager.fleet.by_id(pool_id).restart()
        self.reply({})


class DevicesHandler(ManagementHandler):
    """The devices of this machine."""

    @web.authenticated
    @authorized("read")
    async def get(self) -> None:
        """Tell who holds what; starts nothing."""
        self.reply(await self.manager.overview.devices())
