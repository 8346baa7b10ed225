// The ends of intervals, as simulator/arithmetic/propagation.py and widen.py define them where all
// ends are finite; checks find where they are not. Included by loops.h.
#ifndef PYPTO_CAST_INTERVAL_LOOPS_H
#define PYPTO_CAST_INTERVAL_LOOPS_H

#include <tuple>
#include <utility>

namespace {

INLINE int32_t lesser_key(float x, float y) { return std::min(key_of(x), key_of(y)); }
INLINE int32_t greater_key(float x, float y) { return std::max(key_of(x), key_of(y)); }
INLINE float of_key(int32_t key) { return bits_of<float>(key ^ ((key >> 31) & INT32_MAX)); }
INLINE bool is_negative(float x) { return code_of(x) >> 31; }

// Even functions have their least result at zero, if the interval contains it.
INLINE float even_low(float at_low, float at_high, float low, float high) {
    const float least = of_key(lesser_key(at_low, at_high));
    return is_negative(low) & !is_negative(high) ? 0.0f : least;
}
INLINE float square_low(float low, float high) {
    return unified(even_low(low * low, high * high, low, high));
}
INLINE float square_high(float low, float high) {
    return unified(of_key(greater_key(low * low, high * high)));
}
INLINE float abs_low(float low, float high) { return even_low(abs(low), abs(high), low, high); }
INLINE float abs_high(float low, float high) { return of_key(greater_key(abs(low), abs(high))); }

INLINE float product_low(float a, float b, float c, float d) {
    return unified(of_key(std::min(lesser_key(a * c, a * d), lesser_key(b * c, b * d))));
}
INLINE float product_high(float a, float b, float c, float d) {
    return unified(of_key(std::max(greater_key(a * c, a * d), greater_key(b * c, b * d))));
}
// The divisor's interval does not contain zero, so its sign tells the end of the dividend.
INLINE float quotient_low(float low, float high, float least, float most) {
    const float a = is_negative(least) ? high : low;
    return unified(a / (is_negative(a) ? least : most));
}
INLINE float quotient_high(float low, float high, float least, float most) {
    const float a = is_negative(least) ? low : high;
    return unified(a / (is_negative(a) ? most : least));
}
// Numbers that may be equal, and that surely are; nothing is equal or unequal to NaN.
INLINE bool is_one_number(float a, float b, float c, float d) {
    return (a == b) & (c == d) & (a == c);
}
INLINE uint8_t eq_low(float a, float b, float c, float d) { return is_one_number(a, b, c, d); }
INLINE uint8_t eq_high(float a, float b, float c, float d) { return (a <= d) & (c <= b); }
INLINE uint8_t ne_low(float a, float b, float c, float d) {
    return (a == a) & (c == c) & !eq_high(a, b, c, d);
}
INLINE uint8_t ne_high(float a, float b, float c, float d) {
    return (a == a) & (c == c) & !is_one_number(a, b, c, d);
}
// A branch by a condition's ends, both where they differ.
INLINE float select_low(uint8_t surely, uint8_t perhaps, float a, float b) {
    const float one = surely ? a : b;
    return surely == perhaps ? one : of_key(lesser_key(a, b));
}
INLINE float select_high(uint8_t surely, uint8_t perhaps, float a, float b) {
    const float one = surely ? a : b;
    return surely == perhaps ? one : of_key(greater_key(a, b));
}

// Zero, infinite or NaN, and nothing else.
INLINE bool is_special_point(float low, float high) {
    const uint32_t magnitude = code_of(low) & ~SIGN;
    return (magnitude - 1 >= INF_CODE - 1) & (code_of(low) == code_of(high));
}
// By so many codes away from zero, not through it and not beyond infinity.
INLINE float moved(float end, int32_t codes, bool stays) {
    const uint32_t code = code_of(end), sign = code & SIGN;
    const int32_t magnitude = static_cast<int32_t>(code & ~SIGN);
    const int32_t inf = static_cast<int32_t>(INF_CODE);
    const int32_t to = std::min(std::max(std::min(magnitude, inf) + codes, 0), inf);
    return stays | (magnitude > inf) ? end : value_of(static_cast<uint32_t>(to) | sign);
}
INLINE float moved_down(float end, const Widening& by, bool stays) {
    return moved(end, is_negative(end) ? by.ulps : -by.ulps, stays);
}
INLINE float moved_up(float end, const Widening& by, bool stays) {
    return moved(end, is_negative(end) ? -by.ulps : by.ulps, stays);
}
INLINE bool is_beyond(float x, const Widening& by) { return (x < by.least) | (x > by.most); }
INLINE float lower(float end, float low, float high, const Widening& by) {
    return moved_down(end, by, is_special_point(low, high) | is_beyond(low, by));
}
INLINE float higher(float end, float low, float high, const Widening& by) {
    return moved_up(end, by, is_special_point(low, high) | is_beyond(high, by));
}
INLINE float lower2(float end, float a, float b, float c, float d, const Widening& by) {
    return moved_down(end, by, is_special_point(a, b) | is_special_point(c, d));
}
INLINE float higher2(float end, float a, float b, float c, float d, const Widening& by) {
    return moved_up(end, by, is_special_point(a, b) | is_special_point(c, d));
}

INLINE float lower_unless(float end, uint8_t stays, const Widening& by) {
    return moved_down(end, by, stays);
}
INLINE float higher_unless(float end, uint8_t stays, const Widening& by) {
    return moved_up(end, by, stays);
}

// Two numbers whose sum, difference or product is not rounded, or one that is special.
INLINE uint8_t stays(float a, float b, float c, float d, bool is_unrounded) {
    const bool points = (code_of(a) == code_of(b)) & (code_of(c) == code_of(d));
    return is_special_point(a, b) | is_special_point(c, d) | (points & is_unrounded);
}
// The difference from the greater term is always exact (Dekker): one of the two decides.
INLINE uint8_t stays_add(float a, float b, float c, float d, float sum) {
    return stays(a, b, c, d, (sum - a == c) & (sum - c == a));
}
INLINE uint8_t stays_sub(float a, float b, float c, float d, float difference) {
    return stays_add(a, b, -c, -d, difference);
}
INLINE uint8_t stays_mul(float a, float b, float c, float d, float product) {
    return stays(a, b, c, d, static_cast<double>(a) * static_cast<double>(c) == product);
}

// The choices of an operation that moved an end of its own.
INLINE uint16_t choices_of(uint32_t low, uint32_t moved_low, uint32_t high, uint32_t moved_high,
                           uint16_t choices) {
    return (low != moved_low) | (high != moved_high) ? choices : 0;
}
INLINE uint16_t all_choices(uint16_t one, uint16_t other) { return one | other; }
INLINE uint16_t choices_if_open(uint16_t choices, uint32_t low, uint32_t high) {
    return low == high ? 0 : choices;
}
INLINE uint16_t choices_if_open16(uint16_t choices, uint16_t low, uint16_t high) {
    return low == high ? 0 : choices;
}
INLINE uint16_t choices_if_open8(uint16_t choices, uint8_t low, uint8_t high) {
    return low == high ? 0 : choices;
}

// The claim of an operand to name the cause: the wider interval, then the lower cause. Python makes
// that of the operation itself, which loses to an equal width.
INLINE uint32_t width(float low, float high) {
    const uint32_t apart = code_of(high) - code_of(low);
    return std::min(apart, 0u - apart);
}
INLINE uint64_t claim(float low, float high, uint16_t cause) {
    return static_cast<uint64_t>(width(low, high)) << 32 | (0x1FFFFu - cause);
}
INLINE uint64_t claim8(uint8_t low, uint8_t high, uint16_t cause) {
    return static_cast<uint64_t>(low != high) << 32 | (0x1FFFFu - cause);
}
INLINE uint64_t stronger(uint64_t one, uint64_t other) { return std::max(one, other); }
INLINE uint16_t cause_of(uint64_t claim, uint32_t low, uint32_t high) {
    const uint16_t cause = static_cast<uint16_t>(0xFFFFu - (claim & 0xFFFF));
    return low == high ? 0 : cause;
}
// What the stronger of two claims names; what stays named beside the operation's own claim, of one
// operand or of two. Where a result is certain its cause is any.
INLINE uint16_t cause_between(float a, float b, uint16_t cause, float c, float d, uint16_t other) {
    const uint32_t one = width(a, b), two = width(c, d);
    return (one > two) | ((one == two) & (cause < other)) ? cause : other;
}
INLINE uint16_t unless_wider(uint32_t width, uint16_t cause, uint64_t own) {
    return width >= own >> 32 ? cause : static_cast<uint16_t>(0xFFFFu - (own & 0xFFFF));
}
INLINE uint16_t cause_with(float a, float b, float c, float d, uint16_t cause, uint64_t own) {
    return unless_wider(std::max(width(a, b), width(c, d)), cause, own);
}
INLINE uint16_t cause_beside(float a, float b, uint16_t cause, uint64_t own) {
    return unless_wider(width(a, b), cause, own);
}
INLINE uint16_t cause_of8(uint64_t claim, uint8_t low, uint8_t high) {
    const uint16_t cause = static_cast<uint16_t>(0xFFFFu - (claim & 0xFFFF));
    return low == high ? 0 : cause;
}

// The choices that an element rests on which has one code by choices, and by public texts several,
// the last two: those in force of which one opens it, all of them where none is named; else 0.
template <class T>
INLINE uint16_t rests_on(T low, T high, uint16_t choices, uint16_t in_force, T least, T most) {
    const uint16_t named = choices & in_force;
    return (low == high) & (least != most) ? (named != 0 ? named : in_force) : 0;
}
INLINE uint16_t rests(uint32_t low, uint32_t high, uint16_t choices, uint16_t in_force,
                      uint32_t least, uint32_t most) {
    return rests_on(low, high, choices, in_force, least, most);
}
INLINE uint16_t rests16(uint16_t low, uint16_t high, uint16_t choices, uint16_t in_force,
                        uint16_t least, uint16_t most) {
    return rests_on(low, high, choices, in_force, least, most);
}
INLINE uint16_t rests8(uint8_t low, uint8_t high, uint16_t choices, uint16_t in_force,
                       uint8_t least, uint8_t most) {
    return rests_on(low, high, choices, in_force, least, most);
}

constexpr int64_t CHUNK = 512;

// An operand chunk by chunk; one element is repeated. A copy has elements of its own.
template <class T>
struct Dense {
    Dense(const char* data, bool is_repeated)
        : at(reinterpret_cast<const T*>(data)), is_one(is_repeated) {
        if (is_one) std::fill(held, held + CHUNK, *at);
    }
    const T* from(int64_t start) const { return is_one ? held : at + start; }
    alignas(64) T held[CHUNK];
    const T* at;
    bool is_one;
};

template <class O, class... A, class F, size_t... K>
INLINE void each_chunk(F f, char* out, const char* const* in, unsigned repeated, int64_t elems,
                       std::index_sequence<K...>) {
    const std::tuple<Dense<A>...> operands{Dense<A>(in[K], repeated >> K & 1)...};
    for (int64_t start = 0; start < elems; start += CHUNK) {
        O* o = reinterpret_cast<O*>(out) + start;
        const std::tuple<const A*...> at{std::get<K>(operands).from(start)...};
        const int64_t count = std::min(CHUNK, elems - start);
        EACH for (int64_t i = 0; i < count; ++i) o[i] = f(std::get<K>(at)[i]...);
    }
}
template <class O, class... A, class F>
void each_dense(F f, char* out, const char* const* in, unsigned repeated, int64_t elems) {
    each_chunk<O, A...>(f, out, in, repeated, elems, std::index_sequence_for<A...>{});
}

#define DENSE(name, ...)                                                                   \
    void loop_##name(char* out, const char* const* in, unsigned repeated, int64_t elems) { \
        each_dense<__VA_ARGS__>([](auto... x) { return name(x...); }, out, in, repeated, elems); \
    }
#define WIDENED(name, operands, ...)                                                       \
    void loop_##name(char* out, const char* const* in, unsigned repeated, int64_t elems) { \
        const Widening by = *reinterpret_cast<const Widening*>(in[operands]);              \
        each_dense<__VA_ARGS__>([by](auto... x) { return name(x..., by); }, out, in, repeated, \
                                elems);                                                    \
    }
// The last operand is one claim for all.
#define OWN_BESIDE(name, operands, ...)                                                    \
    void loop_##name(char* out, const char* const* in, unsigned repeated, int64_t elems) { \
        const uint64_t own = *reinterpret_cast<const uint64_t*>(in[operands]);             \
        each_dense<__VA_ARGS__>([own](auto... x) { return name(x..., own); }, out, in, repeated, \
                                elems);                                                    \
    }
DENSE(square_low, float, float, float) DENSE(square_high, float, float, float)
DENSE(abs_low, float, float, float) DENSE(abs_high, float, float, float)
// Where the factor [c, d] has one sign, that tells the ends: one product in place of four. A NaN shows
// all the same, in one end or in both.
INLINE float product_low_by_sign(float a, float b, float c, float d) {
    const float end = is_negative(c) ? b : a;
    return unified(end * (is_negative(end) ? d : c));
}
INLINE float product_high_by_sign(float a, float b, float c, float d) {
    const float end = is_negative(c) ? a : b;
    return unified(end * (is_negative(end) ? c : d));
}
template <class BySign, class Any>
INLINE void products(BySign by_sign, Any any, char* out, const char* const* in, unsigned repeated,
                     int64_t elems) {
    const Dense<float> a(in[0], repeated & 1), b(in[1], repeated >> 1 & 1);
    const Dense<float> c(in[2], repeated >> 2 & 1), d(in[3], repeated >> 3 & 1);
    for (int64_t start = 0; start < elems; start += CHUNK) {
        float* o = reinterpret_cast<float*>(out) + start;
        const float *w = a.from(start), *x = b.from(start), *y = c.from(start), *z = d.from(start);
        const int64_t count = std::min(CHUNK, elems - start);
        uint32_t first = 0, second = 0;
        EACH for (int64_t i = 0; i < count; ++i) {
            second |= code_of(y[i]) ^ code_of(z[i]);
            o[i] = by_sign(w[i], x[i], y[i], z[i]);
        }
        if (!(second >> 31)) continue;
        for (int64_t i = 0; i < count; ++i) first |= code_of(w[i]) ^ code_of(x[i]);
        if (!(first >> 31)) {
            EACH for (int64_t i = 0; i < count; ++i) o[i] = by_sign(y[i], z[i], w[i], x[i]);
        } else {
            EACH for (int64_t i = 0; i < count; ++i) o[i] = any(w[i], x[i], y[i], z[i]);
        }
    }
}
#define PRODUCTS(name)                                                                     \
    void loop_##name(char* out, const char* const* in, unsigned repeated, int64_t elems) { \
        products([](auto... x) { return name##_by_sign(x...); },                           \
                 [](auto... x) { return name(x...); }, out, in, repeated, elems);          \
    }
PRODUCTS(product_low) PRODUCTS(product_high)
DENSE(quotient_low, float, float, float, float, float)
DENSE(quotient_high, float, float, float, float, float)
// Where an end is far from zero and from infinity, and each operand's is a number that is not zero and
// not beyond, the sign alone tells the way: the extremes of a chunk show that.
template <bool IS_LOW, class F, size_t... K>
INLINE void widen(F exact, const Widening& by, char* out, const char* const* in, unsigned repeated,
                  int64_t elems, std::index_sequence<K...>) {
    constexpr size_t OPERANDS = sizeof...(K);
    const Dense<float> operands[] = {Dense<float>(in[K], repeated >> K & 1)...};
    const bool has_limits = (by.least < 0.0f) & (by.most > 0.0f);
    const uint32_t limit = std::min({INF_CODE - 1, code_of(by.least) & ~SIGN, code_of(by.most)});
    const uint32_t ulps = by.ulps, step = IS_LOW ? 0u - ulps : ulps;
    bool is_plain = has_limits;  // after a chunk that is not, others are likely not, either
    for (int64_t start = 0; start < elems; start += CHUNK) {
        float* o = reinterpret_cast<float*>(out) + start;
        const float* end = operands[0].from(start);
        const float* one = operands[IS_LOW ? 1 : 2].from(start);
        const float* other = operands[OPERANDS - (IS_LOW ? 2 : 1)].from(start);
        const int64_t count = std::min(CHUNK, elems - start);
        uint32_t farthest = 0, most = 0;
        if (is_plain) EACH for (int64_t i = 0; i < count; ++i) {
            const uint32_t code = code_of(end[i]), falls = 0u - (code >> 31);
            farthest = std::max(farthest, (code & ~SIGN) - ulps);
            most = std::max(most, (code_of(one[i]) & ~SIGN) - 1);
            if (OPERANDS > 3) most = std::max(most, (code_of(other[i]) & ~SIGN) - 1);
            o[i] = value_of(code + ((step ^ falls) - falls));
        }
        is_plain = is_plain & (farthest <= INF_CODE - 2 * ulps) & (most < limit);
        if (is_plain) continue;
        const float* at[] = {operands[K].from(start)...};
        EACH for (int64_t i = 0; i < count; ++i) o[i] = exact(at[K][i]...);
    }
}
#define WIDEN(name, operands, is_low)                                                      \
    void loop_##name(char* out, const char* const* in, unsigned repeated, int64_t elems) { \
        const Widening by = *reinterpret_cast<const Widening*>(in[operands]);              \
        widen<is_low>([by](auto... x) { return name(x..., by); }, by, out, in, repeated, elems, \
                      std::make_index_sequence<operands>());                               \
    }
WIDEN(lower, 3, true) WIDEN(higher, 3, false) WIDEN(lower2, 5, true) WIDEN(higher2, 5, false)
WIDENED(lower_unless, 2, float, float, uint8_t) WIDENED(higher_unless, 2, float, float, uint8_t)
// Few chunks have two numbers whose result may be exact, or one that is special.
template <class F>
INLINE void stays_where(F exact, char* out, const char* const* in, unsigned repeated,
                        int64_t elems) {
    const Dense<float> a(in[0], repeated & 1), b(in[1], repeated >> 1 & 1);
    const Dense<float> c(in[2], repeated >> 2 & 1), d(in[3], repeated >> 3 & 1);
    const Dense<float> results(in[4], repeated >> 4 & 1);
    for (int64_t start = 0; start < elems; start += CHUNK) {
        uint8_t* o = reinterpret_cast<uint8_t*>(out) + start;
        const float *w = a.from(start), *x = b.from(start), *y = c.from(start), *z = d.from(start);
        const float* found = results.from(start);
        const int64_t count = std::min(CHUNK, elems - start);
        uint32_t nearest = ~0u, most = 0;
        for (int64_t i = 0; i < count; ++i) {
            const uint32_t one = code_of(w[i]), other = code_of(y[i]);
            nearest = std::min(nearest, (one ^ code_of(x[i])) | (other ^ code_of(z[i])));
            most = std::max(most, std::max((one & ~SIGN) - 1, (other & ~SIGN) - 1));
        }
        if ((nearest != 0) & (most < INF_CODE - 1)) {
            std::fill(o, o + count, 0);
        } else {
            EACH for (int64_t i = 0; i < count; ++i) o[i] = exact(w[i], x[i], y[i], z[i], found[i]);
        }
    }
}
#define STAYS(name)                                                                        \
    void loop_##name(char* out, const char* const* in, unsigned repeated, int64_t elems) { \
        stays_where([](auto... x) { return name(x...); }, out, in, repeated, elems);       \
    }
STAYS(stays_add) STAYS(stays_sub) STAYS(stays_mul)
DENSE(choices_of, uint16_t, uint32_t, uint32_t, uint32_t, uint32_t, uint16_t)
DENSE(all_choices, uint16_t, uint16_t, uint16_t)
DENSE(choices_if_open, uint16_t, uint16_t, uint32_t, uint32_t)
DENSE(choices_if_open16, uint16_t, uint16_t, uint16_t, uint16_t)
DENSE(claim, uint64_t, float, float, uint16_t)
DENSE(cause_between, uint16_t, float, float, uint16_t, float, float, uint16_t)
OWN_BESIDE(cause_beside, 3, uint16_t, float, float, uint16_t)
OWN_BESIDE(cause_with, 5, uint16_t, float, float, float, float, uint16_t)
DENSE(stronger, uint64_t, uint64_t, uint64_t)
DENSE(cause_of, uint16_t, uint64_t, uint32_t, uint32_t)
DENSE(eq_low, uint8_t, float, float, float, float) DENSE(eq_high, uint8_t, float, float, float, float)
DENSE(ne_low, uint8_t, float, float, float, float) DENSE(ne_high, uint8_t, float, float, float, float)
DENSE(select_low, float, uint8_t, uint8_t, float, float)
DENSE(select_high, float, uint8_t, uint8_t, float, float)
DENSE(choices_if_open8, uint16_t, uint16_t, uint8_t, uint8_t)
DENSE(claim8, uint64_t, uint8_t, uint8_t, uint16_t)
DENSE(cause_of8, uint16_t, uint64_t, uint8_t, uint8_t)

INLINE float low_of(uint64_t ends) { return value_of(static_cast<uint32_t>(ends)); }
INLINE float high_of(uint64_t ends) { return value_of(static_cast<uint32_t>(ends >> 32)); }
DENSE(low_of, float, uint64_t) DENSE(high_of, float, uint64_t)
DENSE(rests, uint16_t, uint32_t, uint32_t, uint16_t, uint16_t, uint32_t, uint32_t)
DENSE(rests16, uint16_t, uint16_t, uint16_t, uint16_t, uint16_t, uint16_t, uint16_t)
DENSE(rests8, uint16_t, uint8_t, uint8_t, uint16_t, uint16_t, uint8_t, uint8_t)

// A number so near to a tie of BF16 that its ends may round to two codes, or another operand that is not
// in the range from 2**-60 to 2**60: clear_roundings.py tells how near they are otherwise. The code less
// the lowest of those that are too near wraps elsewhere.
INLINE bool is_beyond_range(uint32_t code, uint32_t takes_zero) {
    constexpr uint32_t LEAST = 0x21800000, SPAN = 0x5D800000 - LEAST;
    const uint32_t magnitude = code & ~SIGN;
    return (magnitude - LEAST > SPAN) & ((magnitude | !takes_zero) != 0);
}
void loop_may_round_apart(char* out, const char* const* in, unsigned repeated, int64_t elems) {
    const Nearness by = *reinterpret_cast<const Nearness*>(in[5]);
    const uint32_t first = 0x8000 - by.codes, width = 2 * by.codes;
    each_dense<uint8_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t>(
        [=](uint32_t number, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
            const bool is_near = ((number - first) & 0xFFFF) <= width;
            return static_cast<uint8_t>(
                is_near | is_beyond_range(a, by.takes_zero[0]) |
                is_beyond_range(b, by.takes_zero[1]) | is_beyond_range(c, by.takes_zero[2]) |
                is_beyond_range(d, by.takes_zero[3]));
        },
        out, in, repeated, elems);
}

// An element is one of two operands' at a time; one element stands for all.
template <class T, class F>
INLINE uint32_t found_in(F f, const char* const* in, unsigned repeated, int64_t elems, int second) {
    const Dense<T> a(in[0], repeated & 1), b(in[second], repeated >> second & 1);
    uint32_t found = 0;
    for (int64_t start = 0; start < elems; start += CHUNK) {
        const T *x = a.from(start), *y = b.from(start);
        const int64_t count = std::min(CHUNK, elems - start);
        for (int64_t i = 0; i < count; ++i) found |= f(x[i], y[i]);
    }
    return found;
}

uint8_t findings(uint32_t found) {
    return (found >> 31 ? NEEDS_CARE : 0) | (found & 1 ? IS_OPEN : 0) |
           (found & 2 ? HAS_CERTAIN : 0);
}
// Of the magnitudes of ends the least but for zero, less one, and the greatest; of the bits in which
// both ends differ the least, and those of all.
struct Extremes {
    uint32_t least = ~0u, most = 0, nearest = ~0u, apart = 0;
    uint8_t found() const { return (apart != 0 ? IS_OPEN : 0) | (nearest == 0 ? HAS_CERTAIN : 0); }
};
INLINE void take(Extremes& found, const uint32_t* low, const uint32_t* high, int64_t elems) {
    uint32_t least = found.least, most = found.most;
    uint32_t nearest = found.nearest, all_apart = found.apart;
    for (int64_t i = 0; i < elems; ++i) {
        const uint32_t a = low[i] & ~SIGN, b = high[i] & ~SIGN, apart = low[i] ^ high[i];
        least = std::min(least, std::min(a - 1, b - 1));
        most = std::max(most, std::max(a, b));
        nearest = std::min(nearest, apart);
        all_apart |= apart;
    }
    found = {least, most, nearest, all_apart};
}
INLINE Extremes extremes(const char* const* in, unsigned repeated, int64_t elems) {
    const Dense<uint32_t> lows(in[0], repeated & 1), highs(in[1], repeated >> 1 & 1);
    Extremes found;
    for (int64_t start = 0; start < elems; start += CHUNK)
        take(found, lows.from(start), highs.from(start), std::min(CHUNK, elems - start));
    return found;
}
uint8_t check_check_ends(const char* const* in, unsigned repeated, int64_t elems) {
    const Extremes all = extremes(in, repeated, elems);
    return all.found() | (all.most < INF_CODE ? 0 : NEEDS_CARE);
}
uint8_t check_check_divisor(const char* const* in, unsigned repeated, int64_t elems) {
    return findings(found_in<int32_t>(
        [](int32_t low, int32_t high) {
            const bool contains = (low <= 0) & ((high >= 0) | (high == INT32_MIN)) & (low != high);
            return contains ? SIGN : 0;
        },
        in, repeated, elems, 1));
}
// The result of one negative number is NaN; an interval is cut at zero.
uint8_t check_check_domain(const char* const* in, unsigned repeated, int64_t elems) {
    return findings(found_in<float>(
        [](float low, float high) {
            return (low < 0.0f) & (code_of(low) != code_of(high)) ? SIGN : 0;
        },
        in, repeated, elems, 1));
}
INLINE bool is_finite(uint32_t code) { return (code & ~SIGN) < INF_CODE; }
INLINE bool is_nan_code(uint32_t code) { return (code & ~SIGN) > INF_CODE; }
// Both ends are one infinity, or the NaN of operands that are one code each, or NaN.
INLINE uint32_t found_at(uint32_t low, uint32_t high, bool is_sure) {
    const bool is_one = (low == high) & (is_sure | !is_nan_code(low));
    return ((is_finite(low) & is_finite(high)) | is_one ? 0 : SIGN) | (low == high ? 2u : 1u);
}
// The operands' codes side by side, so that the compiler vectorises the loop.
template <class Sure, class... A>
INLINE uint32_t found_by(Sure is_sure, int64_t count, const uint32_t* low, const uint32_t* high,
                         const A*... operands) {
    uint32_t found = 0;
    for (int64_t i = 0; i < count; ++i) found |= found_at(low[i], high[i], is_sure(operands[i]...));
    return found;
}
// The ends of a result, then of its operands, which count where an end of the result is not finite.
template <class Sure, size_t... K>
INLINE uint8_t check_result(Sure is_sure, const char* const* in, unsigned repeated, int64_t elems,
                            std::index_sequence<K...>) {
    const Dense<uint32_t> lows(in[0], repeated & 1), highs(in[1], repeated >> 1 & 1);
    const Dense<uint32_t> operands[] = {Dense<uint32_t>(in[2 + K], repeated >> (2 + K) & 1)...};
    uint32_t care = 0;
    uint8_t found = 0;
    bool is_plain = true;  // as `widen` goes on
    for (int64_t start = 0; start < elems; start += CHUNK) {
        const uint32_t *low = lows.from(start), *high = highs.from(start);
        const int64_t count = std::min(CHUNK, elems - start);
        if (is_plain) {
            Extremes all;
            take(all, low, high, count);
            found |= all.found();
            is_plain = all.most < INF_CODE;
        }
        if (!is_plain) care |= found_by(is_sure, count, low, high, operands[K].from(start)...);
    }
    return found | findings(care);
}
uint8_t check_check_ends1(const char* const* in, unsigned repeated, int64_t elems) {
    return check_result([](uint32_t a, uint32_t b) { return a == b; }, in, repeated, elems,
                        std::make_index_sequence<2>());
}
uint8_t check_check_ends2(const char* const* in, unsigned repeated, int64_t elems) {
    return check_result(
        [](uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
            return ((a == b) & (c == d)) | is_nan_code(a) | is_nan_code(c);
        },
        in, repeated, elems, std::make_index_sequence<4>());
}
// The ends of a sum along a row, and those of its terms: where these are far from overflow or one
// infinity or NaN, each partial sum is so, too.
uint8_t check_check_sum(const char* const* in, unsigned repeated, int64_t elems) {
    const uint32_t *low = reinterpret_cast<const uint32_t*>(in[0]),
                   *high = reinterpret_cast<const uint32_t*>(in[1]);
    const uint8_t found = *low == *high ? HAS_CERTAIN : IS_OPEN;
    if (is_finite(*low) & is_finite(*high)) return found;
    const uint32_t care = found_in<uint32_t>(
        [](uint32_t least, uint32_t most) {
            constexpr uint32_t FAR = 0x71800000;  // 2**100
            const bool is_near = ((least & ~SIGN) < FAR) & ((most & ~SIGN) < FAR);
            return is_near | (!is_finite(least) & (least == most)) ? 0 : SIGN;
        },
        in + 2, repeated >> 2, elems, 1);
    return found | findings(*low == *high ? care : SIGN);
}
// Codes that were moved, so that NaN is one as well.
uint8_t check_check_hull(const char* const* in, unsigned repeated, int64_t elems) {
    return findings(found_in<uint32_t>(
        [](uint32_t low, uint32_t high) { return found_at(low, high, true); }, in, repeated, elems,
        1));
}
uint8_t check_check_truth(const char* const* in, unsigned repeated, int64_t elems) {
    return findings(found_in<uint8_t>(
        [](uint8_t low, uint8_t high) { return low == high ? 2u : 1u; }, in, repeated, elems, 1));
}
uint8_t check_check_integers(const char* const* in, unsigned repeated, int64_t elems) {
    return findings(found_in<uint32_t>(
        [](uint32_t low, uint32_t high) { return low == high ? 2u : 1u; }, in, repeated, elems, 1));
}
uint8_t check_check_codes(const char* const* in, unsigned repeated, int64_t elems) {
    return findings(found_in<uint16_t>(
        [](uint16_t low, uint16_t high) { return low == high ? 2u : 1u; }, in, repeated, elems, 1));
}
// Something to care for where an end is neither zero nor from `least` on and below `most`, in
// magnitude: the extremes tell, of one less, so that zero is far above.
template <class T>
uint8_t check_range(const char* const* in, unsigned repeated, int64_t elems, T sign, T least,
                    T most, bool takes_zero) {
    const Dense<T> lows(in[0], repeated & 1), highs(in[1], repeated >> 1 & 1);
    const T magnitude = static_cast<T>(~sign), one = takes_zero ? 1 : 0;
    T nearest = static_cast<T>(~T{0}), farthest = 0;
    for (int64_t start = 0; start < elems; start += CHUNK) {
        const T *low = lows.from(start), *high = highs.from(start);
        const int64_t count = std::min(CHUNK, elems - start);
        for (int64_t i = 0; i < count; ++i) {
            const T a = low[i] & magnitude, b = high[i] & magnitude;
            farthest = std::max(farthest, std::max(a, b));
            nearest = std::min(nearest, std::min(static_cast<T>(a - one), static_cast<T>(b - one)));
        }
    }
    return farthest >= most || nearest < least - one ? NEEDS_CARE : 0;
}
uint8_t check_check_normal(const char* const* in, unsigned repeated, int64_t elems) {
    return check_range<uint32_t>(in, repeated, elems, SIGN, 0x00800000, INF_CODE, true);
}
uint8_t check_check_normal_ends(const char* const* in, unsigned repeated, int64_t elems) {
    const Extremes all = extremes(in, repeated, elems);
    return all.found() | (all.most < INF_CODE && all.least >= 0x007FFFFF ? 0 : NEEDS_CARE);
}
// As `concerned` in cast_choices.py: subnormal here or there, or perhaps beyond the largest number.
uint8_t check_check_to_bf16(const char* const* in, unsigned repeated, int64_t elems) {
    return check_range<uint32_t>(in, repeated, elems, SIGN, 0x00800000, 0x7F7F0000, true);
}
uint8_t check_check_to_fp16(const char* const* in, unsigned repeated, int64_t elems) {
    return check_range<uint32_t>(in, repeated, elems, SIGN, 0x38800000, 0x477FE000, true);
}
uint8_t check_check_from_bf16(const char* const* in, unsigned repeated, int64_t elems) {
    return check_range<uint16_t>(in, repeated, elems, 0x8000, 0x0080, 0x7F80, true);
}
// The sign of a zero is a choice there.
uint8_t check_check_from_fp16(const char* const* in, unsigned repeated, int64_t elems) {
    return check_range<uint16_t>(in, repeated, elems, 0x8000, 0x0400, 0x7C00, false);
}

}  // namespace

#endif  // PYPTO_CAST_INTERVAL_LOOPS_H
