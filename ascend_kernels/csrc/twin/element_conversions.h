// The conversion of one element, on codes, without branches; each rounds once.
//
//     to_integer     any float -> integer            from_integer   integer -> FP32
//     to_integral    FP32 -> FP32                    widened        FP16, BF16 -> FP32
//     resized        integer -> integer              narrowed       FP32 -> FP16, BF16
//                                                    shortened      the same, exact by nature
//
// Integers get to FP16 through FP32. That is exact up to 2^24, and what is larger stays larger,
// which is all that an overflow depends on.
//
// Compile without -ffast-math and run in the default floating-point environment, which
// pypto_twin_run sets: the few floating-point operations here are int-to-float conversions and one
// exact product.
#ifndef PYPTO_TWIN_ELEMENT_CONVERSIONS_H
#define PYPTO_TWIN_ELEMENT_CONVERSIONS_H

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "number_formats.h"
#include "rounding.h"

namespace pypto_twin {

// A float code taken apart: (-1)^negative * significand * 2^(max(field, 1) - bias - man_bits).
template <class F>
struct FloatParts {
    uint32_t negative;  // mask
    uint32_t magnitude;
    uint32_t field;

    explicit FloatParts(uint32_t code)
        : negative(uint32_t{0} - (code >> F::sign_bit)),
          magnitude(code & (F::sign_code - 1)),
          field(magnitude >> F::man_bits) {}

    // A zero and the subnormal numbers lack the implicit bit.
    uint32_t significand() const {
        const uint32_t fraction = magnitude & ((uint32_t{1} << F::man_bits) - 1);
        return fraction | std::min(field, uint32_t{1}) << F::man_bits;
    }
    uint32_t is_inf() const { return mask<uint32_t>(magnitude == F::inf_code); }
    uint32_t is_nan() const { return mask<uint32_t>(magnitude > F::inf_code); }
};

// Shifts of 31 and more all leave the same of a 24-bit significand: nothing, or what rounds away.
constexpr uint32_t kMostShift = 31;

// FP16 or BF16 code to FP32 code, exactly; any NaN becomes the one NaN.
//
//     FP16                s eeeee mmmmmmmmmm
//     FP32        s eeeeeeee mmmmmmmmmm0000000000000     the field grows by 127 - 15
//
// A subnormal code counts units of the last place.
template <class Src>
inline uint32_t widened(uint32_t code) {
    using F = Format<Src>;
    constexpr int cut = Fp32::man_bits - F::man_bits;
    const FloatParts<F> x(code);
    uint32_t wide = x.magnitude << cut;
    if constexpr (F::emin != Fp32::emin) {
        constexpr uint32_t rebias = uint32_t{Fp32::bias - F::bias} << Fp32::man_bits;
        constexpr uint32_t last_place = uint32_t{F::emin - F::man_bits + Fp32::bias}
                                        << Fp32::man_bits;
        const float subnormal =
            static_cast<float>(static_cast<int32_t>(x.magnitude)) * bits_as<float>(last_place);
        const uint32_t is_subnormal = mask<uint32_t>(x.field == 0);
        wide = select(is_subnormal, bits_as<uint32_t>(subnormal), wide + rebias);
        wide = select(x.is_inf(), Fp32::inf_code, wide);
    }
    wide |= x.negative & Fp32::sign_code;
    return select(x.is_nan(), Fp32::nan_code, wide);
}

// FP32 code to FP16 or BF16 code. Infinity and NaN stay, or become the largest number and +0.
template <class Dst, RoundMode mode, bool inf_nan>
inline uint32_t narrowed(uint32_t code) {
    using F = Format<Dst>;
    constexpr uint32_t cut = Fp32::man_bits - F::man_bits;
    const FloatParts<Fp32> x(code);
    uint32_t kept;
    if constexpr (F::emin == Fp32::emin) {
        // The fields agree, so the whole code is cut, and a carry runs into its exponent:
        //     s eeeeeeee mmmmmmm | dddddddddddddddd
        kept = rounded<mode>(x.magnitude, cut, x.negative);
    } else {
        // The last place is that of x's own binade, or, below emin, of emin's: what the exponent
        // lacks moves the significand right. (A subnormal FP32 number lacks so much that its exact
        // place is all the same.) The code counts binades above emin's; the implicit one adds the
        // unit that this leaves out, and a carry one more.
        constexpr uint32_t emin_field = F::emin + Fp32::bias;
        constexpr uint32_t emin_code = emin_field << Fp32::man_bits;
        const uint32_t binades = (std::max(x.magnitude, emin_code) - emin_code) >> Fp32::man_bits;
        const uint32_t lacks = emin_field - std::min(x.field, emin_field);
        const uint32_t shift = std::min(lacks, kMostShift - cut) + cut;
        kept = (binades << F::man_bits) + rounded<mode>(x.significand(), shift, x.negative);
    }
    // Whatever is beyond the largest number rounds like what is above the midpoint between its code
    // and the next, which is that of infinity. (IEEE 754 7.4. The largest code is odd, so ODD fits.)
    uint32_t limit = F::max_code;
    if constexpr (inf_nan) {
        limit = rounded<mode>(4 * F::max_code + 3, uint32_t{2}, x.negative);
        limit = select(x.is_inf(), F::inf_code, limit);
    }
    kept = std::min(kept, limit) | (x.negative & F::sign_code);
    return select(x.is_nan(), inf_nan ? F::nan_code : uint32_t{0}, kept);
}

// FP32 code to the code of a 16-bit float that holds this number as zero or a normal number.
template <class Dst>
inline uint32_t shortened(uint32_t code) {
    using F = Format<Dst>;
    constexpr uint32_t cut = Fp32::man_bits - F::man_bits;
    constexpr uint32_t rebias = uint32_t{Fp32::bias - F::bias} << F::man_bits;
    const FloatParts<Fp32> x(code);
    const uint32_t kept = ((x.magnitude >> cut) - rebias) & mask<uint32_t>(x.magnitude != 0);
    return kept | (x.negative & F::sign_code);
}

// Float code to an integer. NaN gives 0, infinity the nearest limit; so does all that is out of
// range, or, truncating, it keeps the low bits of the exact integer.
//
//     0 0 1mmmmmmm mmmmmmmmmmmmmmmm 000000     the significand near the top of a word; the two bits
//     `-- integer --' `---- dropped ----'      make the last shift find less than one half
//
// The point is `right` places from the right end, or `left` places beyond it.
template <class Dst, class Src, RoundMode mode, bool truncate>
inline typename Format<Dst>::Value to_integer(uint32_t code) {
    using D = Format<Dst>;
    using S = Format<Src>;
    using Word = std::conditional_t<(D::bits > 32), uint64_t, uint32_t>;
    constexpr uint32_t word_bits = 8 * sizeof(Word);
    constexpr uint32_t top = word_bits - 3;
    constexpr uint32_t top_field = S::bias + top;
    // A clamped value only needs to get past every limit, which in a narrow format it is already.
    constexpr uint32_t most_left = truncate ? word_bits - 1 : D::bits < word_bits ? 0 : 2;
    const FloatParts<S> x(code);
    const uint32_t reach = std::min(x.field, top_field);
    const uint32_t right = std::min(top_field - reach, word_bits - 1);
    const uint32_t left = std::min(x.field - reach, most_left);
    const Word negative = static_cast<Word>(static_cast<int32_t>(x.negative));
    const Word significand = Word{x.significand()} << (top - S::man_bits);
    Word kept = rounded<mode, Word>(significand, right, negative) << left;
    constexpr Word max = static_cast<Word>(D::max);
    const Word limit = D::is_signed ? max - negative : max & ~negative;
    if constexpr (!truncate) kept = std::min(kept, limit);
    // Infinity has the code of 2^(bias + 1), which in FP16 is no large number.
    if constexpr (truncate || S::bias + 1 < D::magnitude_bits) {
        kept = select(mask<Word>(x.magnitude == S::inf_code), limit, kept);
    }
    kept &= mask<Word>(x.magnitude <= S::inf_code);
    return static_cast<typename D::Value>((kept ^ negative) - negative);
}

// FP32 code rounded to an integral FP32 code. Every zero is +0: the vector core is documented to
// differ from IEEE 754 there. Infinity stays, NaN becomes the one NaN.
template <RoundMode mode>
inline uint32_t to_integral(uint32_t code) {
    constexpr uint32_t integral_field = Fp32::bias + Fp32::man_bits;
    const FloatParts<Fp32> x(code);
    const uint32_t reach = std::min(x.field, integral_field);
    const uint32_t shift = std::min(integral_field - reach, kMostShift);
    const uint32_t kept = rounded<mode>(x.significand(), shift, x.negative);
    const int32_t small = static_cast<int32_t>((kept ^ x.negative) - x.negative);
    const uint32_t integral = select(mask<uint32_t>(x.field < integral_field),
                                     bits_as<uint32_t>(static_cast<float>(small)), code);
    return select(x.is_nan(), Fp32::nan_code, integral);
}

// Integer to FP32 code. The hardware this runs on rounds to nearest even itself. Otherwise:
//
//     magnitude   0 0 1 n k ... k | d ... d      24 bits are kept
//
// Where the leading one is, the exponent of the magnitude as a float tells, if that does not round
// up to the next power of two. Without the bit n it cannot.
template <RoundMode mode, class Src>
inline uint32_t from_integer(Src value) {
    if constexpr (mode == RoundMode::RINT || holds_all<float, Src>()) {
        return bits_as<uint32_t>(static_cast<float>(value));
    } else {
        using Word = std::make_unsigned_t<Src>;
        constexpr uint32_t integral_field = Fp32::bias + Fp32::man_bits;
        const Word code = static_cast<Word>(value);
        const Word negative = Word{0} - (code >> (8 * sizeof(Word) - 1));
        const Word magnitude = (code ^ negative) - negative;
        const float estimate = static_cast<float>(static_cast<Src>(magnitude & ~(magnitude >> 1)));
        // The lowest integer is its own negative: its sign goes here.
        const FloatParts<Fp32> leading(bits_as<uint32_t>(estimate));
        const Word field = leading.field;
        const Word shift = std::max<Word>(field, integral_field) - integral_field;
        const Word kept = rounded<mode>(magnitude, shift, negative);
        const float significand = static_cast<float>(static_cast<int32_t>(kept));
        const uint32_t sign = static_cast<uint32_t>(negative) & Fp32::sign_code;
        return (bits_as<uint32_t>(significand) + (static_cast<uint32_t>(shift) << Fp32::man_bits)) |
               sign;
    }
}

// Integer to integer: the nearest limit, or, truncating, the low bits.
template <class Dst, bool truncate, class Src>
inline Dst resized(Src value) {
    if constexpr (truncate || holds_all<Dst, Src>()) {
        return static_cast<Dst>(static_cast<std::make_unsigned_t<Dst>>(value));
    } else {
        constexpr Src low = std::numeric_limits<Dst>::min();
        constexpr Src high = std::numeric_limits<Dst>::max();
        return static_cast<Dst>(std::min(std::max(value, low), high));
    }
}

}  // namespace pypto_twin

#endif  // PYPTO_TWIN_ELEMENT_CONVERSIONS_H
