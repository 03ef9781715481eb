#include "tessera/planner/plan_file.h"

#include <algorithm>

#include "tessera/base/cores.h"
#include "tessera/base/error.h"
#include "tessera/base/hash.h"
#include "tessera/base/text.h"
#include "tessera/machines/machine_file.h"
#include "tessera/models/family.h"
#include "tessera/train/fields.h"

namespace tessera {

namespace {

struct Key {
  std::string_view name;
  std::string MadeFor::*value;
};
constexpr Key kKeys[] = {{"machine", &MadeFor::machine},
                         {"machine-digest", &MadeFor::machine_digest},
                         {"model", &MadeFor::model},
                         {"model-digest", &MadeFor::model_digest}};

std::string digest(const std::string& of) {
  return hash128_text(std::as_bytes(std::span(of.data(), of.size())));
}

/// What a machine is: its description, or where none is told its cores and instruction set.
std::string described(const RunConfig& config) {
  if (!config.machine.empty()) return machine_file_text(config.parallel.machine);
  return text("cores = ", num_usable_cores(), ", ", config.max_isa);
}

}  // namespace

MadeFor made_for(const RunConfig& config) {
  MadeFor out;
  const std::string machine = described(config);
  out.machine = config.machine.empty() ? text("this machine, ", machine) : config.machine;
  out.machine_digest = digest(machine);
  std::string all;
  for (const Field& field : fields()) {
    if (field.group == FieldGroup::Model || field.name == "global-batch-size")
      all += text(field.name, " = ", get_text(field, config), "\n");
  }
  const ModelConfig& model = config.model;
  out.model = text(model.family, " of ", layer_count(model), " layers, width ", model.width,
                   ", context ", model.context, ", vocabulary ", model.vocabulary, ", batches of ",
                   config.global_batch_size);
  out.model_digest = digest(all);
  return out;
}

std::string plan_file_text(const RunConfig& base, const PlanChoice& choice) {
  const RunConfig config = with(base, choice);
  const MadeFor of = made_for(config);
  std::string out = "# Made by tessera plan --auto; tessera train --plan FILE runs it.\n";
  for (const Field* field : plan_fields(base, choice))
    out += text(field->name, " = ", toml_value(*field, config), "\n");
  out += "\n[plan]\n";
  for (const Key& key : kKeys) out += text(key.name, " = \"", of.*key.value, "\"\n");
  return out;
}

PlanFile parse_plan_file(std::string_view toml, const std::string& path) {
  PlanFile out;
  bool inside = false;
  std::size_t known = 0;
  for (const std::string& line : split(toml, '\n')) {
    if (line == "[plan]") inside = true;
    if (!inside) {
      out.fields += line + "\n";
      continue;
    }
    for (const Key& key : kKeys) {
      const std::string begin = text(key.name, " = \"");
      if (!starts_with(line, begin) || line.back() != '"') continue;
      out.made_for.*key.value = line.substr(begin.size(), line.size() - begin.size() - 1);
      ++known;
    }
  }
  require(known == std::size(kKeys), "'", path, "' is no plan: its table [plan] does not say what ",
          "machine and model it was made for; make one with tessera plan --auto --write-plan FILE");
  return out;
}

void require_made_for(const PlanFile& plan, const RunConfig& config, const std::string& path) {
  const MadeFor here = made_for(config), &there = plan.made_for;
  require(here.machine_digest == there.machine_digest, "the plan '", path,
          "' was made for the machine ", there.machine, ", and this run is for ", here.machine,
          here.machine == there.machine ? text(", which has changed since (", there.machine_digest,
                                               ", now ", here.machine_digest, ")")
                                        : "",
          "; make one for this machine with tessera plan --auto --write-plan FILE");
  require(here.model_digest == there.model_digest, "the plan '", path, "' was made for ",
          there.model, ", and this run has ", here.model,
          here.model == there.model
              ? text(" with other sizes (", there.model_digest, ", now ", here.model_digest, ")")
              : "",
          "; make one for this model with tessera plan --auto --write-plan FILE");
}

}  // namespace tessera
