#pragma once
/// Plans in files: the flags that make one, the machine and the model that it was made for.

#include <string>
#include <string_view>
#include <vector>

#include "tessera/planner/choice.h"

namespace tessera {

/// What a plan was made for. A text and a digest each: the digest tells whether it is the same, the
/// text tells people.
struct MadeFor {
  std::string machine, machine_digest;
  std::string model, model_digest;
  friend bool operator==(const MadeFor&, const MadeFor&) = default;
};

/// Of a complete configuration, on so many cores of this machine where it names none. The model:
/// all of its sizes, its task, and the batch.
MadeFor made_for(const RunConfig& config, int cores);

/// TOML: [plan] says what it was made for, the rest are fields of a configuration. A machine file
/// has its whole path.
std::string plan_file_text(const RunConfig& base, const PlanChoice& choice, int cores);

/// A plan file, apart: what it was made for, and its fields as TOML in the same lines.
struct PlanFile {
  MadeFor made_for;
  std::string fields;
};
/// Errors: Fault::Usage: no TOML; no plan file; a key of [plan] that is missing, or not known;
/// fields that were changed since.
PlanFile parse_plan_file(std::string_view toml, const std::string& path);

/// True where `config`, which need not be complete or free of problems, has another model or batch
/// than the plan, whatever its vocabulary.
bool is_of_another_model(const PlanFile& plan, RunConfig config);

/// Errors: Fault::Usage: the plan was made for another machine or model; both.
void require_made_for(const PlanFile& plan, const RunConfig& config, int cores,
                      const std::string& path);

}  // namespace tessera
