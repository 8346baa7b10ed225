// The number formats of the vector core: one row per format, everything else derived.
#ifndef PYPTO_TWIN_NUMBER_FORMATS_H
#define PYPTO_TWIN_NUMBER_FORMATS_H

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace pypto_twin {

struct Half {
    uint16_t code;
};

struct Bfloat16 {
    uint16_t code;
};

// Two 4-bit integers, the first one in the low nibble; and two floats of 4 bits, likewise.
struct Int4x2 {
    uint8_t code;
};
struct E2m1x2 {
    uint8_t code;
};
struct E1m2x2 {
    uint8_t code;
};

struct E4m3 {
    uint8_t code;
};
struct E5m2 {
    uint8_t code;
};
struct Hif8 {
    uint8_t code;
};

// The codes of a float that are no numbers: infinity (fraction 0) and NaN in the field of all ones;
// NaN alone in the last code; none.
enum class Specials { INF_NAN, NAN_ALONE, NONE };

// IEEE layout: sign, exponent field, stored fraction. Field 0 holds zero and the subnormal numbers.
template <class CodeWord, int exponent_bits, int fraction_bits,
          Specials specials = Specials::INF_NAN,
          int exponent_bias = (1 << (exponent_bits - 1)) - 1>
struct FloatFormat {
    using Code = CodeWord;
    static constexpr bool is_float = true;
    static constexpr int man_bits = fraction_bits;
    static constexpr int bias = exponent_bias;
    static constexpr int emin = 1 - bias;
    static constexpr int sign_bit = exponent_bits + fraction_bits;
    static constexpr int bits = 1 + sign_bit;
    static constexpr bool has_inf = specials == Specials::INF_NAN;
    static constexpr bool has_nan = specials != Specials::NONE;
    static constexpr uint32_t sign_code = uint32_t{1} << sign_bit;
    static constexpr uint32_t inf_code = ((uint32_t{1} << exponent_bits) - 1) << fraction_bits;
    static constexpr uint32_t max_code = has_inf ? inf_code - 1 : sign_code - 1 - has_nan;
    // The one NaN that is ever written. The vendor documents the class only; this is a choice.
    static constexpr uint32_t nan_code = sign_code - 1;
};

// HiFloat8 (arXiv 2409.16626): the width of the exponent follows from its size, and what the code
// has left is fraction. One zero; its code with a sign is NaN.
struct TaperedFormat {
    using Code = uint8_t;
    static constexpr bool is_float = true;
    static constexpr int man_bits = 3;
    static constexpr int emin = -22;
    static constexpr int bits = 8;
    static constexpr bool has_nan = true;
    static constexpr uint32_t sign_code = 0x80;
    static constexpr uint32_t inf_code = 0x6F;
    static constexpr uint32_t max_code = 0x6E;
    static constexpr uint32_t nan_code = 0x80;
};

// Two's complement or plain binary. `Value` holds one element.
template <class Element, int width = 8 * sizeof(Element)>
struct IntFormat {
    using Code = std::make_unsigned_t<Element>;
    using Value = Element;
    static constexpr bool is_float = false;
    static constexpr bool is_signed = std::is_signed_v<Element>;
    static constexpr int bits = width;
    // Bits of the largest magnitude, the sign not counted.
    static constexpr int magnitude_bits = bits - is_signed;
    static constexpr uint64_t max = ~uint64_t{0} >> (64 - magnitude_bits);
};

template <class T>
struct Format : IntFormat<T> {
    static_assert(std::is_integral_v<T>, "no such number format on the vector core");
};
template <>
struct Format<float> : FloatFormat<uint32_t, 8, 23> {};
template <>
struct Format<Half> : FloatFormat<uint16_t, 5, 10> {};
template <>
struct Format<Bfloat16> : FloatFormat<uint16_t, 8, 7> {};
template <>
struct Format<Int4x2> : IntFormat<int8_t, 4> {};
template <>
struct Format<E4m3> : FloatFormat<uint8_t, 4, 3, Specials::NAN_ALONE> {};
template <>
struct Format<E5m2> : FloatFormat<uint8_t, 5, 2> {};
template <>
struct Format<E2m1x2> : FloatFormat<uint8_t, 2, 1, Specials::NONE> {};
template <>
struct Format<E1m2x2> : FloatFormat<uint8_t, 1, 2, Specials::NONE, 1> {};
template <>
struct Format<Hif8> : TaperedFormat {};

// Whether two elements share a byte.
template <class T>
constexpr bool is_nibble = Format<T>::bits == 4;
template <class T>
constexpr bool is_tapered = std::is_same_v<T, Hif8>;

using Fp32 = Format<float>;

// Whether Dst has every value of Src, so that nothing is ever rounded or out of range.
template <class Dst, class Src>
constexpr bool holds_all() {
    using D = Format<Dst>;
    using S = Format<Src>;
    if constexpr (D::is_float && S::is_float) {
        return D::man_bits > S::man_bits && D::emin <= S::emin;
    } else if constexpr (D::is_float) {
        // Every row of integers that fit the significand also fits the exponents.
        return S::magnitude_bits <= D::man_bits + 1;
    } else if constexpr (S::is_float) {
        return false;
    } else {
        return D::magnitude_bits >= S::magnitude_bits && D::is_signed >= S::is_signed;
    }
}

template <class To, class From>
inline To bits_as(From value) {
    static_assert(sizeof(To) == sizeof(From));
    To bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

}  // namespace pypto_twin

#endif  // PYPTO_TWIN_NUMBER_FORMATS_H
