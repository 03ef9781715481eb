#include "tessera/apps/command.h"

int main(int count, char** values) { return tessera::main_of(count, values); }
