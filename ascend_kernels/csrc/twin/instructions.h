// The instructions: checked, recorded and carried out at once. Included by kernel_operator.h.
#ifndef PYPTO_TWIN_INSTRUCTIONS_H
#define PYPTO_TWIN_INSTRUCTIONS_H

namespace pypto_twin {

// The number format of an AscendC type, and its number in a trace.
template <class T, int64_t number>
struct TracedFormat {
    using Type = T;
    static constexpr int64_t traced = number;
    static constexpr uint32_t bits = is_nibble<T> ? 4 : 8 * sizeof(T);
};
template <class T>
struct TwinOf {
    using Type = T;
};
template <>
struct TwinOf<half> {
    using Type = Half;
};
template <>
struct TwinOf<bfloat16_t> {
    using Type = Bfloat16;
};
template <>
struct TwinOf<AscendC::int4b_t> {
    using Type = Int4x2;
};
template <class T>
struct FormatOf;
#define PYPTO_TWIN_FORMAT(T, number) \
    template <>                      \
    struct FormatOf<T> : TracedFormat<TwinOf<T>::Type, number> {};
PYPTO_TWIN_FORMATS(PYPTO_TWIN_FORMAT)
#undef PYPTO_TWIN_FORMAT

// What a pair of Cast obeys; other pairs have none, which does not compile.
template <class Dst, class Src>
struct CastRow;
#define PYPTO_TWIN_ROW(Dst, Src, bit, clear, set, nan)                \
    template <>                                                       \
    struct CastRow<Dst, Src> {                                        \
        static constexpr int ctrl_bit = bit;                          \
        static constexpr Policy when_clear = Policy::clear;           \
        static constexpr Policy when_set = Policy::set;               \
        static constexpr bool keeps_nan = nan;                        \
    };
PYPTO_TWIN_CAST_ROWS(PYPTO_TWIN_ROW)
#undef PYPTO_TWIN_ROW

// The rule of special values and overflow. Without the global bit each Cast has its SatMode, which
// is SAT in all that AscendC's memory API issues.
template <class Row>
inline Policy policy_of(const VectorCore& core) {
    if (Row::ctrl_bit >= 0 && core.is_global() && core.has(Row::ctrl_bit)) return Row::when_set;
    return Row::keeps_nan && core.has(ctrl_nan) ? Policy::SATURATE_KEEP_NAN : Row::when_clear;
}

// The SatMode of a Cast in a trace: none where the control bits hold for all.
inline int64_t traced_saturation(const VectorCore& core) { return core.is_global() ? -1 : 1; }

// CAST_NONE rounds to nearest even where bits are lost.
inline RoundMode round_mode(AscendC::RoundMode mode) {
    switch (mode) {
        case AscendC::RoundMode::CAST_NONE:
            return RoundMode::RINT;
#define PYPTO_TWIN_CASE(name)             \
    case AscendC::RoundMode::CAST_##name: \
        return RoundMode::name;
            PYPTO_TWIN_MODES(PYPTO_TWIN_CASE)
#undef PYPTO_TWIN_CASE
    }
    __builtin_unreachable();
}

// One copy of the loops for all kernels, whatever their mode. A loop with a call in it is no vector
// loop, and in a file of this size compilers stop inlining by themselves.
template <class Dst, class Src, class Row>
[[gnu::noinline, gnu::flatten]] void convert_ub(uint8_t* dst, const uint8_t* src, size_t count,
                                                RoundMode mode, Policy policy) {
    constexpr Policy nan = Row::keeps_nan ? Policy::SATURATE_KEEP_NAN : Row::when_clear;
    convert<Row::when_set, Row::when_clear, nan>(
        reinterpret_cast<Dst*>(dst), reinterpret_cast<const Src*>(src), count, mode, policy);
}

inline uint64_t whole_blocks(uint64_t size_bytes) {
    return (size_bytes + block_bytes - 1) / block_bytes * block_bytes;
}

}  // namespace pypto_twin

// --- The compiler's functions for the control register -------------------------------------------

inline uint64_t get_ctrl() {
    pypto_twin::VectorCore& core = pypto_twin::vector_core();
    core.ctrl_bit = -1;
    return core.ctrl;
}

inline uint64_t sbitset0(uint64_t value, int64_t bit) {
    pypto_twin::vector_core().ctrl_bit = bit;
    return value & ~(uint64_t{1} << bit);
}

inline uint64_t sbitset1(uint64_t value, int64_t bit) {
    pypto_twin::vector_core().ctrl_bit = bit;
    return value | uint64_t{1} << bit;
}

// In a trace this is the bit that was set for it, or, of the register as a whole, that it is back.
inline void set_ctrl(uint64_t value) {
    pypto_twin::VectorCore& core = pypto_twin::vector_core();
    core.ctrl = value;
    if (core.ctrl_bit >= 0) {
        core.record(pypto_twin::Op::SET_CTRL, core.ctrl_bit, value >> core.ctrl_bit & 1);
    } else {
        pypto_twin::require(value == pypto_twin::found_ctrl, "CTRL is not what the kernel found");
        core.record(pypto_twin::Op::RESTORE_CTRL);
    }
    core.ctrl_bit = -1;
}

namespace AscendC {

struct DataCopyExtParams {
    uint16_t blockCount = 1;
    uint32_t blockLen = 0;
    uint32_t srcStride = 0;
    uint32_t dstStride = 0;
    uint32_t rsv = 0;

    DataCopyExtParams() = default;
    DataCopyExtParams(uint16_t count, uint32_t length, uint32_t src_stride, uint32_t dst_stride,
                      uint32_t reserved)
        : blockCount(count),
          blockLen(length),
          srcStride(src_stride),
          dstStride(dst_stride),
          rsv(reserved) {}
};

struct UnaryRepeatParams {
    uint16_t dstBlkStride;
    uint16_t srcBlkStride;
    uint8_t dstRepStride;
    uint8_t srcRepStride;

    UnaryRepeatParams(uint16_t dst_blk, uint16_t src_blk, uint8_t dst_rep, uint8_t src_rep)
        : dstBlkStride(dst_blk),
          srcBlkStride(src_blk),
          dstRepStride(dst_rep),
          srcRepStride(src_rep) {}
};

struct BinaryRepeatParams {
    uint8_t dstBlkStride;
    uint8_t src0BlkStride;
    uint8_t src1BlkStride;
    uint8_t dstRepStride;
    uint8_t src0RepStride;
    uint8_t src1RepStride;

    BinaryRepeatParams(uint8_t dst_blk, uint8_t src0_blk, uint8_t src1_blk, uint8_t dst_rep,
                       uint8_t src0_rep, uint8_t src1_rep)
        : dstBlkStride(dst_blk),
          src0BlkStride(src0_blk),
          src1BlkStride(src1_blk),
          dstRepStride(dst_rep),
          src0RepStride(src0_rep),
          src1RepStride(src1_rep) {}
};

template <class T>
struct DataCopyPadExtParams {
    bool isPad = false;
    uint8_t leftPadding = 0;
    uint8_t rightPadding = 0;
    T paddingValue{};
};

}  // namespace AscendC

namespace pypto_twin {

// Source of the limits: CANN asc-devkit, DataCopyPad for A2/A3.
template <class T>
inline void check_blocks(const AscendC::DataCopyExtParams& copy) {
    require(copy.blockCount <= 4095, "blockCount must be 0 to 4095, is ", copy.blockCount);
    require(copy.blockLen <= 2097151, "blockLen must be 0 to 2097151 B, is ", copy.blockLen);
    require(copy.blockLen % sizeof(T) == 0, "blockLen ", copy.blockLen,
            " B is no multiple of the element's ", sizeof(T), " B");
}

// Bytes from the start of the first block to the end of the last.
inline uint64_t extent(const AscendC::DataCopyExtParams& copy, uint64_t pitch, uint64_t last) {
    return copy.blockCount == 0 ? 0 : (copy.blockCount - 1) * pitch + last;
}

// Copies rows; neighbouring ones at once.
template <void (*copy)(uint8_t*, const uint8_t*, size_t)>
inline void copy_rows(uint8_t* dst, uint64_t dst_pitch, const uint8_t* src, uint64_t src_pitch,
                      uint64_t width, uint64_t rows) {
    if (dst_pitch == width && src_pitch == width) {
        width *= rows;
        rows = 1;
    }
    for (uint64_t row = 0; row < rows; ++row) {
        copy(dst + row * dst_pitch, src + row * src_pitch, width);
    }
}

}  // namespace pypto_twin

#include "scalar_work.h"

namespace AscendC {

// GM to UB. Every block starts a 32 B line; the rest of its last line repeats its first element.
template <class T>
void DataCopyPad(const LocalTensor<T>& dst, const GlobalTensor<T>& src,
                 const DataCopyExtParams& copy, const DataCopyPadExtParams<T>& padding) {
    using namespace pypto_twin;
    check_blocks<T>(copy);
    require(!padding.isPad && padding.leftPadding == 0 && padding.rightPadding == 0,
            "the twin copies without padding only");
    const VectorCore& core = vector_core();
    const uint64_t line = whole_blocks(copy.blockLen);
    const uint64_t ub_pitch = line + uint64_t{copy.dstStride} * block_bytes;
    const uint64_t gm_pitch = uint64_t{copy.blockLen} + copy.srcStride;
    uint8_t* ub = dst.claim(extent(copy, ub_pitch, line));
    const auto* gm = reinterpret_cast<const uint8_t*>(src.GetPhyAddr());
    const int64_t gm_offset = core.gm_offset(gm, extent(copy, gm_pitch, copy.blockLen), true);
    core.record(Op::DATA_COPY_PAD, Space::UB, dst.offset(), Space::X, gm_offset, copy.blockCount,
                copy.blockLen, copy.srcStride, copy.dstStride, sizeof(T));
    copy_rows<cached_copy>(ub, ub_pitch, gm, gm_pitch, copy.blockLen, copy.blockCount);
    for (uint64_t row = 0; line > copy.blockLen && row < copy.blockCount; ++row) {
        uint8_t* block = ub + row * ub_pitch;
        for (uint64_t byte = copy.blockLen; byte < line; ++byte) {
            block[byte] = block[byte % sizeof(T)];
        }
    }
}

// UB to GM, block by block without what fills their last lines.
template <class T>
void DataCopyPad(const GlobalTensor<T>& dst, const LocalTensor<T>& src,
                 const DataCopyExtParams& copy) {
    using namespace pypto_twin;
    check_blocks<T>(copy);
    const VectorCore& core = vector_core();
    const uint64_t ub_pitch = whole_blocks(copy.blockLen) + uint64_t{copy.srcStride} * block_bytes;
    const uint64_t gm_pitch = uint64_t{copy.blockLen} + copy.dstStride;
    const uint8_t* ub = src.claim(extent(copy, ub_pitch, copy.blockLen));
    auto* gm = reinterpret_cast<uint8_t*>(dst.GetPhyAddr());
    const int64_t gm_offset = core.gm_offset(gm, extent(copy, gm_pitch, copy.blockLen), false);
    core.record(Op::DATA_COPY_PAD, Space::Y, gm_offset, Space::UB, src.offset(), copy.blockCount,
                copy.blockLen, copy.srcStride, copy.dstStride, sizeof(T));
    if (core.y.size_bytes >= streamed_bytes) {
        copy_rows<streaming_copy>(gm, gm_pitch, ub, ub_pitch, copy.blockLen, copy.blockCount);
    } else {
        copy_rows<cached_copy>(gm, gm_pitch, ub, ub_pitch, copy.blockLen, copy.blockCount);
    }
}

template <class Dst, class Src>
void Cast(const LocalTensor<Dst>& dst, const LocalTensor<Src>& src, const RoundMode& mode,
          uint32_t count) {
    using namespace pypto_twin;
    using To = FormatOf<Dst>;
    using From = FormatOf<Src>;
    const VectorCore& core = vector_core();
    const uint64_t dst_bytes = uint64_t{count} * To::bits / 8;
    const uint64_t src_bytes = uint64_t{count} * From::bits / 8;
    require(To::bits >= 8 || count % 2 == 0, "an odd count of 4-bit elements: ", count);
    require(From::bits >= 8 || count % 2 == 0, "an odd count of 4-bit elements: ", count);
    uint8_t* to = dst.claim(dst_bytes);
    const uint8_t* from = src.claim(src_bytes);
    const bool is_apart = to + dst_bytes <= from || from + src_bytes <= to;
    require(is_apart || (to == from && To::bits <= From::bits), "Cast from ub+", src.offset(),
            " to ub+", dst.offset(), ": ", count, " elements overlap");
    if (!is_apart && To::bits < From::bits) {
        static thread_local uint8_t source[ub_bytes];
        from = static_cast<const uint8_t*>(std::memcpy(source, from, src_bytes));
    }
    if constexpr (std::is_same_v<Dst, half> && std::is_same_v<Src, int32_t>) {
        require(core.deq_scale == bits_as<uint32_t>(1.0f), "INT32 to FP16 without SetDeqScale(1)");
    }
    core.record(Op::CAST, dst.offset(), src.offset(), To::traced, From::traced, mode,
                traced_saturation(core), count);
    using Row = CastRow<Dst, Src>;
    convert_ub<typename To::Type, typename From::Type, Row>(to, from, count, round_mode(mode),
                                                            policy_of<Row>(core));
}

// By repeats, whose active lanes are the first `mask`.
template <class Dst, class Src>
void Cast(const LocalTensor<Dst>& dst, const LocalTensor<Src>& src, const RoundMode& mode,
          uint64_t mask, uint8_t repeats, const UnaryRepeatParams& strides) {
    using namespace pypto_twin;
    using To = FormatOf<Dst>;
    using From = FormatOf<Src>;
    const VectorCore& core = vector_core();
    constexpr uint32_t lanes = 8 * repeat_bytes / (To::bits > From::bits ? To::bits : From::bits);
    require(mask > 0 && mask <= lanes && repeats > 0, "mask must be 1 to ", lanes, ", is ", mask,
            "; of ", repeats, " repeats");
    require(To::bits >= 8 || mask % 2 == 0, "an odd count of 4-bit elements: ", mask);
    require(From::bits >= 8 || mask % 2 == 0, "an odd count of 4-bit elements: ", mask);
    require(strides.dstBlkStride == 1 && strides.srcBlkStride == 1,
            "the twin casts neighbouring blocks only");
    const uint64_t dst_pitch = uint64_t{strides.dstRepStride} * block_bytes;
    const uint64_t src_pitch = uint64_t{strides.srcRepStride} * block_bytes;
    const uint64_t dst_bytes = (repeats - 1) * dst_pitch + mask * To::bits / 8;
    const uint64_t src_bytes = (repeats - 1) * src_pitch + mask * From::bits / 8;
    uint8_t* to = dst.claim(dst_bytes);
    const uint8_t* from = src.claim(src_bytes);
    require(to + dst_bytes <= from || from + src_bytes <= to, "Cast from ub+", src.offset(),
            " to ub+", dst.offset(), ": ", repeats, " repeats overlap");
    if constexpr (std::is_same_v<Dst, half> && std::is_same_v<Src, int32_t>) {
        require(core.deq_scale == bits_as<uint32_t>(1.0f), "INT32 to FP16 without SetDeqScale(1)");
    }
    core.record(Op::CAST_REPEAT, dst.offset(), src.offset(), To::traced, From::traced, mode,
                traced_saturation(core), mask, repeats, strides.dstBlkStride, strides.srcBlkStride, strides.dstRepStride,
                strides.srcRepStride);
    for (uint64_t repeat = 0; repeat < repeats; ++repeat) {
        using Row = CastRow<Dst, Src>;
        convert_ub<typename To::Type, typename From::Type, Row>(
            to + repeat * dst_pitch, from + repeat * src_pitch, mask, round_mode(mode),
            policy_of<Row>(core));
    }
}

inline void Duplicate(const LocalTensor<int16_t>& dst, const int16_t& value, int32_t count) {
    using namespace pypto_twin;
    require(count >= 0, "a negative count: ", count);
    uint8_t* to = dst.claim(uint64_t{2} * static_cast<uint32_t>(count));
    vector_core().record(Op::DUPLICATE, dst.offset(), value, count);
    for (int32_t i = 0; i < count; ++i) std::memcpy(to + 2 * i, &value, sizeof value);
}

// By repeats, whose active lanes are the first `mask`.
inline void And(const LocalTensor<int16_t>& dst, const LocalTensor<int16_t>& src0,
                const LocalTensor<int16_t>& src1, uint64_t mask, uint8_t repeats,
                const BinaryRepeatParams& strides) {
    using namespace pypto_twin;
    constexpr uint32_t lanes = repeat_bytes / sizeof(int16_t);
    require(mask > 0 && mask <= lanes && repeats > 0, "mask must be 1 to ", lanes, ", is ", mask,
            "; of ", repeats, " repeats");
    const uint64_t row = mask * sizeof(int16_t);
    // Where a byte of a repeat lies, and the end of what all repeats touch.
    const auto at = [](uint64_t repeat, uint64_t byte, uint64_t rep_stride, uint64_t blk_stride) {
        const uint64_t block = byte / block_bytes;
        return (repeat * rep_stride + block * blk_stride) * block_bytes + byte % block_bytes;
    };
    const auto end = [&](uint64_t rep_stride, uint64_t blk_stride) {
        return at(repeats - 1, row - 1, rep_stride, blk_stride) + 1;
    };
    uint8_t* to = dst.claim(end(strides.dstRepStride, strides.dstBlkStride));
    const uint8_t* first = src0.claim(end(strides.src0RepStride, strides.src0BlkStride));
    const uint8_t* second = src1.claim(end(strides.src1RepStride, strides.src1BlkStride));
    vector_core().record(Op::AND_REPEAT, dst.offset(), src0.offset(), src1.offset(), mask, repeats,
                         strides.dstBlkStride, strides.src0BlkStride, strides.src1BlkStride,
                         strides.dstRepStride, strides.src0RepStride, strides.src1RepStride);
    for (uint64_t repeat = 0; repeat < repeats; ++repeat) {
        for (uint64_t start = 0; start < row; start += block_bytes) {
            uint8_t* out = to + at(repeat, start, strides.dstRepStride, strides.dstBlkStride);
            const uint8_t* a = first + at(repeat, start, strides.src0RepStride, strides.src0BlkStride);
            const uint8_t* b = second + at(repeat, start, strides.src1RepStride, strides.src1BlkStride);
            const uint64_t size = row - start < block_bytes ? row - start : block_bytes;
            for (uint64_t i = 0; i < size; ++i) out[i] = a[i] & b[i];
        }
    }
}

#define PYPTO_TWIN_SCALAR(Function)                                                          \
    template <class T>                                                                       \
    void Function(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalar,     \
                  int32_t count) {                                                           \
        pypto_twin::with_scalar<pypto_twin::ScalarOp::Function>(dst, src, scalar, count);    \
    }
PYPTO_TWIN_SCALAR(Maxs)
PYPTO_TWIN_SCALAR(Mins)
PYPTO_TWIN_SCALAR(Muls)
PYPTO_TWIN_SCALAR(ShiftLeft)
PYPTO_TWIN_SCALAR(ShiftRight)
#undef PYPTO_TWIN_SCALAR

template <pipe_t pipe>
inline void PipeBarrier() {
    static_assert(pipe == PIPE_V || pipe == PIPE_ALL, "the twin knows barriers of these pipes");
    using pypto_twin::Op;
    pypto_twin::vector_core().record(pipe == PIPE_V ? Op::PIPE_BARRIER : Op::BARRIER_ALL);
}

inline void SetDeqScale(half scale) {
    pypto_twin::VectorCore& core = pypto_twin::vector_core();
    core.deq_scale = pypto_twin::widened<pypto_twin::Half>(scale.code);
    core.record(pypto_twin::Op::SET_DEQ_SCALE, core.deq_scale);
}

#if PYPTO_TWIN_CANN >= 90100
template <int8_t first_bit, int8_t last_bit>
inline void SetCtrlSpr(int64_t value) {
    static_assert(first_bit == 48 && last_bit == 48, "A2/A3 have bit 48 only");
    const uint64_t ctrl = get_ctrl();
    set_ctrl(value & 1 ? sbitset1(ctrl, first_bit) : sbitset0(ctrl, first_bit));
}

// The bit says the opposite of the flag: 1 keeps low bits.
template <SaturationMode mode>
inline void SetSaturationFlag(bool saturates) {
    static_assert(mode == SaturationMode::CAST, "the twin knows the flag of Cast");
    const uint64_t ctrl = get_ctrl();
    set_ctrl(saturates ? sbitset0(ctrl, 59) : sbitset1(ctrl, 59));
}
#endif

}  // namespace AscendC

#endif  // PYPTO_TWIN_INSTRUCTIONS_H
