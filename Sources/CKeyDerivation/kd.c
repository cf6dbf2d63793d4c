#include "CKeyDerivation.h"
void keyhaul_placeholder(void) {}
