// The conversion of one element, on codes, without branches; each rounds once.
//
//     to_integer     any float -> integer            from_integer   integer -> FP32
//     to_integral    FP32 -> FP32                    widened        any float -> FP32
//     resized        integer -> integer              narrowed       FP32 -> any other float
//                                                    shortened      to FP16 or BF16, exact by nature
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

#include "cast_rows.h"
#include "number_formats.h"
#include "rounding.h"

namespace pypto_twin {

// NaN stays NaN in a float, if it has one.
constexpr bool keeps_nan(Policy policy) {
    return policy == Policy::INF_NAN || policy == Policy::SATURATE_KEEP_NAN;
}

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
    uint32_t is_inf() const { return mask<uint32_t>(F::has_inf && magnitude == F::inf_code); }
    uint32_t is_nan() const {
        return mask<uint32_t>(F::has_nan && magnitude > (F::has_inf ? F::inf_code : F::max_code));
    }
};

// Shifts of 31 and more all leave the same of a 24-bit significand: nothing, or what rounds away.
constexpr uint32_t kMostShift = 31;

// --- HiFloat8 ------------------------------------------------------------------------------------
//
//     S 11 s eee f      |exponent| 8 to 15     The sign of the exponent and its magnitude without
//     S 10 s ee ff                 4 to 7      the leading one.
//     S 01 s e fff                 2 and 3
//     S 001 s fff                  1
//     S 0001 fff                   0
//     S 0000 nnn        2^(nnn - 23); nnn = 0 is zero

// The bits of fraction of an exponent.
inline uint32_t hif8_fraction_bits(int32_t exponent) {
    const int32_t size = exponent < 0 ? -exponent : exponent;
    if (size > 15) return 0;
    return size > 7 ? 1 : size > 3 ? 2 : 3;
}

inline uint32_t bit_count(uint32_t value) {
    uint32_t count = 0;
    for (; value != 0; value >>= 1) ++count;
    return count;
}

// A magnitude of the format, which is no zero, to its code.
inline uint32_t hif8_code(int32_t exponent, uint32_t fraction) {
    if (exponent < -15) return static_cast<uint32_t>(exponent + 23);
    constexpr uint32_t dots[] = {0b0001, 0b001, 0b01, 0b10, 0b11};
    const uint32_t size = static_cast<uint32_t>(exponent < 0 ? -exponent : exponent);
    const uint32_t width = bit_count(size);
    uint32_t code = dots[width];
    if (width > 0) {
        const uint32_t rest = size - (uint32_t{1} << (width - 1));
        code = code << width | uint32_t{exponent < 0} << (width - 1) | rest;
    }
    return code << hif8_fraction_bits(exponent) | fraction;
}

// HiFloat8 code to FP32 code, exactly; NaN becomes the one NaN.
inline uint32_t widened_hif8(uint32_t code) {
    const uint32_t sign = (code & 0x80) << 24;
    const uint32_t magnitude = code & 0x7F;
    if (code == 0x80) return Fp32::nan_code;
    if (magnitude == 0) return 0;
    if (magnitude == Format<Hif8>::inf_code) return Fp32::inf_code | sign;
    int32_t exponent = static_cast<int32_t>(magnitude) - 23;
    uint32_t fraction = 0;
    uint32_t fraction_bits = 0;
    if (magnitude > 7) {
        const uint32_t width = magnitude >= 0x60 ? 4 : magnitude >= 0x40 ? 3 : magnitude >= 0x20 ? 2
                               : magnitude >= 0x10 ? 1 : 0;
        const uint32_t dot_bits = width > 1 ? 2 : 4 - width;
        fraction_bits = 7 - dot_bits - width;
        fraction = magnitude & ((uint32_t{1} << fraction_bits) - 1);
        exponent = 0;
        if (width > 0) {
            const uint32_t field = magnitude >> fraction_bits;
            const uint32_t leading = uint32_t{1} << (width - 1);
            const auto size = static_cast<int32_t>(leading | (field & (leading - 1)));
            exponent = field & leading ? -size : size;
        }
    }
    const auto field = static_cast<uint32_t>(exponent + Fp32::bias);
    return sign | field << Fp32::man_bits | fraction << (Fp32::man_bits - fraction_bits);
}

// FP32 code to HiFloat8 code: a subnormal number is far below half of the smallest one.
template <RoundMode mode, Policy policy>
inline uint32_t narrowed_hif8(uint32_t code) {
    using F = Format<Hif8>;
    const FloatParts<Fp32> x(code);
    const uint32_t sign = x.negative & F::sign_code;
    if (x.is_nan()) return keeps_nan(policy) ? F::nan_code : 0;
    if (x.is_inf()) return (policy == Policy::INF_NAN ? F::inf_code : F::max_code) | sign;
    int32_t exponent = static_cast<int32_t>(x.field) - Fp32::bias;
    const uint32_t fraction_bits = exponent < F::emin ? 0 : hif8_fraction_bits(exponent);
    const auto below = static_cast<uint32_t>(std::max(F::emin - exponent, 0));
    const uint32_t shift = std::min(Fp32::man_bits - fraction_bits + below, kMostShift);
    const uint32_t kept = rounded<mode>(x.significand(), shift, x.negative);
    if (kept == 0) return 0;
    exponent = std::max(exponent, int32_t{F::emin});
    uint32_t fraction = kept & ((uint32_t{1} << fraction_bits) - 1);
    if (kept >> fraction_bits > 1) {
        ++exponent;
        fraction = 0;
    }
    // The code of the largest exponent with a fraction is that of infinity.
    if (exponent > 15 || (exponent == 15 && fraction > 0)) {
        const bool away = rounded<mode>(uint32_t{7}, uint32_t{2}, x.negative) > 1;
        return (policy == Policy::INF_NAN && away ? F::inf_code : F::max_code) | sign;
    }
    return hif8_code(exponent, fraction) | sign;
}

// --- Floats whose fields are equally wide --------------------------------------------------------

// The code of a narrower float to FP32 code, exactly; any NaN becomes the one NaN.
//
//     FP16                s eeeee mmmmmmmmmm
//     FP32        s eeeeeeee mmmmmmmmmm0000000000000     the field grows by 127 - 15
//
// A subnormal code counts units of the last place.
template <class Src>
inline uint32_t widened_fields(uint32_t code) {
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

template <class Src>
inline uint32_t widened(uint32_t code) {
    if constexpr (std::is_same_v<Src, float>) {
        return code;
    } else if constexpr (is_tapered<Src>) {
        return widened_hif8(code);
    } else {
        return widened_fields<Src>(code);
    }
}

// FP32 code to the code of a narrower float. Infinity and NaN stay, or become the largest number and
// +0; where there is no infinity, NaN stands for it, without a sign.
template <class Dst, RoundMode mode, Policy policy>
inline uint32_t narrowed_fields(uint32_t code) {
    using F = Format<Dst>;
    constexpr bool overflows = policy == Policy::INF_NAN;
    static_assert(F::has_nan || !overflows, "a float without NaN saturates");
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
    // Whatever is beyond the largest number rounds like what is above the midpoint between an odd
    // code and the next: that of infinity, or of the NaN in its place. (IEEE 754 7.4.)
    uint32_t limit = F::max_code;
    uint32_t sign = x.negative & F::sign_code;
    if constexpr (overflows) {
        limit += rounded<mode>(uint32_t{7}, uint32_t{2}, x.negative) - 1;
        limit = select(x.is_inf(), F::max_code + 1, limit);
        if constexpr (!F::has_inf) {
            sign &= mask<uint32_t>(std::min(kept, limit) <= F::max_code);
        }
    }
    kept = std::min(kept, limit) | sign;
    return select(x.is_nan(), keeps_nan(policy) ? F::nan_code : uint32_t{0}, kept);
}

template <class Dst, RoundMode mode, Policy policy>
inline uint32_t narrowed(uint32_t code) {
    if constexpr (is_tapered<Dst>) {
        return narrowed_hif8<mode, policy>(code);
    } else {
        return narrowed_fields<Dst, mode, policy>(code);
    }
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
        // Of different signedness, a wider type has the numbers of both.
        constexpr bool alike = std::is_signed_v<Dst> == std::is_signed_v<Src>;
        using Wide = std::conditional_t<alike, Src, int64_t>;
        static_assert(alike || sizeof(Src) < sizeof(Wide));
        constexpr Wide low = std::numeric_limits<Dst>::min();
        constexpr Wide high = std::numeric_limits<Dst>::max();
        return static_cast<Dst>(std::min(std::max(Wide{value}, low), high));
    }
}

}  // namespace pypto_twin

#endif  // PYPTO_TWIN_ELEMENT_CONVERSIONS_H
