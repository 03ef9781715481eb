#include "tessera/planner/plan_file.h"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "tessera/base/error.h"
#include "tessera/base/hash.h"
#include "tessera/base/text.h"
#include "tessera/base/toml/parse_toml.h"
#include "tessera/base/toml_string.h"
#include "tessera/config/fields.h"
#include "tessera/machines/find_machine.h"
#include "tessera/machines/machine_file.h"
#include "tessera/models/family.h"

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

constexpr std::string_view kDigest = "digest";  // of the fields
/// Of the lines of fields, however they end.
std::string digest_of_fields(std::string_view toml) {
  std::string all;
  for (const std::string& line : split(toml, '\n')) {
    const std::string_view words = trim(line);
    if (!words.empty() && words.front() != '#') all += text(words, "\n");
  }
  return digest(all);
}

constexpr std::string_view kVocabulary = ", vocabulary ";
constexpr const char* kMakeOne = "make one with tessera plan --auto --write-plan FILE";

std::uint32_t toml_line(const toml::node& node) { return node.source().begin.line; }

/// Errors: Fault::Usage: a key that is missing, is not known, or is no text.
MadeFor read_made_for(const toml::table& plan, const std::string& path) {
  MadeFor out;
  for (const auto& [name, node] : plan) {
    if (name.str() == kDigest) continue;
    const auto known = std::ranges::find(kKeys, name.str(), &Key::name);
    const std::string line = text(path, ":", static_cast<std::int64_t>(toml_line(node)), ": ");
    require(known != std::end(kKeys), line, "unknown key plan.", name.str(), "; ", kMakeOne);
    require(node.is_string(), line, "plan.", name.str(), " is not a text in quotes; ", kMakeOne);
    out.*known->value = node.as_string()->get();
  }
  for (const Key& key : kKeys)
    require(plan.contains(key.name), "'", path, "' is not a plan: its table [plan] has no ",
            key.name, " to identify its machine and model; ", kMakeOne);
  return out;
}

bool is_machine_file(const std::string& machine) {
  const std::vector<std::string> names = machine_names();
  return !machine.empty() && std::ranges::find(names, machine) == names.end();
}

/// What a machine is: its description, or where none is told its cores and instruction set.
std::string described(const RunConfig& config, int cores) {
  if (!config.machine.empty()) return machine_file_text(config.parallel.machine);
  return text("cores = ", cores, ", ", config.max_isa);
}

std::string model_text(const RunConfig& config) {
  const ModelConfig& model = config.model;
  return text(model.family, " of ", layer_count(model), " layers, width ", model.width,
              ", context ", model.context, kVocabulary, model.vocabulary, ", batches of ",
              config.global_batch_size);
}
/// The same without that size, which the data may tell later.
std::string without_vocabulary(std::string model) {
  const std::size_t begin = model.find(kVocabulary);
  if (begin == std::string::npos) return model;
  return model.erase(begin, model.find(", ", begin + kVocabulary.size()) - begin);
}

constexpr const char* kF32Products = "f32-products";
bool chooses_f32_products(const RunConfig& config) {
  return config.parallel.machine.kernels == KernelSource::Cpu && config.choices &&
         config.choices->isa >= Isa::Amx;
}

}  // namespace

MadeFor made_for(const RunConfig& config, int cores) {
  MadeFor out;
  const std::string machine = described(config, cores);
  out.machine = config.machine.empty() ? text("this machine, ", machine) : config.machine;
  out.machine_digest = digest(machine);
  std::string all;
  for (const Field& field : fields()) {
    if (field.group == FieldGroup::Model || field.group == FieldGroup::Adapters ||
        field.name == "global-batch-size")
      all += text(field.name, " = ", get_text(field, config), "\n");
  }
  out.model = model_text(config);
  out.model_digest = digest(all);
  return out;
}

std::string plan_file_text(const RunConfig& base, const PlanChoice& choice, int cores) {
  RunConfig config = with(base, choice);
  const MadeFor of = made_for(config, cores);
  if (is_machine_file(config.machine))  // a plan may be run in another folder
    config.machine = std::filesystem::absolute(config.machine).lexically_normal().string();
  std::string out = "# Made by tessera plan --auto; tessera train --plan FILE runs it.\n";
  std::vector<const Field*> written = plan_fields(base, choice);
  // As measured here: the plan's bytes are of these kernels.
  if (chooses_f32_products(config) && !base.given.contains(kF32Products))
    written.push_back(find_field(kF32Products).field);
  for (const Field* field : written) {
    if (!may_be_in_plan(*field)) continue;
    out += text(field->name, " = ", toml_value(*field, config), "\n");
  }
  const std::string of_fields = digest_of_fields(out);
  out += "\n[plan]\n";
  for (const Key& key : kKeys) out += text(key.name, " = ", toml_string(of.*key.value), "\n");
  out += text(kDigest, " = ", toml_string(of_fields), "\n");
  return out;
}

PlanFile parse_plan_file(std::string_view toml, const std::string& path) {
  const toml::table all = parse_toml(toml, path);
  const toml::table* plan = all["plan"].as_table();
  require(plan != nullptr, "'", path, "' is not a plan: it has no table [plan] to identify its ",
          "machine and model; ", kMakeOne);
  PlanFile out{read_made_for(*plan, path), {}};
  const std::uint32_t first = toml_line(*plan);
  std::uint32_t next = std::numeric_limits<std::uint32_t>::max();  // line of the next table
  for (const auto& [name, node] : all) {
    if (toml_line(node) > first) next = std::min(next, toml_line(node));
  }
  std::uint32_t number = 0;
  for (const std::string& line : split(toml, '\n')) {
    ++number;
    if (number < first || number >= next) out.fields += line;
    out.fields += "\n";
  }
  require(plan->contains(kDigest), "the plan '", path, "' has no ", kDigest,
          " of its fields: it was written by an older tessera plan; ", kMakeOne);
  require((*plan)[kDigest].value<std::string>() == digest_of_fields(out.fields), "the plan '", path,
          "' was changed after tessera plan wrote it: its digest does not match its fields; give "
          "changes as flags beside --plan, or ",
          kMakeOne);
  return out;
}

bool is_of_another_model(const PlanFile& plan, RunConfig config) {
  complete(config);
  return without_vocabulary(model_text(config)) != without_vocabulary(plan.made_for.model);
}

void require_made_for(const PlanFile& plan, const RunConfig& config, int cores,
                      const std::string& path) {
  const MadeFor here = made_for(config, cores), &there = plan.made_for;
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
