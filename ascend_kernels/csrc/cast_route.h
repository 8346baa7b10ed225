// The vector work of a route: native casts and instructions with a scalar, which the tiling data
// lists.
#ifndef PYPTO_CAST_ROUTE_H
#define PYPTO_CAST_ROUTE_H

#include <cstdint>

#include "cast_instances.h"
#include "cast_steps.h"
#include "kernel_operator.h"

namespace pypto_cast {

// Stands for the round mode of the instances whose steps the tiling data lists.
enum class Route { LISTED };

#define PYPTO_CAST_NAME(name, ...) name,
enum class NativeCast : uint32_t {
    PYPTO_CAST_INSTANCES(PYPTO_CAST_NAME) PYPTO_CAST_SCALARS(PYPTO_CAST_NAME)
};
#undef PYPTO_CAST_NAME

// The scalar of a step: floats come as the code of an FP32.
template <class T>
__aicore__ inline T ScalarOf(uint32_t word) {
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, half>) {
        union {
            uint32_t code;
            float value;
        } number = {word};
        return static_cast<T>(number.value);
    } else {
        return static_cast<T>(word);
    }
}

// From the low byte of CastTilingData::steps up the instruction, its source, its target, and
// whether integers keep their low bits; and its scalar.
struct RouteStep {
    NativeCast cast;
    Operand source;
    Operand target;
    bool truncates;
    uint32_t scalar;

    __aicore__ inline RouteStep(const CastTilingData& tiling, uint32_t step)
        : cast(static_cast<NativeCast>(tiling.steps[step] & 0xFF)),
          source(static_cast<Operand>(tiling.steps[step] >> 8 & 0xFF)),
          target(static_cast<Operand>(tiling.steps[step] >> 16 & 0xFF)),
          truncates(tiling.steps[step] >> 24 != 0),
          scalar(tiling.scalars[step]) {}

    __aicore__ inline bool IsCast() const {
#define PYPTO_CAST_COUNT(...) +1
        constexpr uint32_t casts = PYPTO_CAST_INSTANCES(PYPTO_CAST_COUNT);
#undef PYPTO_CAST_COUNT
        return static_cast<uint32_t>(cast) < casts;
    }

    __aicore__ inline bool UsesScratch() const {
        return source == Operand::TMP || target == Operand::TMP;
    }

    __aicore__ inline bool IsScaled() const {
        switch (cast) {
#define PYPTO_CAST_CASE(name, Src, Dst, mode) \
    case NativeCast::name:                    \
        return kIsScaled<Src, Dst>;
            PYPTO_CAST_INSTANCES(PYPTO_CAST_CASE)
#undef PYPTO_CAST_CASE
            default:
                return false;
        }
        return false;
    }

    // Not inlined: one copy serves the routes of all widths.
    __aicore__ __attribute__((noinline)) void Run(const Operands& ub) const {
        switch (cast) {
#define PYPTO_CAST_CASE(name, Src, Dst, mode)         \
    case NativeCast::name:                            \
        CastRows<Src, Dst>(ub, source, target, mode); \
        break;
            PYPTO_CAST_INSTANCES(PYPTO_CAST_CASE)
#undef PYPTO_CAST_CASE
#define PYPTO_CAST_CASE(name, Function, T)                                              \
    case NativeCast::name:                                                              \
        AscendC::Function(ub.At<T>(target, 0), ub.At<T>(source, 0), ScalarOf<T>(scalar), \
                          static_cast<int32_t>(ub.Span(source)));                       \
        break;
            PYPTO_CAST_SCALARS(PYPTO_CAST_CASE)
#undef PYPTO_CAST_CASE
        }
    }
};

// Steps that are known at run time. The first does not keep low bits.
struct RouteSteps {
    static constexpr bool begins_truncating = false;

    static __aicore__ inline bool NeedsScale(const CastTilingData& tiling) {
        bool found = false;
        for (uint32_t step = 0; step < tiling.step_count; ++step) {
            found = found || RouteStep(tiling, step).IsScaled();
        }
        return found;
    }

    static __aicore__ inline bool EndsOnScratch(const CastTilingData& tiling) {
        return RouteStep(tiling, tiling.step_count - 1).UsesScratch();
    }

    template <bool, bool>
    static __aicore__ inline void Run(const Operands& ub, const CastTilingData& tiling) {
        bool truncates = false;
        for (uint32_t number = 0; number < tiling.step_count; ++number) {
            const RouteStep step(tiling, number);
            if (number > 0) AscendC::PipeBarrier<PIPE_V>();
            if (step.IsCast() && step.truncates != truncates) SetTruncation(step.truncates);
            if (step.IsCast()) truncates = step.truncates;
            step.Run(ub);
        }
        if (truncates) SetTruncation(false);
    }
};

template <class Src, class Dst>
struct StepsOf<Src, Dst, Route::LISTED> {
    using Saturating = RouteSteps;
    using LowBits = RouteSteps;
};

}  // namespace pypto_cast

#endif  // PYPTO_CAST_ROUTE_H
