"""Upstream's releases as they differ in results and in accepted operands: tables alone.

The facts of one operation stand in its row (`pypto_cast.operations.operation_rows`), which enters
them here by release.

Sources: upstream pypto at tag r0.2.0 (d1c290f36), whose wheel compiles kernels without a device,
and at revision 883e7dfb0; the paths below are under framework/src unless they begin with python or
docs, those of operations under interface/operation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, get_args

from pypto_cast.dtypes.data_types import DataType

ReleaseName = Literal["0.2.0", "head"]
RELEASE_NAMES: Final[tuple[ReleaseName, ...]] = get_args(ReleaseName)

Dtypes = tuple[DataType, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One release of upstream's, by the facts that differ in another.

    Attributes:
        name: of the wheel, or "head" for the newest public revision.
        revision: of the sources.
        run_in_fp32: by operation the dtypes that AutoCast runs in FP32; the FP32 result is what the
            next such operation takes.
        cast_to_fp32: by operation the dtypes that the operation itself casts to FP32 and back.
        takes: by operation dtypes besides those of the row.
        refuses: by operation dtypes of the row that it does not list.
        lacks: operations that it does not have.
        lacks_methods: methods of tensors that it does not have, whatever functions it has.
        lacks_operators: operators of a kernel's numbers that it does not have.
        lacks_statements: statements, by their classes in `ast`, that its parser refuses in a kernel
            where that of another release takes them.
        least_dims: by operation the dimensions that a tensor needs, where that is more than one.
        repeated_axes: the most axes along which a broadcast may repeat one operand.
        reduces_whole_blocks: a reduction of the last axis needs a tile of whole 32 B blocks there.
        var_multiplies: `var` multiplies by 1/n where others divide by n.
        sums_in_turn: `cumsum` adds each element to the sum of all before in its tile.
        composes_sine: `sin` and `cos` are products and sums; where not, tile operations.
        powers_by_products: `pow` of a tensor to a whole number is products.
        rounds_quotients: `ceil_div` is the quotient rounded up; where not, remainders correct it.
        index_adds_in_gm: `index_add` adds to memory; where not, in UB.
        has_precision_types: functions and methods take `precision_type`.
        quantises_products: `matmul` gives INT8 under a scale.
        selects_floats: `where` takes a Python float beside a tensor of another dtype than FP32.
        rebinds_parameters: a kernel may give the name of a tensor parameter to another tensor.
        assembles_dynamic: `assemble` takes a tensor with a dynamic dimension.
    """

    name: ReleaseName
    revision: str
    run_in_fp32: dict[str, Dtypes] = field(default_factory=dict)
    cast_to_fp32: dict[str, Dtypes] = field(default_factory=dict)
    takes: dict[str, Dtypes] = field(default_factory=dict)
    refuses: dict[str, Dtypes] = field(default_factory=dict)
    lacks: set[str] = field(default_factory=set)
    lacks_methods: frozenset[str]
    lacks_operators: frozenset[str]
    lacks_statements: frozenset[str]
    least_dims: dict[str, int] = field(default_factory=dict)
    repeated_axes: int
    reduces_whole_blocks: bool
    var_multiplies: bool
    sums_in_turn: bool
    powers_by_products: bool
    rounds_quotients: bool
    composes_sine: bool
    index_adds_in_gm: bool
    has_precision_types: bool
    quantises_products: bool
    selects_floats: bool
    rebinds_parameters: bool
    assembles_dynamic: bool

    def offers(self, operation: str, dtype: DataType, listed: bool) -> bool:
        """True if an operation accepts a dtype, given that its row lists it or not."""
        if listed:
            return dtype not in self.refuses.get(operation, ())
        return dtype in self.takes.get(operation, ())

    def __str__(self) -> str:
        return f"release {self.name} ({self.revision})"


RELEASES: Final[Mapping[ReleaseName, Release]] = MappingProxyType(
    {
        release.name: release
        for release in (
            Release(
                name="0.2.0",
                revision="d1c290f36",
                lacks_operators=frozenset(("and", "or")),  # python/pypto/symbolic_scalar.py
                lacks_methods=frozenset(  # python/pypto/tensor.py
                    {"copy", "is_empty", "prod", "remainder"}
                ),
                lacks_statements=frozenset(  # python/pypto/frontend/parser/parser.py
                    {"While", "Break", "Continue", "AnnAssign", "FunctionDef"}
                ),
                repeated_axes=1,  # vector/tensor_transformation.cpp:58
                reduces_whole_blocks=True,  # vector/reduction.cpp, ValidateReductionAxis
                var_multiplies=True,  # vector/math.cpp, Var
                sums_in_turn=True,  # tileop/vector/cumsum.h
                powers_by_products=True,  # vector/math.cpp, GeneralPow
                rounds_quotients=True,  # vector/binary.cpp:561
                composes_sine=True,  # python/pypto/operator.py
                index_adds_in_gm=False,  # tileop/vector/indexadd.h
                has_precision_types=False,  # python/pypto/op/math.py
                quantises_products=False,  # cube_operation_impl.cpp, CheckFixpipeParam
                selects_floats=True,  # python/pypto/op/other.py
                rebinds_parameters=True,  # python/pypto/frontend/parser/parser.py, _assign_target
                assembles_dynamic=True,  # operation_impl.cpp, Assemble
            ),
            Release(
                name="head",
                revision="883e7dfb0",
                lacks_methods=frozenset(),
                lacks_operators=frozenset(),
                lacks_statements=frozenset(),
                repeated_axes=4,
                reduces_whole_blocks=False,
                var_multiplies=False,
                sums_in_turn=False,  # tileop/vector/cum_operation.h
                powers_by_products=False,  # vector/binary.cpp, PowSCalc
                rounds_quotients=False,  # vector/binary.cpp, CeilDiv
                composes_sine=False,  # vector/unary.cpp, Sin; tileop/vector/unary.h, TSin
                index_adds_in_gm=True,  # tileop/vector/indexadd.h, TIndexAdd
                has_precision_types=True,
                quantises_products=True,  # cube_operation_impl.cpp, CheckFixpipeParam
                selects_floats=False,  # python/pypto/op/other.py:50
                rebinds_parameters=False,
                assembles_dynamic=False,  # operation_impl.cpp:1521
            ),
        )
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """A reading of a release that two of its own texts contradict.

    Attributes:
        release: whose texts.
        operations, dtype: what they are about.
        reading: what is followed here.
        source: the text that says so.
        against: what the other text expects.
        contrary: the other text.
    """

    release: ReleaseName
    operations: frozenset[str]
    dtype: DataType
    reading: str
    source: str
    against: str
    contrary: str

    def is_about(self, operation: str, dtype: DataType) -> bool:
        """True if the conflict concerns an operation on a dtype."""
        return operation in self.operations and dtype is self.dtype

    def __str__(self) -> str:
        return (
            f"conflicting: {self.reading} ({self.source}), but {self.contrary} expects "
            f"{self.against}"
        )


CONFLICTS: Final = (
    Conflict(
        release="head",
        operations=frozenset({"add", "sub", "mul", "neg"}),
        dtype=DataType.DT_FP16,
        reading="FP16 add, sub, mul and neg keep FP32 between them",
        source="auto_cast.cpp:229 with opcode.h:897",
        against="FP16 after each add",
        contrary="python/tests/st/interface/test_input_tensor_reassign.py",
    ),
)
"""The readings that are followed although upstream contradicts itself."""
