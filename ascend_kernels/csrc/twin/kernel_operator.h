// The part of AscendC that the kernels use, for any C++17 compiler: kernels run here as on a vector
// core, instruction by instruction, with the results of the family that PYPTO_CAST_ARCH names.
#ifndef PYPTO_TWIN_KERNEL_OPERATOR_H
#define PYPTO_TWIN_KERNEL_OPERATOR_H

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "conversions.h"
#include "memory_copies.h"
#include "queues.h"
#include "trace_numbers.h"
#include "vector_core.h"

// The CANN whose functions there are, as major * 10000 + minor * 100 + patch.
#ifndef PYPTO_TWIN_CANN
#define PYPTO_TWIN_CANN 80500
#endif

#define __aicore__
#define __global__
#define __gm__

using GM_ADDR = __gm__ uint8_t*;

struct half {
    uint16_t code;
    half() = default;
    explicit half(float value)
        : code(pypto_twin::converted<pypto_twin::Half, float, pypto_twin::RoundMode::RINT,
                                     pypto_twin::Policy::INF_NAN>(
              pypto_twin::bits_as<uint32_t>(value))) {}
};

struct bfloat16_t {
    uint16_t code;
};

// Of the 950.
using hifloat8_t = pypto_twin::Hif8;
using fp8_e4m3fn_t = pypto_twin::E4m3;
using fp8_e5m2_t = pypto_twin::E5m2;
using fp4x2_e2m1_t = pypto_twin::E2m1x2;
using fp4x2_e1m2_t = pypto_twin::E1m2x2;

enum pipe_t { PIPE_S, PIPE_V, PIPE_MTE2, PIPE_MTE3, PIPE_ALL };

namespace AscendC {

// Two of them share a byte.
struct int4b_t {
    uint8_t code;
};

#define PYPTO_TWIN_MODE(name) CAST_##name,
enum class RoundMode : uint8_t { CAST_NONE, PYPTO_TWIN_MODES(PYPTO_TWIN_MODE) };
#undef PYPTO_TWIN_MODE

#if PYPTO_TWIN_CANN >= 90100
enum class SaturationMode : uint8_t { FLOAT, FLOAT8, INT, CAST };
#endif

inline int64_t GetBlockIdx() { return pypto_twin::vector_core().block; }
inline int64_t GetBlockNum() { return pypto_twin::vector_core().blocks; }

}  // namespace AscendC

#include "instructions.h"
#include "arithmetic.h"

#endif  // PYPTO_TWIN_KERNEL_OPERATOR_H
