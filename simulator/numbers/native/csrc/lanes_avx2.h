// What AVX2 and F16C have an instruction for and the compiler does not find by itself.
#ifndef PYPTO_CAST_LANES_AVX2_H
#define PYPTO_CAST_LANES_AVX2_H

#include "lanes.h"

namespace {

INLINE f32 select(i32 mask, f32 yes, f32 no) {
    return (f32)_mm256_blendv_ps((__m256)no, (__m256)yes, (__m256)mask);
}
INLINE i32 select(i32 mask, i32 yes, i32 no) { return (i32)select(mask, (f32)yes, (f32)no); }
INLINE i64 select(i64 mask, i64 yes, i64 no) {
    return (i64)_mm256_blendv_pd((__m256d)no, (__m256d)yes, (__m256d)mask);
}
// By the codes, which integers compare twice as fast: positive ones grow with the number, negative
// ones as unsigned integers with its magnitude. NaN becomes one of the limits.
INLINE f32 clamp(f32 x, f32 lo, f32 hi) {
    return (f32)_mm256_min_epu32(_mm256_min_epi32((__m256i)x, (__m256i)hi), (__m256i)lo);
}
INLINE f32 clamp_or_nan(f32 x, f32 lo, f32 hi) {
    return (f32)_mm256_min_ps((__m256)hi, _mm256_max_ps((__m256)lo, (__m256)x));
}
INLINE i32 clamp(i32 x, i32 lo, i32 hi) {
    return (i32)_mm256_min_epi32(_mm256_max_epi32((__m256i)x, (__m256i)lo), (__m256i)hi);
}
INLINE i32 larger(i32 x, i32 y) { return (i32)_mm256_max_epi32((__m256i)x, (__m256i)y); }
INLINE i32 smaller(i32 x, i32 y) { return (i32)_mm256_min_epi32((__m256i)x, (__m256i)y); }
INLINE f32 round(f32 x) { return (f32)_mm256_round_ps((__m256)x, _MM_FROUND_CUR_DIRECTION); }
INLINE i32 round_to_int(f32 x) { return (i32)_mm256_cvtps_epi32((__m256)x); }
INLINE i32 shift_left(i32 x, int by) {
    return (i32)_mm256_sll_epi32((__m256i)x, _mm_cvtsi32_si128(by));
}
INLINE i32 shift_right(i32 x, int by) {
    return (i32)_mm256_srl_epi32((__m256i)x, _mm_cvtsi32_si128(by));
}
INLINE i32 shift_right_signed(i32 x, int by) {
    return (i32)_mm256_sra_epi32((__m256i)x, _mm_cvtsi32_si128(by));
}

INLINE i32 widen(const int8_t* p) { return (i32)_mm256_cvtepi8_epi32(_mm_loadu_si64(p)); }
INLINE i32 widen(const uint8_t* p) { return (i32)_mm256_cvtepu8_epi32(_mm_loadu_si64(p)); }
INLINE i32 widen(const int16_t* p) { return (i32)_mm256_cvtepi16_epi32(load<__m128i>(p)); }
INLINE i32 widen(const uint16_t* p) { return (i32)_mm256_cvtepu16_epi32(load<__m128i>(p)); }
INLINE Wide widen(i32 x) {
    return {(i64)_mm256_cvtepi32_epi64(_mm256_castsi256_si128((__m256i)x)),
            (i64)_mm256_cvtepi32_epi64(_mm256_extracti128_si256((__m256i)x, 1))};
}
INLINE Wide widen(u32 x) {
    return {(i64)_mm256_cvtepu32_epi64(_mm256_castsi256_si128((__m256i)x)),
            (i64)_mm256_cvtepu32_epi64(_mm256_extracti128_si256((__m256i)x, 1))};
}
INLINE Wide shift_left(Wide x, Wide by) {
    return {(i64)_mm256_sllv_epi64((__m256i)x.low, (__m256i)by.low),
            (i64)_mm256_sllv_epi64((__m256i)x.high, (__m256i)by.high)};
}
INLINE Halves halves(Wide x) {
    return {(i32)_mm256_shuffle_ps((__m256)x.low, (__m256)x.high, 0x88),
            (i32)_mm256_shuffle_ps((__m256)x.low, (__m256)x.high, 0xDD)};
}
INLINE i32 narrow(Wide x) {
    const __m256 even = _mm256_shuffle_ps((__m256)x.low, (__m256)x.high, 0x88);
    return (i32)_mm256_permute4x64_epi64(_mm256_castps_si256(even), 0xD8);
}
INLINE f32 narrow(f64 low, f64 high) {
    return (f32)_mm256_set_m128(_mm256_cvtpd_ps((__m256d)high), _mm256_cvtpd_ps((__m256d)low));
}
INLINE f64 to_f64(i32 x, bool upper) {
    return (f64)_mm256_cvtepi32_pd(upper ? _mm256_extracti128_si256((__m256i)x, 1)
                                         : _mm256_castsi256_si128((__m256i)x));
}

// Exact for what has at most 53 significant bits. The halves become fractions of large powers of
// two, whose excess the subtraction takes away.
template <bool is_signed>
INLINE Doubles to_f64(Halves x) {
    const __m256i low = (__m256i)x.low, low_unit = _mm256_set1_epi32(0x43300000);
    const __m256i high = (__m256i)(is_signed ? x.high ^ INT32_MIN : x.high);
    const __m256i high_unit = _mm256_set1_epi32(0x45300000);
    const double excess = 0x1p84 + 0x1p52 + (is_signed ? 0x1p63 : 0);
    return {((f64)_mm256_unpacklo_epi32(high, high_unit) - excess) +
                (f64)_mm256_unpacklo_epi32(low, low_unit),
            ((f64)_mm256_unpackhi_epi32(high, high_unit) - excess) +
                (f64)_mm256_unpackhi_epi32(low, low_unit)};
}

INLINE f32 from_half(const void* p) { return (f32)_mm256_cvtph_ps(load<__m128i>(p)); }
template <int direction>
INLINE __m256i to_halves(f32 low, f32 high) {
    return _mm256_set_m128i(_mm256_cvtps_ph((__m256)high, direction),
                            _mm256_cvtps_ph((__m256)low, direction));
}
// To odd: of two neighbours one is, and the nearer to zero with that bit is it.
template <bool odd>
INLINE void store_as_halves(void* to, f32 low, f32 high, bool streams) {
    __m256i halves;
    if constexpr (odd) {
        const __m256i down = to_halves<_MM_FROUND_TO_NEG_INF>(low, high);
        const __m256i up = to_halves<_MM_FROUND_TO_POS_INF>(low, high);
        const __m256i last = _mm256_and_si256(_mm256_or_si256(down, up), _mm256_set1_epi16(1));
        halves = _mm256_or_si256(_mm256_min_epu16(down, up), last);
    } else {
        halves = to_halves<_MM_FROUND_CUR_DIRECTION>(low, high);
    }
    store(to, (i32)halves, streams);
}

// Bytes of two pairs of packed vectors, in order.
INLINE __m256i ordered(__m256i mixed) {
    return _mm256_permutevar8x32_epi32(mixed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}
INLINE void store_bytes(void* to, const i32 (&x)[4], int32_t mask, bool streams) {
    const __m256i kept = _mm256_set1_epi32(mask);
    const auto pack = [kept](i32 a, i32 b) {
        return _mm256_packs_epi32(_mm256_and_si256((__m256i)a, kept),
                                  _mm256_and_si256((__m256i)b, kept));
    };
    store(to, (i32)ordered(_mm256_packus_epi16(pack(x[0], x[1]), pack(x[2], x[3]))), streams);
}

// FP16 rounded to integers of 16 bits or fewer and clamped, for the most part by packing them. The
// conversion makes the smallest integer of -infinity, of NaN, which becomes 0 at the end, and of
// infinity, if that were not taken away before.
template <class Round>
INLINE __m256i packed_halves(const char* from, Round rounded, bool is_signed) {
    const i32 beyond = (i32)all(0x1p16f), low = (i32)from_half(from);
    const i32 high = (i32)from_half(from + VECTOR_BYTES / 2);
    const __m256i first = (__m256i)rounded((f32)smaller(low, beyond));
    const __m256i second = (__m256i)rounded((f32)smaller(high, beyond));
    return is_signed ? _mm256_packs_epi32(first, second) : _mm256_packus_epi32(first, second);
}
INLINE __m256i nans_of_halves(const char* from) {
    const __m256i magnitude = _mm256_and_si256(load<__m256i>(from), _mm256_set1_epi16(0x7FFF));
    return _mm256_cmpgt_epi16(magnitude, _mm256_set1_epi16(0x7C00));
}
template <int target_bytes, class Round>
INLINE void store_packed_halves(void* to, const char* from, Round rounded, int min, int max,
                                int mask, bool streams) {
    constexpr int in_order = 0xD8;  // of the quarters of two packed vectors
    __m256i nans = nans_of_halves(from);
    __m256i packed = packed_halves(from, rounded, target_bytes == 1 || max != UINT16_MAX);
    if constexpr (target_bytes == 2) {
        packed = _mm256_permute4x64_epi64(packed, in_order);
    } else {
        const __m256i next = packed_halves(from + VECTOR_BYTES, rounded, true);
        packed =
            max == UINT8_MAX ? _mm256_packus_epi16(packed, next) : _mm256_packs_epi16(packed, next);
        if (mask != UINT8_MAX) {  // narrower than a byte
            packed = _mm256_min_epi8(packed, _mm256_set1_epi8(max));
            packed = _mm256_max_epi8(packed, _mm256_set1_epi8(min));
            packed = _mm256_and_si256(packed, _mm256_set1_epi8(mask));
        }
        packed = ordered(packed);
        nans = _mm256_packs_epi16(nans, nans_of_halves(from + VECTOR_BYTES));
        nans = _mm256_permute4x64_epi64(nans, in_order);
    }
    store(to, (i32)_mm256_andnot_si256(nans, packed), streams);
}

INLINE void store_halves(void* to, u32 low, u32 high, bool streams) {
    const __m256i mixed = _mm256_packus_epi32((__m256i)low, (__m256i)high);
    store(to, (i32)_mm256_permute4x64_epi64(mixed, 0xD8), streams);
}

}  // namespace

#endif  // PYPTO_CAST_LANES_AVX2_H
