// Copies between GM and UB on this machine: through its caches, or past them.
#ifndef PYPTO_TWIN_MEMORY_COPIES_H
#define PYPTO_TWIN_MEMORY_COPIES_H

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace pypto_twin {

// A tensor of this size or more is not in a cache any more when somebody reads it.
constexpr uint64_t streamed_bytes = uint64_t{16} << 20;

inline void cached_copy(uint8_t* dst, const uint8_t* src, size_t size_bytes) {
    std::memcpy(dst, src, size_bytes);
}

// Writes whole cache lines past the caches, which would otherwise fetch every line from memory
// just to overwrite it.
inline void streaming_copy(uint8_t* dst, const uint8_t* src, size_t size_bytes) {
#if defined(__SSE2__)
    constexpr size_t line = 64;
    const size_t ahead = (line - reinterpret_cast<uintptr_t>(dst) % line) % line;
    if (size_bytes >= ahead + line) {
        std::memcpy(dst, src, ahead);
        const size_t stop = size_bytes - (size_bytes - ahead) % line;
        for (size_t i = ahead; i < stop; i += line) {
#if defined(__AVX512F__)
            _mm512_stream_si512(reinterpret_cast<__m512i*>(dst + i), _mm512_loadu_si512(src + i));
#else
            for (size_t part = i; part < i + line; part += sizeof(__m128i)) {
                _mm_stream_si128(reinterpret_cast<__m128i*>(dst + part),
                                 _mm_loadu_si128(reinterpret_cast<const __m128i*>(src + part)));
            }
#endif
        }
        dst += stop;
        src += stop;
        size_bytes -= stop;
    }
#endif
    std::memcpy(dst, src, size_bytes);
}

// What was streamed is visible to other threads afterwards.
inline void finish_streaming() {
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

}  // namespace pypto_twin

#endif  // PYPTO_TWIN_MEMORY_COPIES_H
