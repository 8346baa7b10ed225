// The loops: one template over source, target and way of rounding. A level includes this file with
// its own flags and defines FIND, the name under which the engine finds its loops.
#include "values.h"

namespace {

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

// Lanes to lanes of the target, low bits counting: f32, i32, u32 or Wide; f32 for FP16 by F16C.
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
                return tamed<S, Way::DIRECTION>(floats, params);
        } else if constexpr (T == Target::BF16)
            return to_bfloat<W>((i32)tamed<S, Way::DIRECTION>(floats, params), params);
#ifdef __F16C__
        else if constexpr (T == Target::F16)
            return tamed<S, W>(floats, params);
#endif
        else if constexpr (T == Target::TAPERED)
            return to_tapered(floats, params);
        else if constexpr (T == Target::NARROW && W == Way::EVEN)
            return to_even_narrow(floats, params);
        else
            return to_narrow<W>(floats, params);
    } else if constexpr (In<S>::is_float) {
        constexpr bool is_wide_target = T == Target::INT64 || T == Target::UINT64;
        if constexpr (is_wide_target)
            return to_wide<W, wraps>(x, params);
        else if constexpr (wraps && S != Source::F16)
            return to_low_bits<W>(x, params);
        else if constexpr (T == Target::UINT32)
            return narrow(to_wide<W, wraps>(x, params));
        else
            return to_ints<S, W, wraps, target_bytes<T> <= 2>(x, params);
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
    store_halves(to, (u32)x[0] & 0xFFFF, (u32)x[1] & 0xFFFF, streams);
}
INLINE void store_group(char* to, const u32 (&x)[2], const Params&, bool streams) {
    store_halves(to, x[0], x[1], streams);
}
INLINE void store_group(char* to, const i32 (&x)[4], const Params& params, bool streams) {
    store_bytes(to, x, params.code_mask, streams);
}

INLINE void store_group(char* to, const Signed (&x)[4], const Params& params, bool streams) {
    i32 magnitudes[4], signs[4];
    for (int group = 0; group < 4; ++group)
        magnitudes[group] = x[group].magnitude, signs[group] = x[group].sign;
    store_signed_bytes(
        to, magnitudes, signs,
        [&](auto code, auto sign) {
            const auto is_signed = (sign < 0) & (code > params.above) & (code <= params.last);
            return code | (is_signed & (int8_t)params.sign_code);
        },
        streams);
}

// How far ahead the source of a large result is asked for: the hardware stops at the end of a page.
constexpr int AHEAD_BYTES = 16 << 10;

template <Source S, Target T, Way W, bool wraps, bool integral>
struct Loops {
    static constexpr int in_bytes = In<S>::bytes, out_bytes = target_bytes<T>;
    static constexpr int groups = out_bytes >= 4 ? 1 : 4 / out_bytes;
    static constexpr int64_t block_elems = groups * LANES;
    static constexpr uintptr_t ALIGNMENT = VECTOR_BYTES;
    static constexpr int64_t stretch_elems =
        block_elems * in_bytes < LINE_BYTES ? LINE_BYTES / in_bytes : block_elems;

    // All loads come before all stores, so that `to` may be `from` if it is no wider.
    static INLINE void block(const Params& params, const char* from, char* to, bool streams) {
#ifdef __F16C__
        constexpr auto round = [](f32 x) { return rounded<W, true>(x); };
        constexpr bool short_ints = S == Source::F16 && out_bytes <= 2 && !is_float_target<T>;
        if constexpr (short_ints && wraps && W != Way::ODD)
            return store_wrapped_halves<out_bytes>(to, from, round, params.max, params.code_mask,
                                                   streams);
        else if constexpr (short_ints && !wraps)
            return store_packed_halves<out_bytes>(to, from, round, params.min, params.max,
                                                  params.code_mask, streams);
#endif
        using V = decltype(In<S>::load_lanes(from, params));
        V x[groups];
        for (int group = 0; group < groups; ++group)
            x[group] = In<S>::load_lanes(from + group * LANES * in_bytes, params);
        decltype(convert<S, T, W, wraps, integral>(x[0], params)) y[groups];
        for (int group = 0; group < groups; ++group)
            y[group] = convert<S, T, W, wraps, integral>(x[group], params);
#ifdef __F16C__
        if constexpr (T == Target::F16)
            return store_as_halves<W == Way::ODD>(to, y[0], y[1], streams);
        else
#endif
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
        if (streams)
            for (; count >= stretch_elems; count -= stretch_elems) {
                for (int64_t line = 0; line < stretch_elems * in_bytes; line += LINE_BYTES)
                    __builtin_prefetch(from + AHEAD_BYTES + line);
                for (int64_t done = 0; done < stretch_elems; done += block_elems) {
                    block(params, from, to, true);
                    from += block_elems * in_bytes, to += block_elems * out_bytes;
                }
            }
        for (; count >= block_elems; count -= block_elems) {
            block(params, from, to, false);
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
            return target == Target::F32 || target == Target::TAPERED || target == Target::INT8 ||
                   target == Target::INT16 || target == Target::INT32;
        case Source::E5M2:
            return target == Target::F32;
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
            return target != Target::TAPERED || S == Source::F32;
    }
}

// One loop for all ways: nothing is rounded, or a table knows how.
template <Source S, Target T>
constexpr bool is_exact = T == Target::BOOL || T == Target::TAPERED ||
                          (T == Target::F32 && In<S>::bytes <= 2) ||
                          (T == Target::F16 && In<S>::bytes == 1);

template <Source S, Target T>
constexpr bool has_even = T == Target::BF16 || T == Target::NARROW ||
#ifndef __F16C__
                          T == Target::F16 ||
#endif
                          (T == Target::F32 && (S == Source::S64 || S == Source::U64));

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
    if constexpr (has_even<S, T>)
        if (way == Way::EVEN) return Loops<S, T, Way::EVEN, wraps, integral>::run;
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
        case Target::TAPERED:
            return find_overflow<S, Target::TAPERED>(way, wraps);
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
        case Source::E5M2:
            return find_target<Source::E5M2>(target, way, wraps);
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
