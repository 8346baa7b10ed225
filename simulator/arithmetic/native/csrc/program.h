// A program of tile operations, as Python hands it over: buffers, and steps over blocks of rows.
#ifndef PYPTO_CAST_PROGRAM_H
#define PYPTO_CAST_PROGRAM_H

#include <cstdint>

// name, how many operands, how many bytes an element of the result and of each operand has. An
// operation that Python's table has is called as there.
#define ELEMENTWISE(OP)                                                                           \
    OP(add, 2, 4, 4, 4, 0) OP(sub, 2, 4, 4, 4, 0) OP(mul, 2, 4, 4, 4, 0) OP(div, 2, 4, 4, 4, 0)     \
    OP(maximum, 2, 4, 4, 4, 0) OP(minimum, 2, 4, 4, 4, 0) OP(clip, 3, 4, 4, 4, 4)                   \
    OP(neg, 1, 4, 4, 0, 0) OP(abs, 1, 4, 4, 0, 0) OP(relu, 1, 4, 4, 0, 0)                           \
    OP(round, 1, 4, 4, 0, 0) OP(floor, 1, 4, 4, 0, 0) OP(ceil, 1, 4, 4, 0, 0)                       \
    OP(trunc, 1, 4, 4, 0, 0) OP(reciprocal, 1, 4, 4, 0, 0) OP(sqrt, 1, 4, 4, 0, 0)                  \
    OP(rsqrt, 1, 4, 4, 0, 0) OP(exp, 1, 4, 4, 0, 0) OP(log, 1, 4, 4, 0, 0)                          \
    OP(eq, 2, 1, 4, 4, 0) OP(ne, 2, 1, 4, 4, 0) OP(lt, 2, 1, 4, 4, 0) OP(le, 2, 1, 4, 4, 0)         \
    OP(gt, 2, 1, 4, 4, 0) OP(ge, 2, 1, 4, 4, 0) OP(where, 3, 4, 1, 4, 4) OP(where16, 3, 2, 1, 2, 2) \
    OP(copy, 1, 4, 4, 0, 0) OP(lookup16, 2, 2, 2, 2, 0)                                             \
    OP(fp32_of_bf16, 1, 4, 2, 0, 0) OP(bf16_of_fp32, 1, 2, 4, 0, 0)                                 \
    OP(fp32_of_fp16, 1, 4, 2, 0, 0) OP(fp16_of_fp32, 1, 2, 4, 0, 0)                                 \
    OP(fp32_of_int32, 1, 4, 4, 0, 0) OP(int32_of_fp32_rint, 1, 4, 4, 0, 0)                          \
    OP(int32_of_fp32_round, 1, 4, 4, 0, 0) OP(int32_of_fp32_floor, 1, 4, 4, 0, 0)                   \
    OP(int32_of_fp32_ceil, 1, 4, 4, 0, 0) OP(int32_of_fp32_trunc, 1, 4, 4, 0, 0)                    \
    OP(signbit, 1, 1, 4, 0, 0) OP(and8, 2, 1, 1, 1, 0) OP(not8, 1, 1, 1, 0, 0)
// Ends of intervals of FP32 numbers, and their causes; operands are dense or one element. The last
// operand of `lower` and its kin is a `Widening`, that of `may_round_apart` a `Nearness`, that of
// `cause_beside` and `cause_with` is one claim.
// A cause is an index, or the bits of choices.
#define INTERVALS(OP)                                                                             \
    OP(square_low, 2, 4, 4, 4) OP(square_high, 2, 4, 4, 4) OP(abs_low, 2, 4, 4, 4)                  \
    OP(abs_high, 2, 4, 4, 4) OP(product_low, 4, 4, 4, 4, 4, 4) OP(product_high, 4, 4, 4, 4, 4, 4)   \
    OP(quotient_low, 4, 4, 4, 4, 4, 4) OP(quotient_high, 4, 4, 4, 4, 4, 4)                          \
    OP(lower, 4, 4, 4, 4, 4, 4) OP(higher, 4, 4, 4, 4, 4, 4)                                        \
    OP(lower2, 6, 4, 4, 4, 4, 4, 4, 4) OP(higher2, 6, 4, 4, 4, 4, 4, 4, 4)                          \
    OP(lower_unless, 3, 4, 4, 1, 4) OP(higher_unless, 3, 4, 4, 1, 4)                               \
    OP(stays_add, 5, 1, 4, 4, 4, 4, 4) OP(stays_sub, 5, 1, 4, 4, 4, 4, 4)                          \
    OP(stays_mul, 5, 1, 4, 4, 4, 4, 4)                                                             \
    OP(choices_of, 5, 2, 4, 4, 4, 4, 2) OP(all_choices, 2, 2, 2, 2)                                \
    OP(choices_if_open, 3, 2, 2, 4, 4) OP(choices_if_open16, 3, 2, 2, 2, 2)                        \
    OP(cause_beside, 4, 2, 4, 4, 2, 8) OP(cause_between, 6, 2, 4, 4, 2, 4, 4, 2)                    \
    OP(cause_with, 6, 2, 4, 4, 4, 4, 2, 8)                                                          \
    OP(claim, 3, 8, 4, 4, 2) OP(stronger, 2, 8, 8, 8) OP(cause_of, 3, 2, 8, 4, 4)                   \
    OP(eq_low, 4, 1, 4, 4, 4, 4) OP(eq_high, 4, 1, 4, 4, 4, 4) OP(ne_low, 4, 1, 4, 4, 4, 4)         \
    OP(ne_high, 4, 1, 4, 4, 4, 4) OP(select_low, 4, 4, 1, 1, 4, 4)                                 \
    OP(select_high, 4, 4, 1, 1, 4, 4) OP(choices_if_open8, 3, 2, 2, 1, 1)                          \
    OP(claim8, 3, 8, 1, 1, 2) OP(cause_of8, 3, 2, 8, 1, 1) OP(low_of, 1, 4, 8)                         \
    OP(high_of, 1, 4, 8) OP(rests, 6, 2, 4, 4, 2, 2, 4, 4)                                          \
    OP(rests16, 6, 2, 2, 2, 2, 2, 2, 2)                                                             \
    OP(rests8, 6, 2, 1, 1, 2, 2, 1, 1)                                                              \
    OP(may_round_apart, 6, 1, 4, 4, 4, 4, 4, 4)
// Along rows, of FP32; the last two have the orders of the 950.
#define REDUCTIONS(OP) OP(amax) OP(amin) OP(sum) OP(prod) OP(sum_by_repeats) OP(prod_by_halves)
// Along rows, of several operands: both ends of a sum of intervals in any order, whose last operand is
// a `SumRule`, side by side; the choices of all open elements.
#define FOLDS(OP) OP(sum_ends, 3, 8, 4, 4, 8) OP(choices_along, 3, 2, 2, 4, 4)
// Looks at ends: `Finding`s.
#define CHECKS(OP)                                                                                \
    OP(check_ends, 2, 0, 4, 4) OP(check_divisor, 2, 0, 4, 4) OP(check_domain, 2, 0, 4, 4)          \
    OP(check_ends1, 4, 0, 4, 4, 4, 4) OP(check_ends2, 6, 0, 4, 4, 4, 4, 4, 4)                      \
    OP(check_sum, 4, 0, 4, 4, 4, 4)                                                                \
    OP(check_hull, 2, 0, 4, 4) OP(check_truth, 2, 0, 1, 1) OP(check_integers, 2, 0, 4, 4)          \
    OP(check_codes, 2, 0, 2, 2) OP(check_normal, 2, 0, 4, 4)                                       \
    OP(check_normal_ends, 2, 0, 4, 4)                                                              \
    OP(check_to_bf16, 2, 0, 4, 4) OP(check_to_fp16, 2, 0, 4, 4)                                    \
    OP(check_from_bf16, 2, 0, 2, 2) OP(check_from_fp16, 2, 0, 2, 2)
// Where no element of a block has more than one code, the result is zeros, and the next `extent` steps
// do nothing: they would make these zeros.
#define GUARDS(OP)                                                                                \
    OP(unless_closed, 2, 2, 4, 4) OP(unless_closed16, 2, 2, 2, 2) OP(unless_closed8, 2, 2, 1, 1)

enum Opcode : int32_t {
#define OP(name, ...) OP_##name,
    ELEMENTWISE(OP) INTERVALS(OP) REDUCTIONS(OP) FOLDS(OP) CHECKS(OP) GUARDS(OP)
#undef OP
        OPCODES
};

// Elements of a row lie side by side, or one stands for the whole row.
struct Buffer {
    char* data;         // of row 0; null: lives inside a block alone
    int64_t row_bytes;  // from row to row; 0: one row stands for all
    int32_t elem_bytes;
    int32_t is_wide;  // an element for each column
};

constexpr int MAX_OPERANDS = 6;

struct Step {
    int32_t opcode;
    int32_t out;
    int32_t in[MAX_OPERANDS];
    int32_t joins;  // of a sum or a product: the first of its joins
    int32_t joins_end;
    int32_t extent;  // of these: columns of a tile; of a guard: steps
};

// The second tile of a row is added to the first, or multiplied with it.
struct Join {
    int32_t to;
    int32_t from;
};

// How far an operation moves ends outward, and beyond which operands it does not.
struct Widening {
    int32_t ulps;
    float least;
    float most;
};

// How many codes the ends of a number lie from it at most, and by operand behind it 1: zero is in range.
struct Nearness {
    uint32_t codes;
    uint32_t takes_zero[4];
};

// Of a sum in any order: how far one addition moves ends outward, in codes; the greatest error of all
// additions, by the sum of the terms' magnitudes, and what is added to that.
struct SumRule {
    double ulps, growth, underflow;
};

// Of a check: some element has no rule here; some has more than one code; some has one.
enum Finding : uint8_t { NEEDS_CARE = 1, IS_OPEN = 2, HAS_CERTAIN = 4 };

enum Status { OK, BAD_LEVEL, BAD_PROGRAM, NO_MEMORY };
enum Level { SCALAR, BASELINE, AVX2, AVX512 };

using Loop = void (*)(char* out, const char* const* in, unsigned repeated, int64_t elems);
struct Tiles {
    int64_t extent;
    const Join* joins;
    int64_t joins_count;
    float* scratch;  // two rows
};
using RowLoop = void (*)(float* out, const float* row, int64_t elems, const Tiles& tiles);

using Fold = void (*)(char* out, const char* const* in, unsigned repeated, int64_t elems,
                      float* scratch);

// [rows, terms] times [terms, columns], each C-contiguous, and the product.
struct Matrices {
    const int8_t* a;
    const int8_t* b;
    int32_t* out;
    int64_t rows, terms, columns;
};
using Multiply = Status (*)(const Matrices& given, int64_t column, int64_t column_end);
// Running sums or products along rows, C-contiguous.
struct Scan {
    const float* in;
    float* out;
    int64_t columns;
    int64_t extent;  // columns of a tile
    bool multiplies;
    bool keeps_signs;  // of partial results of -0
    float* scratch;    // two tiles
};
using ScanRows = void (*)(const Scan& given, int64_t row, int64_t row_end);
// A block of a product of FP32 numbers, [rows, columns]: its sums in float64, and where its values, ends
// and causes go, whose rows are `row_elems` apart. `of_left` and `of_right`: what the intervals of the
// operands add; null: nothing. `exact`: by element, no order rounds the sum; null: what `of_zeros` says of
// sums of zeros in a column, for exact rows. Of a null array of causes every one is `cause`.
struct ProductBounds {
    const double *product, *middle, *size, *of_left, *of_right;
    const uint8_t *exact, *exact_rows;
    const double* of_zeros;
    const uint16_t *left_causes, *right_causes;
    float *values, *low, *high;
    uint16_t* causes;
    int64_t rows, columns, row_elems;
    double growth, reach, factor, underflow, largest;
    int32_t cause, joins_causes;
};
// Rows of an operand with intervals, which are so many elements apart, and what becomes of them, [rows,
// terms]; `least`: numbers below it may be zero. Without `cause_of` no cause is asked for. `weights`:
// what each adds to an error of `growth` times its magnitude and `factor` times its radius; `sides`: of
// a row 1 if the second part is always the greater one, clearly, 2 if the first is, else 0; or both null.
struct ProductFactors {
    const float *numbers, *low, *high;
    const uint16_t* causes;
    int64_t numbers_elems, low_elems, high_elems, causes_elems;
    double *values, *middle, *radius, *reach, *weights;
    uint8_t *exact, *sides;
    uint16_t* cause_of;
    int64_t rows, terms;
    double least, growth, factor;
    int32_t joins_causes;
};
using BoundProducts = uint8_t (*)(const ProductBounds& given);
using PrepareFactors = uint8_t (*)(const ProductFactors& given);
// Copies past the caches.
using Stream = void (*)(char* to, const char* from, int64_t bytes);
using Check = uint8_t (*)(const char* const* in, unsigned repeated, int64_t elems);

struct Loops {
    Loop elementwise[OPCODES];
    RowLoop rows[OPCODES];
    Fold folds[OPCODES];
    Check checks[OPCODES];
    Multiply multiply;
    ScanRows scan;
    BoundProducts bound_products;
    PrepareFactors prepare_factors;
    Stream stream;  // null: nothing is gained by it
};

const Loops& loops_baseline();
const Loops& loops_avx2();
const Loops& loops_avx512();
// With instructions that multiply bytes; where the compiler has them.
Status multiply_avx2_vnni(const Matrices& given, int64_t column, int64_t column_end);
Status multiply_avx512_vnni(const Matrices& given, int64_t column, int64_t column_end);

#endif  // PYPTO_CAST_PROGRAM_H
