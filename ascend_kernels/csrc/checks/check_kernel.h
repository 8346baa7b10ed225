// Kernels that ask a device what it does: single instructions of arithmetic, the control register
// at kernel entry, and the system clock around other instructions.
//
// The host decides (CheckTilingData, ascend_kernels/checks). They compile as AscendC and,
// against ../twin/kernel_operator.h, as plain C++17.
#ifndef PYPTO_CHECK_KERNEL_H
#define PYPTO_CHECK_KERNEL_H

#include <cstdint>
#include <type_traits>

#include "../cast_control.h"
#include "check_instances.h"
#include "kernel_operator.h"

namespace pypto_check {

constexpr uint32_t kRepeatBytes = 256;
constexpr uint32_t kResultBytes = 32;

// --- Arithmetic ------------------------------------------------------------------------------

#define PYPTO_CHECK_BINARY(name, function)                                                        \
    struct name {                                                                                 \
        static constexpr uint32_t operands = 2;                                                   \
        template <class T>                                                                        \
        static __aicore__ inline uint32_t Run(const AscendC::LocalTensor<T>& y,                   \
                                              const AscendC::LocalTensor<T>& x, uint32_t count) { \
            AscendC::function(y, x, x[count], static_cast<int32_t>(count));                       \
            return count;                                                                         \
        }                                                                                         \
    };
PYPTO_CHECK_BINARY(VAdd, Add)
PYPTO_CHECK_BINARY(VSub, Sub)
PYPTO_CHECK_BINARY(VMul, Mul)
PYPTO_CHECK_BINARY(VDiv, Div)
#undef PYPTO_CHECK_BINARY

#define PYPTO_CHECK_UNARY(name, function)                                                         \
    struct name {                                                                                 \
        static constexpr uint32_t operands = 1;                                                   \
        template <class T>                                                                        \
        static __aicore__ inline uint32_t Run(const AscendC::LocalTensor<T>& y,                   \
                                              const AscendC::LocalTensor<T>& x, uint32_t count) { \
            AscendC::function(y, x, static_cast<int32_t>(count));                                 \
            return count;                                                                         \
        }                                                                                         \
    };
PYPTO_CHECK_UNARY(VSqrt, Sqrt)
PYPTO_CHECK_UNARY(VExp, Exp)
PYPTO_CHECK_UNARY(VLn, Ln)
PYPTO_CHECK_UNARY(VRsqrt, Rsqrt)
#undef PYPTO_CHECK_UNARY

// Sums of integers with CTRL[53] as `clamps` says; only the 950 has the bit.
template <bool clamps>
struct IntegerAdd {
    static constexpr uint32_t operands = 2;
    template <class T>
    static __aicore__ inline uint32_t Run(const AscendC::LocalTensor<T>& y,
                                          const AscendC::LocalTensor<T>& x, uint32_t count) {
        const bool found = get_ctrl() >> pypto_cast::kCtrlInt & 1;
        pypto_cast::SetControlBit<pypto_cast::kCtrlInt>(clamps);
        AscendC::Add(y, x, x[count], static_cast<int32_t>(count));
        AscendC::PipeBarrier<PIPE_V>();
        pypto_cast::SetControlBit<pypto_cast::kCtrlInt>(found);
        return count;
    }
};

// A sum for each 256 B.
struct VCadd {
    static constexpr uint32_t operands = 1;
    template <class T>
    static __aicore__ inline uint32_t Run(const AscendC::LocalTensor<T>& y,
                                          const AscendC::LocalTensor<T>& x, uint32_t count) {
        constexpr int32_t lanes = kRepeatBytes / sizeof(T);
        const int32_t repeats = static_cast<int32_t>(count) / lanes;
        AscendC::WholeReduceSum<T>(y, x, lanes, repeats, 1, 1, 8);
        return static_cast<uint32_t>(repeats);
    }
};

// The greatest or the least element of each 256 B, and behind it its place there.
template <bool greatest>
struct Extreme {
    static constexpr uint32_t operands = 1;
    template <class T>
    static __aicore__ inline uint32_t Run(const AscendC::LocalTensor<T>& y,
                                          const AscendC::LocalTensor<T>& x, uint32_t count) {
        constexpr int32_t lanes = kRepeatBytes / sizeof(T);
        constexpr auto order = AscendC::ReduceOrder::ORDER_VALUE_INDEX;
        const int32_t repeats = static_cast<int32_t>(count) / lanes;
        if constexpr (greatest) {
            AscendC::WholeReduceMax<T>(y, x, lanes, repeats, 1, 1, 8, order);
        } else {
            AscendC::WholeReduceMin<T>(y, x, lanes, repeats, 1, 1, 8, order);
        }
        return 2 * static_cast<uint32_t>(repeats);
    }
};

// FP16 as AutoCast computes it: widened to FP32, and the result rounded to nearest.
template <class Instruction>
struct Widened {
    static constexpr uint32_t operands = Instruction::operands;
    static constexpr bool is_wide = true;
    static __aicore__ inline uint32_t Run(const AscendC::LocalTensor<half>& y,
                                          const AscendC::LocalTensor<half>& x, uint32_t count,
                                          const AscendC::LocalTensor<float>& wide) {
        const auto result = wide[operands * count];
        AscendC::Cast(wide, x, AscendC::RoundMode::CAST_NONE, operands * count);
        AscendC::PipeBarrier<PIPE_V>();
        Instruction::template Run<float>(result, wide, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Cast(y, result, AscendC::RoundMode::CAST_RINT, count);
        return count;
    }
};

template <class Instruction, class = void>
struct IsWide : std::false_type {};
template <class Instruction>
struct IsWide<Instruction, std::void_t<decltype(Instruction::is_wide)>> : std::true_type {};

// One instruction over operands of which `pass_elems` each lie in GM one after another, pass after
// pass. Results follow each other.
template <class Instruction, class T>
struct Arithmetic {
    static __aicore__ inline void Run(GM_ADDR x, GM_ADDR y, const CheckTilingData& tiling) {
        const pypto_cast::ControlScope scope;
        pypto_cast::SetControlBit<pypto_cast::kCtrlFloat>(true);
        AscendC::TPipe pipe;
        AscendC::TQue<AscendC::TPosition::VECIN, 1> in;
        AscendC::TQue<AscendC::TPosition::VECOUT, 1> out;
        const uint32_t elems = tiling.pass_elems * Instruction::operands;
        pipe.InitBuffer(in, 1, elems * sizeof(T));
        pipe.InitBuffer(out, 1, tiling.result_elems * sizeof(T));
        AscendC::TBuf<AscendC::TPosition::VECCALC> wide;
        if constexpr (IsWide<Instruction>::value) {
            pipe.InitBuffer(wide, (elems + tiling.result_elems) * sizeof(float));
        }
        AscendC::GlobalTensor<T> operands;
        AscendC::GlobalTensor<T> results;
        const uint64_t passes = tiling.passes;
        operands.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(x), passes * elems);
        results.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(y), passes * tiling.result_elems);
        const uint32_t cores = static_cast<uint32_t>(AscendC::GetBlockNum());
        for (uint64_t pass = AscendC::GetBlockIdx(); pass < passes; pass += cores) {
            AscendC::LocalTensor<T> source = in.template AllocTensor<T>();
            AscendC::DataCopyExtParams read(1, static_cast<uint32_t>(elems * sizeof(T)), 0, 0, 0);
            AscendC::DataCopyPadExtParams<T> no_padding;
            AscendC::DataCopyPad(source, operands[pass * elems], read, no_padding);
            in.EnQue(source);
            source = in.template DeQue<T>();
            AscendC::LocalTensor<T> target = out.template AllocTensor<T>();
            uint32_t made;
            if constexpr (IsWide<Instruction>::value) {
                made =
                    Instruction::Run(target, source, tiling.pass_elems, wide.template Get<float>());
            } else {
                made = Instruction::Run(target, source, tiling.pass_elems);
            }
            in.FreeTensor(source);
            out.EnQue(target);
            target = out.template DeQue<T>();
            AscendC::DataCopyExtParams write(1, static_cast<uint32_t>(made * sizeof(T)), 0, 0, 0);
            AscendC::DataCopyPad(results[pass * tiling.result_elems], target, write);
            out.FreeTensor(target);
        }
    }
};

// --- Sorts -----------------------------------------------------------------------------------

// The lengths of four lists that are merged.
struct NoMerge {
    static constexpr uint16_t lengths[4] = {0, 0, 0, 0};
};
struct EqualLists {
    static constexpr uint16_t lengths[4] = {32, 32, 32, 32};
};
struct UnequalLists {
    static constexpr uint16_t lengths[4] = {32, 8, 24, 16};
};

// A pass has four lists of 32 scores, then their indices: each list sorted, then the beginnings of
// all merged, as long as Lists says. Scores with their indices take 8 B each.
template <class T, class Lists>
struct Sorting {
    static constexpr uint32_t lists = 4;
    static constexpr uint32_t count = 32 * lists;
    static constexpr uint32_t pair_bytes = 8;
    static constexpr bool merges = Lists::lengths[0] != 0;

    static __aicore__ inline void Run(GM_ADDR x, GM_ADDR y, const CheckTilingData& tiling) {
        AscendC::TPipe pipe;
        AscendC::TQue<AscendC::TPosition::VECIN, 1> in;
        AscendC::TQue<AscendC::TPosition::VECOUT, 1> out;
        AscendC::TBuf<AscendC::TPosition::VECCALC> work;
        constexpr uint32_t source_bytes = count * (sizeof(T) + sizeof(uint32_t));
        constexpr uint32_t target_bytes = count * pair_bytes;
        pipe.InitBuffer(in, 1, source_bytes);
        pipe.InitBuffer(out, 1, target_bytes);
        pipe.InitBuffer(work, target_bytes);
        AscendC::GlobalTensor<uint8_t> operands;
        AscendC::GlobalTensor<uint8_t> results;
        const uint64_t passes = tiling.passes;
        operands.SetGlobalBuffer(reinterpret_cast<__gm__ uint8_t*>(x), passes * source_bytes);
        results.SetGlobalBuffer(reinterpret_cast<__gm__ uint8_t*>(y), passes * target_bytes);
        const uint32_t cores = static_cast<uint32_t>(AscendC::GetBlockNum());
        for (uint64_t pass = AscendC::GetBlockIdx(); pass < passes; pass += cores) {
            AscendC::LocalTensor<uint8_t> source = in.template AllocTensor<uint8_t>();
            AscendC::DataCopyExtParams read(1, source_bytes, 0, 0, 0);
            AscendC::DataCopyPadExtParams<uint8_t> no_padding;
            AscendC::DataCopyPad(source, operands[pass * source_bytes], read, no_padding);
            in.EnQue(source);
            source = in.template DeQue<uint8_t>();
            AscendC::LocalTensor<uint8_t> target = out.template AllocTensor<uint8_t>();
            const auto scores = source.template ReinterpretCast<T>();
            const auto indices = source[count * sizeof(T)].template ReinterpretCast<uint32_t>();
            const auto found = target.template ReinterpretCast<T>();
            const auto sorted = work.template Get<T>();
            AscendC::Sort32<T>(merges ? sorted : found, scores, indices, lists);
            uint32_t made = count;
            if constexpr (merges) {
                AscendC::PipeBarrier<PIPE_V>();
                constexpr uint32_t apart = 32 * pair_bytes / sizeof(T);
                AscendC::MrgSortSrcList<T> all;
                all.src1 = sorted;
                all.src2 = sorted[apart];
                all.src3 = sorted[2 * apart];
                all.src4 = sorted[3 * apart];
                AscendC::MrgSort4Info info;
                info.elementLengths[0] = Lists::lengths[0];
                info.elementLengths[1] = Lists::lengths[1];
                info.elementLengths[2] = Lists::lengths[2];
                info.elementLengths[3] = Lists::lengths[3];
                made =
                    Lists::lengths[0] + Lists::lengths[1] + Lists::lengths[2] + Lists::lengths[3];
                info.ifExhaustedSuspension = false;
                info.validBit = 0b1111;
                info.repeatTimes = 1;
                AscendC::MrgSort<T>(found, all, info);
            }
            in.FreeTensor(source);
            out.EnQue(target);
            target = out.template DeQue<uint8_t>();
            AscendC::DataCopyExtParams write(1, made * pair_bytes, 0, 0, 0);
            AscendC::DataCopyPad(results[pass * target_bytes], target, write);
            out.FreeTensor(target);
        }
    }
};

// --- A number of each core -------------------------------------------------------------------

// Writes 64 bits of this core, with what the scalar pipe finds in UB.
__aicore__ inline void Answer(GM_ADDR y, const AscendC::LocalTensor<uint32_t>& ub, uint64_t value) {
    AscendC::GlobalTensor<uint32_t> results;
    const uint64_t words = kResultBytes / sizeof(uint32_t);
    results.SetGlobalBuffer(reinterpret_cast<__gm__ uint32_t*>(y),
                            words * static_cast<uint64_t>(AscendC::GetBlockNum()));
    AscendC::PipeBarrier<PIPE_ALL>();
    ub.SetValue(0, static_cast<uint32_t>(value));
    ub.SetValue(1, static_cast<uint32_t>(value >> 32));
    AscendC::PipeBarrier<PIPE_ALL>();
    AscendC::DataCopyExtParams write(1, 2 * sizeof(uint32_t), 0, 0, 0);
    AscendC::DataCopyPad(results[words * static_cast<uint64_t>(AscendC::GetBlockIdx())], ub, write);
    AscendC::PipeBarrier<PIPE_ALL>();
}

// Bits of CTRL from one on: those that are 1 in `mask` are left as they are in `bits`.
template <uint32_t first>
__aicore__ inline void LeaveBits(uint32_t mask, uint32_t bits) {
    if (mask & 1) pypto_cast::SetControlBit<first>((bits & 1) != 0);
    if constexpr (first < 63) LeaveBits<first + 1>(mask >> 1, bits >> 1);
}

// CTRL as a kernel finds it. With `sets` bits of it are left as the host says.
template <bool sets>
struct Control {
    static __aicore__ inline void Run(GM_ADDR /*x*/, GM_ADDR y, const CheckTilingData& tiling) {
        const uint64_t found = get_ctrl();
        AscendC::TPipe pipe;
        AscendC::TBuf<AscendC::TPosition::VECCALC> buffer;
        pipe.InitBuffer(buffer, kResultBytes);
        Answer(y, buffer.template Get<uint32_t>(), found);
        if constexpr (sets) {
            LeaveBits<32>(tiling.ctrl_mask, tiling.ctrl_bits);
        }
    }
};

// --- What a copy leaves in UB ----------------------------------------------------------------

// On each core two blocks of UB that hold x from its second block on, after a copy of fewer bytes
// than a block to the first of them.
struct CopyTail {
    static __aicore__ inline void Run(GM_ADDR x, GM_ADDR y, const CheckTilingData& tiling) {
        AscendC::TPipe pipe;
        AscendC::TBuf<AscendC::TPosition::VECCALC> buffer;
        pipe.InitBuffer(buffer, 2 * kResultBytes);
        const auto ub = buffer.template Get<uint8_t>();
        AscendC::GlobalTensor<uint8_t> source;
        AscendC::GlobalTensor<uint8_t> target;
        source.SetGlobalBuffer(reinterpret_cast<__gm__ uint8_t*>(x), 3 * kResultBytes);
        target.SetGlobalBuffer(reinterpret_cast<__gm__ uint8_t*>(y),
                               2 * kResultBytes * static_cast<uint64_t>(AscendC::GetBlockNum()));
        const auto mine = target[2 * kResultBytes * static_cast<uint64_t>(AscendC::GetBlockIdx())];
        AscendC::DataCopyExtParams whole(1, 2 * kResultBytes, 0, 0, 0);
        AscendC::DataCopyExtParams tail(1, tiling.block_bytes, 0, 0, 0);
        AscendC::DataCopyPadExtParams<uint8_t> no_padding;
        AscendC::DataCopyPad(ub, source[kResultBytes], whole, no_padding);
        AscendC::PipeBarrier<PIPE_ALL>();
        AscendC::DataCopyPad(ub, source, tail, no_padding);
        AscendC::PipeBarrier<PIPE_ALL>();
        AscendC::DataCopyPad(mine, ub, whole);
        AscendC::PipeBarrier<PIPE_ALL>();
    }
};

// --- The clock -------------------------------------------------------------------------------

struct Nothing {
    static __aicore__ inline void Run(GM_ADDR, GM_ADDR, const AscendC::LocalTensor<uint8_t>&,
                                      const CheckTilingData&) {}
};

struct Barrier {
    static __aicore__ inline void Run(GM_ADDR, GM_ADDR, const AscendC::LocalTensor<uint8_t>&,
                                      const CheckTilingData&) {
        AscendC::PipeBarrier<PIPE_V>();
    }
};

// A flag there and one back: MTE2 sets its flag again only once V has waited for the last one.
struct Flag {
    static __aicore__ inline void Run(GM_ADDR, GM_ADDR, const AscendC::LocalTensor<uint8_t>&,
                                      const CheckTilingData&) {
        AscendC::SetFlag<AscendC::HardEvent::MTE2_V>(0);
        AscendC::WaitFlag<AscendC::HardEvent::MTE2_V>(0);
        AscendC::SetFlag<AscendC::HardEvent::V_MTE2>(0);
        AscendC::WaitFlag<AscendC::HardEvent::V_MTE2>(0);
    }
};

// Blocks of this core's own part of GM, one after another.
template <bool to_ub>
struct Copy {
    static __aicore__ inline void Run(GM_ADDR from, GM_ADDR to,
                                      const AscendC::LocalTensor<uint8_t>& ub,
                                      const CheckTilingData& tiling) {
        const uint64_t size = uint64_t{tiling.blocks} * tiling.block_bytes;
        AscendC::GlobalTensor<uint8_t> all;
        all.SetGlobalBuffer(reinterpret_cast<__gm__ uint8_t*>(to_ub ? from : to),
                            size * static_cast<uint64_t>(AscendC::GetBlockNum()));
        const auto mine = all[size * static_cast<uint64_t>(AscendC::GetBlockIdx())];
        AscendC::DataCopyExtParams copy(static_cast<uint16_t>(tiling.blocks), tiling.block_bytes, 0,
                                        0, 0);
        if constexpr (to_ub) {
            AscendC::DataCopyPadExtParams<uint8_t> no_padding;
            AscendC::DataCopyPad(ub, mine, copy, no_padding);
        } else {
            AscendC::DataCopyPad(mine, ub, copy);
        }
    }
};

// Blocks of all of this core's own part of GM, each once: `passes` copies, one behind the other.
template <bool to_ub>
struct Sweep {
    static __aicore__ inline void Run(GM_ADDR from, GM_ADDR to,
                                      const AscendC::LocalTensor<uint8_t>& ub,
                                      const CheckTilingData& tiling) {
        const uint64_t size = uint64_t{tiling.blocks} * tiling.block_bytes;
        const uint64_t step = size * static_cast<uint64_t>(AscendC::GetBlockNum());
        for (uint64_t pass = 0; pass < tiling.passes; ++pass) {
            Copy<to_ub>::Run(from + pass * step, to + pass * step, ub, tiling);
        }
    }
};

// FP32 to FP16 as a loop over tiles with one buffer each makes it: the next elements are read while
// the last results are written.
struct Pass {
    static __aicore__ inline void Run(GM_ADDR from, GM_ADDR to,
                                      const AscendC::LocalTensor<uint8_t>& ub,
                                      const CheckTilingData& tiling) {
        const uint32_t in_bytes = tiling.pass_elems * sizeof(float);
        const uint32_t out_bytes = tiling.pass_elems * sizeof(half);
        const uint64_t cores = static_cast<uint64_t>(AscendC::GetBlockNum());
        const uint64_t core = static_cast<uint64_t>(AscendC::GetBlockIdx());
        AscendC::GlobalTensor<uint8_t> sources;
        AscendC::GlobalTensor<uint8_t> targets;
        sources.SetGlobalBuffer(reinterpret_cast<__gm__ uint8_t*>(from), cores * in_bytes);
        targets.SetGlobalBuffer(reinterpret_cast<__gm__ uint8_t*>(to), cores * out_bytes);
        const auto results = ub[tiling.half_bytes];
        AscendC::DataCopyExtParams read(1, in_bytes, 0, 0, 0);
        AscendC::DataCopyExtParams write(1, out_bytes, 0, 0, 0);
        AscendC::DataCopyPadExtParams<uint8_t> no_padding;
        AscendC::DataCopyPad(ub, sources[core * in_bytes], read, no_padding);
        AscendC::SetFlag<AscendC::HardEvent::MTE2_V>(0);
        AscendC::WaitFlag<AscendC::HardEvent::MTE2_V>(0);
        AscendC::Cast(results.template ReinterpretCast<half>(),
                      ub.template ReinterpretCast<float>(), AscendC::RoundMode::CAST_RINT,
                      tiling.pass_elems);
        AscendC::SetFlag<AscendC::HardEvent::V_MTE2>(0);
        AscendC::WaitFlag<AscendC::HardEvent::V_MTE2>(0);
        AscendC::SetFlag<AscendC::HardEvent::V_MTE3>(0);
        AscendC::WaitFlag<AscendC::HardEvent::V_MTE3>(0);
        AscendC::DataCopyPad(targets[core * out_bytes], results, write);
        AscendC::SetFlag<AscendC::HardEvent::MTE3_V>(0);
        AscendC::WaitFlag<AscendC::HardEvent::MTE3_V>(0);
    }
};

// The same as a task of its own: nothing of the next one begins before all of it has ended.
struct Task {
    static __aicore__ inline void Run(GM_ADDR from, GM_ADDR to,
                                      const AscendC::LocalTensor<uint8_t>& ub,
                                      const CheckTilingData& tiling) {
        Pass::Run(from, to, ub, tiling);
        AscendC::PipeBarrier<PIPE_ALL>();
    }
};

// FP32 to FP16 as the kernel of a cast makes it, with two slots of UB that passes take in turns. The
// second slot's sources lie behind the first's, and so do its results.
struct Slots {
    static __aicore__ inline void Run(GM_ADDR from, GM_ADDR to,
                                      const AscendC::LocalTensor<uint8_t>& ub,
                                      const CheckTilingData& tiling) {
        const uint32_t in_bytes = tiling.pass_elems * sizeof(float);
        const uint32_t out_bytes = tiling.pass_elems * sizeof(half);
        const uint64_t cores = static_cast<uint64_t>(AscendC::GetBlockNum());
        const uint64_t core = static_cast<uint64_t>(AscendC::GetBlockIdx());
        AscendC::GlobalTensor<uint8_t> sources;
        AscendC::GlobalTensor<uint8_t> targets;
        sources.SetGlobalBuffer(reinterpret_cast<__gm__ uint8_t*>(from), cores * in_bytes);
        targets.SetGlobalBuffer(reinterpret_cast<__gm__ uint8_t*>(to), cores * 2 * out_bytes);
        AscendC::DataCopyExtParams read(1, in_bytes, 0, 0, 0);
        AscendC::DataCopyExtParams write(1, out_bytes, 0, 0, 0);
        AscendC::DataCopyPadExtParams<uint8_t> no_padding;
        for (uint32_t pass = 0; pass < tiling.passes; ++pass) {
            const uint32_t slot = pass & 1;
            const auto source = ub[slot * in_bytes];
            const auto result = ub[tiling.half_bytes + slot * out_bytes];
            if (pass > 1) AscendC::WaitFlag<AscendC::HardEvent::V_MTE2>(slot);
            AscendC::DataCopyPad(source, sources[core * in_bytes], read, no_padding);
            AscendC::SetFlag<AscendC::HardEvent::MTE2_V>(slot);
            AscendC::WaitFlag<AscendC::HardEvent::MTE2_V>(slot);
            if (pass > 1) AscendC::WaitFlag<AscendC::HardEvent::MTE3_V>(slot);
            AscendC::Cast(result.template ReinterpretCast<half>(),
                          source.template ReinterpretCast<float>(), AscendC::RoundMode::CAST_RINT,
                          tiling.pass_elems);
            AscendC::SetFlag<AscendC::HardEvent::V_MTE2>(slot);
            AscendC::SetFlag<AscendC::HardEvent::V_MTE3>(slot);
            AscendC::WaitFlag<AscendC::HardEvent::V_MTE3>(slot);
            AscendC::DataCopyPad(targets[(2 * core + slot) * out_bytes], result, write);
            AscendC::SetFlag<AscendC::HardEvent::MTE3_V>(slot);
        }
        for (uint32_t slot = 0; slot < 2; ++slot) {
            AscendC::WaitFlag<AscendC::HardEvent::V_MTE2>(slot);
            AscendC::WaitFlag<AscendC::HardEvent::MTE3_V>(slot);
        }
        AscendC::PipeBarrier<PIPE_ALL>();
    }
};

// A Cast of the elements of so many repeats, from one half of UB to the other. With a barrier
// before each, every one starts a stream.
template <class Src, class Dst, AscendC::RoundMode mode, bool apart>
struct CastOf {
    static __aicore__ inline void Run(GM_ADDR, GM_ADDR, const AscendC::LocalTensor<uint8_t>& ub,
                                      const CheckTilingData& tiling) {
        if constexpr (apart) AscendC::PipeBarrier<PIPE_V>();
        AscendC::Cast(ub[tiling.half_bytes].template ReinterpretCast<Dst>(),
                      ub.template ReinterpretCast<Src>(), mode, tiling.pass_elems);
    }
};

// Ticks of the system clock, 50 MHz on A2 and A3, for `times` times an action. What is written of y
// but each core's ticks is none of the host's business.
template <class Action, bool writes = false>
struct Clock {
    static __aicore__ inline void Run(GM_ADDR x, GM_ADDR y, const CheckTilingData& tiling) {
        const pypto_cast::ControlScope scope;
        pypto_cast::SetControlBit<pypto_cast::kCtrlFloat>(true);
        AscendC::SetDeqScale(static_cast<half>(1.0f));
        AscendC::TPipe pipe;
        AscendC::TBuf<AscendC::TPosition::VECCALC> answer;
        AscendC::TBuf<AscendC::TPosition::VECCALC> work;
        pipe.InitBuffer(answer, kResultBytes);
        pipe.InitBuffer(work, tiling.ub_bytes);
        const auto ub = work.template Get<uint8_t>();
        const GM_ADDR to = y + kResultBytes * static_cast<uint64_t>(AscendC::GetBlockNum());
        if constexpr (writes) {
            AscendC::Duplicate(work.template Get<int16_t>(), static_cast<int16_t>(0),
                               static_cast<int32_t>(tiling.ub_bytes / sizeof(int16_t)));
        }
        AscendC::PipeBarrier<PIPE_ALL>();
        const int64_t before = AscendC::GetSystemCycle();
        for (uint32_t time = 0; time < tiling.times; ++time) {
            Action::Run(x, to, ub, tiling);
        }
        AscendC::PipeBarrier<PIPE_ALL>();
        const int64_t after = AscendC::GetSystemCycle();
        Answer(y, answer.template Get<uint32_t>(), static_cast<uint64_t>(after - before));
    }
};

}  // namespace pypto_check

#endif  // PYPTO_CHECK_KERNEL_H
