#include "tessera/rapidformer/user_script.h"

#include "tessera/base/error.h"

namespace tessera {

int run_user_script(const std::string& path, const Arguments&, Console&) {
  fail(Fault::Usage, "--user-script ", path, ": programs of one's own are built with CMake today; ",
       "docs/install.md shows one");
}

}  // namespace tessera
