// Products of INT8 matrices in INT32, which wraps: exact in any order. A file includes this once for
// each instruction set.
#ifndef PYPTO_CAST_MATRIX_LOOPS_H
#define PYPTO_CAST_MATRIX_LOOPS_H

#include <algorithm>
#include <cstdlib>

#include "elementary.h"
#include "program.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace {

constexpr int64_t PANEL = 64;  // columns whose terms are packed at a time
constexpr int64_t ROWS = 6;
constexpr int64_t LINE = 64;

// An instruction adds products of so many neighbouring terms at once: two of 16 bits, or four bytes of
// which the left ones have no sign. There 128 is added to those, and taken off again where the sums
// start, 128 times that of the column's terms.
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
constexpr int64_t GROUP = 4, EXCESS = 128;
using Left = uint8_t;
using Right = int8_t;
#else
constexpr int64_t GROUP = 2, EXCESS = 0;
using Left = int16_t;
using Right = int16_t;
#endif

// Groups of terms side by side, column by column, with zeros after the last; and where sums start.
void pack_panel(Right* to, int32_t* start, const int8_t* b, int64_t terms, int64_t row_elems,
                int64_t columns) {
    std::fill(start, start + PANEL, 0);
    for (int64_t k = 0; k < terms; k += GROUP, to += GROUP * PANEL) {
        const int8_t* row = b + k * row_elems;
        if (columns == PANEL && k + GROUP <= terms) {
            for (int64_t j = 0; j < PANEL; ++j)
                for (int64_t t = 0; t < GROUP; ++t) to[GROUP * j + t] = row[t * row_elems + j];
        } else {
            std::fill(to, to + GROUP * PANEL, Right{0});
            for (int64_t t = 0; t < std::min(GROUP, terms - k); ++t)
                for (int64_t j = 0; j < columns; ++j) to[GROUP * j + t] = row[t * row_elems + j];
        }
        if (EXCESS == 0) continue;
        for (int64_t j = 0; j < PANEL; ++j) {
            int32_t sum = 0;
            for (int64_t t = 0; t < GROUP; ++t) sum += to[GROUP * j + t];
            start[j] = static_cast<int32_t>(static_cast<uint32_t>(start[j]) -
                                            static_cast<uint32_t>(EXCESS * sum));
        }
    }
}

// Vectors of sums: adds the products of a group of terms of a row and those of some columns.
#if defined(__AVX512BW__)
constexpr int64_t VECTORS = 4;  // held at once, of each row
struct Vector {
    __m512i held;
    static Vector load(const void* from) { return {_mm512_loadu_si512(from)}; }
    static Vector all(int32_t group) { return {_mm512_set1_epi32(group)}; }
    void store(int32_t* to) const { _mm512_storeu_si512(to, held); }
    void add(Vector a, Vector b) {
#if defined(__AVX512VNNI__)
        held = _mm512_dpbusd_epi32(held, a.held, b.held);
#else
        held = _mm512_add_epi32(held, _mm512_madd_epi16(a.held, b.held));
#endif
    }
};
#elif defined(__AVX2__)
constexpr int64_t VECTORS = 2;
struct Vector {
    __m256i held;
    static Vector load(const void* from) {
        return {_mm256_loadu_si256(static_cast<const __m256i*>(from))};
    }
    static Vector all(int32_t group) { return {_mm256_set1_epi32(group)}; }
    void store(int32_t* to) const { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), held); }
    void add(Vector a, Vector b) {
#if defined(__AVXVNNI__)
        held = _mm256_dpbusd_avx_epi32(held, a.held, b.held);
#else
        held = _mm256_add_epi32(held, _mm256_madd_epi16(a.held, b.held));
#endif
    }
};
#endif

// Some rows times a panel.
template <int ROWS_HERE>
INLINE void multiply_panel(int32_t* sums, const Left* a, int64_t row_elems, const Right* panel,
                           const int32_t* start, int64_t groups) {
#if defined(__AVX2__)
    constexpr int64_t LANES = sizeof(Vector) / sizeof(int32_t);
    for (int64_t column = 0; column < PANEL; column += VECTORS * LANES) {
        Vector held[ROWS_HERE][VECTORS];
        for (auto& row : held)
            for (int64_t j = 0; j < VECTORS; ++j) row[j] = Vector::load(start + column + j * LANES);
        for (int64_t k = 0; k < groups; ++k) {
            const Right* at = panel + (k * PANEL + column) * GROUP;
            Vector b[VECTORS];
            for (int64_t j = 0; j < VECTORS; ++j) b[j] = Vector::load(at + j * LANES * GROUP);
            for (int64_t i = 0; i < ROWS_HERE; ++i) {
                int32_t group;
                std::memcpy(&group, a + i * row_elems + GROUP * k, sizeof group);
                const Vector all = Vector::all(group);
                for (int64_t j = 0; j < VECTORS; ++j) held[i][j].add(all, b[j]);
            }
        }
        for (int64_t i = 0; i < ROWS_HERE; ++i)
            for (int64_t j = 0; j < VECTORS; ++j)
                held[i][j].store(sums + i * PANEL + column + j * LANES);
    }
#else
    uint32_t held[ROWS_HERE * PANEL];
    for (int64_t i = 0; i < ROWS_HERE; ++i) std::copy(start, start + PANEL, held + i * PANEL);
    for (int64_t k = 0; k < groups; ++k)
        for (int i = 0; i < ROWS_HERE; ++i) {
            const int32_t x = a[i * row_elems + 2 * k], y = a[i * row_elems + 2 * k + 1];
            const Right* b = panel + k * GROUP * PANEL;
            for (int64_t j = 0; j < PANEL; ++j)
                held[i * PANEL + j] += static_cast<uint32_t>(x * b[2 * j] + y * b[2 * j + 1]);
        }
    std::memcpy(sums, held, sizeof held);
#endif
}

Status multiply(const Matrices& given, int64_t column, int64_t column_end) {
    const int64_t groups = (given.terms + GROUP - 1) / GROUP, width = GROUP * groups;
    const int64_t left_elems = (given.rows + ROWS) * width, right_elems = width * PANEL;
    char* memory = static_cast<char*>(
        std::malloc(left_elems * sizeof(Left) + right_elems * sizeof(Right) + LINE));
    if (memory == nullptr) return NO_MEMORY;
    Right* panel = reinterpret_cast<Right*>(memory + (-reinterpret_cast<uintptr_t>(memory) % LINE));
    Left* wide = reinterpret_cast<Left*>(panel + right_elems);
    for (int64_t i = 0; i < given.rows; ++i) {
        const int8_t* a = given.a + i * given.terms;
        for (int64_t k = 0; k < given.terms; ++k)
            wide[i * width + k] = static_cast<Left>(a[k] + EXCESS);
        for (int64_t k = given.terms; k < width; ++k) wide[i * width + k] = 0;
    }
    int32_t start[PANEL];
    for (int64_t j = column; j < column_end; j += PANEL) {
        const int64_t columns = std::min(PANEL, column_end - j);
        pack_panel(panel, start, given.b + j, given.terms, given.columns, columns);
        for (int64_t i = 0; i < given.rows; i += ROWS) {
            int32_t sums[ROWS * PANEL];
            const int64_t rows = std::min(ROWS, given.rows - i);
            const Left* a = wide + i * width;
            if (rows == ROWS) {
                multiply_panel<ROWS>(sums, a, width, panel, start, groups);
            } else {
                for (int64_t r = 0; r < rows; ++r)
                    multiply_panel<1>(sums + r * PANEL, a + r * width, width, panel, start, groups);
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
