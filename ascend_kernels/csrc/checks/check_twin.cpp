// The kernels of a device check as a library for one process. CTRL outlives a kernel, as on a
// device.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <iterator>

#include "check_kernel.h"

namespace {

using namespace pypto_check;
using Kernel = void (*)(GM_ADDR x, GM_ADDR y, const CheckTilingData& tiling);

#define PYPTO_CHECK_ENTRY(name, ...) __VA_ARGS__::Run,
constexpr Kernel kernels[] = {PYPTO_CHECK_INSTANCES(PYPTO_CHECK_ENTRY)};
#undef PYPTO_CHECK_ENTRY

}  // namespace

// Plays all cores of a launch. `visit`, if any, is shown every instruction. Returns 0, or 1 with the
// reason in `error`.
PYPTO_TWIN_EXPORT int pypto_check_run(uint64_t instance, const CheckTilingData* tiling, uint8_t* x,
                                      uint64_t x_bytes, uint8_t* y, uint64_t y_bytes,
                                      uint64_t cores, pypto_twin::Visit visit, char* error,
                                      uint64_t error_bytes) {
    pypto_twin::VectorCore& core = pypto_twin::vector_core();
    try {
        pypto_twin::require(instance < std::size(kernels), "no such instance");
        core.blocks = static_cast<uint32_t>(cores);
        core.x = {x, x_bytes};
        core.y = {y, y_bytes};
        core.visit = visit;
        for (uint64_t block = 0; block < cores; ++block) {
            core.block = static_cast<uint32_t>(block);
            kernels[instance](x, y, *tiling);
        }
        return 0;
    } catch (const std::exception& failure) {
        const size_t size = std::min<size_t>(std::strlen(failure.what()), error_bytes - 1);
        std::memcpy(error, failure.what(), size);
        error[size] = '\0';
        return 1;
    }
}
