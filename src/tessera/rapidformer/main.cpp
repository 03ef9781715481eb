#include "tessera/rapidformer/command.h"

int main(int count, char** values) {
  return tessera::main_of([&](tessera::Console& console) {
    return tessera::run_rapidformer({values + 1, values + count}, console);
  });
}
