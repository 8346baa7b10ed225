// One vector core of the twin: its UB, the tensors in GM, its control registers, and its trace.
//
// Whatever the hardware does not permit is a Violation: memory outside of a tensor or a buffer is
// never touched.
#ifndef PYPTO_TWIN_VECTOR_CORE_H
#define PYPTO_TWIN_VECTOR_CORE_H

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

#include "cast_rows.h"
#include "trace_numbers.h"

// A function that Python calls. All else is hidden: the loader gives equal symbols of two libraries
// one address, and each family has a library.
#define PYPTO_TWIN_EXPORT extern "C" __attribute__((visibility("default")))

namespace pypto_twin {

constexpr uint32_t block_bytes = 32;
constexpr uint32_t repeat_bytes = 256;

// The bits of CTRL beside 48 and 59, of which A2/A3 has neither: 50 keeps NaN in floats of a byte that
// saturate, 60 has the bits decide in place of each instruction's SatMode.
constexpr int ctrl_nan = 50;
constexpr int ctrl_global = 60;

// CTRL as kernels find it: the bits that every kernel sets are the other way than most casts need
// them, the others at their defaults.
constexpr uint64_t found_ctrl = uint64_t{has_own_saturation} << ctrl_global | uint64_t{1} << 59 |
                                uint64_t{1} << 56 | 8;

class Violation : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// Only the failing side builds a text.
template <class... Parts>
[[noreturn, gnu::noinline, gnu::cold]] void violate(const Parts&... parts) {
    std::string text;
    const auto append = [&text](const auto& part) {
        if constexpr (std::is_integral_v<std::decay_t<decltype(part)>>) {
            text += std::to_string(part);
        } else {
            text += part;
        }
    };
    (append(parts), ...);
    throw Violation(text);
}

template <class... Parts>
inline void require(bool holds, const Parts&... parts) {
    if (__builtin_expect(!holds, 0)) violate(parts...);
}

// One instruction of a trace.
struct Record {
    int64_t op;
    int64_t operands[OPERANDS];
};

using Visit = void (*)(const Record*);

struct GmTensor {
    uint8_t* start;
    uint64_t size_bytes;
};

class VectorCore {
  public:
    uint32_t block = 0;
    uint32_t blocks = 1;
    GmTensor x{};
    GmTensor y{};
    uint64_t ctrl = found_ctrl;
    // The bit of CTRL that is about to be set; -1: none.
    int64_t ctrl_bit = -1;
    // FP32 code of the scale by which Cast multiplies INT32 on its way to FP16; 0: never set.
    uint32_t deq_scale = 0;
    Visit visit = nullptr;
    alignas(256) uint8_t ub[ub_bytes];

    bool has(int bit) const { return ctrl >> bit & 1; }
    bool inf_nan() const { return has(48); }
    bool is_global() const { return !has_own_saturation || has(ctrl_global); }

    void start() {
        ctrl = found_ctrl;
        ctrl_bit = -1;
        deq_scale = 0;
    }

    void finish() const {
        require(ctrl == found_ctrl, "the kernel leaves CTRL changed");
        require(deq_scale == 0 || deq_scale == 0x3F800000, "the kernel leaves a deq scale but 1");
    }

    template <class... Operands>
    void record(Op op, Operands... operands) const {
        if (__builtin_expect(visit != nullptr, 0)) {
            const Record made{static_cast<int64_t>(op), {static_cast<int64_t>(operands)...}};
            visit(&made);
        }
    }

    // Where an address of GM lies. x is read, y is written.
    int64_t gm_offset(const uint8_t* address, uint64_t size_bytes, bool is_input) const {
        const GmTensor& tensor = is_input ? x : y;
        const auto offset = static_cast<int64_t>(reinterpret_cast<uintptr_t>(address) -
                                                 reinterpret_cast<uintptr_t>(tensor.start));
        const bool fits = offset >= 0 && size_bytes <= tensor.size_bytes &&
                          static_cast<uint64_t>(offset) <= tensor.size_bytes - size_bytes;
        require(fits, "bytes ", offset, " to ", offset + static_cast<int64_t>(size_bytes),
                " of gm.", is_input ? "x" : "y", ", which has ", tensor.size_bytes);
        return offset;
    }
};

// The core that this thread plays.
inline VectorCore& vector_core() {
    static thread_local VectorCore core;
    return core;
}

}  // namespace pypto_twin

#endif  // PYPTO_TWIN_VECTOR_CORE_H
