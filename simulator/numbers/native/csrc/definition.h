// The conversion of one code in scalar integers, as simulator/numbers/convert.py defines it:
// unpack, round once, pack; then overflow and NaN by the policy. For the pairs that have no loop of
// their own.
#ifndef PYPTO_CAST_DEFINITION_H
#define PYPTO_CAST_DEFINITION_H

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "rounding.h"
#include "tables.h"

namespace definition {

struct Value {
    bool negative, inf, nan;
    uint64_t significand;
    int exponent;
};

inline uint64_t mask(int bits) { return bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1; }

inline int bit_length(uint64_t word) { return word == 0 ? 0 : 64 - __builtin_clzll(word); }

// Drops `shift` low bits; a negative shift appends zeros and loses what leaves the word.
inline uint64_t round_significand(uint64_t significand, int shift, bool negative, Mode mode) {
    const int right = std::clamp(shift, 0, 63), left = std::clamp(-shift, 0, 63);
    const uint64_t kept = significand >> right << left;
    const uint64_t dropped = significand & mask(right);
    const uint64_t half = uint64_t{1} << right >> 1;
    return kept + rounds_away(mode, dropped & half, dropped & ~half, kept & 1, negative);
}

inline Value unpack(uint64_t code, const Format& fmt) {
    if (!fmt.is_float) {
        code &= mask(fmt.bits);
        const bool negative = fmt.is_signed && code >> (fmt.bits - 1);
        return {negative, false, false, negative ? -code & mask(fmt.bits) : code, 0};
    }
    const uint64_t magnitude = code & (fmt.sign_code - 1);
    if (fmt.taper) {
        const Taper& taper = TAPERS[fmt.taper - 1];
        const int rank = taper.ranks[magnitude];
        return {(code & fmt.sign_code) != 0, magnitude == fmt.inf_code,
                fmt.nan_is_negative_zero && (code & mask(fmt.bits)) == fmt.sign_code,
                taper.significands[rank], taper.quanta[rank]};
    }
    const int field = static_cast<int>(magnitude >> fmt.man_bits);
    const uint64_t implicit = static_cast<uint64_t>(field != 0 || fmt.is_scale) << fmt.man_bits;
    const uint64_t largest = fmt.has_inf ? fmt.inf_code : fmt.max_code;
    return {(code & fmt.sign_code) != 0, fmt.has_inf && magnitude == fmt.inf_code,
            fmt.nan_is_negative_zero ? code == fmt.sign_code : magnitude > largest,
            (magnitude & mask(fmt.man_bits)) | implicit,
            std::max(field, int{!fmt.is_scale}) - fmt.bias - fmt.man_bits};
}

inline uint64_t nan_code(const Format& dst, unsigned policy) {
    return policy & KEEPS_NAN && dst.has_nan ? dst.nan_code : 0;
}

// The fraction bits of an exponent, and what its significands add up with to ranks.
struct Binade {
    int man_bits;
    uint64_t base;
};

inline Binade binade_of(int exponent, const Format& fmt) {
    if (fmt.taper) {
        const Taper& taper = TAPERS[fmt.taper - 1];
        const int place = std::clamp(exponent, taper.least, taper.most) - taper.least;
        return {taper.man_bits[place], taper.bases[place]};
    }
    return {fmt.man_bits, static_cast<uint64_t>(exponent - fmt.emin) << fmt.man_bits};
}

inline uint64_t rank_of(uint64_t code, const Format& fmt) {
    return fmt.taper ? TAPERS[fmt.taper - 1].ranks[code] : code;
}

inline uint64_t code_of(uint64_t rank, const Format& fmt) {
    return fmt.taper ? TAPERS[fmt.taper - 1].codes[rank] : rank;
}

inline uint64_t pack_float(const Value& value, const Format& dst, Mode mode, unsigned policy) {
    const int leading =
        value.significand == 0 ? dst.emin : value.exponent + bit_length(value.significand) - 1;
    const int exponent = std::max(leading, dst.emin);
    const Binade binade = binade_of(exponent, dst);
    const int quantum = exponent - binade.man_bits;
    const uint64_t kept =
        round_significand(value.significand, quantum - value.exponent, value.negative, mode);
    const uint64_t rank = binade.base + kept;
    const bool overflow = rank > rank_of(dst.max_code, dst);
    bool to_inf = value.inf && policy & KEEPS_INF;
    if (!saturates(policy) && overflow && !value.inf)
        to_inf |= rounds_away(mode, true, true, true, value.negative);
    uint64_t magnitude = overflow || value.inf ? dst.max_code : code_of(rank, dst);
    const bool to_nan = value.nan || (to_inf && !dst.has_inf && dst.has_nan);
    if (to_inf && dst.has_inf) magnitude = dst.inf_code;
    if (to_nan) {
        const bool keeps_sign = policy & KEEPS_NAN_SIGN && policy & KEEPS_NAN &&
                                dst.has_negative_zero && dst.has_nan && value.negative;
        return nan_code(dst, policy) | (keeps_sign ? dst.sign_code : 0);
    }
    const bool is_signed = value.negative && (dst.has_negative_zero || magnitude != 0);
    return magnitude | (is_signed ? dst.sign_code : 0);
}

inline uint64_t pack_scale(const Value& value, const Format& dst, Mode mode, unsigned policy) {
    const int length = bit_length(value.significand);
    const int leading = value.exponent + length - 1;
    const uint64_t kept = round_significand(value.significand, length - 1, value.negative, mode);
    const bool above_power = (value.significand & (value.significand - 1)) != 0;
    const int max_code = static_cast<int>(dst.max_code);
    const bool below =
        value.negative || (!value.inf && (value.significand == 0 || leading < dst.emin));
    const bool above = !below && (value.inf || leading + above_power > max_code - dst.bias);
    if (value.nan || (!saturates(policy) && (below || above)) || (policy & KEEPS_INF && value.inf))
        return nan_code(dst, policy);
    return below   ? 0
           : above ? dst.max_code
                   : static_cast<uint64_t>(leading + dst.bias + (kept == 2));
}

inline uint64_t pack_int(const Value& value, const Format& dst, Mode mode, unsigned policy) {
    const int shift = -value.exponent;
    uint64_t magnitude =
        shift <= -64 ? 0 : round_significand(value.significand, shift, value.negative, mode);
    const uint64_t limit = value.negative ? dst.min_magnitude : dst.max_magnitude;
    const bool beyond_word = bit_length(value.significand) - shift > 64;
    if (value.inf || (!keeps_low_bits(policy) && (beyond_word || magnitude > limit)))
        magnitude = limit;
    if (value.nan) magnitude = 0;
    return (value.negative ? -magnitude : magnitude) & mask(dst.bits);
}

inline Value to_integral(const Value& value, Mode mode) {
    const int shift = std::max(-value.exponent, 0);
    const uint64_t kept = round_significand(value.significand, shift, value.negative, mode);
    return {value.negative && (kept != 0 || value.inf), value.inf, value.nan, kept,
            value.exponent + shift};
}

inline uint64_t convert(uint64_t code, int src, int dst, Mode mode, unsigned policy) {
    const Value value = unpack(code, FORMATS[src]);
    const Format& target = FORMATS[dst];
    if (target.is_bool) return value.nan || value.inf || value.significand != 0;
    if (!target.is_float) return pack_int(value, target, mode, policy);
    if (src == dst)
        return pack_float(to_integral(value, mode), target, mode,
                          OVERFLOW_IEEE | KEEPS_INF | KEEPS_NAN);
    return (target.is_scale ? pack_scale : pack_float)(value, target, mode, policy);
}

}  // namespace definition

#endif  // PYPTO_CAST_DEFINITION_H
