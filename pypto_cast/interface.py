"""The names of `pypto_cast`: those of the core, and entries of the rooms that stand on it."""

from typing import TYPE_CHECKING, Any

from ascend_kernels.matrix import (
    CastModeError,
    CastModeWarning,
    SaturationModeWarning,
    UnsupportedCastError,
)
from ascend_kernels.npu import RunMode
from ascend_kernels.program import TileProgram
from pypto_cast import frontend, operations
from pypto_cast.cast.api import cast, ceildiv
from pypto_cast.dtypes import data_types
from pypto_cast.dtypes.data_types import *
from pypto_cast.kernel.certainty import (
    Cause,
    Certainty,
    CertaintyCounts,
    OutputCertainty,
    Remedy,
    what_if,
)
from pypto_cast.kernel.choices import OtherRelease
from pypto_cast.kernel.functions import function
from pypto_cast.kernel.jit import Kernel, jit
from pypto_cast.kernel.kernel_source import Signature
from pypto_cast.kernel.listing import Estimate, KernelProgram
from pypto_cast.kernel.loops import cond, is_loop_begin, is_loop_end, loop, loop_unroll
from pypto_cast.kernel.views import assemble, view
from pypto_cast.loading import ENTRIES, entry
from pypto_cast.operations import *
from pypto_cast.options.context import (
    Options,
    get_vec_tile_shapes,
    options,
    reset_options,
    set_vec_tile_shapes,
)
from pypto_cast.options.releases import Release
from pypto_cast.platform import Platform, platform
from pypto_cast.recording.steps import CastRecord, OperationRecord, OperationStep
from pypto_cast.report.report import Report
from pypto_cast.tensors.arguments import TensorAnnotation
from pypto_cast.tensors.arrays import from_dlpack, from_numpy, from_torch
from pypto_cast.tensors.nz_layout import from_nz, to_nz
from pypto_cast.tensors.symbolic import (
    DYN,
    DYNAMIC,
    STATIC,
    LoopIndex,
    StatusType,
    Symbol,
    SymbolicScalar,
    SymInt,
    max,
    min,
)
from pypto_cast.tensors.tensor import Tensor, tensor
from pypto_cast.unsupported import (
    DynamicOperandWarning,
    UpstreamRefusalError,
    UpstreamRefusalWarning,
)
from pypto_cast.upstream import experimental, operation, pypto_impl, runtime
from pypto_cast.upstream.import_alias import (
    InstalledPyptoError,
    InstalledPyptoWarning,
    as_pypto,
    module_getattr,
    name_modules,
)
from pypto_cast.upstream.pypto_impl import Element
from pypto_cast.upstream.runtime import set_verify_golden_data
from pypto_cast.upstream.setters import (
    ConfigScope,
    get_codegen_options,
    get_cube_tile_shapes,
    get_current_scope,
    get_debug_options,
    get_host_options,
    get_pass_options,
    get_verify_options,
    set_codegen_options,
    set_cube_tile_shapes,
    set_debug_options,
    set_host_options,
    set_matrix_size,
    set_pass_options,
    set_print_options,
    set_semantic_label,
    set_verify_options,
)
from simulator.arithmetic.interval import Interval
from simulator.arithmetic.trust import Assumption
from simulator.machine.memory import SimulatorFault
from simulator.numbers.engines import EngineWarning
from simulator.numbers.result_memory import release_memory
from tiling.chips import Chip
from tiling.cost import CostParameters
from tiling.plan import ShapeError, TilePlan, TileShapeError, TileShapeWarning

if TYPE_CHECKING:  # entries of `pypto_cast.loading`
    from ascend_kernels.routing.chain_check import Verdict
    from ascend_kernels.schedule.schedule import Schedule
    from pypto_cast.routes.cast_routes import Route, RouteError, Routes, RouteStep, routes
    from pypto_cast.tuning.tune import TunedCast, tune
    from pypto_cast.upstream.schedule_reader import read_schedule
    from tiling.ranking import Candidate, TuningResult

element = Element
symbolic_scalar = SymbolicScalar

__all__ = [
    "DYN",
    "DYNAMIC",
    "STATIC",
    "Assumption",
    "Candidate",
    "CastModeError",
    "CastModeWarning",
    "CastRecord",
    "Cause",
    "Certainty",
    "CertaintyCounts",
    "Chip",
    "ConfigScope",
    "CostParameters",
    "DynamicOperandWarning",
    "Element",
    "EngineWarning",
    "Estimate",
    "InstalledPyptoError",
    "InstalledPyptoWarning",
    "Interval",
    "Kernel",
    "KernelProgram",
    "LoopIndex",
    "OperationRecord",
    "OperationStep",
    "Options",
    "OtherRelease",
    "OutputCertainty",
    "Platform",
    "Release",
    "Remedy",
    "Report",
    "Route",
    "RouteError",
    "RouteStep",
    "Routes",
    "RunMode",
    "SaturationModeWarning",
    "Schedule",
    "ShapeError",
    "Signature",
    "SimulatorFault",
    "StatusType",
    "SymInt",
    "Symbol",
    "SymbolicScalar",
    "Tensor",
    "TensorAnnotation",
    "TilePlan",
    "TileProgram",
    "TileShapeError",
    "TileShapeWarning",
    "TunedCast",
    "TuningResult",
    "UnsupportedCastError",
    "UpstreamRefusalError",
    "UpstreamRefusalWarning",
    "Verdict",
    "as_pypto",
    "assemble",
    "cast",
    "ceildiv",
    "cond",
    "element",
    "experimental",
    "from_dlpack",
    "from_numpy",
    "from_nz",
    "from_torch",
    "frontend",
    "function",
    "get_codegen_options",
    "get_cube_tile_shapes",
    "get_current_scope",
    "get_debug_options",
    "get_host_options",
    "get_pass_options",
    "get_vec_tile_shapes",
    "get_verify_options",
    "is_loop_begin",
    "is_loop_end",
    "jit",
    "loop",
    "loop_unroll",
    "max",
    "min",
    "operation",
    "options",
    "platform",
    "pypto_impl",
    "read_schedule",
    "release_memory",
    "reset_options",
    "routes",
    "runtime",
    "set_codegen_options",
    "set_cube_tile_shapes",
    "set_debug_options",
    "set_host_options",
    "set_matrix_size",
    "set_pass_options",
    "set_print_options",
    "set_semantic_label",
    "set_vec_tile_shapes",
    "set_verify_golden_data",
    "set_verify_options",
    "symbolic_scalar",
    "tensor",
    "to_nz",
    "tune",
    "view",
    "what_if",
]
__all__ += data_types.__all__
__all__ += operations.__all__

name_modules("pypto_cast")

_, _missing_name = module_getattr("pypto_cast")


def missing_name(name: str) -> Any:
    """The `__getattr__` of the package: an entry of a room on the core, loaded now, or an error."""
    return entry(name) if name in ENTRIES and name in __all__ else _missing_name(name)
