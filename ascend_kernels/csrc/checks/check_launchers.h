// The functions that start each kernel: check_kernels.asc has them, check_op.cpp calls them.
#ifndef PYPTO_CHECK_LAUNCHERS_H
#define PYPTO_CHECK_LAUNCHERS_H

#include <cstdint>

#include "check_instances.h"

namespace pypto_check {

// `stream` is an aclrtStream.
using Launcher = void (*)(uint32_t cores, void* stream, uint8_t* x, uint8_t* y,
                          const CheckTilingData& tiling);

#define PYPTO_CHECK_LAUNCHER(name, ...)                                      \
    void launch_##name(uint32_t cores, void* stream, uint8_t* x, uint8_t* y, \
                       const CheckTilingData& tiling);
PYPTO_CHECK_INSTANCES(PYPTO_CHECK_LAUNCHER)
#undef PYPTO_CHECK_LAUNCHER

}  // namespace pypto_check

#endif  // PYPTO_CHECK_LAUNCHERS_H
