// The round modes and the one rounding routine, on integers.
#ifndef PYPTO_TWIN_ROUNDING_H
#define PYPTO_TWIN_ROUNDING_H

#include <cstdint>
#include <type_traits>

#include "trace_numbers.h"

namespace pypto_twin {

#define PYPTO_TWIN_MODE(name) name,
enum class RoundMode { PYPTO_TWIN_MODES(PYPTO_TWIN_MODE) };
#undef PYPTO_TWIN_MODE

// A truth value as a word of zeros or ones: loops that select by masks have no branch that could
// keep a compiler from vectorising them.
template <class Word>
constexpr Word mask(bool truth) {
    return Word{0} - static_cast<Word>(truth);
}

template <class Word>
constexpr Word select(Word mask, Word chosen, Word otherwise) {
    return (mask & chosen) | (~mask & otherwise);
}

// The threshold of a mode: the greatest fraction, the point on its left, that it rounds toward zero.
//
//     0 0 0 ... 0  NOTHING      any fraction but zero exceeds it
//     0 1 1 ... 1  BELOW_HALF   a tie does
//     1 0 0 ... 0  HALF         whatever is above a tie does
//     1 1 1 ... 1  ALL          none does
//
// The differences are constants: of RINT there is left HALF - odd, of FLOOR ~negative.
template <class Word>
[[gnu::always_inline]] constexpr Word threshold(RoundMode mode, Word odd, Word negative) {
    constexpr Word NOTHING = 0, ALL = ~NOTHING, BELOW_HALF = ALL >> 1, HALF = ~BELOW_HALF;
    const auto by_sign = [negative](Word plus, Word minus) {
        return plus ^ (negative & (plus ^ minus));
    };
    switch (mode) {
#define PYPTO_TWIN_CASE(name, even_plus, even_minus, odd_plus, odd_minus) \
    case RoundMode::name: {                                               \
        const Word if_even = by_sign(even_plus, even_minus);              \
        return if_even + odd * (by_sign(odd_plus, odd_minus) - if_even);  \
    }
        PYPTO_TWIN_THRESHOLDS(PYPTO_TWIN_CASE)
#undef PYPTO_TWIN_CASE
    }
    __builtin_unreachable();
}

// Drops the low `shift` bits of a magnitude (0 <= shift < width of Word), rounding by `mode`.
//
//     magnitude    k k k ... L d d d ... d       L  last kept bit ("odd")
//     kept         0 ... 0 k k k ... L           d  dropped bits, `shift` of them, perhaps none
//     dropped      d d d ... d 0 ... 0           read as a fraction, the point on the left
//
// It is rounded away from zero if the fraction exceeds the threshold of the mode. A carry beyond the
// leading bit is welcome: above the significand of a float code it increments the exponent.
// `negative` is a mask.
template <RoundMode mode, class Word>
constexpr Word rounded(Word magnitude, Word shift, Word negative) {
    static_assert(std::is_unsigned_v<Word>);
    constexpr Word last = 8 * sizeof(Word) - 1;
    const Word kept = magnitude >> shift;
    const Word dropped = (magnitude << 1) << (last - shift);
    const Word odd = kept & 1;
    return kept + (dropped > threshold<Word>(mode, odd, negative));
}

}  // namespace pypto_twin

#endif  // PYPTO_TWIN_ROUNDING_H
