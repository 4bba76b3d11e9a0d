"""``df.tfserve`` is there as soon as both packages are, whichever is imported first.

pandas takes a second to import and most processes that import this package never do; so what
registers the accessor waits for it, and what the accessor needs waits for its first use.
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_NAME = "tfserve"


def register_accessor() -> None:
    """Add the accessor to pandas, now or when it will have been imported."""
    if "pandas" in sys.modules:
        _register()
    elif not any(isinstance(finder, _PandasFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _PandasFinder())


def _register() -> None:
    from pandas.api.extensions import register_dataframe_accessor

    register_dataframe_accessor(_NAME)(_accessor)


def _accessor(frame: Any) -> Any:
    from .notebook.accessor import FrameAccessor

    return FrameAccessor(frame)


class _PandasFinder(MetaPathFinder):
    """Lets the other finders find pandas, and is told when it has been run."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Importlib: where a module is; None for what is left to the other finders."""
        if fullname != "pandas" or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def run_and_register(module: ModuleType) -> None:
                run(module)
                _register()

            spec.loader.exec_module = run_and_register  # type: ignore[method-assign]
        return spec
