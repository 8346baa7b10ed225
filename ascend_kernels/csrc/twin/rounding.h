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
//     1 0 0 ... 0  one half; just below it where ties count too
//     0 0 0 ... 0  any fraction but zero exceeds it
//     1 1 1 ... 1  none does
template <class Word>
[[gnu::always_inline]] constexpr Word threshold(RoundMode mode, Word odd, Word negative) {
    constexpr Word half = ~(~Word{0} >> 1);
    switch (mode) {
        case RoundMode::RINT:  // to nearest, ties to even
            return half - odd;
        case RoundMode::ROUND:  // to nearest, ties away from zero
            return half - 1;
        case RoundMode::FLOOR:  // toward minus infinity
            return ~negative;
        case RoundMode::CEIL:  // toward plus infinity
            return negative;
        case RoundMode::TRUNC:  // toward zero
            return ~Word{0};
        case RoundMode::ODD:  // inexact results become odd (von Neumann)
            return Word{0} - odd;
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
