// Everything that depends on a round mode or an overflow rule. No switch here has a default branch,
// and the build refuses one that leaves out an enumerator: a new one has to be decided everywhere.
#ifndef PYPTO_CAST_ROUNDING_H
#define PYPTO_CAST_ROUNDING_H

#include "environment.h"
#include "plan.h"
#include "tables.h"

inline Overflow overflow_of(unsigned policy) {
    return static_cast<Overflow>(policy & OVERFLOW_MASK);
}

// The mode adds one unit to the kept magnitude.
inline bool rounds_away(Mode mode, bool guard, bool sticky, bool odd, bool negative) {
    switch (mode) {
        case RINT:
            return guard && (sticky || odd);
        case ROUND:
            return guard;
        case FLOOR:
            return negative && (guard || sticky);
        case CEIL:
            return !negative && (guard || sticky);
        case TRUNC:
            return false;
        case ODD:
            return !odd && (guard || sticky);
    }
    __builtin_unreachable();
}

// A mode that the loops do not know is Way::NONE: the definition serves it.
inline Way way_of(Mode mode) {
    switch (mode) {
        case RINT:
            return Way::EVEN;
        case ROUND:
            return Way::AWAY;
        case FLOOR:
        case CEIL:
        case TRUNC:
            return Way::DIRECTION;
        case ODD:
            return Way::ODD;
    }
    __builtin_unreachable();
}

// AWAY: `cuts`, the loop readies numbers for toward zero; else for nearest. ODD: of two integers
// the odd one is the lower one with its last bit set; of two floats the smaller one.
inline Direction direction_of(Mode mode, bool to_integers, bool cuts) {
    switch (mode) {
        case RINT:
            return NEAREST;
        case ROUND:
            return cuts ? ZEROWARD : NEAREST;
        case FLOOR:
            return DOWNWARD;
        case CEIL:
            return UPWARD;
        case TRUNC:
            return ZEROWARD;
        case ODD:
            return to_integers ? DOWNWARD : ZEROWARD;
    }
    __builtin_unreachable();
}

// Finite numbers that a float format cannot hold become its largest number in every mode.
inline bool saturates(unsigned policy) {
    switch (overflow_of(policy)) {
        case OVERFLOW_IEEE:
            return false;
        case OVERFLOW_SATURATE:
            return true;
        case OVERFLOW_WRAP:
            return false;  // no rule of floats
    }
    __builtin_unreachable();
}

// Integers out of range keep their low bits; else they become the limit.
inline bool keeps_low_bits(unsigned policy) {
    switch (overflow_of(policy)) {
        case OVERFLOW_IEEE:
        case OVERFLOW_SATURATE:
            return false;
        case OVERFLOW_WRAP:
            return true;
    }
    __builtin_unreachable();
}

// Loops between floats know nothing of the other combinations, which no cast of theirs needs.
inline bool has_float_loop(unsigned policy, int dst_bits) {
    const bool keeps_inf = policy & KEEPS_INF;
    switch (overflow_of(policy)) {
        case OVERFLOW_IEEE:
            return keeps_inf;
        case OVERFLOW_SATURATE:
            return !keeps_inf || dst_bits <= 8;
        case OVERFLOW_WRAP:
            return false;
    }
    __builtin_unreachable();
}

#endif  // PYPTO_CAST_ROUNDING_H
