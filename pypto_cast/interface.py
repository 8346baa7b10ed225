"""The names of `pypto_cast`: those of the core, and entries of the rooms that stand on it.

Each is imported as itself, by which type checkers know that others may import it from here.
"""

import typing as _typing

from ascend_kernels.matrix import CastModeError as CastModeError
from ascend_kernels.matrix import CastModeWarning as CastModeWarning
from ascend_kernels.matrix import SaturationModeWarning as SaturationModeWarning
from ascend_kernels.matrix import UnsupportedCastError as UnsupportedCastError
from ascend_kernels.npu import RunMode as RunMode
from ascend_kernels.program import TileProgram as TileProgram
from pypto_cast import frontend as frontend
from pypto_cast.cast.api import cast as cast
from pypto_cast.cast.api import ceildiv as ceildiv
from pypto_cast.dtypes.data_types import *
from pypto_cast.kernel.certainty import Cause as Cause
from pypto_cast.kernel.certainty import Certainty as Certainty
from pypto_cast.kernel.certainty import CertaintyCounts as CertaintyCounts
from pypto_cast.kernel.certainty import OutputCertainty as OutputCertainty
from pypto_cast.kernel.certainty import Remedy as Remedy
from pypto_cast.kernel.certainty import what_if as what_if
from pypto_cast.kernel.choices import OtherRelease as OtherRelease
from pypto_cast.kernel.functions import function as function
from pypto_cast.kernel.jit import Kernel as Kernel
from pypto_cast.kernel.jit import jit as jit
from pypto_cast.kernel.kernel_source import Signature as Signature
from pypto_cast.kernel.listing import Estimate as Estimate
from pypto_cast.kernel.listing import KernelProgram as KernelProgram
from pypto_cast.kernel.loops import cond as cond
from pypto_cast.kernel.loops import is_loop_begin as is_loop_begin
from pypto_cast.kernel.loops import is_loop_end as is_loop_end
from pypto_cast.kernel.loops import loop as loop
from pypto_cast.kernel.loops import loop_unroll as loop_unroll
from pypto_cast.kernel.scheduled import UnplannedKernelWarning as UnplannedKernelWarning
from pypto_cast.operations import *
from pypto_cast.operations.views import assemble as assemble
from pypto_cast.operations.views import view as view
from pypto_cast.options.context import Options as Options
from pypto_cast.options.context import get_vec_tile_shapes as get_vec_tile_shapes
from pypto_cast.options.context import options as options
from pypto_cast.options.context import reset_options as reset_options
from pypto_cast.options.context import set_vec_tile_shapes as set_vec_tile_shapes
from pypto_cast.options.releases import Release as Release
from pypto_cast.platform import Platform as Platform
from pypto_cast.platform import platform as platform
from pypto_cast.recording.steps import CastRecord as CastRecord
from pypto_cast.recording.steps import OperationRecord as OperationRecord
from pypto_cast.recording.steps import OperationStep as OperationStep
from pypto_cast.report.report import Report as Report
from pypto_cast.tensors.arguments import TensorAnnotation as TensorAnnotation
from pypto_cast.tensors.arrays import from_dlpack as from_dlpack
from pypto_cast.tensors.arrays import from_numpy as from_numpy
from pypto_cast.tensors.arrays import from_torch as from_torch
from pypto_cast.tensors.nz_layout import from_nz as from_nz
from pypto_cast.tensors.nz_layout import to_nz as to_nz
from pypto_cast.tensors.symbolic import DYN as DYN
from pypto_cast.tensors.symbolic import DYNAMIC as DYNAMIC
from pypto_cast.tensors.symbolic import STATIC as STATIC
from pypto_cast.tensors.symbolic import LoopIndex as LoopIndex
from pypto_cast.tensors.symbolic import StatusType as StatusType
from pypto_cast.tensors.symbolic import Symbol as Symbol
from pypto_cast.tensors.symbolic import SymbolicScalar as SymbolicScalar
from pypto_cast.tensors.symbolic import SymInt as SymInt
from pypto_cast.tensors.symbolic import max as max
from pypto_cast.tensors.symbolic import min as min
from pypto_cast.tensors.tensor import Tensor as Tensor
from pypto_cast.tensors.tensor import tensor as tensor
from pypto_cast.unsupported import DynamicOperandWarning as DynamicOperandWarning
from pypto_cast.unsupported import UpstreamRefusalError as UpstreamRefusalError
from pypto_cast.unsupported import UpstreamRefusalWarning as UpstreamRefusalWarning
from pypto_cast.upstream import experimental as experimental
from pypto_cast.upstream import operation as operation
from pypto_cast.upstream import pypto_impl as pypto_impl
from pypto_cast.upstream import runtime as runtime
from pypto_cast.upstream.import_alias import InstalledPyptoError as InstalledPyptoError
from pypto_cast.upstream.import_alias import InstalledPyptoWarning as InstalledPyptoWarning
from pypto_cast.upstream.import_alias import as_pypto as as_pypto
from pypto_cast.upstream.pypto_impl import Element as Element
from pypto_cast.upstream.runtime import set_verify_golden_data as set_verify_golden_data
from pypto_cast.upstream.setters import ConfigScope as ConfigScope
from pypto_cast.upstream.setters import get_codegen_options as get_codegen_options
from pypto_cast.upstream.setters import get_cube_tile_shapes as get_cube_tile_shapes
from pypto_cast.upstream.setters import get_current_scope as get_current_scope
from pypto_cast.upstream.setters import get_debug_options as get_debug_options
from pypto_cast.upstream.setters import get_host_options as get_host_options
from pypto_cast.upstream.setters import get_pass_options as get_pass_options
from pypto_cast.upstream.setters import get_verify_options as get_verify_options
from pypto_cast.upstream.setters import set_codegen_options as set_codegen_options
from pypto_cast.upstream.setters import set_cube_tile_shapes as set_cube_tile_shapes
from pypto_cast.upstream.setters import set_debug_options as set_debug_options
from pypto_cast.upstream.setters import set_host_options as set_host_options
from pypto_cast.upstream.setters import set_matrix_size as set_matrix_size
from pypto_cast.upstream.setters import set_pass_options as set_pass_options
from pypto_cast.upstream.setters import set_print_options as set_print_options
from pypto_cast.upstream.setters import set_semantic_label as set_semantic_label
from pypto_cast.upstream.setters import set_verify_options as set_verify_options
from simulator.arithmetic.interval import Interval as Interval
from simulator.arithmetic.trust import Assumption as Assumption
from simulator.machine.memory import SimulatorFault as SimulatorFault
from simulator.numbers.engines import EngineWarning as EngineWarning
from simulator.numbers.result_memory import release_memory as release_memory
from tiling.chips import Chip as Chip
from tiling.cost import CostParameters as CostParameters
from tiling.plan import ShapeError as ShapeError
from tiling.plan import TilePlan as TilePlan
from tiling.plan import TileShapeError as TileShapeError
from tiling.plan import TileShapeWarning as TileShapeWarning

if _typing.TYPE_CHECKING:  # entries of `pypto_cast.loading`
    from ascend_kernels.routing.chain_check import Verdict as Verdict
    from ascend_kernels.schedule.planner.tiles.tile_graph import PlanError as PlanError
    from ascend_kernels.schedule.planner.ub_overflow import UBOverflow as UBOverflow
    from ascend_kernels.schedule.planner.ub_overflow import UBOverflowError as UBOverflowError
    from ascend_kernels.schedule.schedule import EventReuseWarning as EventReuseWarning
    from ascend_kernels.schedule.schedule import NotExecutedError as NotExecutedError
    from ascend_kernels.schedule.schedule import Schedule as Schedule
    from pypto_cast.kernel.fit import FitChange as FitChange
    from pypto_cast.kernel.fit import FitReport as FitReport
    from pypto_cast.kernel.fit import fit_report as fit_report
    from pypto_cast.kernel.reports.schedule_diff import ScheduleDiff as ScheduleDiff
    from pypto_cast.kernel.task_estimate import TaskEstimate as TaskEstimate
    from pypto_cast.kernel.tuned_kernel import TunedKernel as TunedKernel
    from pypto_cast.routes.cast_routes import Route as Route
    from pypto_cast.routes.cast_routes import RouteError as RouteError
    from pypto_cast.routes.cast_routes import Routes as Routes
    from pypto_cast.routes.cast_routes import RouteStep as RouteStep
    from pypto_cast.routes.cast_routes import routes as routes
    from pypto_cast.tuning.tune import TunedCast as TunedCast
    from pypto_cast.tuning.tune import tune as tune
    from pypto_cast.upstream.schedule_reader import read_schedule as read_schedule
    from tiling.ranking import Candidate as Candidate
    from tiling.ranking import TuningResult as TuningResult

element = Element
symbolic_scalar = SymbolicScalar
