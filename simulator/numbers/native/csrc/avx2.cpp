#include "tables.h"
#define FIND find_avx2
#include "loops.h"
