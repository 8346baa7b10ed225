// Products of INT8 matrices in INT32, which wraps: exact in any order. Included by loops.h.
#ifndef PYPTO_CAST_MATRIX_LOOPS_H
#define PYPTO_CAST_MATRIX_LOOPS_H

#include <cstdlib>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace {

constexpr int64_t PANEL = 64;  // columns whose terms are packed at a time
constexpr int64_t ROWS = 6;

// Pairs of terms side by side, column by column; a last odd term has a zero beside it.
void pack_panel(int16_t* to, const int8_t* b, int64_t terms, int64_t row_elems, int64_t columns) {
    for (int64_t k = 0; k < terms; k += 2, to += 2 * PANEL) {
        const int8_t *first = b + k * row_elems, *second = first + row_elems;
        const bool has_second = k + 1 < terms;
        for (int64_t j = 0; j < columns; ++j) {
            to[2 * j] = first[j];
            to[2 * j + 1] = has_second ? second[j] : 0;
        }
        for (int64_t j = columns; j < PANEL; ++j) to[2 * j] = to[2 * j + 1] = 0;
    }
}

// Some rows times a panel: each pair of terms of a row is one int32.
template <int ROWS_HERE>
INLINE void multiply_panel(int32_t* sums, const int16_t* a, int64_t row_elems, const int16_t* panel,
                           int64_t pairs) {
#if defined(__AVX512BW__)
    __m512i held[ROWS_HERE][4];
    for (auto& row : held)
        for (auto& part : row) part = _mm512_setzero_si512();
    for (int64_t k = 0; k < pairs; ++k) {
        __m512i b[4];
        for (int j = 0; j < 4; ++j) b[j] = _mm512_loadu_si512(panel + (k * 4 + j) * 32);
        for (int i = 0; i < ROWS_HERE; ++i) {
            int32_t pair;
            std::memcpy(&pair, a + i * row_elems + 2 * k, sizeof pair);
            const __m512i both = _mm512_set1_epi32(pair);
            for (int j = 0; j < 4; ++j)
                held[i][j] = _mm512_add_epi32(held[i][j], _mm512_madd_epi16(both, b[j]));
        }
    }
    for (int i = 0; i < ROWS_HERE; ++i)
        for (int j = 0; j < 4; ++j) _mm512_storeu_si512(sums + i * PANEL + j * 16, held[i][j]);
#elif defined(__AVX2__)
    for (int64_t part = 0; part < 4; ++part) {
        __m256i held[ROWS_HERE][2];
        for (auto& row : held)
            for (auto& each : row) each = _mm256_setzero_si256();
        for (int64_t k = 0; k < pairs; ++k) {
            const int16_t* at = panel + k * 2 * PANEL + part * 32;
            __m256i b[2];
            for (int j = 0; j < 2; ++j)
                b[j] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + j * 16));
            for (int i = 0; i < ROWS_HERE; ++i) {
                int32_t pair;
                std::memcpy(&pair, a + i * row_elems + 2 * k, sizeof pair);
                const __m256i both = _mm256_set1_epi32(pair);
                for (int j = 0; j < 2; ++j)
                    held[i][j] = _mm256_add_epi32(held[i][j], _mm256_madd_epi16(both, b[j]));
            }
        }
        for (int i = 0; i < ROWS_HERE; ++i)
            for (int j = 0; j < 2; ++j)
                _mm256_storeu_si256(
                    reinterpret_cast<__m256i*>(sums + i * PANEL + part * 16 + j * 8), held[i][j]);
    }
#else
    uint32_t held[ROWS_HERE * PANEL] = {};
    for (int64_t k = 0; k < pairs; ++k)
        for (int i = 0; i < ROWS_HERE; ++i) {
            const int32_t x = a[i * row_elems + 2 * k], y = a[i * row_elems + 2 * k + 1];
            const int16_t* b = panel + k * 2 * PANEL;
            for (int64_t j = 0; j < PANEL; ++j)
                held[i * PANEL + j] += static_cast<uint32_t>(x * b[2 * j] + y * b[2 * j + 1]);
        }
    std::memcpy(sums, held, sizeof held);
#endif
}

Status multiply(const Matrices& given, int64_t column, int64_t column_end) {
    const int64_t pairs = (given.terms + 1) / 2, width = 2 * pairs;
    const int64_t elems = (given.rows + ROWS) * width + pairs * 2 * PANEL;
    int16_t* memory = static_cast<int16_t*>(std::malloc(elems * sizeof(int16_t)));
    if (memory == nullptr) return NO_MEMORY;
    int16_t *wide = memory, *panel = memory + (given.rows + ROWS) * width;
    for (int64_t i = 0; i < given.rows; ++i) {
        wide[(i + 1) * width - 1] = 0;
        for (int64_t k = 0; k < given.terms; ++k) wide[i * width + k] = given.a[i * given.terms + k];
    }
    for (int64_t j = column; j < column_end; j += PANEL) {
        const int64_t columns = std::min(PANEL, column_end - j);
        pack_panel(panel, given.b + j, given.terms, given.columns, columns);
        for (int64_t i = 0; i < given.rows; i += ROWS) {
            int32_t sums[ROWS * PANEL];
            const int64_t rows = std::min(ROWS, given.rows - i);
            const int16_t* a = wide + i * width;
            if (rows == ROWS) {
                multiply_panel<ROWS>(sums, a, width, panel, pairs);
            } else {
                for (int64_t r = 0; r < rows; ++r)
                    multiply_panel<1>(sums + r * PANEL, a + r * width, width, panel, pairs);
            }
            for (int64_t r = 0; r < rows; ++r)
                std::copy(sums + r * PANEL, sums + r * PANEL + columns,
                          given.out + (i + r) * given.columns + j);
        }
    }
    std::free(memory);
    return OK;
}

}  // namespace

#endif  // PYPTO_CAST_MATRIX_LOOPS_H
