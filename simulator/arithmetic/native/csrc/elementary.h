// exp and log in float64, of a relative error below 2**-49: rounded to FP32, the correct code of every
// operand but the few of LOG_FIXES, whose results lie beside the middle of two FP32 numbers.
// `python -m benchmarks.native_operations` tries all operands.
#ifndef PYPTO_CAST_ELEMENTARY_H
#define PYPTO_CAST_ELEMENTARY_H

#include <cstdint>
#include <cstring>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace {

#define INLINE static inline __attribute__((always_inline))

template <class To, class From>
INLINE To bits_of(From from) {
    static_assert(sizeof(To) == sizeof(From), "as many bits");
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}

// One rounding or two: either stays within the bound.
INLINE double fma_of(double x, double y, double z) {
#if defined(__FMA__) || defined(__aarch64__)
    return __builtin_fma(x, y, z);
#else
    return x * y + z;
#endif
}

constexpr double LOG2_E = 0x1.71547652b82fep+0;
constexpr double LN2_HIGH = 0x1.62e42fefa0000p-1;  // times any power of an FP32 number: exact
constexpr double LN2_LOW = 0x1.cf79abc9e3b39p-40;
constexpr double INTEGRAL = 0x1.8p52;  // added, it leaves an integer in the low bits

// e**x is 2**k times e**rest, |rest| <= ln 2 / 2: the Taylor sum to rest**12; the next term is below
// 2**-52. Beyond the ends FP32 has infinity and zero.
INLINE double exp_of(float operand) {
    operand = operand < -110.0f ? -110.0f : operand;
    operand = operand > 100.0f ? 100.0f : operand;
    const double x = operand;
    const double shifted = fma_of(x, LOG2_E, INTEGRAL);
    const double k = shifted - INTEGRAL;
    const double rest = fma_of(-k, LN2_LOW, fma_of(-k, LN2_HIGH, x));
    double sum = 1.0 / 479001600;
    sum = fma_of(sum, rest, 1.0 / 39916800);
    sum = fma_of(sum, rest, 1.0 / 3628800);
    sum = fma_of(sum, rest, 1.0 / 362880);
    sum = fma_of(sum, rest, 1.0 / 40320);
    sum = fma_of(sum, rest, 1.0 / 5040);
    sum = fma_of(sum, rest, 1.0 / 720);
    sum = fma_of(sum, rest, 1.0 / 120);
    sum = fma_of(sum, rest, 1.0 / 24);
    sum = fma_of(sum, rest, 1.0 / 6);
    sum = fma_of(sum, rest, 0.5);
    sum = fma_of(sum, rest, 1.0);
    sum = fma_of(sum, rest, 1.0);
    const uint64_t power = (bits_of<uint64_t>(shifted) + 1023) << 52;
    return sum * bits_of<double>(power);
}

#if defined(__AVX512F__)
// 2**(i / 16): two vectors, of which one instruction takes eight by the low four bits of integers.
alignas(64) constexpr double POWERS[16] = {
    0x1p+0, 0x1.0b5586cf9890fp+0, 0x1.172b83c7d517bp+0, 0x1.2387a6e756238p+0,
    0x1.306fe0a31b715p+0, 0x1.3dea64c123422p+0, 0x1.4bfdad5362a27p+0, 0x1.5ab07dd485429p+0,
    0x1.6a09e667f3bcdp+0, 0x1.7a11473eb0187p+0, 0x1.8ace5422aa0dbp+0, 0x1.9c49182a3f09p+0,
    0x1.ae89f995ad3adp+0, 0x1.c199bdd85529cp+0, 0x1.d5818dcfba487p+0, 0x1.ea4afa2a490dap+0,
};

// As exp_of, of eight operands: e**x is 2**(k / 16) times e**rest, |rest| <= ln 2 / 32; the Taylor sum
// to rest**6, half of exp_of's, as the next term is below 2**-51.
INLINE __m512d exps_of(__m512d x) {
    const __m512d integral = _mm512_set1_pd(INTEGRAL);
    const __m512d shifted = _mm512_fmadd_pd(x, _mm512_set1_pd(16 * LOG2_E), integral);
    const __m512d k = _mm512_sub_pd(shifted, integral);
    const __m512d rest = _mm512_fnmadd_pd(k, _mm512_set1_pd(LN2_LOW / 16),
                                          _mm512_fnmadd_pd(k, _mm512_set1_pd(LN2_HIGH / 16), x));
    __m512d sum = _mm512_set1_pd(1.0 / 720);
    for (const double factor : {1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1.0})
        sum = _mm512_fmadd_pd(sum, rest, _mm512_set1_pd(factor));
    const __m512i bits = _mm512_castpd_si512(shifted);
    const __m512i power = _mm512_slli_epi64(_mm512_srli_epi64(bits, 4), 52);
    const __m512d part =
        _mm512_permutex2var_pd(_mm512_load_pd(POWERS), bits, _mm512_load_pd(POWERS + 8));
    const __m512d scaled =
        _mm512_castsi512_pd(_mm512_add_epi64(_mm512_castpd_si512(part), power));
    return _mm512_fmadd_pd(_mm512_mul_pd(scaled, rest), sum, scaled);
}

// The codes of sixteen FP32 numbers; of NaN that of `nan`.
INLINE __m512i exps_of(__m512 operands, uint32_t nan) {
    const __m512 above = _mm512_max_ps(operands, _mm512_set1_ps(-110.0f));
    const __m512 x = _mm512_min_ps(above, _mm512_set1_ps(100.0f));
    const __m256 low = _mm512_cvtpd_ps(exps_of(_mm512_cvtps_pd(_mm512_castps512_ps256(x))));
    const __m256 high = _mm512_cvtpd_ps(exps_of(_mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1))));
    const __m512 found = _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
    const __mmask16 is_nan = _mm512_cmp_ps_mask(operands, operands, _CMP_UNORD_Q);
    return _mm512_mask_mov_epi32(_mm512_castps_si512(found), is_nan, _mm512_set1_epi32(nan));
}
#endif

// ln x is k ln 2 + 2 artanh(s), s = (m - 1) / (m + 1), where x is 2**k times m, about 0.7 <= m < 1.4:
// the sum of s**n / n over odd n to 21; |s| < 0.1716, so the rest is below 2**-60 of it.
INLINE double log_of(double x) {
    const uint64_t code = bits_of<uint64_t>(x);
    const uint64_t above = code - 0x3FE6A09E00000000;  // from the root of 1/2 on
    const int64_t k = static_cast<int64_t>(above) >> 52;
    const double m = bits_of<double>(code - (static_cast<uint64_t>(k) << 52));
    // An integer of 52 bits beside this number is one of float64's, without a conversion.
    const double power = bits_of<double>(static_cast<uint64_t>(k) + 0x4338000000000000) - INTEGRAL;
    const double above_one = m - 1.0;
    const double s = above_one / (m + 1.0);
    const double z = s * s;
    double sum = 2.0 / 21;
    sum = fma_of(sum, z, 2.0 / 19);
    sum = fma_of(sum, z, 2.0 / 17);
    sum = fma_of(sum, z, 2.0 / 15);
    sum = fma_of(sum, z, 2.0 / 13);
    sum = fma_of(sum, z, 2.0 / 11);
    sum = fma_of(sum, z, 2.0 / 9);
    sum = fma_of(sum, z, 2.0 / 7);
    sum = fma_of(sum, z, 2.0 / 5);
    sum = fma_of(sum, z, 2.0 / 3);
    // 2 s is above_one - s * above_one, of which the first is exact.
    const double artanh = above_one - s * (above_one - z * sum);
    return fma_of(power, LN2_HIGH, fma_of(power, LN2_LOW, artanh));
}

// Codes of operands and of their results.
#define LOG_FIXES(FIX)                                                                        \
    FIX(0x3C413D3A, 0xC08E158F) FIX(0x41178FEB, 0x400FE5E7) FIX(0x4C5D65A5, 0x418F034B)       \
    FIX(0x65D890D3, 0x4254D1F9) FIX(0x6F31A8EC, 0x42845A89)

}  // namespace

#endif  // PYPTO_CAST_ELEMENTARY_H
