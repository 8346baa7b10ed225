#define LOOPS loops_avx512
#include "loops.h"
