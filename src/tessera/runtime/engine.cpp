#include "tessera/runtime/engine.h"

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {

const NamedTensor& find_metric(const Plan& plan, const ProgramPlan* last, std::string_view program,
                               std::string_view name) {
  const ProgramPlan& of = plan.program(program);
  for (const NamedTensor& metric : of.metrics) {
    if (metric.name != name) continue;
    if (last != &of)
      fail(Fault::Usage, "metric '", name, "' of program '", program, "' is read ",
           last == nullptr ? std::string("before any run")
                           : text("after program '", last->name, "' ran"),
           "; run the program, and read its metrics before running another");
    return metric;
  }
  throw Broken(text("program '", program, "' has no metric '", name, "'"));
}

}  // namespace tessera
