// What the engine tells a loop, and how it finds one.
#ifndef PYPTO_CAST_PLAN_H
#define PYPTO_CAST_PLAN_H

#include <cstdint>

// Formats that share a loop: the rest of what tells them apart is in Params.
enum class Source { F32, F16, BF16, E5M2, S8, U8, S16, U16, S32, U32, S64, U64, NONE };
enum class Target {
    F32,
    F16,
    BF16,
    NARROW,
    TAPERED,
    INT8,
    INT16,
    INT32,
    UINT32,
    INT64,
    UINT64,
    BOOL,
    NONE
};

// How a loop rounds: by the direction that the floating-point environment holds, or by other means.
// EVEN is a direction too, of which BF16 and narrow floats make a case of its own.
enum class Way { DIRECTION, EVEN, AWAY, ODD, NONE };

struct Params {
    // Float lanes, which are clamped to what lies between lo and hi.
    float lo, hi;
    uint32_t nan_bits, nan_sign;  // what a NaN becomes, and which of its bits it keeps
    // BF16: what makes the sign of a code the bias that rounds it downward, upward or to zero.
    int32_t flip, directed;
    // Narrow floats, in 32-bit lanes.
    float narrow_lo, narrow_hi;
    int32_t man_shift, emin_bits, max_code, sign_shift, sign_code, special_from;
    int32_t inf_value, inf_sign, nan_value, narrow_nan_sign, signed_zero;
    int8_t above, last;      // codes above one and to the other have the sign of their source
    const uint8_t* tapered;  // the code of every index that to_tapered makes
    // Integer lanes.
    int32_t source_shift;  // left and back: drops unused bits and spreads the sign
    int64_t min, max;      // a source of UINT64 takes them for unsigned numbers
    float limit;           // what does not lie below becomes max
    int32_t code_mask;
};

// A format of at most 3 fraction bits whose exponents differ in bits: all that its rounding can
// depend on is the sign, the exponent, 4 fraction bits and whether the others are 0: an index.
constexpr int TAPERED_SHIFT = 19, TAPERED_INDEX_BITS = 14;

constexpr int LINE_BYTES = 64;  // of the caches

using Loop = void (*)(const Params&, const void* in, void* out, int64_t count, bool streams);

// Results from this size on bypass the cache: below, a reader finds them there.
constexpr int64_t STREAMED_BYTES = int64_t{2} << 20;

Loop find_baseline(Source, Target, Way, bool wraps);
Loop find_avx2(Source, Target, Way, bool wraps);
Loop find_avx512(Source, Target, Way, bool wraps);

#endif  // PYPTO_CAST_PLAN_H
