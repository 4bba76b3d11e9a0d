"""The client for code with an event loop."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Self, TypeVar

from .client import Client, is_pandas
from .transport import CONNECTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from .metadata import Metadata, VersionStatus
    from .servers import Server

T = TypeVar("T")


class AsyncClient:
    """As :class:`~jupyter_tfserve.Client`, to be awaited: ``await client.predict("mnist", x)``.

    Calls run in threads of their own, as many as there are connections; so arrays are written and
    answers read without holding up the loop, which for large ones takes longer than the network.
    A call that is cancelled is let go of; one in pieces ends with its present piece.

    Arguments, answers and errors are those of :class:`~jupyter_tfserve.Client`, whose every method
    is here; ``async with`` ends the connections.
    """

    def __init__(
        self,
        url: str | Server | None = None,
        token: str | None = None,
        *,
        timeout: float = 60.0,
        patience: float = 30.0,
        verify: bool | str = True,
    ) -> None:
        self._client = Client(url, token, timeout=timeout, patience=patience, verify=verify)
        self._threads = ThreadPoolExecutor(CONNECTIONS, "tfserve-client")

    @property
    def server(self) -> Server:
        """The server that is called."""
        return self._client.server

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncClient({self.server.url!r})"

    async def close(self) -> None:
        """End the connections; no call may follow."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._client.close()

    async def _run(self, call: Callable[..., T], *args: Any, **options: Any) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: call(*args, **options))

    async def status(
        self, name: str, version: int | None = None, label: str | None = None
    ) -> list[VersionStatus]:
        """See :meth:`Client.status`."""
        return await self._run(self._client.status, name, version, label)

    async def versions(self, name: str) -> list[int]:
        """See :meth:`Client.versions`."""
        return await self._run(self._client.versions, name)

    async def metadata(
        self, name: str, version: int | None = None, label: str | None = None
    ) -> Metadata:
        """See :meth:`Client.metadata`."""
        return await self._run(self._client.metadata, name, version, label)

    async def predict(
        self,
        name: str,
        data: Any,
        version: int | None = None,
        label: str | None = None,
        signature: str | None = None,
        **frame_options: Any,
    ) -> Any:
        """See :meth:`Client.predict`."""
        call = self._client.predict
        if not is_pandas(data):
            return await self._run(call, name, data, version, label, signature, **frame_options)
        stop = threading.Event()
        options = {**frame_options, "stop": stop}
        try:
            return await self._run(call, name, data, version, label, signature, **options)
        finally:
            stop.set()

    async def classify(
        self,
        name: str,
        examples: Any,
        version: int | None = None,
        label: str | None = None,
        signature: str | None = None,
        *,
        context: Mapping[str, Any] | None = None,
        missing: Any = "error",
    ) -> Any:
        """See :meth:`Client.classify`."""
        call = self._client.classify
        options = {"context": context, "missing": missing}
        return await self._run(call, name, examples, version, label, signature, **options)

    async def regress(
        self,
        name: str,
        examples: Any,
        version: int | None = None,
        label: str | None = None,
        signature: str | None = None,
        *,
        context: Mapping[str, Any] | None = None,
        missing: Any = "error",
    ) -> Any:
        """See :meth:`Client.regress`."""
        call = self._client.regress
        options = {"context": context, "missing": missing}
        return await self._run(call, name, examples, version, label, signature, **options)

    async def models(self) -> list[dict[str, Any]]:
        """See :meth:`Client.models`."""
        return await self._run(self._client.models)

    async def pools(self) -> list[dict[str, Any]]:
        """See :meth:`Client.pools`."""
        return await self._run(self._client.pools)

    async def devices(self) -> dict[str, Any]:
        """See :meth:`Client.devices`."""
        return await self._run(self._client.devices)

    async def load(self, name: str, base_path: str, **options: Any) -> dict[str, Any]:
        """See :meth:`Client.load`."""
        return await self._run(self._client.load, name, base_path, **options)

    async def unload(self, name: str, *, release: bool = False) -> dict[str, Any]:
        """See :meth:`Client.unload`."""
        return await self._run(self._client.unload, name, release=release)

    async def labels(self, name: str) -> dict[str, int]:
        """See :meth:`Client.labels`."""
        return await self._run(self._client.labels, name)

    async def set_label(self, name: str, label: str, version: int) -> dict[str, int]:
        """See :meth:`Client.set_label`."""
        return await self._run(self._client.set_label, name, label, version)

    async def reload(self) -> bool:
        """See :meth:`Client.reload`."""
        return await self._run(self._client.reload)

    async def record(self, name: str, action: str = "state", **options: Any) -> dict[str, Any]:
        """See :meth:`Client.record`."""
        return await self._run(self._client.record, name, action, **options)

    async def delete_label(self, name: str, label: str) -> dict[str, int]:
        """See :meth:`Client.delete_label`."""
        return await self._run(self._client.delete_label, name, label)
