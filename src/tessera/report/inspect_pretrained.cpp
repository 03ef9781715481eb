#include "tessera/report/inspect_pretrained.h"

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "tessera/base/counted.h"
#include "tessera/base/printable.h"
#include "tessera/base/text.h"
#include "tessera/config/fields.h"
#include "tessera/models/family.h"
#include "tessera/tokenizers/tokenizer.h"
#include "tessera/train/pretrained_start.h"

namespace tessera {

namespace {

using Lines = std::vector<std::pair<std::string, std::string>>;

/// Fields of the model that its task reads, as they would be given.
Lines model_sizes(const ModelConfig& model) {
  RunConfig config;
  config.model = with_derived(model);
  Lines out;
  for (const Field& field : fields()) {
    if (field.group == FieldGroup::Model && reads_field(model, field.name) &&
        field.name != "family" && field.name != "task")
      out.emplace_back(field.name, get_text(field, config));
  }
  return out;
}

struct Weights {
  std::int64_t tensors = 0, bytes = 0, parameters = 0;
  std::map<std::string, std::int64_t> dtypes;  // how many tensors have each
};

Weights weights_of(const PretrainedModel& model) {
  Weights out{.tensors = std::ssize(model.stored()), .dtypes = {}};
  for (const auto& [dtype, of_tensor] : model.stored()) ++out.dtypes[dtype], out.bytes += of_tensor;
  if (out.tensors == 0) return out;
  for (const auto& [name, shape] : model.parameters()) out.parameters += shape.numel();
  return out;
}

std::string weights_text(const Weights& weights) {
  if (weights.tensors == 0) return "none: config.json alone";
  std::vector<std::string> counts;
  for (const auto& [dtype, count] : weights.dtypes) counts.push_back(text(count, " of ", dtype));
  return text(counted(weights.tensors, "tensor"), " (", join(counts), "), ",
              bytes_text(weights.bytes), "; ", grouped(weights.parameters),
              " parameters are read from them");
}

/// How many ids the tokenizer has; none: there is no tokenizer.
std::optional<std::int64_t> ids_of(const std::string& folder, std::vector<std::string>& notices) {
  if (!Tokenizer::is_in(folder)) return std::nullopt;
  const Tokenizer tokenizer = Tokenizer::load(folder);
  notices.insert(notices.end(), tokenizer.notices().begin(), tokenizer.notices().end());
  return tokenizer.size();
}

}  // namespace

Inspection inspect_pretrained(const std::string& folder) {
  RunConfig asked;
  asked.init_from = folder;
  asked.defaulted.insert("task");
  const PretrainedModel model = open_pretrained(asked, OpenPretrained::Weights::Read);
  std::vector<std::string> notices = model.notices(), sizes;
  const std::string family = text(model.config().family), task(family_task(model.config()).name);
  const Weights weights = weights_of(model);
  const std::optional<std::int64_t> ids = ids_of(folder, notices);
  nlohmann::ordered_json json = {{"kind", "pretrained"},
                                 {"path", folder},
                                 {"family", family},
                                 {"task", task},
                                 {"tensors", weights.tensors},
                                 {"dtypes", weights.dtypes},
                                 {"bytes", weights.bytes},
                                 {"parameters", weights.parameters},
                                 {"tokenizer_ids", nullptr},
                                 {"labels", model.labels()},
                                 {"trains_for", model.tasks()},
                                 {"notices", notices}};
  if (ids) json["tokenizer_ids"] = *ids;
  for (const auto& [name, value] : model_sizes(model.config())) {
    sizes.push_back(text(name, " ", value));
    json["sizes"][name] = value;
  }
  Lines lines = {{"family", family},
                 {"task", task},
                 {"sizes", join(sizes, ", ")},
                 {"tensors", weights_text(weights)},
                 {"tokenizer", ids ? text(grouped(*ids), " ids") : "none"}};
  if (!model.labels().empty()) lines.emplace_back("labels", join(model.labels()));
  lines.emplace_back("trains for", join(model.tasks()));
  for (const std::string& notice : notices) lines.emplace_back("notice", notice);
  std::string out = text("a model of Hugging Face in '", folder, "'\n");
  for (auto& [name, value] : lines) {
    name.resize(12, ' ');
    out += text("  ", name, printable(value), "\n");
  }
  return {out, json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)};
}

}  // namespace tessera
