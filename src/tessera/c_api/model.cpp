/// Models in c_api.h.

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "tessera/base/text.h"
#include "tessera/c_api/arguments.h"
#include "tessera/c_api/c_api.h"
#include "tessera/c_api/listener.h"
#include "tessera/c_api/run_state.h"
#include "tessera/config/family_fields.h"
#include "tessera/config/fields.h"
#include "tessera/user_code/called_model.h"
#include "tessera/user_code/called_texts.h"

struct tessera_model {
  tessera::CalledModel model;
};

namespace tessera {

namespace {

using ModelJson = nlohmann::ordered_json;

std::string dumped_model(const ModelJson& json) {
  return json.dump(-1, ' ', false, ModelJson::error_handler_t::replace);
}

std::string_view given_text(const char* text, const char* what) {
  require(text != nullptr, "no ", what, " were given");
  return text;
}

ModelJson parsed(const char* json, const char* what) {
  ModelJson out = ModelJson::parse(given_text(json, what), nullptr, /*allow_exceptions=*/false);
  require(!out.is_discarded(), what, " are no JSON");
  return out;
}

ModelJson value_of(const Field& field, const RunConfig& config) {
  const Slot slot = read_slot(field, config);
  if (const auto* const whole = std::get_if<std::int64_t*>(&slot)) return **whole;
  if (const auto* const real = std::get_if<double*>(&slot)) return **real;
  if (const auto* const yes = std::get_if<bool*>(&slot)) return **yes;
  return get_text(field, config);
}

/// The fields of the model that have an effect.
ModelJson config_json(const RunConfig& config) {
  ModelJson out = ModelJson::object();
  for (const Field& field : fields()) {
    if (field.group != FieldGroup::Model || !is_read(field, config)) continue;
    std::string name(field.name);
    std::ranges::replace(name, '-', '_');
    out[name] = value_of(field, config);
  }
  return out;
}

int open_model(tessera_run& run, const char* flags, tessera_model*& out) {
  AskedModel asked = read_model_flags(arguments_of(given_text(flags, "flags")));
  out = new tessera_model{CalledModel(std::move(asked))};
  const CalledModel& model = out->model;
  run.result = dumped_model({{"config", config_json(model.config())},
                             {"labels", model.labels()},
                             {"notices", model.notices()},
                             {"hub_names", model.has_hub_names()},
                             {"tokenizer", model.vocabulary() != nullptr}});
  return 0;
}

Shape shape_of_array(const tessera_array& array, const std::string& name) {
  require(array.ndim >= 0 && array.ndim <= Shape::kMaxDims, name, " has ", array.ndim,
          " dims; give at most ", Shape::kMaxDims);
  require(array.ndim == 0 || array.shape != nullptr, name, " has no shape");
  Shape out;
  std::int64_t numel = 1;
  for (std::int64_t i = 0; i < array.ndim; ++i) {
    const std::int64_t size = array.shape[i];
    constexpr std::int64_t kMost = std::int64_t{1} << 40;
    require(size >= 0 && size <= kMost && (size == 0 || numel <= kMost / size), name,
            " has a dim of ", size, ", which is no size of an array in memory");
    numel *= size;
    out.push_back(size);
  }
  require(numel == 0 || array.data != nullptr, name, " has no data");
  return out;
}

HostTensor tensor_of(const tessera_array& array, const std::string& name) {
  const std::string_view dtype = array.dtype == nullptr ? "" : array.dtype;
  const Shape shape = shape_of_array(array, name);
  if (dtype == "i64") {
    HostTensor out(DType::I32, shape);
    const auto* const from = static_cast<const std::int64_t*>(array.data);
    auto* const to = out.data<std::int32_t>();
    for (std::int64_t i = 0; i < out.numel(); ++i) {
      require(from[i] >= std::numeric_limits<std::int32_t>::min() &&
                  from[i] <= std::numeric_limits<std::int32_t>::max(),
              name, " has ", from[i], " as number ", i, ", which 32 bits do not hold");
      to[i] = static_cast<std::int32_t>(from[i]);
    }
    return out;
  }
  require(dtype == "f32" || dtype == "i32", name, " is of dtype '", dtype,
          "'; give f32, i32 or i64");
  HostTensor out(dtype == "f32" ? DType::F32 : DType::I32, shape);
  std::copy_n(static_cast<const std::byte*>(array.data), out.bytes().size(), out.bytes().begin());
  return out;
}

NamedTensors tensors_of(const tessera_array* inputs, std::int64_t count) {
  require(count >= 0 && (count == 0 || inputs != nullptr), "no arrays were given");
  NamedTensors out;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string name = inputs[i].name == nullptr ? "" : inputs[i].name;
    require(!name.empty(), "array ", i, " has no name");
    require(out.emplace(name, tensor_of(inputs[i], name)).second, "there are two arrays called ",
            name);
  }
  return out;
}

/// Flags of `tessera sample` that are about texts.
constexpr std::string_view kTextFlags[] = {"tokens",
                                           "max-new-tokens",
                                           "temperature",
                                           "top-k",
                                           "top-p",
                                           "seed",
                                           "beams",
                                           "num-beams",
                                           "length-penalty",
                                           "samples",
                                           "num-return-sequences",
                                           "stop",
                                           "rows"};

SampleRequest text_request(const char* flags) {
  Arguments arguments = arguments_of(given_text(flags, "flags"));
  for (const std::string& argument : arguments) {
    if (!argument.starts_with("--")) continue;
    const std::string_view name = std::string_view(argument).substr(2, argument.find('=') - 2);
    std::vector<std::string> known(std::begin(kTextFlags), std::end(kTextFlags));
    for (std::string& one : known) std::ranges::replace(one, '-', '_');
    require(std::ranges::find(kTextFlags, name) != std::end(kTextFlags), "'", name,
            "' is not about texts; there are ", join(known));
  }
  arguments.insert(arguments.begin(), {"--checkpoint", "."});
  SampleRequest out = read_sample_request(arguments, {});
  out.command.problems.raise();
  return out;
}

GivenPrompt prompt_of(const ModelJson& json) {
  if (json.is_string()) return json.get<std::string>();
  require(json.is_array(), "a prompt is ",
          json.dump(-1, ' ', false, ModelJson::error_handler_t::replace),
          "; give a text, or a list of ids");
  Tokens out;
  for (const ModelJson& id : json) {
    require(id.is_number_integer() && id >= 0 && id <= std::numeric_limits<std::int32_t>::max(),
            "a prompt has the id ", id.dump(-1, ' ', false, ModelJson::error_handler_t::replace),
            "; give whole numbers of at least 0");
    out.push_back(id.get<std::int32_t>());
  }
  return out;
}

int write_with(tessera_run& run, CalledModel& model, const char* prompts, const char* flags,
               const tessera_listener& listening) {
  Listener listener(listening, run.stop);
  const ModelJson all = parsed(prompts, "prompts");
  require(all.is_array(), "the prompts are no list; give [\"a text\"]");
  std::vector<GivenPrompt> given;
  for (const ModelJson& one : all) given.push_back(prompt_of(one));
  TextListener hears;
  hears.on_piece = [&](std::size_t text, std::string_view piece) {
    listener.event(
        dumped_model({{"kind", "piece"}, {"text", text}, {"piece", std::string(piece)}}));
  };
  hears.ends = [&] { return run.stop.load(); };
  ModelJson out = ModelJson::array();
  for (const WrittenText& text : write_texts(model, given, text_request(flags), hears))
    out.push_back({{"text", text.text}, {"ids", text.ids}});
  run.result = dumped_model(out);
  return 0;
}

int save_with(tessera_run& run, CalledModel& model, const char* flags) {
  const ModelJson asked = parsed(flags, "flags");
  require(asked.is_object(), "the flags are no object; give {\"folder\": \"exported\"}");
  std::string folder;
  SavePretrained how;
  for (const auto& [key, value] : asked.items()) {
    if (key == "folder" && value.is_string()) {
      folder = value.get<std::string>();
    } else if (key == "overwrite" && value.is_boolean()) {
      how.overwrite = value.get<bool>();
    } else if (key == "dtype" && value.is_string()) {
      const std::initializer_list<DType> known{DType::F32, DType::BF16, DType::F16};
      const auto at = std::ranges::find_if(
          known, [&](DType dtype) { return value.get<std::string>() == to_text(dtype); });
      require(at != known.end(), "dtype is ", dumped_model(value), "; it is f32, bf16 or f16");
      how.dtype = *at;
    } else {
      fail(Fault::Usage, "'", key, "' is ", dumped_model(value),
           "; there are folder, a text, dtype, a text, and overwrite, true or false");
    }
  }
  require(!folder.empty(), "folder is missing; give one, like exported");
  run.result = dumped_model({{"left_out", model.save_pretrained(folder, how)}});
  return 0;
}

int tokens_with(tessera_run& run, const CalledModel& model, const char* json) {
  const ModelJson asked = parsed(json, "tokens");
  require(model.vocabulary() != nullptr,
          "the model has no tokenizer; give tokenizer=FOLDER when it is opened");
  if (asked.is_object() && asked.contains("text") && asked["text"].is_string()) {
    run.result =
        dumped_model({{"ids", model.vocabulary()->encode(asked["text"].get<std::string>())}});
    return 0;
  }
  require(asked.is_object() && asked.contains("ids") && asked["ids"].is_array(),
          "give {\"text\": \"...\"} or {\"ids\": [1, 2]}");
  const Tokens ids = std::get<Tokens>(prompt_of(asked["ids"]));
  run.result = dumped_model({{"text", model.vocabulary()->decode_text(ids)}});
  return 0;
}

CalledModel& opened(tessera_model* model) {
  require(model != nullptr, "there is no model: it is closed, or was never opened");
  return model->model;
}

}  // namespace

}  // namespace tessera

std::int64_t tessera_array_count(const tessera_run* run) { return std::ssize(run->arrays); }

const tessera_array* tessera_array_at(const tessera_run* run, std::int64_t number) {
  const bool there = number >= 0 && number < tessera_array_count(run);
  return there ? &run->arrays[static_cast<std::size_t>(number)] : nullptr;
}

tessera_model* tessera_model_open(tessera_run* run, const char* flags) {
  tessera_model* out = nullptr;
  tessera::kept(*run, [&] { return tessera::open_model(*run, flags, out); });
  return out;
}

void tessera_model_free(tessera_model* model) { delete model; }

int tessera_model_call(tessera_run* run, tessera_model* model, const tessera_array* inputs,
                       std::int64_t count) {
  return tessera::kept(*run, [&] {
    tessera::keep_arrays(*run, tessera::opened(model).call(tessera::tensors_of(inputs, count)));
    return 0;
  });
}

int tessera_model_parameters(tessera_run* run, tessera_model* model, int hub_names) {
  return tessera::kept(*run, [&] {
    tessera::keep_arrays(*run, tessera::opened(model).parameters(hub_names != 0));
    return 0;
  });
}

int tessera_model_write(tessera_run* run, tessera_model* model, const char* prompts,
                        const char* flags, const tessera_listener* listener) {
  const tessera_listener nobody = {};
  return tessera::kept(*run, [&] {
    return tessera::write_with(*run, tessera::opened(model), prompts, flags,
                               listener == nullptr ? nobody : *listener);
  });
}

int tessera_model_save(tessera_run* run, tessera_model* model, const char* flags) {
  return tessera::kept(*run,
                       [&] { return tessera::save_with(*run, tessera::opened(model), flags); });
}

int tessera_model_tokens(tessera_run* run, tessera_model* model, const char* json) {
  return tessera::kept(*run,
                       [&] { return tessera::tokens_with(*run, tessera::opened(model), json); });
}
