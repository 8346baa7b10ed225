// The bounds of products of matrices, as simulator/arithmetic/cube/float_product.py defines them where
// no line holds an infinity or NaN and no sum may overflow. Included by loops.h.
#ifndef PYPTO_CAST_PRODUCT_BOUNDS_H
#define PYPTO_CAST_PRODUCT_BOUNDS_H

namespace {

// The next number up or down, if it is asked for; no infinity is moved in its own way.
INLINE float stepped(float x, bool is_moved, int32_t way) {
    const int32_t code = bits_of<int32_t>(x);
    return bits_of<float>(code + way * (code >> 31 | 1) * is_moved);
}
// The least and the greatest FP32 number between two limits, both zeros where they meet 0.
INLINE float least_between(double low, double high) {
    const float near = static_cast<float>(low);
    const float least = stepped(near, static_cast<double>(near) < low, 1);
    return least == 0 ? (low == high ? 0.0f : -0.0f) : least;
}
INLINE float most_between(double low, double high) {
    const float near = static_cast<float>(high);
    const float most = stepped(near, static_cast<double>(near) > high, -1);
    return (most == 0) & ((high >= 0) | (low == high)) ? 0.0f : most;
}

// The sum that is computed here and its ends, from its middle, the sum of magnitudes and what the
// intervals of the operands add.
template <bool HAS_LEFT, bool HAS_RIGHT>
uint8_t bound_row(const ProductBounds& given, int64_t row) {
    const int64_t at = row * given.columns, to = row * given.row_elems;
    const double *product = given.product + at, *middle = given.middle + at;
    const double* size = given.size + at;
    const double* of_left = HAS_LEFT ? given.of_left + at : nullptr;
    const double* of_right = HAS_RIGHT ? given.of_right + at : nullptr;
    float *values = given.values + to, *lows = given.low + to, *highs = given.high + to;
    const uint8_t* exact = given.exact == nullptr ? nullptr : given.exact + at;
    uint32_t beyond = 0, apart = 0;
    const auto bound = [&](int64_t j, double own) __attribute__((always_inline)) {
        double radius = own;
        if (HAS_LEFT) radius = radius + of_left[j] * given.factor;
        if (HAS_RIGHT) radius = radius + of_right[j] * given.factor;
        const double low = middle[j] - radius, high = middle[j] + radius;
        beyond |= !(size[j] * given.reach + given.underflow < given.largest);
        values[j] = static_cast<float>(product[j] + 0.0);  // the accumulator starts at +0
        const float least = least_between(low, high), most = most_between(low, high);
        apart |= code_of(least) ^ code_of(most);
        lows[j] = least;
        highs[j] = most;
    };
    const auto rounded = [&](int64_t j) __attribute__((always_inline)) {
        return size[j] * given.growth + given.underflow;
    };
    if (exact != nullptr) {
        for (int64_t j = 0; j < given.columns; ++j) bound(j, exact[j] ? 0.0 : rounded(j));
    } else if (given.exact_rows[row]) {
        const double* of_zeros = given.of_zeros;
        EACH for (int64_t j = 0; j < given.columns; ++j) {
            const double own = rounded(j);
            bound(j, size[j] == 0 ? of_zeros[j] : own);
        }
    } else {
        EACH for (int64_t j = 0; j < given.columns; ++j) bound(j, rounded(j));
    }
    return (beyond != 0 ? NEEDS_CARE : 0) | (apart != 0 ? IS_OPEN : 0);
}

// Of several causes the one that adds most; choices join. Those of a row are one.
template <bool HAS_LEFT, bool HAS_RIGHT>
void causes_of_row(const ProductBounds& given, int64_t row) {
    const int64_t at = row * given.columns;
    const double* size = given.size + at;
    const double* of_left = HAS_LEFT ? given.of_left + at : nullptr;
    const double* of_right = HAS_RIGHT ? given.of_right + at : nullptr;
    const uint16_t cause = given.cause, left = HAS_LEFT ? given.left_causes[row] : 0;
    const uint16_t* right = given.right_causes;
    uint16_t* causes = given.causes + row * given.row_elems;
    if (given.joins_causes) {
        for (int64_t j = 0; j < given.columns; ++j)
            causes[j] = cause | left | (HAS_RIGHT ? right[j] : uint16_t{0});
        return;
    }
    const auto named = [&](int64_t j, double own) __attribute__((always_inline)) {
        uint16_t found = cause;
        if (HAS_LEFT) {
            const bool is_wider = of_left[j] > own;
            found = is_wider ? left : found;
            own = is_wider ? of_left[j] : own;
        }
        if (HAS_RIGHT) found = of_right[j] > own ? right[j] : found;
        causes[j] = found;
    };
    const auto rounded = [&](int64_t j) __attribute__((always_inline)) {
        return size[j] * given.growth + given.underflow;
    };
    if (given.exact != nullptr) {
        for (int64_t j = 0; j < given.columns; ++j)
            named(j, given.exact[at + j] ? 0.0 : rounded(j));
    } else if (given.exact_rows[row]) {
        for (int64_t j = 0; j < given.columns; ++j)
            named(j, size[j] == 0 ? given.of_zeros[j] : rounded(j));
    } else {
        EACH for (int64_t j = 0; j < given.columns; ++j) named(j, rounded(j));
    }
}

uint8_t bound_products(const ProductBounds& given) {
    uint8_t found = 0;
    const bool has_left = given.of_left != nullptr, has_right = given.of_right != nullptr;
    const bool names_left = given.left_causes != nullptr, names_right = given.right_causes != nullptr;
    const auto bound = has_left ? (has_right ? bound_row<true, true> : bound_row<true, false>)
                                : (has_right ? bound_row<false, true> : bound_row<false, false>);
    const auto name =
        names_left ? (names_right ? causes_of_row<true, true> : causes_of_row<true, false>)
                   : (names_right ? causes_of_row<false, true> : causes_of_row<false, false>);
    for (int64_t row = 0; row < given.rows; ++row) {
        found |= bound(given, row);
        if (given.causes != nullptr) name(given, row);
    }
    return found;
}

// Rows of an operand with intervals: what is computed here, the middle, the radius and the greatest
// magnitude of each; of each row whether all are certain, and the cause of the widest, the first of
// several, or the choices of all that are open.
INLINE uint8_t prepare_row(const ProductFactors& given, int64_t row) {
    const int64_t at = row * given.terms;
    const float *numbers = given.numbers + row * given.numbers_elems;
    const float *lows = given.low + row * given.low_elems, *highs = given.high + row * given.high_elems;
    double *values = given.values + at, *middles = given.middle + at;
    double *radii = given.radius + at, *reaches = given.reach + at;
    const double least = given.least;
    constexpr double widening = 1 + 0x1p-51;  // covers the rounding of the difference
    uint32_t strange = 0, open = 0;
    EACH for (int64_t k = 0; k < given.terms; ++k) {
        const float a = lows[k], b = highs[k];
        const double low = (a > 0) & (a < least) ? 0.0 : a;
        const double high = (b < 0) & (b > -least) ? -0.0 : b;
        const double middle = (low + high) / 2;
        const double radius = std::max(high - middle, middle - low) * widening;
        strange |= ((code_of(a) & ~SIGN) >= INF_CODE) | ((code_of(b) & ~SIGN) >= INF_CODE);
        open |= (radius != 0) | (code_of(a) != code_of(b));
        values[k] = numbers[k];
        middles[k] = middle;
        radii[k] = radius;
        reaches[k] = std::max(__builtin_fabs(low), __builtin_fabs(high));
    }
    given.exact[row] = open == 0;
    if (given.weights != nullptr) {
        constexpr double clearly = 1 + 0x1p-30;
        double* weights = given.weights + at;
        uint32_t not_wider = 0, not_narrower = 0;
        EACH for (int64_t k = 0; k < given.terms; ++k) {
            const double own = reaches[k] * given.growth;
            weights[k] = own + radii[k] * given.factor;
            not_wider |= !(radii[k] >= own * clearly);
            not_narrower |= !(radii[k] * clearly <= own);
        }
        given.sides[row] = not_wider == 0 ? 1 : not_narrower == 0 ? 2 : 0;
    }
    if (given.cause_of == nullptr) return strange != 0 ? NEEDS_CARE : 0;
    const uint16_t* causes = given.causes + row * given.causes_elems;
    const auto is_open = [=](int64_t k) {
        return (radii[k] != 0) | (code_of(lows[k]) != code_of(highs[k]));
    };
    if (given.joins_causes) {
        uint16_t all = 0;
        for (int64_t k = 0; k < given.terms; ++k) all |= is_open(k) ? causes[k] : uint16_t{0};
        given.cause_of[row] = all;
    } else {
        const auto claim = [=](int64_t k) {
            return is_open(k) ? bits_of<int64_t>(radii[k]) : int64_t{-1};
        };
        int64_t widest = -1;
        for (int64_t k = 0; k < given.terms; ++k) widest = std::max(widest, claim(k));
        int64_t first = 0;
        while (first < given.terms - 1 && claim(first) != widest) ++first;
        given.cause_of[row] = causes[first];
    }
    return strange != 0 ? NEEDS_CARE : 0;
}

uint8_t prepare_factors(const ProductFactors& given) {
    uint8_t found = 0;
    for (int64_t row = 0; row < given.rows; ++row) found |= prepare_row(given, row);
    return found;
}

}  // namespace

#endif  // PYPTO_CAST_PRODUCT_BOUNDS_H
