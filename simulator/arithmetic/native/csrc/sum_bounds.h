// Both ends of a sum of intervals whose order and rounding are not known, as `_any_order` in
// simulator/arithmetic/reduction.py defines them for zeros and normal numbers, and the choices of open
// elements. Included by loops.h.
#ifndef PYPTO_CAST_SUM_BOUNDS_H
#define PYPTO_CAST_SUM_BOUNDS_H

namespace {

INLINE bool is_zero_or_normal(float x) {
    const uint32_t magnitude = code_of(x) & ~SIGN;
    return ((magnitude >= 0x00800000) & (magnitude < INF_CODE)) | (magnitude == 0);
}

struct Ends {
    float low, high;
};

// One addition of the instructions, by the rules of `add` where its rounding is not known.
INLINE Ends added(float a, float b, float c, float d, const Widening& by) {
    const float low = a + c, high = b + d;
    const bool is_kept = stays_add(a, b, c, d, low);
    return {moved_down(low, by, is_kept), moved_up(high, by, is_kept)};
}

// Lower and upper ends, as many as an order holds at once.
class Held {
  public:
    Held(float* low, float* high, const Widening& by) : low(low), high(high), by(by) {}

    // So many ends from `to` on become those of two arrays, `step` elements from one to the next.
    void join(int64_t to, const float* a, const float* b, const float* c,
                            const float* d, int64_t elems, int64_t step = 1) {
        float *lower = low + to, *upper = high + to;
        uint32_t strange = 0;
        EACH for (int64_t i = 0; i < elems; ++i) {
            const Ends sum = added(a[i * step], b[i * step], c[i * step], d[i * step], by);
            lower[i] = sum.low;
            upper[i] = sum.high;
            strange |= !is_zero_or_normal(sum.low) | !is_zero_or_normal(sum.high);
        }
        is_strange |= strange != 0;
    }
    void onto(int64_t to, const float* c, const float* d, int64_t elems) {
        join(to, low + to, high + to, c, d, elems);
    }
    void join_own(int64_t to, int64_t first, int64_t second, int64_t elems, int64_t step = 1) {
        join(to, low + first, high + first, low + second, high + second, elems, step);
    }
    // The order of `tree` in loops.h.
    void tree(int64_t count) {
        while (count > 1) {
            const int64_t pairs = count / 2;
            float left[4][LANES / 2];  // results would overwrite operands that are still needed
            for (int64_t i = 0; i < pairs; ++i) {
                left[0][i] = low[2 * i], left[1][i] = high[2 * i];
                left[2][i] = low[2 * i + 1], left[3][i] = high[2 * i + 1];
            }
            const float last[] = {low[count - 1], high[count - 1]};
            join(0, left[0], left[1], left[2], left[3], pairs);
            if (count % 2) low[pairs] = last[0], high[pairs] = last[1];
            count = pairs + count % 2;
        }
    }
    void copy(const float* a, const float* b, int64_t elems) {
        std::copy(a, a + elems, low);
        std::copy(b, b + elems, high);
    }

    float *low, *high;
    const Widening& by;
    bool is_strange = false;
};

// The order of `sum_of_tile` in loops.h; the result is the first of what is held.
void ends_of_tile(Held& held, const float* low, const float* high, int64_t elems) {
    if (elems <= LANES) {
        held.copy(low, high, elems);
        return held.tree(elems);
    }
    const int64_t groups = elems / LANES, tail = elems % LANES;
    int64_t pairs = groups / 2;
    if (pairs == 0) held.copy(low, high, LANES);
    for (int64_t pair = 0; pair < pairs; ++pair) {
        const int64_t at = 2 * pair * LANES, beside = at + LANES;
        held.join(pair * LANES, low + at, high + at, low + beside, high + beside, LANES);
    }
    if (pairs > 0 && groups % 2) {
        const int64_t at = (groups - 1) * LANES;
        held.onto(0, low + at, high + at, LANES);
    }
    held.onto(0, low + groups * LANES, high + groups * LANES, tail);
    while (pairs > 1) {
        const int64_t odd = pairs % 2 ? (pairs - 1) * LANES : 0;
        pairs /= 2;
        for (int64_t pair = 0; pair < pairs; ++pair)
            held.join_own(pair * LANES, 2 * pair * LANES, (2 * pair + 1) * LANES, LANES);
        if (odd) held.onto((pairs - 1) * LANES, held.low + odd, held.high + odd, LANES);
    }
    held.tree(LANES);
}

// The second half is added to the first, an odd one in the middle waits, and so on: the order of
// `_sum_by_halves` in simulator/arithmetic/reduction_order.py.
template <class F>
INLINE double sum_by_halves(double* room, int64_t elems, F term) {
    if (elems == 1) return term(0);
    int64_t half = elems / 2;
    EACH for (int64_t i = 0; i < half; ++i) room[i] = term(i) + term(elems - half + i);
    if (elems % 2) room[half] = term(half);
    for (int64_t count = elems - half; count > 1; count -= half) {
        half = count / 2;
        double* second = room + (count - half);
        EACH for (int64_t i = 0; i < half; ++i) room[i] += second[i];
    }
    return room[0];
}

// The exponent of the least bit set; 1024 of zero.
INLINE int32_t last_bit(uint32_t code) {
    const uint32_t magnitude = code & ~SIGN, stored = magnitude >> 23;
    const uint32_t significand = (magnitude & 0x7FFFFF) | (stored > 0 ? 1u << 23 : 0);
    if (significand == 0) return 1024;
    return static_cast<int32_t>(std::max(stored, 1u)) - 150 + __builtin_ctz(significand);
}

// No order rounds a sum of such points: multiples of a power of two, below 2**24 of it.
bool is_unrounded(const float* low, const float* high, int64_t elems, double magnitude) {
    uint32_t differ = 0, not_minus_zero = 0;
    for (int64_t i = 0; i < elems; ++i) {
        differ |= code_of(low[i]) ^ code_of(high[i]);
        not_minus_zero |= code_of(low[i]) ^ SIGN;
    }
    if (differ != 0 || not_minus_zero == 0) return false;
    int32_t last = 1024;
    for (int64_t i = 0; i < elems; ++i) last = std::min(last, last_bit(code_of(low[i])));
    const double limit = last > 900 ? 0x1p900 : __builtin_ldexp(1.0, last + 24);
    constexpr double largest = 0x1.fffffep127;
    return magnitude <= std::min(limit, largest) && last >= -126;
}

void fold_sum_ends(char* out, const char* const* in, unsigned, int64_t elems, float* scratch) {
    const float *low = reinterpret_cast<const float*>(in[0]);
    const float *high = reinterpret_cast<const float*>(in[1]);
    const SumRule rule = *reinterpret_cast<const SumRule*>(in[2]);
    const Widening by = {static_cast<int32_t>(rule.ulps), 0, 0};
    const int64_t room = elems / 2 + 2 * LANES;
    Held held(scratch, scratch + room, by);
    double* doubles = reinterpret_cast<double*>(scratch + 2 * room);
    uint32_t strange = 0;
    for (int64_t i = 0; i < elems; ++i)
        strange |= !is_zero_or_normal(low[i]) | !is_zero_or_normal(high[i]);
    ends_of_tile(held, low, high, elems);
    const double lower = sum_by_halves(doubles, elems, [=](int64_t i) -> double { return low[i]; });
    const double upper = sum_by_halves(doubles, elems, [=](int64_t i) -> double { return high[i]; });
    const double magnitude = sum_by_halves(doubles, elems, [=](int64_t i) -> double {
        return std::max(value_of(code_of(low[i]) & ~SIGN), value_of(code_of(high[i]) & ~SIGN));
    });
    const double off = magnitude * rule.growth + rule.underflow;
    constexpr double largest = 0x1.fffffep127;
    Ends ends = {held.low[0], held.high[0]};
    if (strange || held.is_strange || !(magnitude + off < largest)) {
        ends = {value_of(NAN_CODE), value_of(NAN_CODE)};
    } else if (!is_unrounded(low, high, elems, magnitude)) {
        const Widening one = {1, 0, 0};
        float least = static_cast<float>(lower - off), most = static_cast<float>(upper + off);
        least = least == 0 ? -0.0f : least;
        most = most == 0 ? 0.0f : most;
        ends.low = of_key(lesser_key(ends.low, moved_down(least, one, false)));
        ends.high = of_key(greater_key(ends.high, moved_up(most, one, false)));
    }
    std::memcpy(out, &ends, sizeof ends);
}

void fold_choices_along(char* out, const char* const* in, unsigned repeated, int64_t elems,
                        float*) {
    const Dense<uint16_t> choices(in[0], repeated & 1);
    const uint32_t *low = reinterpret_cast<const uint32_t*>(in[1]);
    const uint32_t *high = reinterpret_cast<const uint32_t*>(in[2]);
    uint16_t found = 0;
    for (int64_t start = 0; start < elems; start += CHUNK) {
        const uint16_t* bits = choices.from(start);
        const int64_t count = std::min(CHUNK, elems - start);
        for (int64_t i = 0; i < count; ++i)
            found |= low[start + i] == high[start + i] ? uint16_t{0} : bits[i];
    }
    std::memcpy(out, &found, sizeof found);
}

}  // namespace

#endif  // PYPTO_CAST_SUM_BOUNDS_H
