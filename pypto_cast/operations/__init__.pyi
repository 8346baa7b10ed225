"""The operations, by name; docs.generators.operation_stubs wrote it of the rows."""

from pypto_cast.operations.composites import ceil
from pypto_cast.operations.composites import exp2
from pypto_cast.operations.composites import expm1
from pypto_cast.operations.composites import floor
from pypto_cast.operations.composites import log
from pypto_cast.operations.composites import log10
from pypto_cast.operations.composites import log1p
from pypto_cast.operations.composites import log2
from pypto_cast.operations.composites import rms_norm
from pypto_cast.operations.composites import round
from pypto_cast.operations.composites import rsqrt
from pypto_cast.operations.composites import sigmoid
from pypto_cast.operations.composites import sign
from pypto_cast.operations.composites import softmax
from pypto_cast.operations.composites import tril
from pypto_cast.operations.composites import triu
from pypto_cast.operations.composites import trunc
from pypto_cast.operations.composites import var
from pypto_cast.operations.creation import arange
from pypto_cast.operations.creation import full
from pypto_cast.operations.creation import ones
from pypto_cast.operations.creation import zeros
from pypto_cast.operations.cube.convolution import conv
from pypto_cast.operations.cube.matrix_functions import matmul
from pypto_cast.operations.cube.matrix_functions import scaled_mm
from pypto_cast.operations.elementwise_functions import abs
from pypto_cast.operations.elementwise_functions import add
from pypto_cast.operations.elementwise_functions import ceil_div
from pypto_cast.operations.elementwise_functions import clip
from pypto_cast.operations.elementwise_functions import div
from pypto_cast.operations.elementwise_functions import exp
from pypto_cast.operations.elementwise_functions import expand_exp_dif
from pypto_cast.operations.elementwise_functions import floor_div
from pypto_cast.operations.elementwise_functions import fmod
from pypto_cast.operations.elementwise_functions import gcd
from pypto_cast.operations.elementwise_functions import lrelu
from pypto_cast.operations.elementwise_functions import maximum
from pypto_cast.operations.elementwise_functions import minimum
from pypto_cast.operations.elementwise_functions import mul
from pypto_cast.operations.elementwise_functions import neg
from pypto_cast.operations.elementwise_functions import prelu
from pypto_cast.operations.elementwise_functions import reciprocal
from pypto_cast.operations.elementwise_functions import relu
from pypto_cast.operations.elementwise_functions import remainder
from pypto_cast.operations.elementwise_functions import sqrt
from pypto_cast.operations.elementwise_functions import sub
from pypto_cast.operations.elementwise_functions import where
from pypto_cast.operations.indexed.additions import axpy_
from pypto_cast.operations.indexed.additions import index_add
from pypto_cast.operations.indexed.additions import index_add_
from pypto_cast.operations.indexed.additions import index_add__ub
from pypto_cast.operations.indexed.additions import index_add_ub
from pypto_cast.operations.indexed.gathering import gather
from pypto_cast.operations.indexed.gathering import gathermask
from pypto_cast.operations.indexed.gathering import index_select
from pypto_cast.operations.indexed.scattering import atomic_add
from pypto_cast.operations.indexed.scattering import index_put_
from pypto_cast.operations.indexed.scattering import scatter
from pypto_cast.operations.indexed.scattering import scatter_
from pypto_cast.operations.indexed.scattering import scatter_update
from pypto_cast.operations.indexed.sorting import argmax
from pypto_cast.operations.indexed.sorting import argmin
from pypto_cast.operations.indexed.sorting import argsort
from pypto_cast.operations.indexed.sorting import cumprod
from pypto_cast.operations.indexed.sorting import cumsum
from pypto_cast.operations.indexed.sorting import sort32
from pypto_cast.operations.indexed.sorting import topk
from pypto_cast.operations.movement import clone
from pypto_cast.operations.movement import concat
from pypto_cast.operations.movement import deinterleave
from pypto_cast.operations.movement import expand_clone
from pypto_cast.operations.movement import interleave
from pypto_cast.operations.movement import pack
from pypto_cast.operations.movement import permute
from pypto_cast.operations.movement import reshape
from pypto_cast.operations.movement import transpose
from pypto_cast.operations.movement import unpack
from pypto_cast.operations.movement import unsqueeze
from pypto_cast.operations.padding import fillpad
from pypto_cast.operations.padding import one_hot
from pypto_cast.operations.padding import pad
from pypto_cast.operations.quantization import dequantize
from pypto_cast.operations.quantization import quant_mx
from pypto_cast.operations.quantization import quantize
from pypto_cast.operations.random_numbers import normal
from pypto_cast.operations.random_numbers import uniform
from pypto_cast.operations.reduction_functions import amax
from pypto_cast.operations.reduction_functions import amin
from pypto_cast.operations.reduction_functions import prod
from pypto_cast.operations.reduction_functions import sum
from pypto_cast.operations.special_functions import acos
from pypto_cast.operations.special_functions import acosh
from pypto_cast.operations.special_functions import asin
from pypto_cast.operations.special_functions import asinh
from pypto_cast.operations.special_functions import atan
from pypto_cast.operations.special_functions import atan2
from pypto_cast.operations.special_functions import atanh
from pypto_cast.operations.special_functions import cbrt
from pypto_cast.operations.special_functions import copysign
from pypto_cast.operations.special_functions import cos
from pypto_cast.operations.special_functions import cosh
from pypto_cast.operations.special_functions import erf
from pypto_cast.operations.special_functions import erfc
from pypto_cast.operations.special_functions import hypot
from pypto_cast.operations.special_functions import pow
from pypto_cast.operations.special_functions import sin
from pypto_cast.operations.special_functions import sinh
from pypto_cast.operations.special_functions import tan
from pypto_cast.operations.special_functions import tanh
from pypto_cast.operations.truth_and_bits import bitwise_and
from pypto_cast.operations.truth_and_bits import bitwise_left_shift
from pypto_cast.operations.truth_and_bits import bitwise_not
from pypto_cast.operations.truth_and_bits import bitwise_or
from pypto_cast.operations.truth_and_bits import bitwise_right_shift
from pypto_cast.operations.truth_and_bits import bitwise_xor
from pypto_cast.operations.truth_and_bits import eq
from pypto_cast.operations.truth_and_bits import ge
from pypto_cast.operations.truth_and_bits import greater
from pypto_cast.operations.truth_and_bits import gt
from pypto_cast.operations.truth_and_bits import isfinite
from pypto_cast.operations.truth_and_bits import isnan
from pypto_cast.operations.truth_and_bits import le
from pypto_cast.operations.truth_and_bits import logical_and
from pypto_cast.operations.truth_and_bits import logical_not
from pypto_cast.operations.truth_and_bits import lt
from pypto_cast.operations.truth_and_bits import ne
from pypto_cast.operations.truth_and_bits import signbit

__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "amax",
    "amin",
    "arange",
    "argmax",
    "argmin",
    "argsort",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "atomic_add",
    "axpy_",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "cbrt",
    "ceil",
    "ceil_div",
    "clip",
    "clone",
    "concat",
    "conv",
    "copysign",
    "cos",
    "cosh",
    "cumprod",
    "cumsum",
    "deinterleave",
    "dequantize",
    "div",
    "eq",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expand_clone",
    "expand_exp_dif",
    "expm1",
    "fillpad",
    "floor",
    "floor_div",
    "fmod",
    "full",
    "gather",
    "gathermask",
    "gcd",
    "ge",
    "greater",
    "gt",
    "hypot",
    "index_add",
    "index_add_",
    "index_add__ub",
    "index_add_ub",
    "index_put_",
    "index_select",
    "interleave",
    "isfinite",
    "isnan",
    "le",
    "log",
    "log10",
    "log1p",
    "log2",
    "logical_and",
    "logical_not",
    "lrelu",
    "lt",
    "matmul",
    "maximum",
    "minimum",
    "mul",
    "ne",
    "neg",
    "normal",
    "one_hot",
    "ones",
    "pack",
    "pad",
    "permute",
    "pow",
    "prelu",
    "prod",
    "quant_mx",
    "quantize",
    "reciprocal",
    "relu",
    "remainder",
    "reshape",
    "rms_norm",
    "round",
    "rsqrt",
    "scaled_mm",
    "scatter",
    "scatter_",
    "scatter_update",
    "sigmoid",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "softmax",
    "sort32",
    "sqrt",
    "sub",
    "sum",
    "tan",
    "tanh",
    "topk",
    "transpose",
    "tril",
    "triu",
    "trunc",
    "uniform",
    "unpack",
    "unsqueeze",
    "var",
    "where",
    "zeros",
]
