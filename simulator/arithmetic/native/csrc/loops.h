// The loops, written for one element each and vectorised by the compiler, but for exp with AVX-512,
// whose table lies in registers: a file includes this once for each instruction set, with LOOPS as the
// name of the table.
#include <algorithm>
#include <cmath>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "elementary.h"
#include "program.h"

namespace {

#if defined(__clang__)
#define EACH _Pragma("clang loop vectorize(assume_safety)")
#else
#define EACH _Pragma("GCC ivdep")
#endif

constexpr uint32_t NAN_CODE = 0x7FFFFFFF, INF_CODE = 0x7F800000, SIGN = 0x80000000;

INLINE uint32_t code_of(float x) { return bits_of<uint32_t>(x); }
INLINE float value_of(uint32_t code) { return bits_of<float>(code); }
// The one NaN of FP32 for any.
INLINE float unified(float x) { return x != x ? value_of(NAN_CODE) : x; }
// Signed integers in the total order: the magnitude of negative numbers is flipped.
INLINE int32_t key_of(float x) {
    const int32_t code = bits_of<int32_t>(x);
    return code ^ ((code >> 31) & INT32_MAX);
}

INLINE float add(float x, float y) { return unified(x + y); }
INLINE float sub(float x, float y) { return unified(x - y); }
INLINE float mul(float x, float y) { return unified(x * y); }
INLINE float div(float x, float y) { return unified(x / y); }
INLINE float maximum(float x, float y) {
    const float found = key_of(x) > key_of(y) ? x : y;
    return (x != x) | (y != y) ? value_of(NAN_CODE) : found;
}
INLINE float minimum(float x, float y) {
    const float found = key_of(x) < key_of(y) ? x : y;
    return (x != x) | (y != y) ? value_of(NAN_CODE) : found;
}
INLINE float clip(float x, float least, float most) { return minimum(maximum(x, least), most); }
INLINE float neg(float x) { return unified(-x); }
INLINE float abs(float x) { return unified(value_of(code_of(x) & ~SIGN)); }
INLINE float relu(float x) { return unified(x <= 0.0f ? 0.0f : x); }
INLINE float reciprocal(float x) { return unified(1.0f / x); }
INLINE float sqrt(float x) { return unified(__builtin_sqrtf(x)); }
INLINE float rsqrt(float x) {
    return unified(static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(x))));
}

// To the nearest integral value, ties to even, toward the sign's side of zero: below 2**23 there are
// fractions, and adding it drops them.
INLINE float nearest(float x) {
    const float magnitude = value_of(code_of(x) & ~SIGN);
    const float whole = (magnitude + 0x1p23f) - 0x1p23f;
    return magnitude < 0x1p23f ? value_of(code_of(whole) | (code_of(x) & SIGN)) : x;
}
INLINE float round(float x) { return unified(nearest(x) + 0.0f); }
INLINE float floor(float x) {
    const float whole = nearest(x);
    return unified((whole > x ? whole - 1.0f : whole) + 0.0f);
}
INLINE float ceil(float x) {
    const float whole = nearest(x);
    return unified((whole < x ? whole + 1.0f : whole) + 0.0f);
}
INLINE float toward_zero(float magnitude) {
    const float whole = nearest(magnitude);
    return whole > magnitude ? whole - 1.0f : whole;
}
INLINE float trunc(float x) {
    const float magnitude = value_of(code_of(x) & ~SIGN);
    return unified(value_of(code_of(toward_zero(magnitude)) | (code_of(x) & SIGN)) + 0.0f);
}

INLINE float exp(float x) {
    const float found = static_cast<float>(exp_of(x));
    return unified(x != x ? x : found);
}
// Bits decide, so that the compiler makes no branches of it.
INLINE float log(float x) {
    const uint32_t code = code_of(x);
    uint32_t found = code_of(static_cast<float>(log_of(x)));
#define FIX(operand, result) found = code == operand ? result : found;
    LOG_FIXES(FIX)
#undef FIX
    found = code == INF_CODE ? INF_CODE : found;
    found = code > INF_CODE ? NAN_CODE : found;
    found = (code & ~SIGN) == 0 ? SIGN | INF_CODE : found;
    return value_of(found);
}

// Of an integral number: clamped, 0 of NaN.
INLINE int32_t int32_of(float whole) {
    const float clamped = whole < -0x1p31f ? -0x1p31f : whole > 0x1.fffffep30f ? 0x1.fffffep30f : whole;
    const int32_t found = static_cast<int32_t>(whole == whole ? clamped : 0.0f);
    return whole >= 0x1p31f ? INT32_MAX : found;
}
INLINE int32_t int32_of_fp32_rint(float x) { return int32_of(nearest(x)); }
INLINE int32_t int32_of_fp32_floor(float x) {
    const float whole = nearest(x);
    return int32_of(whole > x ? whole - 1.0f : whole);
}
INLINE int32_t int32_of_fp32_ceil(float x) {
    const float whole = nearest(x);
    return int32_of(whole < x ? whole + 1.0f : whole);
}
INLINE int32_t int32_of_fp32_trunc(float x) {
    const uint32_t below = code_of(toward_zero(value_of(code_of(x) & ~SIGN)));
    return int32_of(value_of(below | (code_of(x) & SIGN)));
}
// Half a unit goes away from zero; the difference is exact.
INLINE int32_t int32_of_fp32_round(float x) {
    const float magnitude = value_of(code_of(x) & ~SIGN), below = toward_zero(magnitude);
    const float whole = magnitude - below >= 0.5f ? below + 1.0f : below;
    return int32_of(value_of(code_of(whole) | (code_of(x) & SIGN)));
}
INLINE float fp32_of_int32(int32_t x) { return static_cast<float>(x); }

INLINE uint8_t signbit(float x) { return (code_of(x) >> 31) & (x == x); }
INLINE uint8_t and8(uint8_t x, uint8_t y) { return (x != 0) & (y != 0); }
INLINE uint8_t not8(uint8_t x) { return x == 0; }
INLINE uint8_t eq(float x, float y) { return x == y; }
INLINE uint8_t ne(float x, float y) { return (x < y) | (x > y); }
INLINE uint8_t lt(float x, float y) { return x < y; }
INLINE uint8_t le(float x, float y) { return x <= y; }
INLINE uint8_t gt(float x, float y) { return x > y; }
INLINE uint8_t ge(float x, float y) { return x >= y; }
INLINE uint32_t where(uint8_t condition, uint32_t x, uint32_t y) { return condition ? x : y; }
INLINE uint16_t where16(uint8_t condition, uint16_t x, uint16_t y) { return condition ? x : y; }
INLINE uint32_t copy(uint32_t code) { return code; }

INLINE float fp32_of_bf16(uint16_t code) {
    return unified(value_of(static_cast<uint32_t>(code) << 16));
}
INLINE uint16_t bf16_of_fp32(float x) {
    const uint32_t code = code_of(x);
    // Half a unit, less where the last bit that stays is even.
    const uint32_t rounded = (code + 0x7FFF + (code >> 16 & 1)) >> 16;
    return static_cast<uint16_t>(x != x ? 0x7FFF : rounded);
}
// Exponent and fraction at their place in FP32 are the number times 2**-112, subnormal ones too.
INLINE float fp32_of_fp16(uint16_t code) {
    const uint32_t wide = code, magnitude = wide & 0x7FFF, sign = (wide & 0x8000) << 16;
    const float number = value_of(magnitude << 13) * 0x1p112f;
    const uint32_t found = magnitude < 0x7C00 ? code_of(number) : INF_CODE;
    return value_of(magnitude > 0x7C00 ? NAN_CODE : found | sign);
}
INLINE uint16_t fp16_of_fp32(float x) {
    const uint32_t code = code_of(x), magnitude = code & ~SIGN, sign = code >> 16 & 0x8000;
    // Normal numbers: half a unit, less where the last bit that stays is even; the bias changes.
    const uint32_t normal = (magnitude + 0xFFF + (magnitude >> 13 & 1) - (112u << 23)) >> 13;
    // Below, 0.5 has the same last place as subnormal numbers: adding it rounds.
    const uint32_t small = code_of(value_of(magnitude) + 0.5f) - 0x3F000000;
    uint32_t found = magnitude < 0x38800000 ? small : normal;
    found = magnitude >= 0x477FF000 ? 0x7C00 : found;
    return static_cast<uint16_t>(magnitude > INF_CODE ? 0x7FFF : found | sign);
}

template <class O, class A, class F>
INLINE void each(F f, char* out, const char* const* in, unsigned, int64_t elems) {
    O* o = reinterpret_cast<O*>(out);
    const A* a = reinterpret_cast<const A*>(in[0]);
    EACH for (int64_t i = 0; i < elems; ++i) o[i] = f(a[i]);
}

// An operand whose bit of `repeated` is set is one element.
template <class O, class A, class B, class F>
INLINE void each(F f, char* out, const char* const* in, unsigned repeated, int64_t elems) {
    O* o = reinterpret_cast<O*>(out);
    const A* a = reinterpret_cast<const A*>(in[0]);
    const B* b = reinterpret_cast<const B*>(in[1]);
    if (repeated == 0) {
        EACH for (int64_t i = 0; i < elems; ++i) o[i] = f(a[i], b[i]);
    } else if (repeated == 1) {
        const A x = *a;
        EACH for (int64_t i = 0; i < elems; ++i) o[i] = f(x, b[i]);
    } else if (repeated == 2) {
        const B y = *b;
        EACH for (int64_t i = 0; i < elems; ++i) o[i] = f(a[i], y);
    } else {
        std::fill(o, o + elems, f(*a, *b));
    }
}

template <class O, class A, class B, class C, class F>
INLINE void each(F f, char* out, const char* const* in, unsigned repeated, int64_t elems) {
    O* o = reinterpret_cast<O*>(out);
    const A* a = reinterpret_cast<const A*>(in[0]);
    const B* b = reinterpret_cast<const B*>(in[1]);
    const C* c = reinterpret_cast<const C*>(in[2]);
    const B y = *b;
    const C z = *c;
    if (repeated == 0) {
        EACH for (int64_t i = 0; i < elems; ++i) o[i] = f(a[i], b[i], c[i]);
    } else if (repeated == 2) {
        EACH for (int64_t i = 0; i < elems; ++i) o[i] = f(a[i], y, c[i]);
    } else if (repeated == 4) {
        EACH for (int64_t i = 0; i < elems; ++i) o[i] = f(a[i], b[i], z);
    } else if (repeated == 6) {
        EACH for (int64_t i = 0; i < elems; ++i) o[i] = f(a[i], y, z);
    } else {
        const int64_t i = repeated & 1 ? 0 : 1, j = repeated & 2 ? 0 : 1, k = repeated & 4 ? 0 : 1;
        for (int64_t n = 0; n < elems; ++n) o[n] = f(a[i * n], b[j * n], c[k * n]);
    }
}

void lookup16(char* out, const char* const* in, unsigned, int64_t elems) {
    uint16_t* o = reinterpret_cast<uint16_t*>(out);
    const uint16_t* a = reinterpret_cast<const uint16_t*>(in[0]);
    const uint16_t* table = reinterpret_cast<const uint16_t*>(in[1]);
    for (int64_t i = 0; i < elems; ++i) o[i] = table[a[i]];
}

using f32 = float;
using i32 = int32_t;
using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;

#define LOOP(name, ...)                                                                     \
    void loop_##name(char* out, const char* const* in, unsigned repeated, int64_t elems) {  \
        each<__VA_ARGS__>([](auto... x) { return name(x...); }, out, in, repeated, elems); \
    }
LOOP(add, f32, f32, f32) LOOP(sub, f32, f32, f32) LOOP(mul, f32, f32, f32) LOOP(div, f32, f32, f32)
LOOP(maximum, f32, f32, f32) LOOP(minimum, f32, f32, f32) LOOP(clip, f32, f32, f32, f32)
LOOP(neg, f32, f32) LOOP(abs, f32, f32) LOOP(relu, f32, f32) LOOP(reciprocal, f32, f32)
LOOP(sqrt, f32, f32) LOOP(rsqrt, f32, f32) LOOP(log, f32, f32)
LOOP(round, f32, f32) LOOP(floor, f32, f32) LOOP(ceil, f32, f32) LOOP(trunc, f32, f32)
LOOP(eq, u8, f32, f32) LOOP(ne, u8, f32, f32) LOOP(lt, u8, f32, f32) LOOP(le, u8, f32, f32)
LOOP(gt, u8, f32, f32) LOOP(ge, u8, f32, f32)
LOOP(where, u32, u8, u32, u32) LOOP(where16, u16, u8, u16, u16) LOOP(copy, u32, u32)
LOOP(fp32_of_bf16, f32, u16) LOOP(bf16_of_fp32, u16, f32)
LOOP(fp32_of_fp16, f32, u16) LOOP(fp16_of_fp32, u16, f32)
LOOP(fp32_of_int32, f32, i32) LOOP(int32_of_fp32_rint, i32, f32)
LOOP(int32_of_fp32_round, i32, f32) LOOP(int32_of_fp32_floor, i32, f32)
LOOP(int32_of_fp32_ceil, i32, f32) LOOP(int32_of_fp32_trunc, i32, f32)
LOOP(signbit, u8, f32) LOOP(and8, u8, u8, u8) LOOP(not8, u8, u8)
#define loop_lookup16 lookup16
#if defined(__AVX512F__)
void loop_exp(char* out, const char* const* in, unsigned, int64_t elems) {
    float* o = reinterpret_cast<float*>(out);
    const float* a = reinterpret_cast<const float*>(in[0]);
    for (int64_t i = 0; i < elems; i += 16) {
        const __mmask16 kept = elems - i < 16 ? (1u << (elems - i)) - 1 : 0xFFFF;
        _mm512_mask_storeu_epi32(o + i, kept, exps_of(_mm512_maskz_loadu_ps(kept, a + i), NAN_CODE));
    }
}
#else
LOOP(exp, f32, f32)
#endif

// The extreme in the total order; NaN where there is any.
void row_amax(float* out, const float* row, int64_t elems, const Tiles&) {
    int32_t found = INT32_MIN, magnitude = 0;
    for (int64_t i = 0; i < elems; ++i) {
        found = std::max(found, key_of(row[i]));
        magnitude = std::max(magnitude, bits_of<int32_t>(row[i]) & INT32_MAX);
    }
    const float extreme = bits_of<float>(found ^ ((found >> 31) & INT32_MAX));
    *out = static_cast<uint32_t>(magnitude) > INF_CODE ? value_of(NAN_CODE) : extreme;
}

void row_amin(float* out, const float* row, int64_t elems, const Tiles&) {
    int32_t found = INT32_MAX, magnitude = 0;
    for (int64_t i = 0; i < elems; ++i) {
        found = std::min(found, key_of(row[i]));
        magnitude = std::max(magnitude, bits_of<int32_t>(row[i]) & INT32_MAX);
    }
    const float extreme = bits_of<float>(found ^ ((found >> 31) & INT32_MAX));
    *out = static_cast<uint32_t>(magnitude) > INF_CODE ? value_of(NAN_CODE) : extreme;
}

constexpr int64_t LANES = 64;  // a repeat of 256 B

INLINE void add_onto(float* held, const float* more, int64_t elems) {
    EACH for (int64_t i = 0; i < elems; ++i) held[i] += more[i];
}

// Neighbouring lanes, then neighbouring results, and so on; an odd one waits its turn.
INLINE float tree(float* lanes, int64_t count) {
    while (count > 1) {
        const int64_t pairs = count / 2;
        for (int64_t i = 0; i < pairs; ++i) lanes[i] = lanes[2 * i] + lanes[2 * i + 1];
        if (count % 2) lanes[pairs] = lanes[count - 1];
        count = pairs + count % 2;
    }
    return lanes[0];
}
INLINE float tree_of_repeat(float* lanes) {
    float halves[LANES / 2];
    for (int64_t i = 0; i < 32; ++i) halves[i] = lanes[2 * i] + lanes[2 * i + 1];
    for (int64_t i = 0; i < 16; ++i) lanes[i] = halves[2 * i] + halves[2 * i + 1];
    for (int64_t i = 0; i < 8; ++i) halves[i] = lanes[2 * i] + lanes[2 * i + 1];
    for (int64_t i = 0; i < 4; ++i) lanes[i] = halves[2 * i] + halves[2 * i + 1];
    return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

// The order of `row_sum` in simulator/arithmetic/reduction_order.py; `held` has room for the pairs.
float sum_of_tile(const float* row, int64_t elems, float* held) {
    if (elems <= LANES) {
        std::copy(row, row + elems, held);
        return tree(held, elems);
    }
    const int64_t groups = elems / LANES, tail = elems % LANES;
    int64_t pairs = groups / 2;
    if (pairs == 0) std::copy(row, row + LANES, held);
    for (int64_t pair = 0; pair < pairs; ++pair) {
        const float *a = row + 2 * pair * LANES, *b = a + LANES;
        float* to = held + pair * LANES;
        EACH for (int64_t i = 0; i < LANES; ++i) to[i] = a[i] + b[i];
    }
    if (pairs > 0 && groups % 2) add_onto(held, row + (groups - 1) * LANES, LANES);
    add_onto(held, row + groups * LANES, tail);
    while (pairs > 1) {
        const float* odd = pairs % 2 ? held + (pairs - 1) * LANES : nullptr;
        pairs /= 2;
        for (int64_t pair = 0; pair < pairs; ++pair) {
            const float *a = held + 2 * pair * LANES, *b = a + LANES;
            float* to = held + pair * LANES;
            EACH for (int64_t i = 0; i < LANES; ++i) to[i] = a[i] + b[i];
        }
        if (odd) add_onto(held + (pairs - 1) * LANES, odd, LANES);
    }
    return tree_of_repeat(held);
}

// The order of `row_sum_by_repeats` there, onto +0.
float sum_by_repeats(const float* row, int64_t elems, float*) {
    float lanes[LANES], found = 0;
    for (int64_t start = 0; start < elems; start += LANES) {
        const int64_t count = std::min(LANES, elems - start);
        std::copy(row + start, row + start + count, lanes);
        const float more = count == LANES ? tree_of_repeat(lanes) : tree(lanes, count);
        found = start == 0 ? more : found + more;
    }
    return found + 0.0f;
}

template <float (*SUM)(const float*, int64_t, float*)>
INLINE void sum_of_tiles(float* out, const float* row, int64_t elems, const Tiles& tiles) {
    if (tiles.joins_count == 0) {
        *out = unified(SUM(row, elems, tiles.scratch));
        return;
    }
    float *joined = tiles.scratch, *held = joined + (elems + LANES);
    std::copy(row, row + elems, joined);
    for (const Join* join = tiles.joins; join < tiles.joins + tiles.joins_count; ++join) {
        const int64_t from = join->from * tiles.extent;
        const int64_t shorter = std::min(tiles.extent, elems - from);
        add_onto(joined + join->to * tiles.extent, joined + from, shorter);
    }
    *out = unified(SUM(joined, std::min(tiles.extent, elems), held));
}
void row_sum(float* out, const float* row, int64_t elems, const Tiles& tiles) {
    sum_of_tiles<sum_of_tile>(out, row, elems, tiles);
}
void row_sum_by_repeats(float* out, const float* row, int64_t elems, const Tiles& tiles) {
    sum_of_tiles<sum_by_repeats>(out, row, elems, tiles);
}

constexpr int64_t BLOCK = 8;  // 32 B

INLINE void multiply_onto(float* held, const float* more, int64_t elems) {
    EACH for (int64_t i = 0; i < elems; ++i) held[i] *= more[i];
}

// The order of `row_product` in simulator/arithmetic/reduction_order.py.
INLINE float product_of_tile(const float* row, int64_t elems) {
    float lanes[BLOCK];
    const int64_t count = std::min(elems, BLOCK);
    std::copy(row, row + count, lanes);
    int64_t start = BLOCK;
    for (; start + BLOCK <= elems; start += BLOCK)
        for (int64_t i = 0; i < BLOCK; ++i) lanes[i] *= row[start + i];
    for (int64_t i = 0; start + i < elems; ++i) lanes[i] *= row[start + i];
    float found = lanes[0];
    for (int64_t i = 1; i < count; ++i) found *= lanes[i];
    return found;
}

// The order of `row_product_by_halves` there.
INLINE float product_by_halves(const float* row, int64_t elems) {
    float lanes[LANES];
    int64_t count = std::min(elems, LANES);
    std::copy(row, row + count, lanes);
    for (int64_t start = LANES; start < elems; start += LANES)
        multiply_onto(lanes, row + start, std::min(LANES, elems - start));
    for (int64_t half = LANES / 2; half > 0; half /= 2) {
        if (count <= half) continue;
        multiply_onto(lanes, lanes + half, count - half);
        count = half;
    }
    return lanes[0];
}

template <float (*PRODUCT)(const float*, int64_t)>
INLINE void product_of_tiles(float* out, const float* row, int64_t elems, const Tiles& tiles) {
    if (tiles.joins_count > 0) {
        std::copy(row, row + elems, tiles.scratch);
        row = tiles.scratch;
        for (const Join* join = tiles.joins; join < tiles.joins + tiles.joins_count; ++join) {
            const int64_t from = join->from * tiles.extent;
            const int64_t shorter = std::min(tiles.extent, elems - from);
            multiply_onto(tiles.scratch + join->to * tiles.extent, row + from, shorter);
        }
        elems = std::min(tiles.extent, elems);
    }
    *out = unified(PRODUCT(row, elems));
}
void row_prod(float* out, const float* row, int64_t elems, const Tiles& tiles) {
    product_of_tiles<product_of_tile>(out, row, elems, tiles);
}
void row_prod_by_halves(float* out, const float* row, int64_t elems, const Tiles& tiles) {
    product_of_tiles<product_by_halves>(out, row, elems, tiles);
}

// As `prefix_scan` in simulator/arithmetic/indexed/running_sums.py: the element 1 before is joined
// to each, then the one 2 before, 4 and so on. A partial result that is joined again has +0 for -0,
// but where signs are kept.
template <bool MULTIPLIES>
INLINE float joined(float x, float y) {
    return MULTIPLIES ? x * y : x + y;
}
template <bool MULTIPLIES>
void scan_tile(float* out, const float* in, int64_t elems, bool keeps_signs, float* scratch) {
    float *held = scratch, *next = scratch + elems;
    std::copy(in, in + elems, held);
    std::copy(in, in + elems, out);
    const float zero = keeps_signs ? -0.0f : 0.0f;
    for (int64_t distance = 1; distance < elems; distance *= 2) {
        std::copy(held, held + distance, next);
        EACH for (int64_t i = distance; i < elems; ++i) {
            const float total = joined<MULTIPLIES>(held[i - distance], held[i]);
            out[i] = total;
            next[i] = total + zero;
        }
        std::swap(held, next);
    }
}
template <bool MULTIPLIES>
void scan_rows(const Scan& given, int64_t row, int64_t row_end) {
    for (; row < row_end; ++row) {
        const float* in = given.in + row * given.columns;
        float* out = given.out + row * given.columns;
        for (int64_t start = 0; start < given.columns; start += given.extent) {
            const int64_t elems = std::min(given.extent, given.columns - start);
            scan_tile<MULTIPLIES>(out + start, in + start, elems, given.keeps_signs, given.scratch);
            if (start > 0) {
                const float before = out[start - 1];
                EACH for (int64_t i = start; i < start + elems; ++i)
                    out[i] = joined<MULTIPLIES>(out[i], before);
            }
        }
        // The first element is moved, with the bits of a NaN.
        EACH for (int64_t i = 1; i < given.columns; ++i) out[i] = unified(out[i]);
    }
}
void scan(const Scan& given, int64_t row, int64_t row_end) {
    (given.multiplies ? scan_rows<true> : scan_rows<false>)(given, row, row_end);
}

// By vectors as wide as a line, or half of it: with narrower ones nothing is gained.
#if defined(__AVX2__)
void stream_past_caches(char* to, const char* from, int64_t bytes) {
#if defined(__AVX512F__)
    using Vector = __m512i;
    const auto put = [](void* at, Vector x) { _mm512_stream_si512(static_cast<Vector*>(at), x); };
#else
    using Vector = __m256i;
    const auto put = [](void* at, Vector x) { _mm256_stream_si256(static_cast<Vector*>(at), x); };
#endif
    constexpr int64_t VECTOR = sizeof(Vector);
    const int64_t head = std::min<int64_t>(bytes, -reinterpret_cast<uintptr_t>(to) % VECTOR);
    std::copy(from, from + head, to);
    int64_t at = head;
    for (Vector x; at + VECTOR <= bytes; at += VECTOR) {
        __builtin_memcpy(&x, from + at, VECTOR);
        put(to + at, x);
    }
    std::copy(from + at, from + bytes, to + at);
}
#else
constexpr Stream stream_past_caches = nullptr;
#endif

}  // namespace

#include "interval_loops.h"
#include "sum_bounds.h"
#include "product_bounds.h"
#include "matrix_loops.h"

const Loops& LOOPS() {
    static const Loops loops = [] {
        Loops found = {};
#define OP(name, ...) found.elementwise[OP_##name] = loop_##name;
        ELEMENTWISE(OP) INTERVALS(OP)
#undef OP
#define OP(name) found.rows[OP_##name] = row_##name;
        REDUCTIONS(OP)
#undef OP
#define OP(name, ...) found.folds[OP_##name] = fold_##name;
        FOLDS(OP)
#undef OP
#define OP(name, ...) found.checks[OP_##name] = check_##name;
        CHECKS(OP)
#undef OP
        found.multiply = multiply;
        found.scan = scan;
        found.bound_products = bound_products;
        found.prepare_factors = prepare_factors;
        found.stream = stream_past_caches;
        return found;
    }();
    return loops;
}
