// From a step to the loop that carries it out, with its parameters and rounding direction.
#ifndef PYPTO_CAST_PLANNING_H
#define PYPTO_CAST_PLANNING_H

#include <atomic>
#include <cmath>

#include "definition.h"
#include "plan.h"
#include "rounding.h"

namespace {

enum Level { SCALAR, BASELINE, AVX2, AVX512 };

Source source_of(int fmt) {
    switch (fmt) {
        case FP32:
            return Source::F32;
        case FP16:
            return Source::F16;
        case BF16:
            return Source::BF16;
        case E5M2:
            return Source::E5M2;
        default:
            break;
    }
    const Format& format = FORMATS[fmt];
    if (format.is_float) return Source::NONE;
    switch (format.bytes) {
        case 1:
            return format.is_signed ? Source::S8 : Source::U8;
        case 2:
            return format.is_signed ? Source::S16 : Source::U16;
        case 4:
            return format.is_signed ? Source::S32 : Source::U32;
        default:
            return format.is_signed ? Source::S64 : Source::U64;
    }
}

Target target_of(int fmt) {
    switch (fmt) {
        case FP32:
            return Target::F32;
        case FP16:
            return Target::F16;
        case BF16:
            return Target::BF16;
        case BOOL:
            return Target::BOOL;
        default:
            break;
    }
    const Format& format = FORMATS[fmt];
    if (format.taper) return Target::TAPERED;
    if (format.is_float)
        return format.bytes == 1 && !format.is_scale ? Target::NARROW : Target::NONE;
    switch (format.bytes) {
        case 1:
            return Target::INT8;
        case 2:
            return Target::INT16;
        case 4:
            return format.is_signed ? Target::INT32 : Target::UINT32;
        default:
            return format.is_signed ? Target::INT64 : Target::UINT64;
    }
}

// Whether a step rounds to integral values, in integers or in floats.
bool to_integers(const Step& step) {
    return !FORMATS[step.dst].is_float || (FORMATS[step.src].is_float && step.src == step.dst);
}

bool wraps(const Step& step) { return keeps_low_bits(step.policy); }

// AWAY: integers are readied for toward zero, except of FP16 and those clamped to 16 bits or fewer,
// and so is FP32 from integers; other floats for nearest.
bool cuts(const Step& step) {
    if (!to_integers(step)) return !FORMATS[step.src].is_float && step.dst == FP32;
    const bool is_short = FORMATS[step.dst].bits <= 16 && !wraps(step);
    return step.src != FP16 && !is_short;
}

// The number that a code above 0 would be, were there no infinity and no NaN.
float float_of(uint64_t code, const Format& fmt) {
    const int field = static_cast<int>(code >> fmt.man_bits);
    const uint64_t significand = (code & definition::mask(fmt.man_bits)) | uint64_t{1}
                                                                               << fmt.man_bits;
    return std::ldexp(static_cast<float>(significand), field - fmt.bias - fmt.man_bits);
}

// The codes of a tapered format by the index of to_tapered, of every mode and policy made once; the
// vectors read three bytes beyond one. Of two threads that make the same, the first is kept.
const uint8_t* tapered_codes(uint32_t dst, Mode mode, unsigned policy) {
    static std::atomic<const uint8_t*> made[FORMAT_COUNT][MODE_COUNT][POLICY_COUNT];
    std::atomic<const uint8_t*>& kept = made[dst][mode][policy];
    if (const uint8_t* found = kept.load(std::memory_order_acquire)) return found;
    uint8_t* codes = new uint8_t[(1 << TAPERED_INDEX_BITS) + 3]();
    for (uint32_t index = 0; index < 1 << TAPERED_INDEX_BITS; ++index)
        codes[index] =
            static_cast<uint8_t>(definition::convert((index >> 1) << TAPERED_SHIFT | (index & 1),
                                                     FP32, static_cast<int>(dst), mode, policy));
    const uint8_t* expected = nullptr;
    if (kept.compare_exchange_strong(expected, codes, std::memory_order_acq_rel)) return codes;
    delete[] codes;
    return expected;
}

void set_float_target(Params& params, const Format& dst, Mode mode, unsigned policy) {
    const bool goes_up = rounds_away(mode, true, true, true, false);
    const bool goes_down = rounds_away(mode, true, true, true, true);
    const float max = float_of(dst.max_code, dst);
    const bool keeps_nan = policy & KEEPS_NAN && dst.has_nan;
    const bool keeps_sign = keeps_nan && policy & KEEPS_NAN_SIGN && dst.has_negative_zero;
    // FP32, FP16 and BF16 round to infinity by themselves; rounding away needs a finite number.
    const float beyond = way_of(mode) == Way::AWAY && dst.exp_bits < 8 ? 2 * max : HUGE_VALF;
    params.hi = saturates(policy) ? max : beyond;
    params.lo = -params.hi;
    params.nan_bits = keeps_nan ? static_cast<uint32_t>(dst.nan_code) << (32 - dst.bits) : 0;
    if (keeps_nan && dst.bits < 32 && dst.exp_bits < 8) params.nan_bits = 0x7FFFFFFF;
    params.nan_sign = keeps_sign ? 0x80000000 : 0;
    params.flip = goes_up ? -1 : 0;
    params.directed = goes_up != goes_down ? 0xFFFF : 0;
    if (dst.man_bits > 10) return;

    // What lies beyond the largest number stops at the next code, if the mode goes there.
    const auto limit = [&](bool leaves) {
        leaves = leaves && !saturates(policy);
        return dst.exp_bits < 8 ? float_of(dst.max_code + leaves, dst) : 0;
    };
    params.man_shift = 23 - dst.man_bits;
    params.emin_bits = (dst.emin + 127) << 23;
    params.max_code = static_cast<int32_t>(dst.max_code);
    params.sign_shift = 32 - dst.bits;
    params.special_from = policy & KEEPS_INF ? 0x7F800000 : 0x7F800001;
    params.signed_zero = dst.has_negative_zero;
    params.nan_value = static_cast<int32_t>(definition::nan_code(dst, policy));
    const int32_t sign = static_cast<int32_t>(dst.sign_code);
    params.narrow_nan_sign = keeps_sign ? sign : 0;
    params.sign_code = sign;
    params.above = dst.has_negative_zero ? -1 : 0;
    const bool has_positive_nan = dst.has_nan && !keeps_sign && !dst.nan_is_negative_zero;
    params.last = static_cast<int8_t>(has_positive_nan ? dst.nan_code - 1 : INT8_MAX);
    params.inf_value = dst.has_inf   ? static_cast<int32_t>(dst.inf_code)
                       : dst.has_nan ? params.nan_value
                                     : params.max_code;
    params.inf_sign = dst.has_inf || !dst.has_nan ? sign : params.narrow_nan_sign;
    params.code_mask = 0xFF;
    params.narrow_lo = -limit(goes_down);
    params.narrow_hi = limit(goes_up);
}

void set_int_target(Params& params, const Format& src, const Format& dst, bool wraps) {
    params.max = static_cast<int64_t>(dst.max_magnitude);
    params.min = static_cast<int64_t>(-dst.min_magnitude);
    params.code_mask = static_cast<int32_t>(definition::mask(dst.bits));
    if (src.is_float) {
        // The largest integer, or the next float where none is so large.
        const Format& lanes = FORMATS[FP32];
        const float above = std::ldexp(1.0f, dst.bits - dst.is_signed);
        const bool exact = dst.bits <= lanes.man_bits;
        params.hi = exact ? static_cast<float>(params.max) : above;
        params.lo = -static_cast<float>(dst.min_magnitude);  // -0 if there is no sign
        params.limit = above;
        if (wraps) {  // all finite numbers of FP16; of others what 64-bit integers hold
            params.hi = std::nextafter(0x1p63f, 0.0f);
            params.lo = -0x1p63f;
            if (src.exp_bits < 8) params.hi = 65504, params.lo = -65504;
            params.limit = HUGE_VALF;
        }
        return;
    }
    if (src.bits == 64 && !src.is_signed) {  // clamped as unsigned numbers
        params.min = 0;
    } else {
        const bool is_wide = src.bytes == 8 || (src.bytes == 4 && !src.is_signed);
        const int64_t lanes_max = is_wide ? INT64_MAX : INT32_MAX;
        if (dst.max_magnitude > static_cast<uint64_t>(lanes_max)) params.max = lanes_max;
        if (params.min < -lanes_max - 1) params.min = -lanes_max - 1;
    }
}

auto find_at(int level) {
#if defined(__x86_64__)
    if (level == AVX512) return find_avx512;
    if (level == AVX2) return find_avx2;
#endif
    (void)level;
    return find_baseline;
}

// Loops of so few instructions that memory keeps no pace with them. In vectors of 512 bits they ask
// it for more at once than it serves well: 256 bits are up to 1.3 times as fast there (measured).
bool outruns_memory(const Step& step) {
    const Format &src = FORMATS[step.src], &dst = FORMATS[step.dst];
    if (src.bytes < 4 || src.bytes != 2 * dst.bytes || (src.is_float && wraps(step))) return false;
    if (!dst.is_float) return src.bytes == 4 || !src.is_float;
    return step.dst == FP16 ? step.mode != ODD : step.src == FP32 && step.mode == ROUND;
}

struct Plan {
    Step step;
    Loop loop;       // none: by the definition
    Loop streaming;  // for a result that bypasses the cache
    Direction direction;
    Params params;
};

bool is_valid(const Step& step) {
    if (step.src >= FORMAT_COUNT || step.dst >= FORMAT_COUNT || step.mode >= MODE_COUNT)
        return false;
    if ((step.policy & OVERFLOW_MASK) >= OVERFLOW_COUNT || step.policy >= POLICY_COUNT)
        return false;
    return !wraps(step) || !FORMATS[step.dst].is_float || step.src == step.dst;
}

// Whether infinity becomes the code after the largest number, or the largest number.
bool counts_to_inf(const Format& dst, unsigned policy) {
    if (saturates(policy)) return !(policy & KEEPS_INF);
    return dst.has_inf || (dst.has_nan && policy & KEEPS_NAN);
}

// Wider integers are copied faster by their loops, which bypass the cache.
void copy_bytes(const Params&, const void* in, void* out, int64_t count, bool) {
    std::memmove(out, in, count);
}

bool copies_bytes(const Step& step) {
    const Format &src = FORMATS[step.src], &dst = FORMATS[step.dst];
    const bool integers = !src.is_float && !dst.is_float && src.bits == 8 && dst.bits == 8;
    return integers && (wraps(step) || src.is_signed == dst.is_signed);
}

Plan plan_of(const Step& step, int level) {
    const Format &src = FORMATS[step.src], &dst = FORMATS[step.dst];
    const Mode mode = static_cast<Mode>(step.mode);
    const bool integral = src.is_float && step.src == step.dst;
    const bool is_between_floats = src.is_float && dst.is_float;
    const Direction direction = direction_of(mode, to_integers(step), cuts(step));
    Plan plan = {step, nullptr, nullptr, direction, {}};
    if (level == SCALAR || (integral && step.src != FP32)) return plan;
    if (!integral && is_between_floats && !has_float_loop(step.policy, dst.bits)) return plan;
    if (copies_bytes(step)) {
        plan.loop = plan.streaming = copy_bytes;
        return plan;
    }
    const Target target = target_of(step.dst);
    const bool general = target == Target::NARROW && !counts_to_inf(dst, step.policy);
    Way way = way_of(mode);
    if (way == Way::NONE) return plan;
    if (way == Way::EVEN && general) way = Way::DIRECTION;
    const auto find = [&](int at) {
        return find_at(at)(source_of(step.src), target, way, wraps(step));
    };
    plan.loop = find(level);
    plan.streaming = level == AVX512 && outruns_memory(step) ? find(AVX2) : plan.loop;
    plan.params.code_mask = 0xFF;
    if (!src.is_float && src.bytes == 1) plan.params.source_shift = 32 - src.bits;
    if (target == Target::TAPERED)
        plan.params.tapered = tapered_codes(step.dst, mode, step.policy);
    else if (integral)
        set_float_target(plan.params, dst, mode, OVERFLOW_IEEE | KEEPS_INF | KEEPS_NAN);
    else if (dst.is_float)
        set_float_target(plan.params, dst, mode, step.policy);
    else
        set_int_target(plan.params, src, dst, wraps(step));
    return plan;
}

}  // namespace

#endif  // PYPTO_CAST_PLANNING_H
