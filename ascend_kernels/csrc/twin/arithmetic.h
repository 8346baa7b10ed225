// Arithmetic, rounded to nearest and with subnormal numbers kept, and what else the kernels of a
// device check use. Included by kernel_operator.h.
#ifndef PYPTO_TWIN_ARITHMETIC_H
#define PYPTO_TWIN_ARITHMETIC_H

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace pypto_twin {

inline float number(float value) { return value; }
inline float number(half value) { return bits_as<float>(widened<Half>(value.code)); }

inline int64_t number(int16_t value) { return value; }
inline int64_t number(int32_t value) { return value; }

// The one NaN of the format.
inline void store(float& element, float value) {
    element = value != value ? bits_as<float>(uint32_t{0x7FFFFFFF}) : value;
}
inline void store(half& element, float value) { element = half(value); }
// By CTRL[53]: 0 keeps the low bits, 1 gives the nearest number that there is.
template <class T>
void store(T& element, int64_t value) {
    using Limits = std::numeric_limits<T>;
    const bool clamps = vector_core().has(53);
    element = static_cast<T>(clamps ? std::clamp<int64_t>(value, Limits::min(), Limits::max())
                                    : value);
}

// A sum of neighbours, then of neighbouring sums, and so on.
template <class T>
inline float tree_sum(const T* elements, uint32_t count) {
    if (count == 1) return number(elements[0]);
    T sum;
    store(sum, tree_sum(elements, count / 2) + tree_sum(elements + count / 2, count / 2));
    return number(sum);
}

template <class T, class Function>
void each(const AscendC::LocalTensor<T>& dst, const AscendC::LocalTensor<T>& src0,
          const AscendC::LocalTensor<T>& src1, int32_t count, Function function) {
    require(count >= 0, "a negative count: ", count);
    const uint64_t size_bytes = sizeof(T) * static_cast<uint64_t>(count);
    auto* to = reinterpret_cast<T*>(dst.claim(size_bytes));
    const auto* a = reinterpret_cast<const T*>(src0.claim(size_bytes));
    const auto* b = reinterpret_cast<const T*>(src1.claim(size_bytes));
    vector_core().record(Op::UB_WORK, dst.offset(), size_bytes, src0.offset(), size_bytes,
                         src1.offset(), size_bytes);
    for (int32_t i = 0; i < count; ++i) store(to[i], function(number(a[i]), number(b[i])));
}

}  // namespace pypto_twin

namespace AscendC {

#define PYPTO_TWIN_BINARY(name, expression)                                                      \
    template <class T>                                                                           \
    void name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, \
              int32_t count) {                                                                   \
        pypto_twin::each(dst, src0, src1, count, [](auto a, auto b) { return expression; });     \
    }
PYPTO_TWIN_BINARY(Add, a + b)
PYPTO_TWIN_BINARY(Sub, a - b)
PYPTO_TWIN_BINARY(Mul, a * b)
PYPTO_TWIN_BINARY(Div, a / b)
#undef PYPTO_TWIN_BINARY

#define PYPTO_TWIN_UNARY(name, expression)                                       \
    template <class T>                                                           \
    void name(const LocalTensor<T>& dst, const LocalTensor<T>& src, int32_t count) { \
        pypto_twin::each(dst, src, src, count, [](float a, float) {              \
            return static_cast<float>(expression);                               \
        });                                                                      \
    }
PYPTO_TWIN_UNARY(Sqrt, std::sqrt(a))
PYPTO_TWIN_UNARY(Exp, std::exp(static_cast<double>(a)))
PYPTO_TWIN_UNARY(Ln, std::log(static_cast<double>(a)))
PYPTO_TWIN_UNARY(Rsqrt, 1 / std::sqrt(static_cast<double>(a)))
#undef PYPTO_TWIN_UNARY

// vcadd: the sum of each repeat of 256 B.
template <class T>
void WholeReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, int32_t mask,
                    int32_t repeats, int32_t dst_stride, int32_t src_block_stride,
                    int32_t src_repeat_stride) {
    using namespace pypto_twin;
    constexpr uint32_t lanes = 256 / sizeof(T);
    require(mask == lanes && dst_stride == 1 && src_block_stride == 1 && src_repeat_stride == 8,
            "the twin sums whole repeats that follow each other");
    require(0 <= repeats && repeats <= 255, "repeatTime must be 0 to 255, is ", repeats);
    auto* to = reinterpret_cast<T*>(dst.claim(sizeof(T) * static_cast<uint64_t>(repeats)));
    const auto* from = reinterpret_cast<const T*>(src.claim(uint64_t{256} * repeats));
    vector_core().record(Op::UB_WORK, dst.offset(), sizeof(T) * static_cast<uint64_t>(repeats),
                         src.offset(), uint64_t{256} * repeats);
    for (int32_t i = 0; i < repeats; ++i) store(to[i], tree_sum(from + i * lanes, lanes));
}

// vcmax, vcmin: the extreme of each repeat of 256 B, and its place; of equal ones the first.
enum class ReduceOrder { ORDER_VALUE_INDEX, ORDER_INDEX_VALUE, ORDER_ONLY_VALUE, ORDER_ONLY_INDEX };

template <class T, class Exceeds>
void extremes(const LocalTensor<T>& dst, const LocalTensor<T>& src, int32_t mask, int32_t repeats,
              int32_t dst_stride, int32_t src_block_stride, int32_t src_repeat_stride,
              ReduceOrder order, Exceeds exceeds) {
    using namespace pypto_twin;
    constexpr uint32_t lanes = 256 / sizeof(T);
    require(mask == lanes && dst_stride == 1 && src_block_stride == 1 && src_repeat_stride == 8 &&
                order == ReduceOrder::ORDER_VALUE_INDEX,
            "the twin reduces whole repeats that follow each other, to a value and its place");
    require(0 <= repeats && repeats <= 255, "repeatTime must be 0 to 255, is ", repeats);
    const uint64_t size_bytes = 2 * sizeof(T) * static_cast<uint64_t>(repeats);
    uint8_t* to = dst.claim(size_bytes);
    const auto* from = reinterpret_cast<const T*>(src.claim(uint64_t{256} * repeats));
    vector_core().record(Op::UB_WORK, dst.offset(), size_bytes, src.offset(),
                         uint64_t{256} * repeats);
    for (int32_t i = 0; i < repeats; ++i) {
        uint32_t at = 0;
        for (uint32_t lane = 1; lane < lanes; ++lane) {
            if (exceeds(number(from[i * lanes + lane]), number(from[i * lanes + at]))) at = lane;
        }
        std::memcpy(to, &from[i * lanes + at], sizeof(T));
        std::memcpy(to + sizeof(T), &at, sizeof(T));  // its low bytes
        to += 2 * sizeof(T);
    }
}

#define PYPTO_TWIN_EXTREME(name, exceeds)                                                        \
    template <class T>                                                                           \
    void name(const LocalTensor<T>& dst, const LocalTensor<T>& src, int32_t mask,                \
              int32_t repeats, int32_t dst_stride, int32_t block_stride, int32_t repeat_stride,  \
              ReduceOrder order) {                                                               \
        extremes(dst, src, mask, repeats, dst_stride, block_stride, repeat_stride, order,        \
                 [](float a, float b) { return a exceeds b; });                                  \
    }
PYPTO_TWIN_EXTREME(WholeReduceMax, >)
PYPTO_TWIN_EXTREME(WholeReduceMin, <)
#undef PYPTO_TWIN_EXTREME

// Scores with their indices, 8 B each: what sorts write, and merges read.
constexpr uint32_t kSortBytes = 8;

// vbitsort: each 32 scores in descending order, of equal ones the first of them first.
template <class T>
void Sort32(const LocalTensor<T>& dst, const LocalTensor<T>& src0,
            const LocalTensor<uint32_t>& src1, int32_t repeats) {
    using namespace pypto_twin;
    constexpr uint32_t lanes = 32;
    require(0 <= repeats && repeats <= 255, "repeatTime must be 0 to 255, is ", repeats);
    const uint64_t count = uint64_t{lanes} * static_cast<uint32_t>(repeats);
    uint8_t* to = dst.claim(count * kSortBytes);
    const T* scores = reinterpret_cast<const T*>(src0.claim(count * sizeof(T)));
    const auto* indices = reinterpret_cast<const uint32_t*>(src1.claim(count * sizeof(uint32_t)));
    vector_core().record(Op::UB_WORK, dst.offset(), count * kSortBytes, src0.offset(),
                         count * sizeof(T), src1.offset(), count * sizeof(uint32_t));
    std::memset(to, 0, count * kSortBytes);
    for (uint64_t first = 0; first < count; first += lanes) {
        uint32_t order[lanes];
        std::iota(order, order + lanes, 0);
        std::stable_sort(order, order + lanes, [&](uint32_t a, uint32_t b) {
            return number(scores[first + a]) > number(scores[first + b]);
        });
        for (const uint32_t each : order) {
            std::memcpy(to, &scores[first + each], sizeof(T));
            std::memcpy(to + sizeof(uint32_t), &indices[first + each], sizeof(uint32_t));
            to += kSortBytes;
        }
    }
}

template <class T>
struct MrgSortSrcList {
    LocalTensor<T> src1, src2, src3, src4;
};

struct MrgSort4Info {
    uint16_t elementLengths[4];
    bool ifExhaustedSuspension;
    uint16_t validBit;
    uint8_t repeatTimes;
};

// vmrgsort4: four sorted lists as one, of equal scores those of the first list first.
template <class T>
void MrgSort(const LocalTensor<T>& dst, const MrgSortSrcList<T>& lists, const MrgSort4Info& info) {
    using namespace pypto_twin;
    require(!info.ifExhaustedSuspension && info.validBit == 0b1111 && info.repeatTimes == 1,
            "the twin merges four whole lists, once");
    const LocalTensor<T> sources[] = {lists.src1, lists.src2, lists.src3, lists.src4};
    std::vector<const uint8_t*> entries;
    uint32_t end = 0;
    for (int list = 0; list < 4; ++list) {
        const uint64_t size_bytes = uint64_t{kSortBytes} * info.elementLengths[list];
        const uint8_t* from = sources[list].claim(size_bytes);
        for (uint64_t at = 0; at < size_bytes; at += kSortBytes) entries.push_back(from + at);
        end = std::max(end, sources[list].offset() + static_cast<uint32_t>(size_bytes));
    }
    const uint64_t size_bytes = kSortBytes * entries.size();
    uint8_t* to = dst.claim(size_bytes);
    vector_core().record(Op::UB_WORK, dst.offset(), size_bytes, sources[0].offset(),
                         end - sources[0].offset());
    std::stable_sort(entries.begin(), entries.end(), [](const uint8_t* a, const uint8_t* b) {
        return number(*reinterpret_cast<const T*>(a)) > number(*reinterpret_cast<const T*>(b));
    });
    for (const uint8_t* each : entries) {
        std::memcpy(to, each, kSortBytes);
        to += kSortBytes;
    }
}

// The twin's clock shows how often it was asked.
inline int64_t GetSystemCycle() {
    static thread_local int64_t asked = 0;
    return ++asked;
}

}  // namespace AscendC

#endif  // PYPTO_TWIN_ARITHMETIC_H
