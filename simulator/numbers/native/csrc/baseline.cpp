#include "tables.h"
#define FIND find_baseline
#include "loops.h"
