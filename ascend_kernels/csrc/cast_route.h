// The vector work of a route: native casts in a row, which the tiling data lists.
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
enum class NativeCast : uint32_t { PYPTO_CAST_INSTANCES(PYPTO_CAST_NAME) };
#undef PYPTO_CAST_NAME

// A word of CastTilingData::steps: from the low byte up the native cast, its source, its target.
struct RouteStep {
    NativeCast cast;
    Operand source;
    Operand target;

    __aicore__ inline explicit RouteStep(uint32_t word)
        : cast(static_cast<NativeCast>(word & 0xFF)),
          source(static_cast<Operand>(word >> 8 & 0xFF)),
          target(static_cast<Operand>(word >> 16 & 0xFF)) {}

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
        }
    }
};

// Steps that are known at run time. All of them clamp.
struct RouteSteps {
    static constexpr bool begins_truncating = false;

    static __aicore__ inline bool NeedsScale(const CastTilingData& tiling) {
        bool found = false;
        for (uint32_t step = 0; step < tiling.step_count; ++step) {
            found = found || RouteStep(tiling.steps[step]).IsScaled();
        }
        return found;
    }

    static __aicore__ inline bool EndsOnScratch(const CastTilingData& tiling) {
        return RouteStep(tiling.steps[tiling.step_count - 1]).UsesScratch();
    }

    template <bool, bool>
    static __aicore__ inline void Run(const Operands& ub, const CastTilingData& tiling) {
        for (uint32_t step = 0; step < tiling.step_count; ++step) {
            if (step > 0) AscendC::PipeBarrier<PIPE_V>();
            RouteStep(tiling.steps[step]).Run(ub);
        }
    }
};

template <class Src, class Dst>
struct StepsOf<Src, Dst, Route::LISTED> {
    using Saturating = RouteSteps;
    using LowBits = RouteSteps;
};

}  // namespace pypto_cast

#endif  // PYPTO_CAST_ROUTE_H
