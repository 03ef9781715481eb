#include "tessera/train/about_run.h"

#include "tessera/base/cores.h"
#include "tessera/base/counted.h"
#include "tessera/base/format.h"
#include "tessera/base/text.h"
#include "tessera/data/dataset.h"
#include "tessera/data/row_labels.h"
#include "tessera/data/streamed_text.h"
#include "tessera/models/family.h"
#include "tessera/models/layer.h"
#include "tessera/sources/sample_choices.h"
#include "tessera/train/programs.h"

namespace tessera {

namespace {

/// True where nothing says how large the model is.
bool is_default_model(const RunConfig& c) {
  const ModelConfig usual;
  return c.preset.empty() && c.init_from.empty() && c.model.layers == usual.layers &&
         c.model.width == usual.width && c.model.heads == usual.heads;
}

/// "1,003,854 tokens to train and 111,540 held out"
std::string data_text(const Dataset& data) {
  const auto both = [](std::int64_t train, std::int64_t all, const char* what) {
    const std::string out = text(grouped(train), " ", what, " to train");
    return all == train ? out : text(out, " and ", grouped(all - train), " held out");
  };
  const Texts* const texts = data.find_texts();
  if (texts == nullptr) {
    const std::vector<std::string>& classes = data.label_names;
    return text(to_text(data.kind()), classes.empty() ? "" : " of class ",
                label_names_text(classes));
  }
  if (const StreamedText* const stream = data.stream()) {
    std::int64_t bytes = 0;
    for (const TextFile& file : texts->files) bytes += file.bytes;
    return text("a stream of ", counted(std::ssize(texts->files), "file"), ", ", bytes_text(bytes),
                ", shuffled ", grouped(stream->choice().buffer), " samples at a time");
  }
  if (data.has_rows()) return both(texts->rows.train, texts->rows.rows(), "rows");
  const TokenStream& tokens = texts->tokens;
  return text(both(std::ssize(tokens.train()), std::ssize(tokens.all()), "tokens"), ", which are ",
              to_text(data.vocabulary.kind()));
}

std::string data_line(const PreparedRun& run, const Task& task, const Samples& samples) {
  const RunConfig& c = run.config;
  std::string out = text("data: ", data_text(*run.data));
  const bool windows_overlap = c.sample_order == SampleOrder::RandomOffsets &&
                               run.data->find_texts() != nullptr && !run.data->has_rows() &&
                               run.data->stream() == nullptr;
  if (windows_overlap) return text(out, "; samples start at any token, so there are no epochs");
  const std::int64_t in_epoch =
      run.data->token_files() != nullptr && task.token_files
          ? task.token_files->samples_in_epoch(*run.data->token_files(), sample_choices(c))
          : samples.size();
  if (in_epoch <= 0 || run.data->stream() != nullptr) return out;
  const std::string epochs =
      format("%.3g", static_cast<double>(c.steps) * static_cast<double>(c.global_batch_size) /
                         static_cast<double>(in_epoch));
  return text(out, "; ", grouped(in_epoch), " samples an epoch, so ", grouped(c.steps),
              " steps of ", grouped(c.global_batch_size), " are ", epochs,
              epochs == "1" ? " epoch" : " epochs");
}

/// ", products by AMX (AMX measured 1.39 times as fast as multiply-adds)"; empty: there is one way.
std::string f32_products_text(const RunConfig& c) {
  if (!c.choices || c.choices->isa < Isa::Amx) return "";
  return text(", products by ", long_name(c.choices->f32_products),
              c.f32_reason.empty() ? "" : text(" (", c.f32_reason, ")"));
}

}  // namespace

std::string model_text(const RunConfig& config, bool from_checkpoint) {
  const ModelConfig& m = config.model;
  std::vector<std::string> layers;
  for (const LayerStack& stack : m.family->stacks(m)) layers.push_back(text(stack.layers));
  std::string out = text(m.family, ", ", join(layers, " + "),
                         layers.size() == 1 && layers[0] == "1" ? " layer" : " layers", ", width ",
                         m.width, ", ", counted(m.heads, "head"));
  if (m.context > 0) out += text(", context ", m.context);
  if (m.vocabulary > 0) out += text(", vocabulary ", grouped(m.vocabulary));
  if (has_experts(m))
    out += text(", ", counted(m.experts.experts, "expert"), ", of which a token reads ",
                m.experts.chosen);
  const std::vector<std::string>& targets = m.lora.targets;
  if (m.lora.rank > 0)
    out += text(", trained by adapters of rank ", m.lora.rank, " at ",
                targets.empty() ? join(kStandardLoraTargets) : join(targets));
  if (!from_checkpoint && is_default_model(config))
    out +=
        "; this is the default model: choose one with --preset, --init-from or --layers, --width "
        "and --heads";
  return out;
}

std::string devices_text(const RunConfig& c) {
  const std::int64_t devices = c.parallel.devices,
                     threads = c.threads > 0 ? c.threads : num_usable_cores() / devices;
  const bool described = c.parallel.machine.kernels == KernelSource::Described;
  const bool accelerated = !plugin_of(c).empty();
  const std::optional<Precision> precision = precision_of(c);
  return text(counted(devices, "device"),
              described     ? ""
              : accelerated ? " of " + c.device
                            : " of " + counted(std::max<std::int64_t>(threads, 1), "thread"),
              ", in ",
              precision ? text(precision->compute, " with parameters and updates in f32")
                        : text("f32", c.tf32                     ? ", products in TF32"
                                      : described || accelerated ? ""
                                                                 : f32_products_text(c)));
}

std::vector<std::string> about_run(const PreparedRun& run, const RunSetup& setup,
                                   const Samples& samples) {
  return {text("model: ", model_text(run.config, run.from.has_value())),
          data_line(run, setup.task(), samples), text("on: ", devices_text(run.config))};
}

}  // namespace tessera
