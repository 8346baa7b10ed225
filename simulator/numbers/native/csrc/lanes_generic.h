// The same as lanes_avx2.h by vectors of the compiler alone.
#ifndef PYPTO_CAST_LANES_GENERIC_H
#define PYPTO_CAST_LANES_GENERIC_H

#include "lanes.h"

namespace {

// Half a vector.
using f32h = VectorOf<float, VECTOR_BYTES / 2>::type;
using i32h = VectorOf<int32_t, VECTOR_BYTES / 2>::type;
using u32h = VectorOf<uint32_t, VECTOR_BYTES / 2>::type;
// Elements narrower than lanes, as many.
using i8l = VectorOf<int8_t, LANES>::type;
using u8l = VectorOf<uint8_t, LANES>::type;
using i16l = VectorOf<int16_t, LANES * 2>::type;
using u16l = VectorOf<uint16_t, LANES * 2>::type;

template <class V>
INLINE V join(i32h low, i32h high) {
    V vector;
    std::memcpy(&vector, &low, sizeof low);
    std::memcpy(reinterpret_cast<char*>(&vector) + sizeof low, &high, sizeof high);
    return vector;
}

template <class V>
INLINE void split(V vector, i32h& low, i32h& high) {
    std::memcpy(&low, &vector, sizeof low);
    std::memcpy(&high, reinterpret_cast<const char*>(&vector) + sizeof low, sizeof high);
}

template <class M, class V>
INLINE V select(M mask, V yes, V no) {
    return (V)((mask & (M)yes) | (~mask & (M)no));
}
template <class V>
INLINE V clamp(V x, V lo, V hi) {
    const V above = select(x > lo, x, lo);
    return select(above < hi, above, hi);
}
INLINE f32 clamp_or_nan(f32 x, f32 lo, f32 hi) {
    const f32 above = select(lo > x, lo, x);
    return select(hi < above, hi, above);
}
INLINE i32 larger(i32 x, i32 y) { return select(x > y, x, y); }
INLINE i32 smaller(i32 x, i32 y) { return select(x < y, x, y); }
INLINE f32 round(f32 x) {
    // Fractions exist below 2**23 only; there, adding it drops them in the direction that holds.
    const i32 sign = (i32)x & INT32_MIN;
    const f32 unit = (f32)((i32)all(0x1p23f) | sign);
    const f32 rounded = (f32)((i32)((x + unit) - unit) | sign);
    return select((i32)((f32)((i32)x & INT32_MAX) < 0x1p23f), rounded, x);
}
// As AVX2 has it: of NaN and from 2**31 on the smallest integer, whose low bits are 0.
INLINE i32 round_to_int(f32 x) {
    const i32 below = (i32)(x < 0x1p31f);
    return select(below, __builtin_convertvector(round(x), i32), i32{} + INT32_MIN);
}
INLINE i32 shift_left(i32 x, int by) { return (i32)((u32)x << by); }
// By 0 and more; from 32 on nothing is left.
INLINE i32 shift_left(i32 x, i32 by) { return (i32)((u32)x << ((u32)by & 31)) & (i32)(by < 32); }
INLINE i32 shift_right(i32 x, int by) { return (i32)((u32)x >> by); }
INLINE i32 shift_right_signed(i32 x, int by) { return x >> by; }

INLINE i32 widen(const int8_t* p) { return __builtin_convertvector(load<i8l>(p), i32); }
INLINE i32 widen(const uint8_t* p) { return __builtin_convertvector(load<u8l>(p), i32); }
INLINE i32 widen(const int16_t* p) { return __builtin_convertvector(load<i16l>(p), i32); }
INLINE i32 widen(const uint16_t* p) { return __builtin_convertvector(load<u16l>(p), i32); }
INLINE Wide widen(i32 x) {
    i32h low, high;
    split(x, low, high);
    return {__builtin_convertvector(low, i64), __builtin_convertvector(high, i64)};
}
INLINE Wide widen(u32 x) {
    i32h low, high;
    split(x, low, high);
    return {(i64) __builtin_convertvector((u32h)low, u64),
            (i64) __builtin_convertvector((u32h)high, u64)};
}
INLINE i32 narrow(Wide x) {
    return join<i32>(__builtin_convertvector(x.low, i32h), __builtin_convertvector(x.high, i32h));
}
INLINE Wide shift_left(Wide x, Wide by) {
    return {(i64)((u64)x.low << (u64)by.low), (i64)((u64)x.high << (u64)by.high)};
}
INLINE Halves halves(Wide x) { return {narrow(x), narrow(Wide{x.low >> 32, x.high >> 32})}; }
INLINE f32 narrow(f64 low, f64 high) {
    return join<f32>((i32h) __builtin_convertvector(low, f32h),
                     (i32h) __builtin_convertvector(high, f32h));
}
INLINE f64 to_f64(i32 x, bool upper) {
    i32h low, high;
    split(x, low, high);
    return __builtin_convertvector(upper ? high : low, f64);
}
template <bool is_signed>
INLINE Doubles to_f64(Halves x) {
    const Wide low = widen((u32)x.low), high = widen((u32)x.high);
    const i64 lower = low.low | high.low << 32, upper = low.high | high.high << 32;
    if constexpr (is_signed)
        return {__builtin_convertvector(lower, f64), __builtin_convertvector(upper, f64)};
    return {__builtin_convertvector((u64)lower, f64), __builtin_convertvector((u64)upper, f64)};
}
INLINE f32 half_of(i32 code) {
    const i32 magnitude = (code & 0x7FFF) << 13;
    const i32 rebiased = magnitude + (112 << 23);
    // A subnormal number gets an implicit bit, which is then taken away.
    const f32 subnormal = (f32)(magnitude + (113 << 23)) - 0x1p-14f;
    const i32 special = rebiased | 0x7F800000;
    const i32 finite = select(magnitude < (1 << 23), (i32)subnormal & INT32_MAX, rebiased);
    return (f32)(select(magnitude >= (31 << 23), special, finite) | (code & 0x8000) << 16);
}

INLINE f32 from_half(const void* p) { return half_of(widen(static_cast<const uint16_t*>(p))); }
INLINE f32 from_upper_halves(const void* p) {
    return half_of(widen(static_cast<const uint8_t*>(p)) << 8);
}
INLINE i32 look_up(const uint8_t* table, i32 index) {
    i32 found;
    for (int lane = 0; lane < LANES; ++lane) found[lane] = table[index[lane]];
    return found;
}

INLINE void store_bytes(void* to, const i32 (&x)[4], int32_t mask, bool) {
    for (int group = 0; group < 4; ++group) {
        const u8l bytes = __builtin_convertvector((u32)(x[group] & mask), u8l);
        std::memcpy(static_cast<char*>(to) + group * sizeof bytes, &bytes, sizeof bytes);
    }
}
template <class Join>
INLINE void store_signed_bytes(void* to, const i32 (&x)[4], const i32 (&signs)[4], Join join,
                               bool) {
    for (int group = 0; group < 4; ++group) {
        const i8l bytes = __builtin_convertvector(x[group], i8l);
        const i8l sign = __builtin_convertvector(signs[group] >> 31, i8l);
        const auto joined = join(bytes, sign);
        std::memcpy(static_cast<char*>(to) + group * sizeof joined, &joined, sizeof joined);
    }
}
INLINE void store_halves(void* to, u32 low, u32 high, bool streams) {
    store(to, __builtin_convertvector(low, u16l), streams);
    store(static_cast<char*>(to) + LANES * 2, __builtin_convertvector(high, u16l), streams);
}

}  // namespace

#endif  // PYPTO_CAST_LANES_GENERIC_H
