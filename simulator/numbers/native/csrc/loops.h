// The loops: one template over source, target and way of rounding. A level includes this file with
// its own flags and defines FIND, the name under which the engine finds its loops.
#include "lanes.h"
#include "plan.h"

namespace {

template <Source S>
struct In {
    static constexpr bool is_float = S == Source::F32 || S == Source::F16 || S == Source::BF16;
    static constexpr bool is_wide = S == Source::U32 || S == Source::S64 || S == Source::U64;
    static constexpr bool is_signed = S != Source::U64;  // of the lanes: U32 fits signed ones
    static constexpr int bytes = S == Source::S8 || S == Source::U8                         ? 1
                                 : S == Source::S64 || S == Source::U64                     ? 8
                                 : S == Source::F32 || S == Source::S32 || S == Source::U32 ? 4
                                                                                            : 2;

    static INLINE auto load_lanes(const char* p, const Params& params) {
        if constexpr (S == Source::F32) return load<f32>(p);
        if constexpr (S == Source::F16) return from_half(p);
        if constexpr (S == Source::BF16)
            return (f32)(widen(reinterpret_cast<const uint16_t*>(p)) << 16);
        if constexpr (S == Source::S8)
            return shift_right_signed(
                shift_left(widen(reinterpret_cast<const int8_t*>(p)), params.source_shift),
                params.source_shift);
        if constexpr (S == Source::U8)
            return shift_right(
                shift_left(widen(reinterpret_cast<const uint8_t*>(p)), params.source_shift),
                params.source_shift);
        if constexpr (S == Source::S16) return widen(reinterpret_cast<const int16_t*>(p));
        if constexpr (S == Source::U16) return widen(reinterpret_cast<const uint16_t*>(p));
        if constexpr (S == Source::S32) return load<i32>(p);
        if constexpr (S == Source::U32) return widen(load<u32>(p));
        if constexpr (S == Source::S64 || S == Source::U64)
            return Wide{load<i64>(p), load<i64>(p + VECTOR_BYTES)};
    }
};

template <Target T>
constexpr int target_bytes = T == Target::NARROW || T == Target::INT8 || T == Target::BOOL ? 1
                             : T == Target::F16 || T == Target::BF16 || T == Target::INT16 ? 2
                             : T == Target::INT64 || T == Target::UINT64                   ? 8
                                                                                           : 4;

template <Target T>
constexpr bool is_float_target =
    T == Target::F32 || T == Target::F16 || T == Target::BF16 || T == Target::NARROW;

INLINE i32 is_nan(f32 x) { return (i32)(x != x); }

// --- Integers to FP32 lanes ----------------------------------------------------------------------

// Rounds 64-bit integers to odd at bit 11 where FP64 cannot hold all of them: nothing narrower,
// with 24 bits or less, can tell. At most 53 significant bits are left.
template <bool is_signed>
INLINE i64 fold(i64 x) {
    const i64 folded = (x & ~INT64_C(0x7FF)) | (((x & 0x7FF) + 0x7FF) & 0x800);
    constexpr int64_t beyond = INT64_C(1) << 52;
    if constexpr (is_signed)
        return select((i64)(((x + beyond) ^ INT64_MIN) > (INT64_MIN ^ (2 * beyond - 1))), folded,
                      x);
    return select((i64)((x ^ INT64_MIN) > (INT64_MIN ^ (beyond - 1))), folded, x);
}

// FP64 to FP32 by the way: to odd is exact, away sets a bit below every tie.
template <bool odd, bool away>
INLINE f32 to_floats(f64 low, f64 high) {
    const auto prepare = [](f64 x) {
        constexpr int64_t dropped = (INT64_C(1) << 29) - 1;
        const i64 code = (i64)x;
        if constexpr (odd)
            return (f64)((code & ~dropped) | (((code & dropped) + dropped) & (dropped + 1)));
        if constexpr (away) return (f64)(code | 1);
        return x;
    };
    return narrow(prepare(low), prepare(high));
}

// FP32 is the target, or what is rounded from there: then odd bits keep all that rounding must
// know. Integers of up to 24 bits are exact, and of the others FP16 and narrower formats hold none.
template <Source S, Target T, Way W>
INLINE f32 to_floats(i32 x) {
    constexpr bool last = T == Target::F32;
    if constexpr (S != Source::S32 || T == Target::F16 || T == Target::NARROW ||
                  (last && W == Way::DIRECTION))
        return __builtin_convertvector(x, f32);
    return to_floats < !last || W == Way::ODD,
           last && W == Way::AWAY > (to_f64(x, false), to_f64(x, true));
}

template <Source S, Target T, Way W>
INLINE f32 to_floats(Wide x) {
    constexpr bool last = T == Target::F32;
    constexpr bool is_signed = In<S>::is_signed;
    return to_floats < !last || W == Way::ODD,
           last &&
               W == Way::AWAY >
                        (to_f64<is_signed>(S == Source::U32 ? x.low : fold<is_signed>(x.low)),
                         to_f64<is_signed>(S == Source::U32 ? x.high : fold<is_signed>(x.high)));
}

// --- FP32 lanes to floats ------------------------------------------------------------------------

// Within the limits, NaN replaced. AWAY sets the lowest bit: it lies below every tie, so that
// nearest even decides as nearest away would.
template <Way W>
INLINE f32 tamed(f32 x, const Params& params) {
    f32 y = clamp(x, all(params.lo), all(params.hi));
    if constexpr (W == Way::AWAY) y = (f32)((i32)y | 1);
    const i32 nan = (i32)(u32{} + params.nan_bits) | ((i32)x & (int32_t)params.nan_sign);
    return select(is_nan(x), (f32)nan, y);
}

// The upper half of the code. A bias below the cut carries into the kept bits where the mode rounds
// away from zero, and out of the fraction into the exponent.
template <Way W>
INLINE i32 to_bfloat(i32 code, int mode) {
    if constexpr (W == Way::ODD)
        return (i32)((u32)(code | (((code & 0xFFFF) + 0xFFFF) & 0x10000)) >> 16);
    if constexpr (W == Way::AWAY) return (i32)((u32)(code + 0x8000) >> 16);
    const int32_t flip = mode == CEIL ? -1 : 0,
                  directed = mode == FLOOR || mode == CEIL ? 0xFFFF : 0;
    const int32_t nearest = mode == RINT ? 0x7FFF : 0, even = mode == RINT ? 1 : 0;
    const i32 bias = (((code >> 31) ^ flip) & directed) + nearest + ((code >> 16) & even);
    return (i32)((u32)(code + bias) >> 16);
}

// Any float of at most 10 fraction bits: adding a power of two whose last place is the quantum of
// the result lets the addition round. What is added counts quanta; exponents add up to the code.
template <Way W>
INLINE i32 to_narrow(f32 x, const Params& params) {
    const i32 sign = (i32)x & INT32_MIN;
    f32 y = clamp(x, all(params.narrow_lo), all(params.narrow_hi));
    if constexpr (W == Way::AWAY) y = (f32)((i32)y | 1);
    const i32 field = larger((i32)y & 0x7F800000, all(params.emin_bits));
    const i32 unit = (field + (params.man_shift << 23)) | sign;
    const f32 sum = y + (f32)unit;
    i32 code = (i32)sum - unit;
    if constexpr (W == Way::ODD) code |= (i32)(sum - (f32)unit != y) & 1;
    code += shift_right(field - params.emin_bits, params.man_shift);
    const i32 narrow_sign = shift_right(sign, params.sign_shift);
    const i32 magnitude = (i32)x & INT32_MAX;
    const i32 special = (i32)(magnitude >= params.special_from) | (i32)(code > params.max_code);
    const i32 kept_sign = narrow_sign & ((i32)(code != 0) | params.zero_sign);
    const i32 inf = params.inf_value | (narrow_sign & params.inf_sign);
    const i32 nan = params.nan_value | (narrow_sign & params.narrow_nan_sign);
    code = select(special, inf, code | kept_sign);
    return select((i32)(magnitude > 0x7F800000), nan, code);
}

// --- FP32 lanes to integers ----------------------------------------------------------------------

template <Way W>
INLINE f32 half_added(f32 x) {
    if constexpr (W != Way::AWAY) return x;  // else: toward zero from here
    return x + (f32)(((i32)x & INT32_MIN) | (i32)all(0.5f));
}

template <Way W, bool wraps>
INLINE i32 to_ints(f32 x, const Params& params) {
    const f32 y = half_added<W>(clamp(x, all(params.lo), all(params.hi)));
    i32 result = round_to_int(y);
    if constexpr (W == Way::ODD)  // of the two neighbours; downward from here
        result |= (i32)(__builtin_convertvector(result, f32) != y) & 1;
    result = select((i32)(x >= params.limit), all((int32_t)params.max), result);
    if constexpr (wraps) {
        const f32 inf = all(__builtin_inff());
        result = select((i32)(x == inf), all((int32_t)params.max), result);
        result = select((i32)(x == -inf), all((int32_t)params.min), result);
    }
    return result & ~is_nan(x);
}

template <Way W, bool wraps, bool is_signed>
INLINE Wide to_wide(f32 x, const Params& params) {
    const f32 tame = (f32)((i32)clamp(x, all(params.lo), all(params.hi)) & ~is_nan(x));
    const f32 y = half_added<W>(tame);
    const f32 rounded = round(y);
    const Wide limited = widen((i32)(x >= params.limit));
    const Wide inexact = widen((i32)(rounded != y) & 1);
    const Wide below = widen((i32)(x == all(-__builtin_inff())));
    const auto finish = [&](f64 integral, i64 above, i64 odd, i64 low) {
        i64 result = to_i64<is_signed>(integral);
        if constexpr (W == Way::ODD) result |= odd;
        result = select(above, i64{} + params.max, result);
        return wraps ? select(low, i64{} + params.min, result) : result;
    };
    return {finish(widen(rounded, false), limited.low, inexact.low, below.low),
            finish(widen(rounded, true), limited.high, inexact.high, below.high)};
}

// FP32 to integral FP32; every zero is +0.
template <Way W>
INLINE f32 to_integral(f32 x, const Params& params) {
    const f32 y = round(half_added<W>(x));
    return select(is_nan(x), (f32)(u32{} + params.nan_bits), (f32)((i32)y & ~(i32)(y == 0)));
}

// --- Integers to integers ------------------------------------------------------------------------

template <bool is_signed>
INLINE i64 clamped(i64 x, const Params& params) {
    constexpr int64_t flip = is_signed ? 0 : INT64_MIN;  // unsigned order
    const i64 min = i64{} + params.min, max = i64{} + params.max;
    x = select((i64)((x ^ flip) > (max ^ flip)), max, x);
    return select((i64)((x ^ flip) < (min ^ flip)), min, x);
}

// --- The loops -----------------------------------------------------------------------------------

template <Target T>
INLINE i32 truth(f32 x) {
    return (i32)(((i32)x & INT32_MAX) != 0) & 1;
}
template <Target T>
INLINE i32 truth(i32 x) {
    return (i32)(x != 0) & 1;
}
template <Target T>
INLINE i32 truth(Wide x) {
    return narrow(Wide{(i64)(x.low != 0), (i64)(x.high != 0)}) & 1;
}

// Lanes to lanes of the target, low bits counting: f32, i32, u16s or Wide.
template <Source S, Target T, Way W, bool wraps, bool integral, class V>
INLINE auto convert(V x, const Params& params) {
    if constexpr (T == Target::BOOL) {
        return truth<T>(x);
    } else if constexpr (is_float_target<T>) {
        f32 floats;
        if constexpr (In<S>::is_float)
            floats = x;
        else
            floats = to_floats<S, T, W>(x);
        if constexpr (integral)
            return to_integral<W>(floats, params);
        else if constexpr (T == Target::F32) {
            if constexpr (!In<S>::is_float)
                return floats;
            else
                return tamed<Way::DIRECTION>(floats, params);
        } else if constexpr (T == Target::BF16)
            return to_bfloat<W>((i32)tamed<Way::DIRECTION>(floats, params), params.mode);
#ifdef __F16C__
        else if constexpr (T == Target::F16) {
            const f32 tame = tamed<W>(floats, params);
            if constexpr (W == Way::ODD)
                return to_half_odd(tame);
            else
                return to_half(tame);
        }
#endif
        else
            return to_narrow<W>(floats, params);
    } else if constexpr (In<S>::is_float) {
        constexpr bool is_wide_target = T == Target::INT64 || T == Target::UINT64;
        if constexpr (is_wide_target)
            return to_wide<W, wraps, T == Target::INT64>(x, params);
        else if constexpr (T == Target::UINT32 || (wraps && S != Source::F16))
            return narrow(to_wide<W, wraps, true>(x, params));
        else
            return to_ints<W, wraps>(x, params);
    } else if constexpr (In<S>::is_wide) {
        Wide y = x;
        if constexpr (!wraps)
            y = {clamped<In<S>::is_signed>(x.low, params),
                 clamped<In<S>::is_signed>(x.high, params)};
        if constexpr (T == Target::INT64 || T == Target::UINT64)
            return y;
        else
            return narrow(y);
    } else {
        i32 y = x;
        if constexpr (!wraps) y = clamp(x, all((int32_t)params.min), all((int32_t)params.max));
        if constexpr (T == Target::INT64 || T == Target::UINT64)
            return widen(y);
        else
            return y;
    }
}

INLINE void store_group(char* to, const f32 (&x)[1], const Params&, bool streams) {
    store(to, x[0], streams);
}
INLINE void store_group(char* to, const i32 (&x)[1], const Params&, bool streams) {
    store(to, x[0], streams);
}
INLINE void store_group(char* to, const Wide (&x)[1], const Params&, bool streams) {
    store(to, x[0].low, streams);
    store(to + VECTOR_BYTES, x[0].high, streams);
}
INLINE void store_group(char* to, const i32 (&x)[2], const Params&, bool streams) {
    store_halves(to, x, streams);
}
INLINE void store_group(char* to, const u16s (&x)[2], const Params&, bool streams) {
    store(to, x[0], streams);
    store(to + LANES * 2, x[1], streams);
}
INLINE void store_group(char* to, const i32 (&x)[4], const Params& params, bool streams) {
    store_bytes(to, x, params.code_mask, streams);
}

template <Source S, Target T, Way W, bool wraps, bool integral>
struct Loops {
    static constexpr int in_bytes = In<S>::bytes, out_bytes = target_bytes<T>;
    static constexpr int groups = out_bytes >= 4 ? 1 : 4 / out_bytes;
    static constexpr int64_t block_elems = groups * LANES;
    static constexpr uintptr_t ALIGNMENT = VECTOR_BYTES;

    // All loads come before all stores, so that `to` may be `from` if it is no wider.
    static INLINE void block(const Params& params, const char* from, char* to, bool streams) {
        using V = decltype(In<S>::load_lanes(from, params));
        V x[groups];
        for (int group = 0; group < groups; ++group)
            x[group] = In<S>::load_lanes(from + group * LANES * in_bytes, params);
        decltype(convert<S, T, W, wraps, integral>(x[0], params)) y[groups];
        for (int group = 0; group < groups; ++group)
            y[group] = convert<S, T, W, wraps, integral>(x[group], params);
        store_group(to, y, params, streams);
    }

    // Fewer elements than a block has, by way of a whole one.
    static __attribute__((noinline)) void part(const Params& params, const char* from, char* to,
                                               int64_t count) {
        alignas(ALIGNMENT) char in[block_elems * in_bytes] = {}, out[block_elems * out_bytes];
        std::memcpy(in, from, count * in_bytes);
        block(params, in, out, false);
        std::memcpy(to, out, count * out_bytes);
    }

    static void run(const Params& given, const void* in, void* out, int64_t count, bool streams) {
        const Params params = given;  // whose address stays here: it is kept in registers
        const char* from = static_cast<const char*>(in);
        char* to = static_cast<char*>(out);
        if (streams) {
            const uintptr_t ahead = -reinterpret_cast<uintptr_t>(to) % ALIGNMENT;
            const int64_t head = ahead / out_bytes;
            streams = ahead % out_bytes == 0;  // else no element is ever aligned
            if (streams && head > 0 && head < count) {
                for (int64_t done = 0; done < head;) {
                    const int64_t part_elems =
                        head - done < block_elems ? head - done : block_elems;
                    part(given, from + done * in_bytes, to + done * out_bytes, part_elems);
                    done += part_elems;
                }
                from += head * in_bytes, to += head * out_bytes, count -= head;
            }
        }
        for (; count >= block_elems; count -= block_elems) {
            block(params, from, to, streams);
            from += block_elems * in_bytes, to += block_elems * out_bytes;
        }
        if (count > 0) part(given, from, to, count);
    }
};

// Sources whose lanes are of 32-bit floats or of integers of 32 or 64 bits have all loops; of the
// others those that a cast of the hardware needs, and the way to one of these.
template <Source S>
constexpr bool has_loop(Target target) {
    switch (S) {
        case Source::F16:
            return target == Target::F32 || target == Target::INT8 || target == Target::INT16 ||
                   target == Target::INT32;
        case Source::BF16:
            return target == Target::F32 || target == Target::INT32;
        case Source::S8:
        case Source::U8:
            return target == Target::F16 || target == Target::INT32;
        case Source::S16:
            return target == Target::F16 || target == Target::F32 || target == Target::INT32;
        case Source::U16:
            return target == Target::INT32;
        case Source::U32:
            return target == Target::INT64;
        default:
            return true;
    }
}

template <Source S, Target T>
constexpr bool is_exact = T == Target::BOOL || (T == Target::F32 && In<S>::bytes == 2) ||
                          (T == Target::F16 && In<S>::bytes == 1);

template <Source S, Target T, bool wraps, bool integral>
Loop find_way(Way way) {
    if constexpr (!is_exact<S, T> && (In<S>::is_float || is_float_target<T>)) {
        if (way == Way::AWAY) return Loops<S, T, Way::AWAY, wraps, integral>::run;
        if (way == Way::ODD) {
            if constexpr (integral)
                return nullptr;
            else
                return Loops<S, T, Way::ODD, wraps, integral>::run;
        }
    }
    return Loops<S, T, Way::DIRECTION, wraps, integral>::run;
}

template <Source S, Target T>
Loop find_overflow(Way way, bool wraps) {
    if constexpr (!has_loop<S>(T))
        return nullptr;
    else if constexpr (S == Source::F32 && T == Target::F32)
        return find_way<S, T, false, true>(way);
    else if constexpr (is_float_target<T> || T == Target::BOOL)
        return find_way<S, T, false, false>(way);
    else if constexpr (In<S>::is_float &&
                       target_bytes<T> == 8)  // which low bits: by the definition
        return wraps ? nullptr : find_way<S, T, false, false>(way);
    else if constexpr (In<S>::bytes < target_bytes<T> && !In<S>::is_float && T == Target::INT32)
        return find_way<S, T, true, false>(way);
    else
        return wraps ? find_way<S, T, true, false>(way) : find_way<S, T, false, false>(way);
}

template <Source S>
Loop find_target(Target target, Way way, bool wraps) {
    switch (target) {
        case Target::F32:
            return find_overflow<S, Target::F32>(way, wraps);
        case Target::F16:
            return find_overflow<S, Target::F16>(way, wraps);
        case Target::BF16:
            return find_overflow<S, Target::BF16>(way, wraps);
        case Target::NARROW:
            return find_overflow<S, Target::NARROW>(way, wraps);
        case Target::INT8:
            return find_overflow<S, Target::INT8>(way, wraps);
        case Target::INT16:
            return find_overflow<S, Target::INT16>(way, wraps);
        case Target::INT32:
            return find_overflow<S, Target::INT32>(way, wraps);
        case Target::UINT32:
            return find_overflow<S, Target::UINT32>(way, wraps);
        case Target::INT64:
            return find_overflow<S, Target::INT64>(way, wraps);
        case Target::UINT64:
            return find_overflow<S, Target::UINT64>(way, wraps);
        case Target::BOOL:
            return find_overflow<S, Target::BOOL>(way, wraps);
        default:
            return nullptr;
    }
}

}  // namespace

Loop FIND(Source source, Target target, Way way, bool wraps) {
    switch (source) {
        case Source::F32:
            return find_target<Source::F32>(target, way, wraps);
        case Source::F16:
            return find_target<Source::F16>(target, way, wraps);
        case Source::BF16:
            return find_target<Source::BF16>(target, way, wraps);
        case Source::S8:
            return find_target<Source::S8>(target, way, wraps);
        case Source::U8:
            return find_target<Source::U8>(target, way, wraps);
        case Source::S16:
            return find_target<Source::S16>(target, way, wraps);
        case Source::U16:
            return find_target<Source::U16>(target, way, wraps);
        case Source::S32:
            return find_target<Source::S32>(target, way, wraps);
        case Source::U32:
            return find_target<Source::U32>(target, way, wraps);
        case Source::S64:
            return find_target<Source::S64>(target, way, wraps);
        case Source::U64:
            return find_target<Source::U64>(target, way, wraps);
        default:
            return nullptr;
    }
}
