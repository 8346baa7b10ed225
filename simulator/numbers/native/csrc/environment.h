// The floating-point environment of the loops.
#ifndef PYPTO_CAST_ENVIRONMENT_H
#define PYPTO_CAST_ENVIRONMENT_H

#if defined(__x86_64__)
#include <immintrin.h>
#else
#include <cfenv>
#endif

enum Direction { NEAREST, DOWNWARD, UPWARD, ZEROWARD };

// The loops round as told, flush nothing and raise nothing; the caller finds everything as it was.
class Environment {
  public:
#if defined(__x86_64__)
    Environment() : before(_mm_getcsr()) {}
    ~Environment() { _mm_setcsr(before); }
    static void round(Direction direction) { _mm_setcsr(0x1F80 | direction << 13); }

  private:
    unsigned before;
#else
    Environment() {
        std::fegetenv(&before);
        std::fesetenv(FE_DFL_ENV);
    }
    ~Environment() { std::fesetenv(&before); }
    static void round(Direction direction) {
        constexpr int directions[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
        std::fesetround(directions[direction]);
    }

  private:
    std::fenv_t before;
#endif
};

#endif  // PYPTO_CAST_ENVIRONMENT_H
