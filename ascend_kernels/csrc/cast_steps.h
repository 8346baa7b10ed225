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
constexpr uint32_t kRepeatBits = 8 * 256;
// Limits of one vector instruction.
constexpr uint32_t kMaxRepeat = 255;
constexpr uint32_t kMaxRepStride = 255;

// The bits of an element, and what copies move of it: bytes of elements that share one or that are
// floats of a byte.
template <class T>
struct ElementOf {
    static constexpr uint32_t bits = 8 * sizeof(T);
    using Stored = T;
};
#define PYPTO_CAST_ELEMENT(T, size)            \
    template <>                                \
    struct ElementOf<T> {                      \
        static constexpr uint32_t bits = size; \
        using Stored = uint8_t;                \
    };
#define PYPTO_CAST_NIBBLE(T) PYPTO_CAST_ELEMENT(T, 4)
#define PYPTO_CAST_BYTE(T) PYPTO_CAST_ELEMENT(T, 8)
PYPTO_CAST_NIBBLES(PYPTO_CAST_NIBBLE)
PYPTO_CAST_BYTES(PYPTO_CAST_BYTE)
#undef PYPTO_CAST_BYTE
#undef PYPTO_CAST_NIBBLE
#undef PYPTO_CAST_ELEMENT

template <class T>
constexpr uint32_t kBits = ElementOf<T>::bits;

template <class T>
using Stored = typename ElementOf<T>::Stored;

__aicore__ inline uint32_t Smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

__aicore__ inline uint32_t CeilDiv(uint32_t a, uint32_t b) { return (a + b - 1) / b; }

// The next multiple of `unit`.
template <uint32_t unit>
__aicore__ inline uint32_t Whole(uint32_t count) {
    return CeilDiv(count, unit) * unit;
}

// Elements of a row in UB, padded to whole blocks.
template <class T>
__aicore__ inline uint32_t Padded(uint32_t elems) {
    return Whole<kBlockBits / kBits<T>>(elems);
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

    // An operand from one of its elements on.
    template <class T>
    __aicore__ inline AscendC::LocalTensor<T> At(Operand operand, uint32_t elem) const {
        const uint32_t offset = elem * kBits<T> / 8;
        return bytes[static_cast<uint32_t>(operand)][offset].template ReinterpretCast<T>();
    }

    // Elements from the first of an operand to its last, padding between rows included.
    __aicore__ inline uint32_t Span(Operand operand) const {
        return (rows - 1) * Pitch(operand) + cols;
    }
};

// Casts the elements of one operand into another. Rows that lie equally far apart on both sides
// take one instruction, padding included; others one a row, or one for as many repeats as there
// are, each of them a row, whichever are fewer.
template <class Src, class Dst>
__aicore__ inline void CastRows(const Operands& ub, Operand source, Operand target,
                                AscendC::RoundMode mode) {
    const uint32_t from = ub.Pitch(source);
    const uint32_t to = ub.Pitch(target);
    if (ub.rows == 1 || from == to) {
        AscendC::Cast(ub.At<Dst>(target, 0), ub.At<Src>(source, 0), mode, ub.Span(source));
        return;
    }
    constexpr uint32_t lanes = kRepeatBits / (kBits<Src> > kBits<Dst> ? kBits<Src> : kBits<Dst>);
    const uint32_t repeated = CeilDiv(ub.rows, kMaxRepeat) * CeilDiv(ub.cols, lanes);
    const uint32_t stride = (from > to ? from : to) * (kRepeatBits / kBlockBits);
    if (ub.rows <= repeated || stride > kMaxRepStride * lanes) {
        for (uint32_t row = 0; row < ub.rows; ++row) {
            AscendC::Cast(ub.At<Dst>(target, row * to), ub.At<Src>(source, row * from), mode,
                          ub.cols);
        }
        return;
    }
    const AscendC::UnaryRepeatParams strides(1, 1,
                                             static_cast<uint8_t>(to * kBits<Dst> / kBlockBits),
                                             static_cast<uint8_t>(from * kBits<Src> / kBlockBits));
    for (uint32_t row = 0; row < ub.rows; row += kMaxRepeat) {
        const uint32_t repeats = Smaller(kMaxRepeat, ub.rows - row);
        for (uint32_t col = 0; col < ub.cols; col += lanes) {
            AscendC::Cast(ub.At<Dst>(target, row * to + col), ub.At<Src>(source, row * from + col),
                          mode, static_cast<uint64_t>(Smaller(lanes, ub.cols - col)),
                          static_cast<uint8_t>(repeats), strides);
        }
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

    // The mask is one block, which every block of the elements meets; whole repeats come first.
    static __aicore__ inline void Run(const Operands& ub) {
        constexpr uint32_t lanes = kRepeatBits / kBits<int16_t>;
        const auto mask = ub.At<int16_t>(scratch, 0);
        AscendC::Duplicate(mask, static_cast<int16_t>(0x00FF),
                           static_cast<int32_t>(kBlockBits / kBits<int16_t>));
        AscendC::PipeBarrier<PIPE_V>();
        const uint32_t count = ub.Span(operand);
        const uint32_t repeats = count / lanes;
        const uint32_t rest = count % lanes;
        if (repeats > 0) KeepLowBytes(ub.At<int16_t>(operand, 0), mask, lanes, repeats);
        if (rest > 0) KeepLowBytes(ub.At<int16_t>(operand, repeats * lanes), mask, rest, 1);
    }

    static __aicore__ inline void KeepLowBytes(const AscendC::LocalTensor<int16_t>& data,
                                               const AscendC::LocalTensor<int16_t>& mask,
                                               uint32_t lanes, uint32_t repeats) {
        AscendC::And(data, data, mask, static_cast<uint64_t>(lanes), static_cast<uint8_t>(repeats),
                     AscendC::BinaryRepeatParams(1, 1, 0, 8, 8, 0));
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
