#include "tessera/apps/command.h"

int main(int count, char** values) {
  tessera::Console console = tessera::system_console();
  return tessera::run_command({values + 1, values + count}, console);
}
