// The functions that start each kernel: cast_kernels.asc has them, cast_op.cpp calls them.
#ifndef PYPTO_CAST_LAUNCHERS_H
#define PYPTO_CAST_LAUNCHERS_H

#include <cstdint>

#include "cast_instances.h"

namespace pypto_cast {

// `stream` is an aclrtStream.
using Launcher = void (*)(uint32_t cores, void* stream, uint8_t* x, uint8_t* y,
                          const CastTilingData& tiling);

#define PYPTO_CAST_LAUNCHER(name, ...)                                       \
    void launch_##name(uint32_t cores, void* stream, uint8_t* x, uint8_t* y, \
                       const CastTilingData& tiling);
PYPTO_CAST_INSTANCES(PYPTO_CAST_LAUNCHER)
PYPTO_CAST_INSTANCES_ROUTES(PYPTO_CAST_LAUNCHER)
#undef PYPTO_CAST_LAUNCHER

}  // namespace pypto_cast

#endif  // PYPTO_CAST_LAUNCHERS_H
