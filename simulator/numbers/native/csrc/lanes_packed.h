// What takes several of the steps in lanes_avx2.h or lanes_avx512.h, the same for both.
#ifndef PYPTO_CAST_LANES_PACKED_H
#define PYPTO_CAST_LANES_PACKED_H

#include "lanes.h"

namespace {

// Exact for what has at most 53 significant bits. The halves become fractions of large powers of
// two, whose excess the subtraction takes away.
template <bool is_signed>
INLINE Doubles to_f64(Halves x) {
    const i32 low_unit = all(0x43300000), high_unit = all(0x45300000);
    const i32 high = is_signed ? x.high ^ INT32_MIN : x.high;
    const double excess = 0x1p84 + 0x1p52 + (is_signed ? 0x1p63 : 0);
    return {((f64)beside_low(high, high_unit) - excess) + (f64)beside_low(x.low, low_unit),
            ((f64)beside_high(high, high_unit) - excess) + (f64)beside_high(x.low, low_unit)};
}

// To odd: of two neighbours one is, and the nearer to zero with that bit is it.
template <bool odd>
INLINE void store_as_halves(void* to, f32 low, f32 high, bool streams) {
    i16s halves;
    if constexpr (odd) {
        const i16s down = to_halves<_MM_FROUND_TO_NEG_INF>(low, high);
        const i16s up = to_halves<_MM_FROUND_TO_POS_INF>(low, high);
        halves = smaller_unsigned(down, up) | ((down | up) & 1);
    } else {
        halves = to_halves<_MM_FROUND_CUR_DIRECTION>(low, high);
    }
    store(to, halves, streams);
}

INLINE void store_halves(void* to, u32 low, u32 high, bool streams) {
    store(to, ordered(pack_unsigned((i32)low, (i32)high)), streams);
}
INLINE void store_bytes(void* to, const i32 (&x)[4], int32_t mask, bool streams) {
    const i16s low = pack(x[0] & mask, x[1] & mask), high = pack(x[2] & mask, x[3] & mask);
    store(to, ordered(pack_unsigned(low, high)), streams);
}

// Bytes of lanes from 0 to 255, and of lanes whose sign alone counts, together by `join`.
template <class Join>
INLINE void store_signed_bytes(void* to, const i32 (&x)[4], const i32 (&signs)[4], Join join,
                               bool streams) {
    const i8s bytes = pack_unsigned(pack(x[0], x[1]), pack(x[2], x[3]));
    const i8s sign = pack(pack(signs[0], signs[1]), pack(signs[2], signs[3]));
    store(to, ordered((i8s)join(bytes, sign)), streams);
}

// FP16 rounded to integers of 16 bits or fewer and clamped, for the most part by packing them. The
// conversion makes the smallest integer of -infinity, and of infinity, if that were not taken away
// before.
template <class Round>
INLINE i16s packed_halves(const char* from, Round rounded, bool is_signed) {
    const f32 beyond = all(0x1p16f);
    const i32 first = rounded(number_or_limit(from_half(from), beyond));
    const i32 second = rounded(number_or_limit(from_half(from + VECTOR_BYTES / 2), beyond));
    return is_signed ? pack(first, second) : pack_unsigned(first, second);
}
template <int target_bytes, class Round>
INLINE void store_packed_halves(void* to, const char* from, Round rounded, int min, int max,
                                int mask, bool streams) {
    const i16s packed = packed_halves(from, rounded, target_bytes == 1 || max != UINT16_MAX);
    if constexpr (target_bytes == 2) {
        store(to, without_nans(ordered(packed), from), streams);
    } else {
        const i16s next = packed_halves(from + VECTOR_BYTES, rounded, true);
        i8s bytes = max == UINT8_MAX ? pack_unsigned(packed, next) : pack(packed, next);
        if (mask != UINT8_MAX)  // narrower than a byte
            bytes = clamp(bytes, i8s{} + (int8_t)min, i8s{} + (int8_t)max) & (int8_t)mask;
        store(to, without_nans(ordered(bytes), from), streams);
    }
}

// The low bits of rounded FP16: they are 0 where the conversion makes the smallest integer of NaN
// and infinity. Of infinity those of the largest integer are kept, or of its complement.
template <int target_bytes, class Round>
INLINE i16s wrapped_halves(const char* from, Round rounded) {
    constexpr int kept = target_bytes == 1 ? UINT8_MAX : UINT16_MAX;
    const i32 second = rounded(from_half(from + VECTOR_BYTES / 2)) & kept;
    return pack_unsigned(rounded(from_half(from)) & kept, second);
}
INLINE i16s wrapped_infinities(const char* from, int max) {
    const i16s codes = load<i16s>(from);
    return (codes & 0x7FFF) == 0x7C00 ? (codes >> 15) ^ (int16_t)max : i16s{};
}
template <int target_bytes, class Round>
INLINE void store_wrapped_halves(void* to, const char* from, Round rounded, int max, int mask,
                                 bool streams) {
    const i16s low = wrapped_halves<target_bytes>(from, rounded);
    const i16s infinities = wrapped_infinities(from, max);
    if constexpr (target_bytes == 2) {
        store(to, ordered(low) | infinities, streams);
    } else {
        const i16s high = wrapped_halves<target_bytes>(from + VECTOR_BYTES, rounded);
        const i16s next = wrapped_infinities(from + VECTOR_BYTES, max);
        const i8s finite = pack_unsigned(low, high);
        const i8s infinite = pack_unsigned(infinities & UINT8_MAX, next & UINT8_MAX);
        store(to, (ordered(finite) | (i8s)ordered((i16s)infinite)) & (int8_t)mask, streams);
    }
}

}  // namespace

#endif  // PYPTO_CAST_LANES_PACKED_H
