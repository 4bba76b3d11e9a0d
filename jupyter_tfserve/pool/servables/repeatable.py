"""Graphs that answer the same whatever they were asked before, found by their operations.

A run of such a graph leaves nothing behind and draws nothing at random, so that it makes no
difference whether two inputs are run in one run or in two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from tensorflow.python.framework import op_def_registry

if TYPE_CHECKING:
    from tensorflow.core.framework import graph_pb2

_HARMLESS = frozenset(
    (
        # Variables and tables, as long as they are only read.
        "VarHandleOp", "ReadVariableOp", "VarIsInitializedOp", "VariableShape", "ResourceGather",
        "ResourceGatherNd", "DisableCopyOnRead", "Variable", "VariableV2", "IsVariableInitialized",
        "HashTable", "HashTableV2", "AnonymousHashTable", "MutableHashTable", "MutableHashTableV2",
        "MutableHashTableOfTensors", "MutableHashTableOfTensorsV2", "MutableDenseHashTable",
        "MutableDenseHashTableV2", "LookupTableFind", "LookupTableFindV2", "LookupTableSize",
        "LookupTableSizeV2", "LookupTableExport", "LookupTableExportV2",
        "BoostedTreesEnsembleResourceHandleOp", "BoostedTreesPredict",
        # Control flow; what it calls is looked into.
        "StatefulPartitionedCall", "If", "While", "Case", "StatelessIf", "StatelessWhile",
        "StatelessCase", "RefEnter", "RefExit", "RefIdentity", "RefMerge", "RefNextIteration",
        "RefSelect", "RefSwitch",
        # What is kept for one run.
        "TemporaryVariable", "DestroyTemporaryVariable", "Stack", "StackV2", "StackPush",
        "StackPushV2", "StackPop", "StackPopV2", "StackClose", "StackCloseV2",
        # Checks and messages.
        "Assert", "CheckNumerics", "CheckNumericsV2", "Print", "PrintV2", "GuaranteeConst",
    )
)  # fmt: skip
"""Operations that TensorFlow takes for stateful, or that take references, and that do no harm."""


def unrepeatable_operation(graph: graph_pb2.GraphDef, fetches: Iterable[str]) -> str | None:
    """An operation that the tensors ``fetches`` depend on and that keeps state or draws numbers.

    Functions that are called are looked into. Returns its type, such as ``RandomUniform``, or None.
    """
    functions = {function.signature.name: function for function in graph.library.function}
    entered: set[str] = set()
    to_see = list(_reachable(graph, fetches))
    while to_see:
        node = to_see.pop()
        if node.op not in functions and not _is_harmless(node.op):
            return str(node.op)
        for name in _called_by(node):
            if name in functions and name not in entered:
                entered.add(name)
                # All of a function is run, not only what leads to its results.
                to_see += functions[name].node_def
    return None


def because_of(operation: str) -> str:
    """What is said of such an operation."""
    return f"its operation {operation} keeps state or draws random numbers"


def _reachable(graph: graph_pb2.GraphDef, fetches: Iterable[str]) -> Iterator[Any]:
    """The nodes that these tensors depend on."""
    nodes = {node.name: node for node in graph.node}
    names = list(fetches)
    seen: set[str] = set()
    while names:
        name = names.pop().removeprefix("^").partition(":")[0]
        if name not in seen and name in nodes:
            seen.add(name)
            names += nodes[name].input
            yield nodes[name]


def _called_by(node: Any) -> Iterator[str]:
    """The functions that a node may call; its type may be one as well."""
    yield node.op
    for value in node.attr.values():
        if value.HasField("func"):
            yield value.func.name
        for function in value.list.func:
            yield function.name


@cache
def _is_harmless(operation: str) -> bool:
    if operation in _HARMLESS or operation.startswith("TensorArray"):  # which lives for one run
        return True
    # The same numbers for each run, and so others for a row that is moved within a batch.
    if operation.startswith("Stateless") or operation == "RandomIndexShuffle":
        return False
    definition = op_def_registry.get(operation)
    if definition is None or definition.is_stateful:
        return False
    return not any(argument.is_ref for argument in definition.input_arg)
