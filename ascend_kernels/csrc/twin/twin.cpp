// The kernels as a library for one process: pypto_twin_run plays some of a launch's cores. Integers
// of 4 bits lie in GM two to a byte; pypto_twin_pack and pypto_twin_unpack bring them there and
// back.
#include <algorithm>
#include <cfenv>
#include <cstdint>
#include <cstring>
#include <exception>
#include <iterator>

#include "../cast_kernel.h"

namespace {

using Kernel = void (*)(GM_ADDR x, GM_ADDR y, const CastTilingData& tiling);

template <class Src, class Dst, auto mode>
void run_kernel(GM_ADDR x, GM_ADDR y, const CastTilingData& tiling) {
    AscendC::TPipe pipe;
    CastKernel<Src, Dst, mode> kernel;
    kernel.Init(x, y, tiling, pipe);
    kernel.Process();
}

#define PYPTO_TWIN_ENTRY(name, Src, Dst, mode) run_kernel<Src, Dst, mode>,
constexpr Kernel kernels[] = {PYPTO_CAST_INSTANCES(PYPTO_TWIN_ENTRY)
                                  PYPTO_CAST_INSTANCES_ROUTES(PYPTO_TWIN_ENTRY)};
#undef PYPTO_TWIN_ENTRY

// The default floating-point environment, on this thread and until the end of a scope: rounding to
// nearest, subnormal numbers kept. Then the caller's own comes back, its exception flags too.
class DefaultEnvironment {
  public:
    DefaultEnvironment() {
        std::fegetenv(&callers_);
        std::fesetenv(FE_DFL_ENV);
    }
    ~DefaultEnvironment() { std::fesetenv(&callers_); }
    DefaultEnvironment(const DefaultEnvironment&) = delete;
    DefaultEnvironment& operator=(const DefaultEnvironment&) = delete;

  private:
    std::fenv_t callers_;
};

}  // namespace

// A launch of an instance on `blocks` cores.
struct PyptoTwinLaunch {
    uint64_t instance;
    const CastTilingData* tiling;
    uint8_t* x;
    uint64_t x_bytes;
    uint8_t* y;
    uint64_t y_bytes;
    uint64_t blocks;
};

// Plays the cores from `first` up to `last` of a launch. `visit`, if any, is shown every
// instruction. Returns 0, or 1 with the reason in `error`.
PYPTO_TWIN_EXPORT int pypto_twin_run(const PyptoTwinLaunch* launch, uint64_t first, uint64_t last,
                                     pypto_twin::Visit visit, char* error, uint64_t error_bytes) {
    const DefaultEnvironment environment;
    pypto_twin::VectorCore& core = pypto_twin::vector_core();
    try {
        pypto_twin::require(launch->instance < std::size(kernels), "no such instance");
        core.blocks = static_cast<uint32_t>(launch->blocks);
        core.x = {launch->x, launch->x_bytes};
        core.y = {launch->y, launch->y_bytes};
        core.visit = visit;
        for (uint64_t block = first; block < last; ++block) {
            core.block = static_cast<uint32_t>(block);
            core.start();
            kernels[launch->instance](launch->x, launch->y, *launch->tiling);
            core.finish();
        }
        pypto_twin::finish_streaming();
        return 0;
    } catch (const std::exception& failure) {
        const size_t size = std::min<size_t>(std::strlen(failure.what()), error_bytes - 1);
        std::memcpy(error, failure.what(), size);
        error[size] = '\0';
        return 1;
    }
}

// Packs codes, one in the low bits of each byte: the first of a pair becomes the low nibble.
PYPTO_TWIN_EXPORT void pypto_twin_pack(uint8_t* packed, const uint8_t* codes, uint64_t pairs) {
    PYPTO_TWIN_INDEPENDENT
    for (uint64_t i = 0; i < pairs; ++i) {
        packed[i] = static_cast<uint8_t>((codes[2 * i] & 15) | codes[2 * i + 1] << 4);
    }
}

PYPTO_TWIN_EXPORT void pypto_twin_unpack(uint8_t* codes, const uint8_t* packed, uint64_t pairs) {
    PYPTO_TWIN_INDEPENDENT
    for (uint64_t i = 0; i < pairs; ++i) {
        codes[2 * i] = packed[i] & 15;
        codes[2 * i + 1] = packed[i] >> 4;
    }
}
