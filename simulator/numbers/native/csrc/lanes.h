// A few elements at a time: the vectors of the compiler, and what can be done with them. Everything
// has internal linkage, for each level compiles it with other flags.
#ifndef PYPTO_CAST_LANES_H
#define PYPTO_CAST_LANES_H

#include <cstdint>
#include <cstring>
#ifdef __SSE2__
#include <immintrin.h>
#endif

#define INLINE inline __attribute__((always_inline))

namespace {

#if defined(__AVX512BW__)
constexpr int VECTOR_BYTES = 64;
#elif defined(__AVX2__)
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
using i16s = VectorOf<int16_t, VECTOR_BYTES>::type;
using i8s = VectorOf<int8_t, VECTOR_BYTES>::type;

// As many lanes of 64 bits, in two vectors or by halves.
struct Wide {
    i64 low, high;
};
struct Doubles {
    f64 low, high;
};
struct Halves {
    i32 low, high;  // where lanes are packed, in an order that only to_f64 undoes
};

template <class V>
INLINE V load(const void* from) {
    V vector;
    std::memcpy(&vector, from, sizeof vector);
    return vector;
}

template <class V>
INLINE void store(void* to, V vector, bool streams) {
#ifdef __AVX512F__
    if constexpr (sizeof(V) == 64)
        if (streams) return _mm512_stream_si512(static_cast<__m512i*>(to), (__m512i)vector);
#endif
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

}  // namespace

#if defined(__AVX512BW__)
#include "lanes_avx512.h"
#include "lanes_packed.h"
#elif defined(__AVX2__)
#include "lanes_avx2.h"
#include "lanes_packed.h"
#else
#include "lanes_generic.h"
#endif

#endif  // PYPTO_CAST_LANES_H
