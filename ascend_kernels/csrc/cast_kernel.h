// Cast of a tensor, tile by tile: one AscendC kernel for every pair and mode of the matrix, and for
// routes of several casts.
//
// Two slots of UB take turns, so that copies run beside vector work:
//
//     CopyIn    DataCopyPad  GM x -> in       one block a row, rows padded to 32 B in UB
//     Compute   Cast ...     in -> out        the steps of the pair
//     CopyOut   DataCopyPad  out -> GM y
//
// The host decides (CastTilingData), this kernel only carries out. It compiles as AscendC for
// dav-2201 and, against twin/kernel_operator.h, as plain C++17.
#ifndef PYPTO_CAST_KERNEL_H
#define PYPTO_CAST_KERNEL_H

#include <cstdint>
#include <type_traits>

#include "cast_instances.h"
#include "cast_route.h"
#include "cast_steps.h"
#include "kernel_operator.h"

namespace pypto_cast {

constexpr uint32_t kDims = 4;
constexpr uint32_t kSlots = 2;

__aicore__ inline uint32_t Smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

// A part of a tensor, in elements.
struct Box {
    uint32_t offset[kDims];
    uint32_t shape[kDims];
};

__aicore__ inline uint32_t BoxCount(const uint32_t (&shape)[kDims], const uint32_t (&box)[kDims]) {
    uint32_t count = 1;
    for (uint32_t axis = 0; axis < kDims; ++axis) count *= CeilDiv(shape[axis], box[axis]);
    return count;
}

// The box at a place of the row-major order of those that cover `shape`; the last ones may be
// smaller.
__aicore__ inline Box BoxAt(const uint32_t (&shape)[kDims], const uint32_t (&box)[kDims],
                            uint32_t index) {
    Box found;
    for (uint32_t axis = kDims; axis-- > 0;) {
        const uint32_t count = CeilDiv(shape[axis], box[axis]);
        found.offset[axis] = index % count * box[axis];
        found.shape[axis] = Smaller(box[axis], shape[axis] - found.offset[axis]);
        index /= count;
    }
    return found;
}

}  // namespace pypto_cast

// The pipe is its caller's: the compiler keeps the members of a class that holds one in memory
// instead of registers.
template <class Src, class Dst, auto mode>
class CastKernel {
  public:
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, const CastTilingData& tiling,
                                AscendC::TPipe& pipe) {
        tiling_ = tiling;
        uint64_t elems = 1;
        for (uint32_t axis = 0; axis < pypto_cast::kDims; ++axis) elems *= tiling.shape[axis];
        x_.SetGlobalBuffer(reinterpret_cast<__gm__ In*>(x), StoredElems<Src>(elems));
        y_.SetGlobalBuffer(reinterpret_cast<__gm__ Out*>(y), StoredElems<Dst>(elems));
        for (uint32_t slot = 0; slot < pypto_cast::kSlots; ++slot) {
            pipe.InitBuffer(in_[slot], 1, tiling.in_bytes);
            pipe.InitBuffer(out_[slot], 1, tiling.out_bytes);
            if (slot == 0 && tiling.tmp_bytes > 0) pipe.InitBuffer(tmp_, tiling.tmp_bytes);
        }
    }

    __aicore__ inline void Process() {
        const pypto_cast::ControlScope scope;
        if (tiling_.saturate) {
            ProcessTiles<Saturating>();
        } else {
            ProcessTiles<LowBits>();
        }
    }

  private:
    using In = pypto_cast::Stored<Src>;
    using Out = pypto_cast::Stored<Dst>;
    using Box = pypto_cast::Box;
    using Operand = pypto_cast::Operand;
    using Saturating = typename pypto_cast::StepsOf<Src, Dst, mode>::Saturating;
    using LowBits = typename pypto_cast::StepsOf<Src, Dst, mode>::LowBits;

    template <class T>
    static __aicore__ inline uint64_t Bytes(uint64_t elems) {
        return elems * pypto_cast::kBits<T> / 8;
    }

    template <class T>
    static __aicore__ inline uint64_t StoredElems(uint64_t elems) {
        return Bytes<T>(elems) / sizeof(pypto_cast::Stored<T>);
    }

    // The tiles of this core: contiguous, and no core has two tiles more than another.
    template <class Steps>
    __aicore__ inline void ProcessTiles() {
        pypto_cast::SetControlBit<pypto_cast::kCtrlFloat>(tiling_.inf_nan != 0);
        pypto_cast::SetTruncation(Steps::begins_truncating);
        if (Steps::NeedsScale(tiling_)) AscendC::SetDeqScale(static_cast<half>(1.0f));
        const uint32_t cores = static_cast<uint32_t>(AscendC::GetBlockNum());
        const uint32_t core = static_cast<uint32_t>(AscendC::GetBlockIdx());
        const uint32_t share = tiling_.tile_count / cores;
        const uint32_t extra = tiling_.tile_count % cores;
        const uint32_t first = core * share + pypto_cast::Smaller(core, extra);
        const uint32_t last = first + share + (core < extra ? 1 : 0);
        uint32_t passes = 0;
        for (uint32_t index = first; index < last; ++index) {
            const Box tile = pypto_cast::BoxAt(tiling_.shape, tiling_.tile_shape, index);
            uint32_t part_shape[pypto_cast::kDims];
            for (uint32_t axis = 0; axis < pypto_cast::kDims; ++axis) {
                part_shape[axis] = pypto_cast::Smaller(tiling_.pass_shape[axis], tile.shape[axis]);
            }
            const uint32_t parts = pypto_cast::BoxCount(tile.shape, part_shape);
            for (uint32_t part = 0; part < parts; ++part, ++passes) {
                Box box = pypto_cast::BoxAt(tile.shape, part_shape, part);
                for (uint32_t axis = 0; axis < pypto_cast::kDims; ++axis) {
                    box.offset[axis] += tile.offset[axis];
                }
                if (passes > 0 && Steps::EndsOnScratch(tiling_)) AscendC::PipeBarrier<PIPE_V>();
                const uint32_t slot = passes % pypto_cast::kSlots;
                CopyIn(box, slot);
                Compute<Steps>(box, slot);
                CopyOut(box, slot);
            }
        }
    }

    __aicore__ inline void CopyIn(const Box& box, uint32_t slot) {
        AscendC::LocalTensor<In> in = in_[slot].template AllocTensor<In>();
        CopyRows<Src, true>(box, x_, in);
        in_[slot].EnQue(in);
    }

    template <class Steps>
    __aicore__ inline void Compute(const Box& box, uint32_t slot) {
        AscendC::LocalTensor<In> in = in_[slot].template DeQue<In>();
        AscendC::LocalTensor<Out> out = out_[slot].template AllocTensor<Out>();
        pypto_cast::Operands ub;
        ub.cols = box.shape[pypto_cast::kDims - 1];
        ub.rows = 1;
        for (uint32_t axis = 0; axis + 1 < pypto_cast::kDims; ++axis) ub.rows *= box.shape[axis];
        SetOperand<Operand::IN>(ub, in, pypto_cast::Padded<Src>(ub.cols));
        SetOperand<Operand::OUT>(ub, out, pypto_cast::Padded<Dst>(ub.cols));
        // Scratch rows hold as many elements as input rows, so that one Cast spans both.
        if (tiling_.tmp_bytes > 0) {
            SetOperand<Operand::TMP>(ub, tmp_.template Get<uint8_t>(), ub.Pitch(Operand::IN));
        }
        Steps::template Run<Steps::begins_truncating, Steps::begins_truncating>(ub, tiling_);
        in_[slot].FreeTensor(in);
        out_[slot].EnQue(out);
    }

    __aicore__ inline void CopyOut(const Box& box, uint32_t slot) {
        AscendC::LocalTensor<Out> out = out_[slot].template DeQue<Out>();
        CopyRows<Dst, false>(box, y_, out);
        out_[slot].FreeTensor(out);
    }

    template <Operand operand, class T>
    __aicore__ inline void SetOperand(pypto_cast::Operands& ub,
                                      const AscendC::LocalTensor<T>& tensor, uint32_t pitch) {
        ub.bytes[static_cast<uint32_t>(operand)] = tensor.template ReinterpretCast<uint8_t>();
        ub.pitch[static_cast<uint32_t>(operand)] = pitch;
    }

    // Moves a box between GM and UB, a row a block, with as few copies as strides allow: axes whose
    // rows are equally far apart are one, and of those that remain the innermost goes into the
    // copy.
    template <class T, bool to_ub>
    __aicore__ inline void CopyRows(const Box& box,
                                    const AscendC::GlobalTensor<pypto_cast::Stored<T>>& gm,
                                    const AscendC::LocalTensor<pypto_cast::Stored<T>>& ub) {
        constexpr uint32_t last = pypto_cast::kDims - 1;
        const uint32_t cols = box.shape[last];
        uint32_t extent[pypto_cast::kDims];
        uint64_t stride[pypto_cast::kDims];
        uint32_t axes = 0;
        uint64_t first = box.offset[last];
        for (uint32_t axis = 0; axis < last; ++axis) {
            uint64_t step = 1;
            for (uint32_t inner = axis + 1; inner <= last; ++inner) step *= tiling_.shape[inner];
            first += box.offset[axis] * step;
            uint32_t count = box.shape[axis];
            if (count == 1) continue;
            if (axes > 0 && stride[axes - 1] == count * step) count *= extent[--axes];
            extent[axes] = count;
            stride[axes++] = step;
        }
        uint32_t blocks = 1;
        uint64_t gap = 0;
        if (axes > 0 && Bytes<T>(stride[axes - 1] - cols) <= 0xFFFFFFFF) {
            blocks = extent[--axes];
            gap = Bytes<T>(stride[axes] - cols);
        }
        uint32_t copies = 1;
        for (uint32_t axis = 0; axis < axes; ++axis) copies *= extent[axis];
        const uint32_t row = static_cast<uint32_t>(StoredElems<T>(pypto_cast::Padded<T>(cols)));
        for (uint32_t copy = 0; copy < copies; ++copy) {
            uint64_t elem = first;
            uint32_t rest = copy;
            for (uint32_t axis = axes; axis-- > 0;) {
                elem += rest % extent[axis] * stride[axis];
                rest /= extent[axis];
            }
            CopyBlocks(gm[StoredElems<T>(elem)], ub[copy * blocks * row], blocks,
                       static_cast<uint32_t>(Bytes<T>(cols)), static_cast<uint32_t>(gap),
                       std::bool_constant<to_ub>());
        }
    }

    // Blocks lie `gap` bytes apart in GM; in UB each starts at the next whole 32 B.
    __aicore__ inline void CopyBlocks(const AscendC::GlobalTensor<In>& gm,
                                      const AscendC::LocalTensor<In>& ub, uint32_t blocks,
                                      uint32_t size_bytes, uint32_t gap, std::true_type /*to_ub*/) {
        AscendC::DataCopyExtParams copy(static_cast<uint16_t>(blocks), size_bytes, gap, 0, 0);
        AscendC::DataCopyPadExtParams<In> no_padding;
        AscendC::DataCopyPad(ub, gm, copy, no_padding);
    }

    __aicore__ inline void CopyBlocks(const AscendC::GlobalTensor<Out>& gm,
                                      const AscendC::LocalTensor<Out>& ub, uint32_t blocks,
                                      uint32_t size_bytes, uint32_t gap,
                                      std::false_type /*to_ub*/) {
        AscendC::DataCopyExtParams copy(static_cast<uint16_t>(blocks), size_bytes, 0, gap, 0);
        AscendC::DataCopyPad(gm, ub, copy);
    }

    AscendC::TQue<AscendC::TPosition::VECIN, 1> in_[pypto_cast::kSlots];
    AscendC::TQue<AscendC::TPosition::VECOUT, 1> out_[pypto_cast::kSlots];
    AscendC::TBuf<AscendC::TPosition::VECCALC> tmp_;
    AscendC::GlobalTensor<In> x_;
    AscendC::GlobalTensor<Out> y_;
    CastTilingData tiling_;
};

#endif  // PYPTO_CAST_KERNEL_H
