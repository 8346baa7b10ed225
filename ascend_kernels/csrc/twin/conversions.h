// Cast of the vector core on arrays: convert<policies...>(dst, src, count, mode, policy).
#ifndef PYPTO_TWIN_CONVERSIONS_H
#define PYPTO_TWIN_CONVERSIONS_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "element_conversions.h"
#include "number_formats.h"
#include "rounding.h"

// Source and destination either are the same memory, element by element, or do not overlap: either
// way no iteration waits for another.
#if defined(__clang__)
#define PYPTO_TWIN_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define PYPTO_TWIN_INDEPENDENT _Pragma("GCC ivdep")
#else
#define PYPTO_TWIN_INDEPENDENT
#endif

namespace pypto_twin {

// Converts one element, code to code.
template <class Dst, class Src, RoundMode mode, Policy policy>
inline typename Format<Dst>::Code converted(typename Format<Src>::Code code) {
    using D = Format<Dst>;
    using S = Format<Src>;
    if constexpr (!D::is_float && !S::is_float) {
        static_assert(D::bits >= 8 && S::bits >= 8, "4-bit integers convert with FP16 only");
        const auto value = static_cast<typename S::Value>(code);
        constexpr bool truncate = policy == Policy::WRAP;
        return static_cast<typename D::Code>(resized<typename D::Value, truncate>(value));
    } else if constexpr (!D::is_float) {
        constexpr bool truncate = policy == Policy::WRAP;
        return static_cast<typename D::Code>(to_integer<Dst, Src, mode, truncate>(code));
    } else if constexpr (std::is_same_v<Dst, float>) {
        if constexpr (std::is_same_v<Src, float>) {
            return to_integral<mode>(code);
        } else if constexpr (S::is_float) {
            return widened<Src>(code);
        } else {
            return from_integer<mode>(static_cast<typename S::Value>(code));
        }
    } else if constexpr (S::is_float) {
        return static_cast<typename D::Code>(narrowed<Dst, mode, policy>(widened<Src>(code)));
    } else {
        const uint32_t wide = from_integer<RoundMode::RINT>(static_cast<typename S::Value>(code));
        if constexpr (holds_all<Dst, Src>()) {
            return static_cast<typename D::Code>(shortened<Dst>(wide));
        } else {
            return static_cast<typename D::Code>(narrowed<Dst, mode, policy>(wide));
        }
    }
}

// Elements are read and written as bytes, for source and destination may share memory under two
// types. Compilers make plain vector loads and stores of it.
template <class T>
inline typename Format<T>::Code load(const T* src, size_t index) {
    typename Format<T>::Code code;
    std::memcpy(&code, src + index, sizeof code);
    return code;
}

template <class T>
inline void store(T* dst, size_t index, typename Format<T>::Code code) {
    std::memcpy(dst + index, &code, sizeof code);
}

// A nibble as a code: of an integer that of the byte-wide one of the same value.
template <class T>
inline uint8_t code_of_nibble(uint32_t nibble) {
    return static_cast<uint8_t>(Format<T>::is_float ? nibble : (nibble ^ 8) - 8);
}

template <class Dst, class Src, RoundMode mode, Policy policy>
void convert_all(Dst* dst, const Src* src, size_t count) {
    [[maybe_unused]] const size_t pairs = count / 2;
    if constexpr (is_nibble<Src>) {
        PYPTO_TWIN_INDEPENDENT
        for (size_t i = 0; i < pairs; ++i) {
            const uint32_t pair = load(src, i);
            const uint8_t low = code_of_nibble<Src>(pair & 15);
            const uint8_t high = code_of_nibble<Src>(pair >> 4);
            store(dst, 2 * i, converted<Dst, Src, mode, policy>(low));
            store(dst, 2 * i + 1, converted<Dst, Src, mode, policy>(high));
        }
    } else if constexpr (is_nibble<Dst>) {
        PYPTO_TWIN_INDEPENDENT
        for (size_t i = 0; i < pairs; ++i) {
            const uint32_t low = converted<Dst, Src, mode, policy>(load(src, 2 * i));
            const uint32_t high = converted<Dst, Src, mode, policy>(load(src, 2 * i + 1));
            store(dst, i, static_cast<uint8_t>((low & 15) | high << 4));
        }
    } else {
        PYPTO_TWIN_INDEPENDENT
        for (size_t i = 0; i < count; ++i) {
            store(dst, i, converted<Dst, Src, mode, policy>(load(src, i)));
        }
    }
}

// Calls `body` with `mode` as a constant.
template <class Body>
void with_constant(RoundMode mode, Body body) {
    switch (mode) {
#define PYPTO_TWIN_CASE(name) \
    case RoundMode::name:     \
        return body(std::integral_constant<RoundMode, RoundMode::name>{});
        PYPTO_TWIN_MODES(PYPTO_TWIN_CASE)
#undef PYPTO_TWIN_CASE
    }
}

// Converts `count` elements; dst may be src where both elements are equally wide.
//
// Float to float and integer to float: one rounding by `mode`; NaN becomes the one NaN of Dst, -0
// keeps its sign if Dst has one, overflow goes where IEEE 754 sends it; or everything saturates, by
// `policy`, one of `policies`. FP32 to FP32 rounds to integral values. To integers: NaN gives 0,
// infinity the nearest limit. `mode` is ignored where Dst holds every value of Src, and between
// integers.
template <Policy... policies, class Dst, class Src>
void convert(Dst* dst, const Src* src, size_t count, RoundMode mode, Policy policy) {
    constexpr bool is_float = Format<Dst>::is_float;
    constexpr bool is_exact = holds_all<Dst, Src>();
    constexpr bool has_mode = !is_exact && (is_float || Format<Src>::is_float);
    constexpr bool has_policy = !is_exact && !std::is_same_v<Dst, float>;
    const auto with_mode = [=](auto constant) {
        constexpr RoundMode chosen = decltype(constant)::value;
        if constexpr (has_policy) {
            const auto with_policy = [=](auto one) {
                if (policy == one) convert_all<Dst, Src, chosen, one()>(dst, src, count);
                return policy == one;
            };
            (with_policy(std::integral_constant<Policy, policies>{}) || ...);
        } else {
            convert_all<Dst, Src, chosen, Policy::INF_NAN>(dst, src, count);
        }
    };
    if constexpr (has_mode) {
        with_constant(mode, with_mode);
    } else {
        with_mode(std::integral_constant<RoundMode, RoundMode::TRUNC>{});
    }
}

}  // namespace pypto_twin

#endif  // PYPTO_TWIN_CONVERSIONS_H
