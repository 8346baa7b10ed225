// The same as lanes_avx2.h by AVX-512 (F, BW, DQ and VL). Lanes are chosen by masks, which the
// compiler finds in comparisons.
#ifndef PYPTO_CAST_LANES_AVX512_H
#define PYPTO_CAST_LANES_AVX512_H

#include "lanes.h"

namespace {

template <class M, class V>
INLINE V select(M mask, V yes, V no) {
    return mask ? yes : no;
}
INLINE f32 clamp(f32 x, f32 lo, f32 hi) {
    return (f32)_mm512_min_epu32(_mm512_min_epi32((__m512i)x, (__m512i)hi), (__m512i)lo);
}
INLINE f32 clamp_or_nan(f32 x, f32 lo, f32 hi) {
    return (f32)_mm512_min_ps((__m512)hi, _mm512_max_ps((__m512)lo, (__m512)x));
}
INLINE i32 clamp(i32 x, i32 lo, i32 hi) {
    return (i32)_mm512_min_epi32(_mm512_max_epi32((__m512i)x, (__m512i)lo), (__m512i)hi);
}
INLINE i32 larger(i32 x, i32 y) { return (i32)_mm512_max_epi32((__m512i)x, (__m512i)y); }
INLINE i32 smaller(i32 x, i32 y) { return (i32)_mm512_min_epi32((__m512i)x, (__m512i)y); }
INLINE f32 round(f32 x) { return (f32)_mm512_roundscale_ps((__m512)x, _MM_FROUND_CUR_DIRECTION); }
INLINE i32 round_to_int(f32 x) { return (i32)_mm512_cvtps_epi32((__m512)x); }
INLINE i32 shift_left(i32 x, int by) {
    return (i32)_mm512_sll_epi32((__m512i)x, _mm_cvtsi32_si128(by));
}
INLINE i32 shift_left(i32 x, i32 by) { return (i32)_mm512_sllv_epi32((__m512i)x, (__m512i)by); }
INLINE i32 shift_right(i32 x, int by) {
    return (i32)_mm512_srl_epi32((__m512i)x, _mm_cvtsi32_si128(by));
}
INLINE i32 shift_right_signed(i32 x, int by) {
    return (i32)_mm512_sra_epi32((__m512i)x, _mm_cvtsi32_si128(by));
}

INLINE __m256i low_half(__m512i x) { return _mm512_castsi512_si256(x); }
INLINE __m256i high_half(__m512i x) { return _mm512_extracti64x4_epi64(x, 1); }
INLINE __m512i joined(__m256i low, __m256i high) {
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

INLINE i32 widen(const int8_t* p) { return (i32)_mm512_cvtepi8_epi32(load<__m128i>(p)); }
INLINE i32 widen(const uint8_t* p) { return (i32)_mm512_cvtepu8_epi32(load<__m128i>(p)); }
INLINE i32 widen(const int16_t* p) { return (i32)_mm512_cvtepi16_epi32(load<__m256i>(p)); }
INLINE i32 widen(const uint16_t* p) { return (i32)_mm512_cvtepu16_epi32(load<__m256i>(p)); }
INLINE Wide widen(i32 x) {
    return {(i64)_mm512_cvtepi32_epi64(low_half((__m512i)x)),
            (i64)_mm512_cvtepi32_epi64(high_half((__m512i)x))};
}
INLINE Wide widen(u32 x) {
    return {(i64)_mm512_cvtepu32_epi64(low_half((__m512i)x)),
            (i64)_mm512_cvtepu32_epi64(high_half((__m512i)x))};
}
INLINE Wide shift_left(Wide x, Wide by) {
    return {(i64)_mm512_sllv_epi64((__m512i)x.low, (__m512i)by.low),
            (i64)_mm512_sllv_epi64((__m512i)x.high, (__m512i)by.high)};
}
INLINE Halves halves(Wide x) {
    return {(i32)_mm512_shuffle_ps((__m512)x.low, (__m512)x.high, 0x88),
            (i32)_mm512_shuffle_ps((__m512)x.low, (__m512)x.high, 0xDD)};
}
INLINE i32 narrow(Wide x) {
    return (i32)joined(_mm512_cvtepi64_epi32((__m512i)x.low),
                       _mm512_cvtepi64_epi32((__m512i)x.high));
}
INLINE f32 narrow(f64 low, f64 high) {
    return (f32)joined((__m256i)_mm512_cvtpd_ps((__m512d)low),
                       (__m256i)_mm512_cvtpd_ps((__m512d)high));
}
INLINE f64 to_f64(i32 x, bool upper) {
    return (f64)_mm512_cvtepi32_pd(upper ? high_half((__m512i)x) : low_half((__m512i)x));
}

INLINE f32 from_half(const void* p) { return (f32)_mm512_cvtph_ps(load<__m256i>(p)); }
template <int direction>
INLINE i16s to_halves(f32 low, f32 high) {
    return (i16s)joined(_mm512_cvtps_ph((__m512)low, direction),
                        _mm512_cvtps_ph((__m512)high, direction));
}

INLINE f32 from_upper_halves(const void* p) {
    return (f32)_mm512_cvtph_ps(_mm256_slli_epi16(_mm256_cvtepu8_epi16(load<__m128i>(p)), 8));
}
INLINE i32 look_up(const uint8_t* table, i32 index) {
    return (i32)_mm512_i32gather_epi32((__m512i)index, table, 1);
}

INLINE i32 beside_low(i32 x, i32 y) { return (i32)_mm512_unpacklo_epi32((__m512i)x, (__m512i)y); }
INLINE i32 beside_high(i32 x, i32 y) { return (i32)_mm512_unpackhi_epi32((__m512i)x, (__m512i)y); }

INLINE i16s pack(i32 x, i32 y) { return (i16s)_mm512_packs_epi32((__m512i)x, (__m512i)y); }
INLINE i16s pack_unsigned(i32 x, i32 y) {
    return (i16s)_mm512_packus_epi32((__m512i)x, (__m512i)y);
}
INLINE i8s pack(i16s x, i16s y) { return (i8s)_mm512_packs_epi16((__m512i)x, (__m512i)y); }
INLINE i8s pack_unsigned(i16s x, i16s y) {
    return (i8s)_mm512_packus_epi16((__m512i)x, (__m512i)y);
}
INLINE i16s ordered(i16s x) {
    return (i16s)_mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), (__m512i)x);
}
INLINE i8s ordered(i8s x) {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return (i8s)_mm512_permutexvar_epi32(order, (__m512i)x);
}
// By the class of the number, four bits each from the lowest: 8 is 0, for both kinds of NaN; 1 is
// the number itself; 0 is the limit, for infinity.
INLINE f32 number_or_limit(f32 x, f32 limit) {
    return (f32)_mm512_fixupimm_ps((__m512)limit, (__m512)x, _mm512_set1_epi32(0x11011188), 0);
}
template <class V>
INLINE V without_nans(V x, const char*) {
    return x;
}
INLINE i16s smaller_unsigned(i16s x, i16s y) {
    return (i16s)_mm512_min_epu16((__m512i)x, (__m512i)y);
}
INLINE i8s clamp(i8s x, i8s lo, i8s hi) {
    return (i8s)_mm512_min_epi8(_mm512_max_epi8((__m512i)x, (__m512i)lo), (__m512i)hi);
}

}  // namespace

#endif  // PYPTO_CAST_LANES_AVX512_H
