#include "tables.h"
#define FIND find_avx512
#include "loops.h"
