// Lanes of one format to lanes of another; the loops put them together.
#ifndef PYPTO_CAST_VALUES_H
#define PYPTO_CAST_VALUES_H

#include <cmath>

#include "lanes.h"
#include "plan.h"

namespace {

template <Source S>
struct In {
    static constexpr bool is_float =
        S == Source::F32 || S == Source::F16 || S == Source::BF16 || S == Source::E5M2;
    static constexpr bool is_wide = S == Source::U32 || S == Source::S64 || S == Source::U64;
    static constexpr bool is_signed = S != Source::U64;  // of the lanes: U32 fits signed ones
    static constexpr int bytes = S == Source::S8 || S == Source::U8 || S == Source::E5M2    ? 1
                                 : S == Source::S64 || S == Source::U64                     ? 8
                                 : S == Source::F32 || S == Source::S32 || S == Source::U32 ? 4
                                                                                            : 2;

    static INLINE auto load_lanes(const char* p, const Params& params) {
        if constexpr (S == Source::F32) return load<f32>(p);
        if constexpr (S == Source::F16) return from_half(p);
        if constexpr (S == Source::E5M2) return from_upper_halves(p);
        if constexpr (S == Source::BF16)
            return (f32)(widen(reinterpret_cast<const uint16_t*>(p)) << 16);
        if constexpr (S == Source::S8) {
            const i32 x = widen(reinterpret_cast<const int8_t*>(p));
            if (params.source_shift == 24) return x;
            return shift_right_signed(shift_left(x, params.source_shift), params.source_shift);
        }
        if constexpr (S == Source::U8) {
            const i32 x = widen(reinterpret_cast<const uint8_t*>(p));
            if (params.source_shift == 24) return x;
            return shift_right(shift_left(x, params.source_shift), params.source_shift);
        }
        if constexpr (S == Source::S16) return widen(reinterpret_cast<const int16_t*>(p));
        if constexpr (S == Source::U16) return widen(reinterpret_cast<const uint16_t*>(p));
        if constexpr (S == Source::S32) return load<i32>(p);
        if constexpr (S == Source::U32) return widen(load<u32>(p));
        if constexpr (S == Source::S64 || S == Source::U64)
            return Wide{load<i64>(p), load<i64>(p + VECTOR_BYTES)};
    }
};

template <Target T>
constexpr int target_bytes =
    T == Target::NARROW || T == Target::TAPERED || T == Target::INT8 || T == Target::BOOL ? 1
    : T == Target::F16 || T == Target::BF16 || T == Target::INT16                         ? 2
    : T == Target::INT64 || T == Target::UINT64                                           ? 8
                                                                                          : 4;

template <Target T>
constexpr bool is_float_target = T == Target::F32 || T == Target::F16 || T == Target::BF16 ||
                                 T == Target::NARROW || T == Target::TAPERED;

INLINE i32 is_nan(f32 x) { return (i32)(x != x); }

// --- Integers to FP32 lanes ----------------------------------------------------------------------

// Rounds 64-bit integers to odd at bit 11 where FP64 cannot hold all of them: nothing narrower,
// with 24 bits or less, can tell. At most 53 significant bits are left.
template <bool is_signed>
INLINE Halves fold(Halves x) {
    constexpr int32_t beyond = 1 << 20;
    const u32 excess = is_signed ? ((u32)x.high + beyond) >> 21 : (u32)x.high >> 20;
    const i32 folded = (i32)((i32)excess > 0) & 0x7FF;
    return {(((x.low & folded) + folded) | x.low) & ~folded, x.high};
}

// FP64 to FP32 by the way: to odd is exact; away, toward zero from here, adds half a place of FP32,
// but to 0 and 1, which would not stay normal or do not need it.
template <Way W>
INLINE f32 to_floats(f64 low, f64 high) {
    const auto prepare = [](f64 x) {
        constexpr int64_t dropped = (INT64_C(1) << 29) - 1;
        const i64 code = (i64)x;
        if constexpr (W == Way::ODD)
            return (f64)((code & ~dropped) | (((code & dropped) + dropped) & (dropped + 1)));
        if constexpr (W == Way::AWAY) {  // of what has the exponent's upper bit
            constexpr int upper_bit = 62, half_bit = 28;
            return (f64)(code + (i64)((u64)code >> (upper_bit - half_bit) & (1 << half_bit)));
        }
        return x;
    };
    const f32 result = narrow(prepare(low), prepare(high));
    if constexpr (W == Way::EVEN || W == Way::AWAY) return result;
    return (f32)((i32)result & ~(i32)(result == 0));  // rounding downward, 0 is the sum -0
}

// FP32 is the target, or what is rounded from there: then odd bits keep all that rounding must
// know. Integers of up to 24 bits are exact, and of the others FP16 and narrower formats hold none.
template <Source S, Target T, Way W>
INLINE f32 to_floats(i32 x) {
    constexpr bool last = T == Target::F32;
    if constexpr (S != Source::S32 || T == Target::F16 || T == Target::NARROW ||
                  (last && W == Way::DIRECTION))
        return __builtin_convertvector(x, f32);
    if constexpr (last && W == Way::AWAY) {  // toward zero: twice the rest reaches the next place
        const f32 cut = __builtin_convertvector(x, f32);
        const i32 rest = x - round_to_int(cut);
        return cut + __builtin_convertvector(rest + rest, f32);
    }
    return to_floats<(last ? W : Way::ODD)>(to_f64(x, false), to_f64(x, true));
}

template <Source S, Target T, Way W>
INLINE f32 to_floats(Wide x) {
    constexpr bool last = T == Target::F32;
    constexpr bool is_signed = In<S>::is_signed;
    // In one direction: as if once. Away, what is cut off first lies below the half.
    constexpr bool rounds_twice = last && (W == Way::DIRECTION || W == Way::AWAY);
    constexpr bool exact = S == Source::U32 || rounds_twice;
    const Doubles doubles = to_f64<is_signed>(exact ? halves(x) : fold<is_signed>(halves(x)));
    return to_floats<(last ? W : Way::ODD)>(doubles.low, doubles.high);
}

// --- FP32 lanes to floats ------------------------------------------------------------------------

// Within the limits, where they are finite, and NaN replaced; small integers have neither. AWAY
// sets the lowest bit: it lies below every tie, so that nearest even decides as nearest away would.
template <Source S, Way W>
INLINE f32 tamed(f32 x, const Params& params) {
    f32 y = x;
    if constexpr (In<S>::bytes > 2 || In<S>::is_float)
        if (params.hi < HUGE_VALF) y = clamp(x, all(params.lo), all(params.hi));
    if constexpr (W == Way::AWAY) y = (f32)((i32)y | 1);
    if constexpr (!In<S>::is_float) return y;
    i32 nan = (i32)(u32{} + params.nan_bits);
    if (params.nan_sign != 0) nan |= (i32)x & (int32_t)params.nan_sign;
    return select(is_nan(x), (f32)nan, y);
}

// The upper half of the code. A bias below the cut carries into the kept bits where the mode rounds
// away from zero, and out of the fraction into the exponent.
template <Way W>
INLINE u32 to_bfloat(i32 code, const Params& params) {
    i32 bias = ((code >> 31) ^ params.flip) & params.directed;
    if constexpr (W == Way::AWAY) bias = i32{} + 0x8000;
    if constexpr (W == Way::EVEN) bias = ((code >> 16) & 1) + 0x7FFF;
    if constexpr (W == Way::ODD) return (u32)(code | ((code & 0xFFFF) + 0xFFFF)) >> 16;
    return (u32)(code + bias) >> 16;
}

// Any float of at most 10 fraction bits: adding a power of two whose last place is the quantum of
// the result lets the addition round. What is added counts quanta; exponents add up to the code.
template <Way W>
INLINE i32 to_narrow(f32 x, const Params& params) {  // EVEN: of 16 bits alone
    const i32 sign = (i32)x & INT32_MIN;
    f32 y = clamp(x, all(params.narrow_lo), all(params.narrow_hi));
    if constexpr (W == Way::AWAY) y = (f32)((i32)y | 1);
    const i32 field = larger((i32)y & 0x7F800000, all(params.emin_bits));
    const i32 unit = (field + (params.man_shift << 23)) | sign;
    const f32 sum = y + (f32)unit;
    i32 code = (i32)sum - unit;
    if constexpr (W == Way::ODD) code |= (i32)(sum - (f32)unit != y) & 1;
    code += shift_right(field - params.emin_bits, params.man_shift);
    const i32 narrow_sign = shift_right(sign, params.sign_shift);
    const i32 signed_code = code | (narrow_sign & (i32)((code | params.signed_zero) > 0));
    const i32 nan = params.nan_value | (narrow_sign & params.narrow_nan_sign);
    if constexpr (W == Way::EVEN) return select(is_nan(x), nan, signed_code);
    const i32 magnitude = (i32)x & INT32_MAX;
    const i32 special = (i32)(magnitude >= params.special_from) | (i32)(code > params.max_code);
    const i32 inf = params.inf_value | (narrow_sign & params.inf_sign);
    return select(is_nan(x), nan, select(special, inf, signed_code));
}

// The same to nearest even, of magnitudes: the code after the largest number is what infinity
// becomes, and the signs, which are lost in a NaN unless they count, follow when all are bytes.
struct Signed {
    i32 magnitude, sign;
};
INLINE Signed to_even_narrow(f32 x, const Params& params) {
    const i32 limit = (i32)all(params.narrow_hi);
    const i32 y = smaller((i32)x & INT32_MAX, limit);
    const i32 field = larger(y & 0x7F800000, all(params.emin_bits));
    const i32 unit = field + (params.man_shift << 23);
    const i32 code = (i32)((f32)y + (f32)unit) - unit;
    const i32 number = code + shift_right(field - params.emin_bits, params.man_shift);
    const i32 nan_sign = (i32)x & (params.narrow_nan_sign != 0 ? INT32_MIN : 0);
    return {select(is_nan(x), all(params.nan_value), number), select(is_nan(x), nan_sign, (i32)x)};
}

INLINE i32 to_tapered(f32 x, const Params& params) {
    const i32 rest = smaller((i32)x & ((1 << TAPERED_SHIFT) - 1), all(1));
    const i32 index = (shift_right((i32)x, TAPERED_SHIFT - 1) & ~1) | rest;
    return look_up(params.tapered, index);
}

// --- FP32 lanes to integers ----------------------------------------------------------------------

// Away: where a tie never has the lowest bit of the lanes, that bit decides it, to nearest; others
// get a half, toward zero from here.
template <Way W, bool decided_by_lowest_bit>
INLINE f32 half_added(f32 x) {
    if constexpr (W != Way::AWAY) return x;
    if constexpr (decided_by_lowest_bit) return (f32)((i32)x | 1);
    return x + (f32)(((i32)x & INT32_MIN) | (i32)all(0.5f));
}

template <Way W, bool decided_by_lowest_bit>
INLINE i32 rounded(f32 x) {
    const f32 y = half_added<W, decided_by_lowest_bit>(x);
    i32 result = round_to_int(y);
    if constexpr (W == Way::ODD)  // of the two neighbours; downward from here
        result |= (i32)(__builtin_convertvector(result, f32) != y) & 1;
    return result;
}

// Of infinity the low bits of the largest integer are kept.
INLINE i32 infinities_replaced(i32 result, f32 x, const Params& params) {
    const f32 inf = all(__builtin_inff());
    result = select((i32)(x == inf), all((int32_t)params.max), result);
    return select((i32)(x == -inf), all((int32_t)params.min), result);
}

// NaN passes the limits, and the low bits of what it is converted to are 0; `short_ones` are all
// that is kept of these results. The conversion makes the smallest integer of what 32 bits do not
// hold, and the largest is its complement.
template <Source S, Way W, bool wraps, bool short_ones>
INLINE i32 to_ints(f32 x, const Params& params) {
    constexpr bool clamps = short_ones || wraps || W == Way::ODD;
    constexpr bool few_bits = S == Source::F16 || (short_ones && !wraps);
    i32 result = rounded<W, few_bits>(clamps ? clamp_or_nan(x, all(params.lo), all(params.hi)) : x);
    if constexpr (!clamps)
        result ^= (i32)(x >= params.limit);
    else if constexpr (!short_ones && !wraps)
        result = select((i32)(x >= params.limit), all((int32_t)params.max), result);
    if constexpr (wraps) result = infinities_replaced(result, x, params);
    if constexpr (short_ones && W != Way::ODD) return result;
    return result & ~is_nan(x);
}

struct Shifted {
    i32 significand, places;
};

// Integers of any size: 24 significant bits, to the left by as much as the quantum of the number
// exceeds 1.
template <Way W>
INLINE Shifted to_shifted(f32 x) {
    const f32 y = half_added<W, false>(x);
    constexpr int32_t integral = 150 << 23;  // the exponent of numbers whose quantum is 1
    const i32 beyond = larger((i32)y & 0x7F800000, all(integral)) - integral;
    const f32 scaled = (f32)((i32)y - beyond);  // exact, and subnormal numbers cost no more
    return {rounded<(W == Way::ODD ? W : Way::DIRECTION), false>(scaled), (i32)((u32)beyond >> 23)};
}

// The low bits of integers: all of them go out of the lanes if the number is large, or none.
template <Way W>
INLINE i32 to_low_bits(f32 x, const Params& params) {
    const Shifted shifted = to_shifted<W>(x);
    return infinities_replaced(shift_left(shifted.significand, shifted.places), x, params);
}

// 64-bit integers. What reaches the limit is one more than the largest integer.
template <Way W, bool wraps>
INLINE Wide to_wide(f32 x, const Params& params) {
    const f32 tame = (f32)((i32)clamp(x, all(params.lo), all(params.hi)) & ~is_nan(x));
    const Shifted shifted = to_shifted<W>(tame);
    Wide result = shift_left(widen(shifted.significand), widen(shifted.places));
    if constexpr (!wraps) {
        const Wide excess = widen((i32)(x >= params.limit));
        result.low += excess.low, result.high += excess.high;
    }
    return result;
}

// FP32 to integral FP32; every zero is +0.
template <Way W>
INLINE f32 to_integral(f32 x, const Params& params) {
    const f32 y = round(half_added<W, false>(x));
    return select(is_nan(x), (f32)(u32{} + params.nan_bits), (f32)((i32)y & ~(i32)(y == 0)));
}

// --- Integers to integers ------------------------------------------------------------------------

template <bool is_signed>
INLINE i64 clamped(i64 x, const Params& params) {
    constexpr int64_t flip = is_signed ? 0 : INT64_MIN;  // unsigned order
    const i64 min = i64{} + params.min, max = i64{} + params.max;
    x = select((i64)((x ^ flip) > (max ^ flip)), max, x);
    return select((i64)((x ^ flip) < (min ^ flip)), min, x);
}

}  // namespace

#endif  // PYPTO_CAST_VALUES_H
