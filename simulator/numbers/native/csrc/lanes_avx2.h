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
INLINE i32 shift_left(i32 x, i32 by) { return (i32)_mm256_sllv_epi32((__m256i)x, (__m256i)by); }
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

INLINE f32 from_half(const void* p) { return (f32)_mm256_cvtph_ps(load<__m128i>(p)); }
template <int direction>
INLINE i16s to_halves(f32 low, f32 high) {
    return (i16s)_mm256_set_m128i(_mm256_cvtps_ph((__m256)high, direction),
                                  _mm256_cvtps_ph((__m256)low, direction));
}

// Of bytes that are the upper ones of FP16.
INLINE f32 from_upper_halves(const void* p) {
    return (f32)_mm256_cvtph_ps(_mm_slli_epi16(_mm_cvtepu8_epi16(_mm_loadu_si64(p)), 8));
}
// The byte of each index, and three more.
INLINE i32 look_up(const uint8_t* table, i32 index) {
    return (i32)_mm256_i32gather_epi32(reinterpret_cast<const int*>(table), (__m256i)index, 1);
}

// Lanes of two vectors beside each other, in an order of each 128 bits' own.
INLINE i32 beside_low(i32 x, i32 y) { return (i32)_mm256_unpacklo_epi32((__m256i)x, (__m256i)y); }
INLINE i32 beside_high(i32 x, i32 y) { return (i32)_mm256_unpackhi_epi32((__m256i)x, (__m256i)y); }

// Two vectors packed into one of lanes half as wide, and clamped; `ordered` puts lanes in order
// that were packed once or twice.
INLINE i16s pack(i32 x, i32 y) { return (i16s)_mm256_packs_epi32((__m256i)x, (__m256i)y); }
INLINE i16s pack_unsigned(i32 x, i32 y) {
    return (i16s)_mm256_packus_epi32((__m256i)x, (__m256i)y);
}
INLINE i8s pack(i16s x, i16s y) { return (i8s)_mm256_packs_epi16((__m256i)x, (__m256i)y); }
INLINE i8s pack_unsigned(i16s x, i16s y) {
    return (i8s)_mm256_packus_epi16((__m256i)x, (__m256i)y);
}
INLINE i16s ordered(i16s x) { return (i16s)_mm256_permute4x64_epi64((__m256i)x, 0xD8); }
INLINE i8s ordered(i8s x) {
    return (i8s)_mm256_permutevar8x32_epi32((__m256i)x, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}
// NaN stays what it is until `without_nans`, which makes 0 of what NaN in the source has become.
INLINE f32 number_or_limit(f32 x, f32 limit) { return (f32)smaller((i32)x, (i32)limit); }
INLINE i16s nans_of_halves(const char* from) {
    return (i16s)((load<i16s>(from) & 0x7FFF) > 0x7C00);
}
INLINE i16s without_nans(i16s x, const char* from) { return x & ~nans_of_halves(from); }
INLINE i8s without_nans(i8s x, const char* from) {
    const i16s nans = nans_of_halves(from), next = nans_of_halves(from + VECTOR_BYTES);
    return x & ~(i8s)ordered((i16s)pack(nans, next));
}
INLINE i16s smaller_unsigned(i16s x, i16s y) {
    return (i16s)_mm256_min_epu16((__m256i)x, (__m256i)y);
}
INLINE i8s clamp(i8s x, i8s lo, i8s hi) {
    return (i8s)_mm256_min_epi8(_mm256_max_epi8((__m256i)x, (__m256i)lo), (__m256i)hi);
}

}  // namespace

#endif  // PYPTO_CAST_LANES_AVX2_H
