// The C interface: which loop serves a step, with what parameters, in which floating-point
// environment; chains of steps by pieces that stay in the first cache.
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "planning.h"

#ifndef PYPTO_CAST_DIGEST
#error "PYPTO_CAST_DIGEST: the digest of the sources, as CMakeLists.txt computes it"
#endif

namespace {

// A format that holds every number of `fmt` and has all loops.
uint32_t lanes_of(const Format& fmt) {
    if (fmt.is_float) return FP32;
    if (fmt.bytes == 8) return fmt.is_signed ? INT64 : UINT64;
    return fmt.bytes < 4 || fmt.is_signed ? INT32 : INT64;
}

// Whether a step from an integer format changes no value.
bool keeps_values(const Format& src, const Format& dst) {
    if (src.is_float || dst.is_bool || dst.is_scale) return false;
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
        const bool between = lanes != step.src && lanes != step.dst && step.src != step.dst;
        if (plan.loop == nullptr && between) {
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
    (streams ? plan.streaming : plan.loop)(plan.params, in, out, count, streams);
}

constexpr int64_t PIECE_ELEMS = 1024;  // whole lines of any result

void run_chain(const Chain& chain, const char* in, char* out, int64_t count, bool streams) {
    const int last = chain.count - 1;
    if (last == 0) return run_step(chain.plans[0], in, out, count, streams);
    alignas(64) char buffers[2][PIECE_ELEMS * sizeof(uint64_t)];
    const int in_bytes = FORMATS[chain.plans[0].step.src].bytes;
    const int out_bytes = FORMATS[chain.plans[last].step.dst].bytes;
    // Pieces that bypass the cache meet at its lines: a line of two pieces would be written twice.
    const int64_t ahead = -reinterpret_cast<uintptr_t>(out) % LINE_BYTES / out_bytes;
    for (int64_t start = 0, elems; start < count; start += elems) {
        elems = std::min(start == 0 && ahead > 0 ? ahead : PIECE_ELEMS, count - start);
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

Level best_level() {
#if defined(__x86_64__)
    static const Level best = [] {  // asked once: virtual machines take microseconds to answer
        unsigned a, b, c, d;
        const bool has_f16c = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
        if (!has_f16c || !__builtin_cpu_supports("avx2")) return BASELINE;
        const bool has_all =
            __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
        return has_all ? AVX512 : AVX2;
    }();
    return best;
#else
    return BASELINE;
#endif
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT int pypto_cast_native_version() { return VERSION; }

EXPORT const char* pypto_cast_native_digest() { return PYPTO_CAST_DIGEST; }

// The levels that this machine runs, by number; the last one is the fastest.
EXPORT const char* pypto_cast_native_levels() {
    constexpr const char* levels[] = {"scalar", "scalar baseline", "scalar baseline avx2",
                                      "scalar baseline avx2 avx512"};
    return levels[best_level()];
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
    if (level < SCALAR || level > best_level()) return BAD_LEVEL;
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
