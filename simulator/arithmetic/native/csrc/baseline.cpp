#define LOOPS loops_baseline
#include "loops.h"
