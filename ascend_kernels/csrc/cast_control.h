// The bits of the control register CTRL that Cast depends on.
//
// AscendC's own functions for them came with CANN 9.1 (SetCtrlSpr, SetSaturationFlag); they are made
// of the compiler's functions below, which 8.5 and 9.0 have too.
#ifndef PYPTO_CAST_CONTROL_H
#define PYPTO_CAST_CONTROL_H

#include <cstdint>

#include "cast_instances.h"
#include "kernel_operator.h"

namespace pypto_cast {

// 1: FP16 and BF16 results keep infinities and NaN.
constexpr uint32_t kCtrlFloat = 48;
// 1: integer results keep their low bits.
constexpr uint32_t kCtrlCast = 59;
// 1: sums of integers give the nearest number; 0 keeps their low bits. Of the 950, as are the next
// two; no cast needs it.
constexpr uint32_t kCtrlInt = 53;
// 1: where results saturate, E5M2 and E4M3FN keep NaN.
constexpr uint32_t kCtrlNan = 50;
// 0: each instruction's SatMode decides in place of the bits above.
constexpr uint32_t kCtrlGlobal = 60;

template <uint32_t bit>
__aicore__ inline void SetControlBit(bool value) {
    const uint64_t ctrl = get_ctrl();
    set_ctrl(value ? sbitset1(ctrl, bit) : sbitset0(ctrl, bit));
}

// Puts the bits back at the end of its scope: CTRL outlives a kernel.
class ControlScope {
  public:
    __aicore__ inline ControlScope() : found_(get_ctrl() & kBits) {}
    __aicore__ inline ~ControlScope() { set_ctrl((get_ctrl() & ~kBits) | found_); }
    ControlScope(const ControlScope&) = delete;
    ControlScope& operator=(const ControlScope&) = delete;

  private:
#define PYPTO_CAST_BIT(bit) | uint64_t{1} << bit
    static constexpr uint64_t kBits = 0 PYPTO_CAST_CTRL_BITS(PYPTO_CAST_BIT);
#undef PYPTO_CAST_BIT
    uint64_t found_;
};

}  // namespace pypto_cast

#endif  // PYPTO_CAST_CONTROL_H
