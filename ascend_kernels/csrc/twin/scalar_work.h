// Instructions with one number beside a tensor. Included by instructions.h.
#ifndef PYPTO_TWIN_SCALAR_WORK_H
#define PYPTO_TWIN_SCALAR_WORK_H

namespace pypto_twin {

// As a trace holds it: floats by the code of an FP32.
template <class T>
inline int64_t traced_scalar(T scalar) {
    if constexpr (std::is_same_v<T, half>) {
        return widened<Half>(scalar.code);
    } else if constexpr (std::is_same_v<T, float>) {
        return bits_as<uint32_t>(scalar);
    } else {
        return static_cast<int64_t>(scalar);
    }
}

// The greater or the lesser of two floats. NaN wins; -0 lies below +0.
template <bool greater>
inline float extreme(float a, float b) {
    if (a != a || b != b) return bits_as<float>(Fp32::nan_code);
    if (a == b) {
        const uint32_t first = bits_as<uint32_t>(a);
        const uint32_t second = bits_as<uint32_t>(b);
        return bits_as<float>(greater ? first & second : first | second);
    }
    return (a > b) == greater ? a : b;
}

template <ScalarOp op, class T>
inline T combined(T a, T b) {
    if constexpr (std::is_same_v<T, half>) {
        const float x = bits_as<float>(widened<Half>(a.code));
        const float y = bits_as<float>(widened<Half>(b.code));
        return half(combined<op, float>(x, y));
    } else if constexpr (op == ScalarOp::ShiftLeft) {
        return b < 8 * sizeof(T) ? static_cast<T>(a << b) : T{0};
    } else if constexpr (op == ScalarOp::ShiftRight) {
        return b < 8 * sizeof(T) ? static_cast<T>(a >> b) : T{0};
    } else if constexpr (op == ScalarOp::Muls) {
        static_assert(std::is_same_v<T, float>, "the twin multiplies floats alone");
        const float product = a * b;
        return product != product ? bits_as<float>(Fp32::nan_code) : product;
    } else if constexpr (std::is_same_v<T, float>) {
        return extreme<op == ScalarOp::Maxs>(a, b);
    } else {
        return (a > b) == (op == ScalarOp::Maxs) ? a : b;
    }
}

template <ScalarOp op, class T>
void with_scalar(const AscendC::LocalTensor<T>& dst, const AscendC::LocalTensor<T>& src, T scalar,
                 int32_t count) {
    require(count >= 0, "a negative count: ", count);
    if constexpr (op == ScalarOp::ShiftLeft || op == ScalarOp::ShiftRight) {
        static_assert(std::is_unsigned_v<T>, "the twin shifts unsigned integers alone");
        require(scalar <= 8 * sizeof(T), "a shift by ", scalar, " bits");
    }
    const uint64_t size_bytes = uint64_t{sizeof(T)} * static_cast<uint32_t>(count);
    uint8_t* to = dst.claim(size_bytes);
    const uint8_t* from = src.claim(size_bytes);
    require(to == from || to + size_bytes <= from || from + size_bytes <= to, "from ub+",
            src.offset(), " to ub+", dst.offset(), ": ", count, " elements overlap");
    const VectorCore& core = vector_core();
    require(core.inf_nan(), "an instruction with a scalar under CTRL[48] = 0");
    core.record(Op::SCALAR, op, dst.offset(), src.offset(), FormatOf<T>::traced,
                traced_scalar(scalar), count);
    for (int32_t i = 0; i < count; ++i) {
        T element;
        std::memcpy(&element, from + uint64_t{sizeof(T)} * i, sizeof element);
        element = combined<op, T>(element, scalar);
        std::memcpy(to + uint64_t{sizeof(T)} * i, &element, sizeof element);
    }
}

}  // namespace pypto_twin

#endif  // PYPTO_TWIN_SCALAR_WORK_H
