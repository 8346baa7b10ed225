// The vector work of a pair: steps over the elements in UB, as the matrix lists them.
#ifndef PYPTO_CAST_STEPS_H
#define PYPTO_CAST_STEPS_H

#include <cstdint>
#include <type_traits>

#include "cast_control.h"
#include "cast_instances.h"
#include "kernel_operator.h"

namespace pypto_cast {

constexpr uint32_t kBlockBits = 8 * 32;

template <class T>
constexpr uint32_t kBits = std::is_same_v<T, AscendC::int4b_t> ? 4 : 8 * sizeof(T);

// What copies move: two 4-bit elements share a byte.
template <class T>
using Stored = std::conditional_t<std::is_same_v<T, AscendC::int4b_t>, uint8_t, T>;

__aicore__ inline uint32_t CeilDiv(uint32_t a, uint32_t b) { return (a + b - 1) / b; }

// Elements of a row in UB, padded to whole blocks.
template <class T>
__aicore__ inline uint32_t Padded(uint32_t elems) {
    return CeilDiv(elems * kBits<T>, kBlockBits) * (kBlockBits / kBits<T>);
}

enum class Operand { IN, TMP, OUT };

// What a pass has in UB. `pitch`: elements from one row of an operand to the next.
struct Operands {
    AscendC::LocalTensor<uint8_t> bytes[3];
    uint32_t pitch[3];
    uint32_t rows;
    uint32_t cols;

    __aicore__ inline uint32_t Pitch(Operand operand) const {
        return pitch[static_cast<uint32_t>(operand)];
    }

    template <class T>
    __aicore__ inline AscendC::LocalTensor<T> Row(Operand operand, uint32_t row) const {
        const uint32_t offset = row * Pitch(operand) * kBits<T> / 8;
        return bytes[static_cast<uint32_t>(operand)][offset].template ReinterpretCast<T>();
    }
};

// A Cast of the elements of one operand into another. Rows that lie equally far apart on both sides
// take one Cast, padding included.
template <class Src, class Dst>
__aicore__ inline void CastRows(const Operands& ub, Operand source, Operand target,
                                AscendC::RoundMode mode) {
    const uint32_t pitch = ub.Pitch(source);
    const bool is_one = pitch == ub.Pitch(target);
    const uint32_t casts = is_one ? 1 : ub.rows;
    const uint32_t count = is_one ? (ub.rows - 1) * pitch + ub.cols : ub.cols;
    for (uint32_t row = 0; row < casts; ++row) {
        AscendC::Cast(ub.Row<Dst>(target, row), ub.Row<Src>(source, row), mode, count);
    }
}

// The Cast multiplies by a register that has to be set before.
template <class Src, class Dst>
constexpr bool kIsScaled = std::is_same_v<Src, int32_t>&& std::is_same_v<Dst, half>;

// One Cast over the elements in UB. `truncates`: integer results keep the low bits.
template <class Src, class Dst, AscendC::RoundMode mode, bool truncates, Operand source,
          Operand target>
struct CastStep {
    static constexpr bool needs_scale = kIsScaled<Src, Dst>;
    static constexpr bool uses_scratch = source == Operand::TMP || target == Operand::TMP;

    static __aicore__ constexpr bool Truncates(bool /*before*/) { return truncates; }

    static __aicore__ inline void Run(const Operands& ub) {
        CastRows<Src, Dst>(ub, source, target, mode);
    }
};

// Keeps the low byte of every int16_t of an operand.
template <Operand operand, Operand scratch>
struct LowByteStep {
    static constexpr bool needs_scale = false;
    static constexpr bool uses_scratch = scratch == Operand::TMP;

    static __aicore__ constexpr bool Truncates(bool before) { return before; }

    static __aicore__ inline void Run(const Operands& ub) {
        const auto data = ub.Row<int16_t>(operand, 0);
        const auto mask = ub.Row<int16_t>(scratch, 0);
        const int32_t count = static_cast<int32_t>(ub.rows * ub.Pitch(operand));
        AscendC::Duplicate(mask, static_cast<int16_t>(0x00FF), count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::And(data, data, mask, count);
    }
};

__aicore__ inline void SetTruncation(bool truncates) { SetControlBit<kCtrlCast>(truncates); }

// Steps that are known at compile time.
template <class First, class... Rest>
struct Steps {
    static constexpr bool begins_truncating = First::Truncates(false);

    static __aicore__ constexpr bool NeedsScale(const CastTilingData& /*tiling*/) {
        return (First::needs_scale || ... || Rest::needs_scale);
    }

    // Whether the last step uses the scratch, which the next pass may not overwrite too early.
    static __aicore__ constexpr bool EndsOnScratch(const CastTilingData& tiling) {
        if constexpr (sizeof...(Rest) > 0) {
            return Steps<Rest...>::EndsOnScratch(tiling);
        } else {
            return First::uses_scratch;
        }
    }

    // Steps hand data to each other, so barriers keep them apart. `truncates`: how the control bit
    // stands; `finally`: how it has to stand afterwards.
    template <bool truncates, bool finally>
    static __aicore__ inline void Run(const Operands& ub, const CastTilingData& tiling) {
        constexpr bool wanted = First::Truncates(truncates);
        if constexpr (wanted != truncates) SetTruncation(wanted);
        First::Run(ub);
        if constexpr (sizeof...(Rest) > 0) {
            AscendC::PipeBarrier<PIPE_V>();
            Steps<Rest...>::template Run<wanted, finally>(ub, tiling);
        } else if constexpr (wanted != finally) {
            SetTruncation(finally);
        }
    }
};

// The steps of SaturationMode.OFF: those of ON where it does not act.
template <class Src, class Dst, AscendC::RoundMode mode>
struct LowBits {
    using Of = Steps<CastStep<Src, Dst, mode, false, Operand::IN, Operand::OUT>>;
};

#define PYPTO_CAST_LOW_BITS_OF(Src, Dst, ...) \
    template <AscendC::RoundMode mode>        \
    struct LowBits<Src, Dst, mode> {          \
        using Of = Steps<__VA_ARGS__>;        \
    };
PYPTO_CAST_LOW_BITS(PYPTO_CAST_LOW_BITS_OF)
#undef PYPTO_CAST_LOW_BITS_OF

// The steps of an instance under both saturation modes.
template <class Src, class Dst, auto mode>
struct StepsOf {
    using Saturating = Steps<CastStep<Src, Dst, mode, false, Operand::IN, Operand::OUT>>;
    using LowBits = typename LowBits<Src, Dst, mode>::Of;
};

}  // namespace pypto_cast

#endif  // PYPTO_CAST_STEPS_H
