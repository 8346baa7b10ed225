// The C interface: which loop serves a step, with what parameters, in which floating-point
// environment; chains of steps by pieces that stay in the first cache.
#include <cmath>
#include <cstddef>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "definition.h"
#include "environment.h"
#include "plan.h"

#ifndef PYPTO_CAST_DIGEST
#error "PYPTO_CAST_DIGEST: the digest of the sources, as CMakeLists.txt computes it"
#endif

namespace {

struct Step {
    uint32_t src, dst, mode, policy;
};

enum Level { SCALAR, BASELINE, AVX2 };

enum Status { OK, BAD_STEP, BAD_LEVEL, BAD_MEMORY };

// --- From a step to a loop -----------------------------------------------------------------------

Source source_of(int fmt) {
    switch (fmt) {
        case FP32:
            return Source::F32;
        case FP16:
            return Source::F16;
        case BF16:
            return Source::BF16;
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

Way way_of(Mode mode) {
    switch (mode) {
        case RINT:
            return Way::EVEN;
        case ROUND:
            return Way::AWAY;
        case ODD:
            return Way::ODD;
        default:
            return Way::DIRECTION;
    }
}

// AWAY: floats are readied for nearest, integers for toward zero. ODD: of two integers the odd one
// is the lower one with its last bit set; of two floats the smaller one.
Direction direction_of(Mode mode, bool to_integers) {
    switch (mode) {
        case FLOOR:
            return DOWNWARD;
        case CEIL:
            return UPWARD;
        case TRUNC:
            return ZEROWARD;
        case ROUND:
            return to_integers ? ZEROWARD : NEAREST;
        case ODD:
            return to_integers ? DOWNWARD : ZEROWARD;
        default:
            return NEAREST;
    }
}

// The number that a code above 0 would be, were there no infinity and no NaN.
float float_of(uint64_t code, const Format& fmt) {
    const int field = static_cast<int>(code >> fmt.man_bits);
    const uint64_t significand = (code & definition::mask(fmt.man_bits)) | uint64_t{1}
                                                                               << fmt.man_bits;
    return std::ldexp(static_cast<float>(significand), field - fmt.bias - fmt.man_bits);
}

void set_float_target(Params& params, const Format& dst, Mode mode, unsigned policy) {
    const bool saturates = (policy & OVERFLOW_MASK) == OVERFLOW_SATURATE;
    const float max = float_of(dst.max_code, dst);
    const bool keeps_nan = policy & KEEPS_NAN && dst.has_nan;
    const bool keeps_sign = keeps_nan && policy & KEEPS_NAN_SIGN && dst.has_negative_zero;
    // FP32, FP16 and BF16 round to infinity by themselves; rounding away needs a finite number.
    const float beyond = mode == ROUND && dst.exp_bits < 8 ? 2 * max : HUGE_VALF;
    params.hi = saturates ? max : beyond;
    params.lo = -params.hi;
    params.nan_bits = keeps_nan ? static_cast<uint32_t>(dst.nan_code) << (32 - dst.bits) : 0;
    if (keeps_nan && dst.bits < 32 && dst.exp_bits < 8) params.nan_bits = 0x7FFFFFFF;
    params.nan_sign = keeps_sign ? 0x80000000 : 0;
    params.flip = mode == CEIL ? -1 : 0;
    params.directed = mode == FLOOR || mode == CEIL ? 0xFFFF : 0;
    if (dst.man_bits > 10) return;

    // What lies beyond the largest number stops at the next code, if the mode goes there.
    const auto limit = [&](bool negative) {
        const bool leaves = !saturates && definition::rounds_away(mode, true, true, true, negative);
        return dst.exp_bits < 8 ? float_of(dst.max_code + leaves, dst) : 0;
    };
    params.man_shift = 23 - dst.man_bits;
    params.emin_bits = (dst.emin + 127) << 23;
    params.max_code = static_cast<int32_t>(dst.max_code);
    params.sign_shift = 32 - dst.bits;
    params.special_from = policy & KEEPS_INF ? 0x7F800000 : 0x7F800001;
    params.zero_sign = dst.has_negative_zero ? -1 : 0;
    params.nan_value = static_cast<int32_t>(definition::nan_code(dst, policy));
    const int32_t sign = static_cast<int32_t>(dst.sign_code);
    params.narrow_nan_sign = keeps_sign ? sign : 0;
    params.inf_value = dst.has_inf   ? static_cast<int32_t>(dst.inf_code)
                       : dst.has_nan ? params.nan_value
                                     : params.max_code;
    params.inf_sign = dst.has_inf || !dst.has_nan ? sign : params.narrow_nan_sign;
    params.code_mask = 0xFF;
    params.narrow_lo = -limit(true);
    params.narrow_hi = limit(false);
}

void set_int_target(Params& params, const Format& src, const Format& dst, bool wraps) {
    params.max = static_cast<int64_t>(dst.max_magnitude);
    params.min = static_cast<int64_t>(-dst.min_magnitude);
    params.code_mask = static_cast<int32_t>(definition::mask(dst.bits));
    if (src.is_float) {
        // The largest float that is no larger than the largest integer, and the next one.
        const Format& lanes = FORMATS[FP32];
        const float above = std::ldexp(1.0f, dst.bits - dst.is_signed);
        const bool exact = dst.bits <= lanes.man_bits;
        params.hi = exact ? static_cast<float>(params.max) : std::nextafter(above, 0.0f);
        params.lo = static_cast<float>(params.min);
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

// Loops know nothing of these combinations, which no cast of theirs needs.
bool has_loop(const Format& src, const Format& dst, unsigned policy) {
    if (!dst.is_float || !src.is_float) return true;
    const bool ieee = (policy & OVERFLOW_MASK) == OVERFLOW_IEEE, keeps_inf = policy & KEEPS_INF;
    return ieee == keeps_inf || (keeps_inf && dst.bits <= 8);
}

auto find_at(int level) {
#if defined(__x86_64__)
    if (level == AVX2) return find_avx2;
#endif
    (void)level;
    return find_baseline;
}

struct Plan {
    Step step;
    Loop loop;  // none: by the definition
    Direction direction;
    Params params;
};

bool is_valid(const Step& step) {
    if (step.src >= FORMAT_COUNT || step.dst >= FORMAT_COUNT || step.mode >= MODE_COUNT)
        return false;
    const unsigned overflow = step.policy & OVERFLOW_MASK;
    if (overflow >= OVERFLOW_COUNT || step.policy > 31) return false;
    return overflow != OVERFLOW_WRAP || !FORMATS[step.dst].is_float || step.src == step.dst;
}

bool wraps(const Step& step) { return (step.policy & OVERFLOW_MASK) == OVERFLOW_WRAP; }

Plan plan_of(const Step& step, int level) {
    const Format &src = FORMATS[step.src], &dst = FORMATS[step.dst];
    const Mode mode = static_cast<Mode>(step.mode);
    const bool integral = src.is_float && step.src == step.dst;
    Plan plan = {step, nullptr, direction_of(mode, integral || !dst.is_float), {}};
    if (level == SCALAR || !(integral ? step.src == FP32 : has_loop(src, dst, step.policy)))
        return plan;
    plan.loop = find_at(level)(source_of(step.src), target_of(step.dst), way_of(mode), wraps(step));
    plan.params.code_mask = 0xFF;
    if (!src.is_float && src.bytes == 1) plan.params.source_shift = 32 - src.bits;
    if (integral)
        set_float_target(plan.params, dst, mode, OVERFLOW_IEEE | KEEPS_INF | KEEPS_NAN);
    else if (dst.is_float)
        set_float_target(plan.params, dst, mode, step.policy);
    else
        set_int_target(plan.params, src, dst, wraps(step));
    return plan;
}

// A format that holds every number of `fmt` and has all loops.
uint32_t lanes_of(const Format& fmt) {
    if (fmt.is_float) return FP32;
    if (fmt.bytes == 8) return fmt.is_signed ? INT64 : UINT64;
    return fmt.bytes < 4 || fmt.is_signed ? INT32 : INT64;
}

constexpr int MAX_STEPS = 8;

// Whether a step from an integer format changes no value.
bool keeps_values(const Format& src, const Format& dst) {
    if (src.is_float || dst.is_bool) return false;
    if (dst.is_float) return src.bits <= dst.man_bits + 1 && src.bits < 1 << (dst.exp_bits - 1);
    return src.max_magnitude <= dst.max_magnitude && src.min_magnitude <= dst.min_magnitude;
}

// Makes two steps one, if the first does nothing that the second would not undo.
bool merge(Step& step, const Step& next) {
    const Format &src = FORMATS[step.src], &between = FORMATS[step.dst], &dst = FORMATS[next.dst];
    if (step.dst != next.src || (between.is_float && step.dst == next.dst)) return false;
    const bool low_bits = !src.is_float && !between.is_float && wraps(step) && !between.is_bool &&
                          !dst.is_float && wraps(next) && dst.bits <= between.bits;
    if (dst.is_bool || !(low_bits || keeps_values(src, between))) return false;
    step = {step.src, next.dst, next.mode, next.policy};
    return true;
}

struct Chain {
    Plan plans[2 * MAX_STEPS];
    int count = 0;

    // One loop, or two by way of a format that holds every number of the source.
    void add(const Step& step, int level) {
        const Plan plan = plan_of(step, level);
        const uint32_t lanes = lanes_of(FORMATS[step.src]);
        if (plan.loop == nullptr && step.src != step.dst && lanes != step.src) {
            const unsigned exact = OVERFLOW_IEEE | KEEPS_INF | KEEPS_NAN | KEEPS_NAN_SIGN;
            const Plan first = plan_of({step.src, lanes, RINT, exact}, level);
            const Plan second = plan_of({lanes, step.dst, step.mode, step.policy}, level);
            if (first.loop != nullptr && second.loop != nullptr) {
                plans[count++] = first;
                plans[count++] = second;
                return;
            }
        }
        plans[count++] = plan;
    }

    // False: no such steps.
    bool set(const Step* steps, int64_t steps_count, int level) {
        if (steps_count < 1 || steps_count > MAX_STEPS) return false;
        Step merged[MAX_STEPS];
        int kept = 0;
        for (int64_t index = 0; index < steps_count; ++index) {
            if (!is_valid(steps[index])) return false;
            if (index > 0 && steps[index].src != steps[index - 1].dst) return false;
            merged[kept++] = steps[index];
            while (level != SCALAR && kept > 1 && merge(merged[kept - 2], merged[kept - 1])) --kept;
        }
        for (int index = 0; index < kept; ++index) add(merged[index], level);
        return true;
    }
};

void define(const Step& step, const char* in, char* out, int64_t count) {
    const int in_bytes = FORMATS[step.src].bytes, out_bytes = FORMATS[step.dst].bytes;
    for (int64_t index = 0; index < count; ++index) {
        uint64_t code = 0;
        std::memcpy(&code, in + index * in_bytes, in_bytes);  // little-endian
        code = definition::convert(code, step.src, step.dst, static_cast<Mode>(step.mode),
                                   step.policy);
        std::memcpy(out + index * out_bytes, &code, out_bytes);
    }
}

void run_step(const Plan& plan, const char* in, char* out, int64_t count, bool streams) {
    if (plan.loop == nullptr) return define(plan.step, in, out, count);
    Environment::round(plan.direction);
    plan.loop(plan.params, in, out, count, streams);
}

constexpr int64_t PIECE_ELEMS = 1024;

void run_chain(const Chain& chain, const char* in, char* out, int64_t count, bool streams) {
    const int last = chain.count - 1;
    if (last == 0) return run_step(chain.plans[0], in, out, count, streams);
    alignas(64) char buffers[2][PIECE_ELEMS * sizeof(uint64_t)];
    const int in_bytes = FORMATS[chain.plans[0].step.src].bytes;
    const int out_bytes = FORMATS[chain.plans[last].step.dst].bytes;
    for (int64_t start = 0; start < count; start += PIECE_ELEMS) {
        const int64_t elems = std::min(PIECE_ELEMS, count - start);
        const char* from = in + start * in_bytes;
        for (int step = 0; step <= last; ++step) {
            char* to = step == last ? out + start * out_bytes : buffers[step % 2];
            run_step(chain.plans[step], from, to, elems, step == last && streams);
            from = to;
        }
    }
}

bool may_write(const char* in, int64_t in_size, const char* out, int64_t out_size) {
    const auto from = reinterpret_cast<uintptr_t>(in), to = reinterpret_cast<uintptr_t>(out);
    return (from == to && out_size <= in_size) || from + in_size <= to || to + out_size <= from;
}

bool has_avx2() {
#if defined(__x86_64__)
    static const bool found = [] {  // asked once: virtual machines take microseconds to answer
        unsigned a, b, c, d;
        return __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
    }();
    return found;
#else
    return false;
#endif
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT int pypto_cast_native_version() { return VERSION; }

EXPORT const char* pypto_cast_native_digest() { return PYPTO_CAST_DIGEST; }

// The levels that this machine runs, by number; the last one is the fastest.
EXPORT const char* pypto_cast_native_levels() {
    return has_avx2() ? "scalar baseline avx2" : "scalar baseline";
}

// Whether every step has a loop; else some are converted one element after another.
EXPORT int pypto_cast_native_has_loops(int level, const Step* steps, int64_t count) {
    Chain chain;
    if (!chain.set(steps, count, level)) return false;
    return std::all_of(chain.plans, chain.plans + chain.count,
                       [](const Plan& plan) { return plan.loop != nullptr; });
}

// Converts `elems` codes by the steps in order. The result may take the place of the source if its
// elements are no wider; else the two do not overlap.
EXPORT int pypto_cast_native_run(int level, const Step* steps, int64_t count, const void* in,
                                 void* out, int64_t elems) {
    if (level < SCALAR || level > (has_avx2() ? AVX2 : BASELINE)) return BAD_LEVEL;
    Chain chain;
    if (!chain.set(steps, count, level)) return BAD_STEP;
    const char* from = static_cast<const char*>(in);
    char* to = static_cast<char*>(out);
    const int64_t in_size = elems * FORMATS[steps[0].src].bytes;
    const int64_t out_size = elems * FORMATS[steps[count - 1].dst].bytes;
    if (elems < 0 || !may_write(from, in_size, to, out_size)) return BAD_MEMORY;
    const bool streams = out_size >= STREAMED_BYTES;
    const Environment environment;
    run_chain(chain, from, to, elems, streams);
#if defined(__x86_64__)
    if (streams) _mm_sfence();
#endif
    return OK;
}
