// Cast of a tensor, tile by tile: one AscendC kernel for every pair and mode of the matrix, and for
// routes of several casts.
//
// Two slots of UB take turns, so that copies run beside vector work:
//
//     CopyIn    DataCopyPad  GM x -> in       rows at one pitch in elements on both sides
//     Compute   Cast ...     in -> out        so that one instruction spans them all
//     CopyOut   DataCopyPad  out -> GM y
//
// The host decides (CastTilingData), this kernel only carries out. It compiles as AscendC for
// dav-2201 and dav-3510 and, against twin/kernel_operator.h, as plain C++17.
#ifndef PYPTO_CAST_KERNEL_H
#define PYPTO_CAST_KERNEL_H

#include <cstdint>
#include <type_traits>

#include "cast_instances.h"
#include "cast_steps.h"
#if PYPTO_CAST_HAS_ROUTES
#include "cast_route.h"
#endif
#include "kernel_operator.h"

namespace pypto_cast {

constexpr uint32_t kDims = 4;
constexpr uint32_t kSlots = 2;

// A part of a tensor, in elements.
struct Box {
    uint32_t offset[kDims];
    uint32_t shape[kDims];
};

// Walks in row-major order over the boxes that cover a shape; the last ones along an axis may be
// smaller. It counts up, for the scalar unit divides slowly.
class BoxWalk {
  public:
    __aicore__ inline BoxWalk(const uint32_t (&shape)[kDims], const uint32_t (&box)[kDims]) {
        for (uint32_t axis = 0; axis < kDims; ++axis) {
            shape_[axis] = shape[axis];
            box_[axis] = box[axis];
            offset_[axis] = 0;
        }
    }

    // Goes to a place of the order.
    __aicore__ inline void Seek(uint32_t index) {
        for (uint32_t axis = kDims; axis-- > 0;) {
            const uint32_t count = CeilDiv(shape_[axis], box_[axis]);
            offset_[axis] = index % count * box_[axis];
            index /= count;
        }
    }

    // Goes to the next box; false: there was none, and it is back at the first.
    __aicore__ inline bool Next() {
        for (uint32_t axis = kDims; axis-- > 0;) {
            offset_[axis] += box_[axis];
            if (offset_[axis] < shape_[axis]) return true;
            offset_[axis] = 0;
        }
        return false;
    }

    __aicore__ inline Box At() const {
        Box found;
        for (uint32_t axis = 0; axis < kDims; ++axis) {
            found.offset[axis] = offset_[axis];
            found.shape[axis] = Smaller(box_[axis], shape_[axis] - offset_[axis]);
        }
        return found;
    }

  private:
    uint32_t shape_[kDims];
    uint32_t box_[kDims];
    uint32_t offset_[kDims];
};

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
        for (uint32_t axis = pypto_cast::kDims; axis-- > 0;) {
            stride_[axis] = elems;
            elems *= tiling.shape[axis];
        }
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
        if (tiling_.fp8_nan) pypto_cast::SetControlBit<pypto_cast::kCtrlNan>(true);
        if (tiling_.own_saturation) pypto_cast::SetControlBit<pypto_cast::kCtrlGlobal>(false);
        if (Steps::NeedsScale(tiling_)) AscendC::SetDeqScale(static_cast<half>(1.0f));
        const uint32_t cores = static_cast<uint32_t>(AscendC::GetBlockNum());
        const uint32_t core = static_cast<uint32_t>(AscendC::GetBlockIdx());
        const uint32_t share = tiling_.tile_count / cores;
        const uint32_t extra = tiling_.tile_count % cores;
        const uint32_t first = core * share + pypto_cast::Smaller(core, extra);
        const uint32_t last = first + share + (core < extra ? 1 : 0);
        pypto_cast::BoxWalk tiles(tiling_.shape, tiling_.tile_shape);
        tiles.Seek(first);
        uint32_t slot = 0;
        bool is_first = true;
        for (uint32_t index = first; index < last; ++index, tiles.Next()) {
            const Box tile = tiles.At();
            uint32_t pass[pypto_cast::kDims];
            SetPass(tile, pass);
            pypto_cast::BoxWalk parts(tile.shape, pass);
            do {
                Box box = parts.At();
                for (uint32_t axis = 0; axis < pypto_cast::kDims; ++axis) {
                    box.offset[axis] += tile.offset[axis];
                }
                if (!is_first && Steps::EndsOnScratch(tiling_)) AscendC::PipeBarrier<PIPE_V>();
                is_first = false;
                CopyIn(box, slot);
                Compute<Steps>(box, slot);
                CopyOut(box, slot);
                slot = pypto_cast::kSlots - 1 - slot;
            } while (parts.Next());
        }
    }

    // What a slot holds of a tile, by the axes along which it is a tail.
    __aicore__ inline void SetPass(const Box& tile, uint32_t (&pass)[pypto_cast::kDims]) const {
        uint32_t tails = 0;
        for (uint32_t axis = 0; axis < pypto_cast::kDims; ++axis) {
            tails = 2 * tails + (tile.shape[axis] < tiling_.tile_shape[axis] ? 1 : 0);
        }
        for (uint32_t axis = 0; axis < pypto_cast::kDims; ++axis) {
            pass[axis] = tiling_.pass_shapes[tails * pypto_cast::kDims + axis];
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
        SetOperand<Operand::IN>(ub, in, Pitch<Src>(ub.cols));
        SetOperand<Operand::OUT>(ub, out, Pitch<Dst>(ub.cols));
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

    // Elements from one row in UB to the next: whole blocks on both sides, or on its own.
    template <class T>
    __aicore__ inline uint32_t Pitch(uint32_t cols) const {
        using pypto_cast::kBits;
        constexpr uint32_t narrower = kBits<Src> < kBits<Dst> ? kBits<Src> : kBits<Dst>;
        if (tiling_.one_pitch == 0) return pypto_cast::Padded<T>(cols);
        return pypto_cast::Whole<pypto_cast::kBlockBits / narrower>(cols);
    }

    // Moves a box between GM and UB, a row a block, with as few copies as one stride allows: the
    // longest axis of rows goes into the copy, the innermost of equal ones, and the others are
    // walked through. Rows lie in UB in the order in which they are copied.
    template <class T, bool to_ub>
    __aicore__ inline void CopyRows(const Box& box,
                                    const AscendC::GlobalTensor<pypto_cast::Stored<T>>& gm,
                                    const AscendC::LocalTensor<pypto_cast::Stored<T>>& ub) {
        constexpr uint32_t last = pypto_cast::kDims - 1;
        static_assert(last == 3, "two axes are walked through");
        const uint32_t cols = box.shape[last];
        uint64_t first = box.offset[last];
        uint32_t longest = 0;
        for (uint32_t axis = 0; axis < last; ++axis) {
            first += box.offset[axis] * stride_[axis];
            if (box.shape[axis] >= box.shape[longest]) longest = axis;
        }
        const uint32_t outer = longest == 0 ? 1 : 0;
        const uint32_t inner = longest == 2 ? 1 : 2;
        const uint64_t gm_gap = Bytes<T>(stride_[longest] - cols);
        const bool is_far = gm_gap > 0xFFFFFFFF;
        const uint32_t blocks = is_far ? 1 : box.shape[longest];
        const uint32_t times = is_far ? box.shape[longest] : 1;
        const uint32_t pitch = Pitch<T>(cols);
        Gaps gaps = {0, 0};
        if (blocks > 1) {
            gaps.gm_bytes = static_cast<uint32_t>(gm_gap);
            gaps.ub_blocks = (pitch - pypto_cast::Padded<T>(cols)) * pypto_cast::kBits<T> /
                             pypto_cast::kBlockBits;
        }
        uint64_t place = 0;
        for (uint32_t i = 0; i < box.shape[outer]; ++i) {
            for (uint32_t j = 0; j < box.shape[inner]; ++j) {
                uint64_t elem = first + i * stride_[outer] + j * stride_[inner];
                for (uint32_t time = 0; time < times; ++time) {
                    CopyBlocks(gm[StoredElems<T>(elem)],
                               ub[static_cast<uint32_t>(StoredElems<T>(place))], blocks,
                               static_cast<uint32_t>(Bytes<T>(cols)), gaps,
                               std::bool_constant<to_ub>());
                    elem += stride_[longest];
                    place += uint64_t{blocks} * pitch;
                }
            }
        }
    }

    // From the end of a block to the next one.
    struct Gaps {
        uint32_t gm_bytes;
        uint32_t ub_blocks;
    };

    __aicore__ inline void CopyBlocks(const AscendC::GlobalTensor<In>& gm,
                                      const AscendC::LocalTensor<In>& ub, uint32_t blocks,
                                      uint32_t size_bytes, const Gaps& gaps,
                                      std::true_type /*to_ub*/) {
        AscendC::DataCopyExtParams copy(static_cast<uint16_t>(blocks), size_bytes, gaps.gm_bytes,
                                        gaps.ub_blocks, 0);
        AscendC::DataCopyPadExtParams<In> no_padding;
        AscendC::DataCopyPad(ub, gm, copy, no_padding);
    }

    __aicore__ inline void CopyBlocks(const AscendC::GlobalTensor<Out>& gm,
                                      const AscendC::LocalTensor<Out>& ub, uint32_t blocks,
                                      uint32_t size_bytes, const Gaps& gaps,
                                      std::false_type /*to_ub*/) {
        AscendC::DataCopyExtParams copy(static_cast<uint16_t>(blocks), size_bytes, gaps.ub_blocks,
                                        gaps.gm_bytes, 0);
        AscendC::DataCopyPad(gm, ub, copy);
    }

    AscendC::TQue<AscendC::TPosition::VECIN, 1> in_[pypto_cast::kSlots];
    AscendC::TQue<AscendC::TPosition::VECOUT, 1> out_[pypto_cast::kSlots];
    AscendC::TBuf<AscendC::TPosition::VECCALC> tmp_;
    AscendC::GlobalTensor<In> x_;
    AscendC::GlobalTensor<Out> y_;
    CastTilingData tiling_;
    uint64_t stride_[pypto_cast::kDims];
};

#endif  // PYPTO_CAST_KERNEL_H
