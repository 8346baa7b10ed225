#define LOOPS loops_avx2
#include "loops.h"
