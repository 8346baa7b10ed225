// A few elements at a time: the vectors of the compiler, and for AVX2 the instructions that it does
// not find by itself. Everything has internal linkage, for each level compiles it with other flags.
#ifndef PYPTO_CAST_LANES_H
#define PYPTO_CAST_LANES_H

#include <cstdint>
#include <cstring>
#ifdef __SSE2__
#include <immintrin.h>
#endif

#define INLINE inline __attribute__((always_inline))

namespace {

#ifdef __AVX2__
constexpr int VECTOR_BYTES = 32;
#else
constexpr int VECTOR_BYTES = 16;
#endif
constexpr int LANES = VECTOR_BYTES / 4;

template <class T, int bytes>
struct VectorOf {
    typedef T type __attribute__((vector_size(bytes)));
};
using f32 = VectorOf<float, VECTOR_BYTES>::type;
using i32 = VectorOf<int32_t, VECTOR_BYTES>::type;
using u32 = VectorOf<uint32_t, VECTOR_BYTES>::type;
using f64 = VectorOf<double, VECTOR_BYTES>::type;
using i64 = VectorOf<int64_t, VECTOR_BYTES>::type;
using u64 = VectorOf<uint64_t, VECTOR_BYTES>::type;
using u16s = VectorOf<uint16_t, LANES * 2>::type;

// As many lanes of 64 bits, in two vectors or by halves.
struct Wide {
    i64 low, high;
};
struct Doubles {
    f64 low, high;
};
struct Halves {
    i32 low, high;  // AVX2: in an order of its own, which only to_f64 undoes
};

template <class V>
INLINE V load(const void* from) {
    V vector;
    std::memcpy(&vector, from, sizeof vector);
    return vector;
}

template <class V>
INLINE void store(void* to, V vector, bool streams) {
#ifdef __AVX__
    if constexpr (sizeof(V) == 32)
        if (streams) return _mm256_stream_si256(static_cast<__m256i*>(to), (__m256i)vector);
#endif
#ifdef __SSE2__
    if constexpr (sizeof(V) == 16)
        if (streams) return _mm_stream_si128(static_cast<__m128i*>(to), (__m128i)vector);
#endif
    (void)streams;
    std::memcpy(to, &vector, sizeof vector);
}

INLINE i32 all(int32_t x) { return i32{} + x; }
INLINE f32 all(float x) {  // a sum with 0 would take the sign from -0
    int32_t code;
    std::memcpy(&code, &x, sizeof code);
    return (f32)all(code);
}

// --- What AVX2 has an instruction for and the compiler does not find -----------------------------
#ifdef __AVX2__

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
INLINE u16s to_half(f32 x) { return (u16s)_mm256_cvtps_ph((__m256)x, _MM_FROUND_CUR_DIRECTION); }
INLINE u16s to_half_odd(f32 x) {
    const __m128i down = _mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEG_INF);
    const __m128i up = _mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_POS_INF);
    const __m128i exact = _mm_cmpeq_epi16(down, up);
    return (u16s)_mm_or_si128(_mm_min_epu16(down, up), _mm_andnot_si128(exact, _mm_set1_epi16(1)));
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
// FP16 rounded to integers and clamped to bytes, for the most part by packing them: what the
// conversion makes of -infinity is clamped to `min`, but so is NaN, which becomes 0 at the end.
constexpr bool packs_halves = true;
template <class Round>
INLINE void store_packed_halves(void* to, const char* from, Round rounded, int8_t min, uint8_t max,
                                int8_t mask, bool streams) {
    __m256i packed[2], nan[2];
    for (int half = 0; half < 2; ++half, from += VECTOR_BYTES) {
        const i32 beyond = (i32)all(0x1p15f), low = (i32)from_half(from);
        const i32 high = (i32)from_half(from + VECTOR_BYTES / 2);
        packed[half] = _mm256_packs_epi32((__m256i)rounded((f32)smaller(low, beyond)),
                                          (__m256i)rounded((f32)smaller(high, beyond)));
        const __m256i magnitude = _mm256_and_si256(load<__m256i>(from), _mm256_set1_epi16(0x7FFF));
        nan[half] = _mm256_cmpgt_epi16(magnitude, _mm256_set1_epi16(0x7C00));
    }
    __m256i bytes;
    if (min == 0)
        bytes = _mm256_min_epu8(_mm256_packus_epi16(packed[0], packed[1]), _mm256_set1_epi8(max));
    else
        bytes = _mm256_max_epi8(_mm256_min_epi8(_mm256_packs_epi16(packed[0], packed[1]),
                                                _mm256_set1_epi8(max)),
                                _mm256_set1_epi8(min));
    const __m256i kept = _mm256_andnot_si256(
        _mm256_permute4x64_epi64(_mm256_packs_epi16(nan[0], nan[1]), 0xD8), _mm256_set1_epi8(mask));
    store(to, (i32)_mm256_and_si256(ordered(bytes), kept), streams);
}
INLINE void store_halves(void* to, u16s low, u16s high, bool streams) {
    store(to, (i32)_mm256_set_m128i((__m128i)high, (__m128i)low), streams);
}
INLINE void store_halves(void* to, u32 low, u32 high, bool streams) {
    const __m256i mixed = _mm256_packus_epi32((__m256i)low, (__m256i)high);
    store(to, (i32)_mm256_permute4x64_epi64(mixed, 0xD8), streams);
}

#else  // --- Everywhere else --------------------------------------------------------------------

constexpr bool packs_halves = false;

// Half a vector.
using f32h = VectorOf<float, VECTOR_BYTES / 2>::type;
using i32h = VectorOf<int32_t, VECTOR_BYTES / 2>::type;
using u32h = VectorOf<uint32_t, VECTOR_BYTES / 2>::type;
using i8s = VectorOf<int8_t, LANES>::type;
using u8s = VectorOf<uint8_t, LANES>::type;
using i16s = VectorOf<int16_t, LANES * 2>::type;

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
INLINE f32 round(f32 x) {
    // Fractions exist below 2**23 only; there, adding it drops them in the direction that holds.
    const i32 sign = (i32)x & INT32_MIN;
    const f32 unit = (f32)((i32)all(0x1p23f) | sign);
    const f32 rounded = (f32)((i32)((x + unit) - unit) | sign);
    return select((i32)((f32)((i32)x & INT32_MAX) < 0x1p23f), rounded, x);
}
// As AVX2 has it: from 2**31 on the smallest integer, whose low bits are 0.
INLINE i32 round_to_int(f32 x) {
    const i32 beyond = (i32)(x >= 0x1p31f);
    return select(beyond, i32{} + INT32_MIN, __builtin_convertvector(round(x), i32));
}
INLINE i32 shift_left(i32 x, int by) { return (i32)((u32)x << by); }
INLINE i32 shift_right(i32 x, int by) { return (i32)((u32)x >> by); }
INLINE i32 shift_right_signed(i32 x, int by) { return x >> by; }

INLINE i32 widen(const int8_t* p) { return __builtin_convertvector(load<i8s>(p), i32); }
INLINE i32 widen(const uint8_t* p) { return __builtin_convertvector(load<u8s>(p), i32); }
INLINE i32 widen(const int16_t* p) { return __builtin_convertvector(load<i16s>(p), i32); }
INLINE i32 widen(const uint16_t* p) { return __builtin_convertvector(load<u16s>(p), i32); }
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
INLINE f32 from_half(const void* p) {
    const i32 code = widen(static_cast<const uint16_t*>(p));
    const i32 magnitude = (code & 0x7FFF) << 13;
    const i32 rebiased = magnitude + (112 << 23);
    // A subnormal number gets an implicit bit, which is then taken away.
    const f32 subnormal = (f32)(magnitude + (113 << 23)) - 0x1p-14f;
    const i32 special = rebiased | 0x7F800000;
    const i32 finite = select(magnitude < (1 << 23), (i32)subnormal & INT32_MAX, rebiased);
    return (f32)(select(magnitude >= (31 << 23), special, finite) | (code & 0x8000) << 16);
}

INLINE void store_bytes(void* to, const i32 (&x)[4], int32_t mask, bool) {
    for (int group = 0; group < 4; ++group) {
        const u8s bytes = __builtin_convertvector((u32)(x[group] & mask), u8s);
        std::memcpy(static_cast<char*>(to) + group * sizeof bytes, &bytes, sizeof bytes);
    }
}
INLINE void store_halves(void* to, u16s low, u16s high, bool streams) {
    store(to, low, streams);
    store(static_cast<char*>(to) + LANES * 2, high, streams);
}
INLINE void store_halves(void* to, u32 low, u32 high, bool streams) {
    store_halves(to, __builtin_convertvector(low, u16s), __builtin_convertvector(high, u16s),
                 streams);
}

#endif

}  // namespace

#endif  // PYPTO_CAST_LANES_H
