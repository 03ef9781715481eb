#include "tessera/report/inspect_pretrained.h"

#include <map>
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
std::string model_sizes_text(const ModelConfig& model) {
  RunConfig config;
  config.model = with_derived(model);
  std::vector<std::string> out;
  for (const Field& field : fields()) {
    if (field.group == FieldGroup::Model && reads_field(model, field.name) &&
        field.name != "family" && field.name != "task")
      out.push_back(text(field.name, " ", get_text(field, config)));
  }
  return join(out, ", ");
}

std::string tensors_of(const PretrainedModel& model) {
  std::int64_t bytes = 0, parameters = 0;
  std::map<std::string, std::int64_t> dtypes;
  for (const auto& [dtype, of_tensor] : model.stored()) ++dtypes[dtype], bytes += of_tensor;
  if (dtypes.empty()) return "none: config.json alone";
  for (const auto& [name, shape] : model.parameters()) parameters += shape.numel();
  std::vector<std::string> counts;
  for (const auto& [dtype, count] : dtypes) counts.push_back(text(count, " of ", dtype));
  return text(counted(std::ssize(model.stored()), "tensor"), " (", join(counts), "), ",
              bytes_text(bytes), "; ", grouped(parameters), " parameters are read from them");
}

std::string tokenizer_of(const std::string& folder, std::vector<std::string>& notices) {
  if (!Tokenizer::is_in(folder)) return "none";
  const Tokenizer tokenizer = Tokenizer::load(folder);
  notices.insert(notices.end(), tokenizer.notices().begin(), tokenizer.notices().end());
  return text(grouped(tokenizer.size()), " ids");
}

}  // namespace

std::string describe_pretrained(const std::string& folder) {
  RunConfig asked;
  asked.init_from = folder;
  asked.defaulted.insert("task");
  const PretrainedModel model = open_pretrained(asked, OpenPretrained::Weights::Read);
  std::vector<std::string> notices = model.notices();
  Lines lines = {{"family", text(model.config().family)},
                 {"task", std::string(family_task(model.config()).name)},
                 {"sizes", model_sizes_text(model.config())},
                 {"tensors", tensors_of(model)},
                 {"tokenizer", tokenizer_of(folder, notices)}};
  if (!model.labels().empty()) lines.emplace_back("labels", join(model.labels()));
  lines.emplace_back("trains for", join(model.tasks()));
  for (const std::string& notice : notices) lines.emplace_back("notice", notice);
  std::string out = text("a model of Hugging Face in '", folder, "'\n");
  for (auto& [name, value] : lines) {
    name.resize(12, ' ');
    out += text("  ", name, printable(value), "\n");
  }
  return out;
}

}  // namespace tessera
