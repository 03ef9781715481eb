#include "tessera/apps/check_flag.h"

#include "tessera/base/counted.h"
#include "tessera/base/text.h"
#include "tessera/plan/pass_check.h"

namespace tessera {

Flag check_flag() {
  return {"check",
          {},
          "",
          "interpret each program before and after each compiler pass, and compare all results; "
          "for small models",
          "",
          false};
}

Compiled compile_checked(const RunSetup& setup, WantedPrograms wanted, Device& device,
                         Console& console) {
  PassCheck check;
  wanted.stages = true;
  wanted.check = &check;
  Compiled out = compile_programs(setup, wanted, device);
  console.err << text("notice: --check: ", check.passes(), " passes of ",
                      counted(check.programs(), "program"), " changed no result\n");
  return out;
}

}  // namespace tessera
