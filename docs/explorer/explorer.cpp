// The conversion of the native engine for a browser: the same definition.h, compiled to WebAssembly.
//
//     python -m docs.generators.explorer_module --build
//
// Codes are words of 64 bits in one buffer, which JavaScript fills and reads.
#include <cfenv>

// WebAssembly rounds to nearest alone. The loops ask for directions, the definition does not.
#ifndef FE_DOWNWARD
#define FE_DOWNWARD FE_TONEAREST
#define FE_UPWARD FE_TONEAREST
#define FE_TOWARDZERO FE_TONEAREST
#endif

#include "definition.h"

#ifndef EXPLORER_DIGEST
#error "EXPLORER_DIGEST: the digest of the sources, as explorer_module.py computes it"
#endif

#define EXPORT(name) extern "C" __attribute__((export_name(#name))) auto explorer_##name

namespace {

constexpr int64_t CAPACITY = 1 << 16;
uint64_t codes[CAPACITY];
Step steps[MAX_STEPS];
definition::Value value;

}  // namespace

EXPORT(digest)() -> const char* { return EXPLORER_DIGEST; }
EXPORT(capacity)() -> int { return CAPACITY; }
EXPORT(codes_at)() -> uint64_t* { return codes; }
EXPORT(steps_at)() -> Step* { return steps; }

// Converts the first codes of the buffer in place, by the steps in order.
EXPORT(convert)(int step_count, int elems) -> void {
    for (int step = 0; step < step_count; ++step) {
        const Step& one = steps[step];
        for (int place = 0; place < elems; ++place)
            codes[place] = definition::convert(codes[place], one.src, one.dst,
                                               static_cast<Mode>(one.mode), one.policy);
    }
}

// The number of a code, as (-1)^negative * significand * 2^exponent: bit 0 of the result says
// negative, bit 1 infinity, bit 2 NaN.
EXPORT(unpack)(uint64_t code, int format) -> int {
    value = definition::unpack(code, FORMATS[format]);
    return value.negative | value.inf << 1 | value.nan << 2;
}
EXPORT(significand)() -> uint64_t { return value.significand; }
EXPORT(exponent)() -> int { return value.exponent; }

// The exponent of the last place that a destination has for the number unpacked last.
EXPORT(quantum)(int format) -> int {
    const Format& fmt = FORMATS[format];
    const int length = definition::bit_length(value.significand);
    if (!fmt.is_float) return 0;
    if (fmt.is_scale) return value.exponent + length - 1;
    const int leading = length == 0 ? fmt.emin : value.exponent + length - 1;
    const int exponent = std::max(leading, fmt.emin);
    return exponent - definition::binade_of(exponent, fmt).man_bits;
}

// Whether a number, as `nearest` takes it, lies beyond the largest one of a float.
EXPORT(beyond)(uint64_t significand, int exponent, int format) -> int {
    using definition::bit_length;
    const definition::Value most = definition::unpack(FORMATS[format].max_code, FORMATS[format]);
    const int above = exponent + bit_length(significand) - most.exponent - bit_length(most.significand);
    if (above != 0) return above > 0;
    return definition::round_significand(significand, most.exponent - exponent, false, RINT) >
           most.significand;
}

// The code nearest to significand * 2^exponent, ties to even; the significand has at most 62 bits, so
// that a shift by all of them is one by 63. The last bit stands for all below it: rounded once.
EXPORT(nearest)(int negative, uint64_t significand, int exponent, int format) -> uint64_t {
    const definition::Value given = {negative != 0, false, false, significand, exponent};
    const unsigned policy = OVERFLOW_IEEE | KEEPS_INF | KEEPS_NAN;
    const Format& fmt = FORMATS[format];
    if (!fmt.is_float) return definition::pack_int(given, fmt, RINT, policy);
    return (fmt.is_scale ? definition::pack_scale : definition::pack_float)(given, fmt, RINT,
                                                                             policy);
}
