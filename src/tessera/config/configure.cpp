/// Where a configuration comes from: defaults, a preset, a file and flags, and what they say of
/// each other.

#include <algorithm>
#include <array>

#include "tessera/base/counted.h"
#include "tessera/base/text.h"
#include "tessera/base/words.h"
#include "tessera/config/config.h"
#include "tessera/config/family_fields.h"
#include "tessera/config/fields.h"
#include "tessera/config/presets.h"
#include "tessera/models/context_parallel.h"

namespace tessera {

namespace {

/// A setting with the field that it means.
struct Meant {
  const Field* field;
  std::vector<std::string> values;
  std::string source;
  bool negated = false;  // it was written as "no-" and the name
};

/// "true" for "false", and back; anything else stays.
std::vector<std::string> negation(std::vector<std::string> values) {
  for (std::string& value : values)
    value = value == "true" ? "false" : value == "false" ? "true" : value;
  return values;
}

/// The values as the user wrote them.
std::string written_values(const Meant& setting) {
  return join(setting.negated ? negation(setting.values) : setting.values);
}

/// "--micro-batch-size 4", "--no-offload-optimizer", "layers 4 in run.toml:3"
std::string as_written(const Meant& setting) {
  const std::string value = written_values(setting);
  const bool flag = starts_with(setting.source, "--");
  const std::size_t place = setting.source.find(" in ");
  if (!flag && place != std::string::npos)
    return text(setting.source.substr(0, place), " ", value, setting.source.substr(place));
  const bool alone = is_switch(*setting.field) && flag && value == "true";
  return alone ? setting.source : text(setting.source, " ", value);
}

/// The settings of one origin by field, in the order of their first mention.
std::vector<Meant> meant(const std::vector<Setting>& settings, std::string_view prefix,
                         Problems& problems) {
  constexpr std::size_t kMostUnknown = 20;  // that are told, each with names like it
  std::vector<Meant> out;
  std::size_t unknown = 0;
  const char* const kind = prefix.empty() ? "key" : "flag";
  for (const Setting& setting : settings) {
    const FoundField found = find_field(setting.key);
    const Field* field = found.field;
    if (field == nullptr) {
      if (++unknown <= kMostUnknown)
        problems.add(text("unknown ", kind, " ", setting.source, near_fields(setting.key, prefix)));
      continue;
    }
    std::vector<std::string> values = found.negated ? negation(setting.values) : setting.values;
    const auto earlier =
        std::find_if(out.begin(), out.end(), [&](const Meant& m) { return m.field == field; });
    if (earlier == out.end()) {
      out.push_back({field, std::move(values), setting.source, found.negated});
    } else if (is_list(*field)) {
      earlier->values.insert(earlier->values.end(), values.begin(), values.end());
    } else if (earlier->values != values) {
      problems.add(text(as_written(*earlier), " and ",
                        as_written({field, values, setting.source, found.negated}),
                        " disagree: both set ", field->name, "; give one"));
    }
  }
  if (unknown > kMostUnknown)
    problems.add(text("and ", counted(unknown - kMostUnknown, text("more unknown ", kind)),
                      prefix.empty() ? "; is this a file of a run?" : ""));
  return out;
}

void apply(const Meant& setting, RunConfig& config, Problems& problems) {
  for (const std::string& value : setting.values) {
    if (!problems.gather([&] { set_text(*setting.field, config, value, setting.source); }))
      problems.refuse(setting.field->name);
  }
}

const Meant* find(const std::vector<Meant>& settings, std::string_view name) {
  for (const Meant& setting : settings) {
    if (setting.field->name == name) return &setting;
  }
  return nullptr;
}

/// Makes `config` the preset of the settings, or of the published model of their family. What is
/// unknown is said where the settings are applied.
void begin_as(const std::vector<Meant>& settings, RunConfig& config) {
  Problems ignored;
  ignored.gather([&] {
    const Meant *preset = find(settings, "preset"), *family = find(settings, "family");
    if (preset != nullptr && !preset->values.at(0).empty()) {
      find_preset(preset->values.at(0)).apply(config);
    } else if (family != nullptr) {
      config.model = published(find_model(family->values.at(0), config.families));
    }
  });
}

/// config.given. Files that runs write name every field: a default there asks for nothing, nor
/// does a field that is not read and has the value that its family or preset begins with, the
/// file's or the run's.
void note_asked(const std::vector<Meant>& file, const std::vector<Meant>& flags,
                RunConfig& config) {
  RunConfig standard, of_family, of_file;
  of_family.model = published(config.model.family);
  of_file.families = config.families;
  begin_as(file, of_file);
  for (const Meant& setting : file) {
    const Field& field = *setting.field;
    const std::string value = get_text(field, config);
    if (!is_read(field, config) &&
        (value == get_text(field, of_family) || value == get_text(field, of_file)))
      continue;
    if (value != get_text(field, standard))
      config.given[std::string(field.name)] = as_written(setting);
  }
  for (const Meant& setting : flags) {
    config.given[std::string(setting.field->name)] = as_written(setting);
  }
}

/// Weights are to be packed in a run that is compiled without it.
void note_unread_packing(const RunConfig& config, std::vector<std::string>& notices) {
  const auto asked = config.given.find("pack-weights");
  if (!config.graph_optimization && asked != config.given.end() && config.pack_weights == "yes")
    notices.push_back(
        text(asked->second,
             " does nothing: packing weights is part of graph-optimization, which is off"));
}

/// A ring of keys needs parts of one length.
void note_gathered_keys(const RunConfig& config, std::vector<std::string>& notices) {
  const std::int64_t parts = config.parallel.context, tokens = config.model.context;
  ParallelConfig parallel = config.parallel;
  parallel.keys = find_word<KeyExchange>(kKeyExchanges, config.cp_comm_type);
  if (key_exchange_of(parallel, config.model) != KeyExchange::Ring || parts < 2 ||
      tokens % parts == 0 || !reads_field(config.model, "context"))
    return;
  notices.push_back(text("context ", tokens, " is not a multiple of context-parallel-size ", parts,
                         ": each device gathers the keys of all; nearest multiples are ",
                         tokens / parts * parts, " and ", (tokens / parts + 1) * parts));
}

/// Two fields that answer one question.
struct Rivals {
  std::string_view name, other;
  std::string_view name_off, other_off;  // the value with which one says nothing; empty: none
  std::string_view means;                // the value of `name` for which `other` stands
  std::string_view because;
};
constexpr std::string_view kLength = "both set the length of the run";
constexpr std::string_view kZero = "both set what data parallel devices shard";
constexpr std::string_view kRecomputed = "both set what backward recomputes";
constexpr std::string_view kSixteenBits = "both set whether the run computes in bf16";
constexpr Rivals kRivals[] = {
    {"epochs", "steps", "0", "", "", kLength},
    {"zero-stage", "zero-1-memory-optimization", "", "false", "1", kZero},
    {"zero-stage", "zero-2-memory-optimization", "", "false", "2", kZero},
    {"zero-stage", "zero-3-memory-optimization", "", "false", "3", kZero},
    {"zero-stage", "fsdp-memory-optimization", "", "false", "3", kZero},
    {"recompute-granularity", "checkpoint-activations", "", "false", "full", kRecomputed},
    {"bf16", "mixed-precision", "false", "false", "true", kSixteenBits},
};

/// Two settings of one origin that disagree.
std::string disagreement(const Meant& one, const Meant& other, const Rivals& r) {
  return text(as_written(one), " and ", as_written(other), " disagree: ", r.because, "; give one");
}

/// Rivals of a file are a problem where no flag has answered for them. `config` is what all
/// settings say together. The files that runs write have steps beside epochs, and switches beside
/// fields that leave the answer to them, as stage 0 does.
void find_rivals_in_file(const std::vector<Meant>& file, const std::vector<Meant>& flags,
                         const RunConfig& config, Problems& problems) {
  for (const Rivals& r : kRivals) {
    const Meant *one = find(file, r.name), *other = find(file, r.other);
    if (r.means.empty() || one == nullptr || other == nullptr) continue;
    if (find(flags, r.name) != nullptr || find(flags, r.other) != nullptr) continue;
    const Field& field = *one->field;
    const std::string value = get_text(field, config);  // the default where a flag has silenced it
    if (value != get_text(field, RunConfig()) && value != r.means &&
        other->values.back() != r.other_off)
      problems.add(disagreement(*one, *other, r));
  }
}

/// As if nobody had told it.
void silence(std::string_view name, RunConfig& config) {
  const Field& field = *find_field(name).field;
  copy_field(field, config, RunConfig());
}

/// Flags that disagree are problems; where a flag answers, the other field of the file says
/// nothing.
void settle_rivals(const std::vector<Meant>& file, const std::vector<Meant>& flags,
                   RunConfig& config, Problems& problems) {
  const auto answers = [](const Meant* setting, std::string_view off) {
    return setting != nullptr && (off.empty() || setting->values.back() != off);
  };
  for (const Rivals& r : kRivals) {
    const Meant *one = find(flags, r.name), *other = find(flags, r.other);
    const bool one_answers = answers(one, r.name_off), other_answers = answers(other, r.other_off);
    if (one_answers && other_answers) {
      if (!r.means.empty() && one->values.back() == r.means) continue;
      problems.add(disagreement(*one, *other, r));
    } else if (one_answers && !r.means.empty() && other == nullptr &&
               find(file, r.other) != nullptr) {
      silence(r.other, config);
    } else if (other_answers && one == nullptr && find(file, r.name) != nullptr) {
      silence(r.name, config);
    }
    // A flag that is off says no to what it stands for.
    if (r.means.empty() || other == nullptr || other_answers) continue;
    if (one != nullptr && one->values.back() == r.means) {
      problems.add(disagreement(*one, *other, r));
    } else if (one == nullptr && get_text(*find_field(r.name).field, config) == r.means) {
      silence(r.name, config);
    }
  }
  find_rivals_in_file(file, flags, config, problems);
}

/// A field that has a meaning only with some values of others.
struct Dependent {
  std::string_view name;
  std::array<std::string_view, 2> of;
  bool (*has_meaning)(const RunConfig&);
};
constexpr Dependent kDependents[] = {
    {"offload-folder",
     {"remote-device", ""},
     [](const RunConfig& c) -> bool { return c.remote_device == kRemoteFile; }},
    {"recompute-layers",
     {"recompute-granularity", "checkpoint-activations"},
     [](const RunConfig& c) -> bool {
       return c.checkpoint_activations ||
              find_word<Recompute>(kRecomputes, c.recompute_granularity) != Recompute::None;
     }},
};

/// Where a flag takes the meaning from a field of the file, the field says nothing.
void settle_dependents(const std::vector<Meant>& file, const std::vector<Meant>& flags,
                       RunConfig& config) {
  for (const Dependent& d : kDependents) {
    const bool answered = std::ranges::any_of(
        d.of, [&](std::string_view name) { return find(flags, name) != nullptr; });
    if (answered && find(file, d.name) != nullptr && find(flags, d.name) == nullptr &&
        !d.has_meaning(config))
      silence(d.name, config);
  }
}

/// remote-device alone offloads optimizer and gradients, but for what is told to stay. The files
/// that runs write have both switches, off: such a pair says nothing.
void settle_remote_device(const std::vector<Meant>& file, const std::vector<Meant>& flags,
                          RunConfig& config, Problems& problems) {
  if (config.remote_device == kRemoteNone || config.offload_optimizer || config.offload_gradients ||
      config.offload_parameters || config.offload_activations)
    return;
  const auto may_go = [&](std::string_view name, std::string_view twin) {
    if (find(flags, name) != nullptr) return false;
    return find(file, name) == nullptr || find(file, twin) != nullptr;
  };
  const bool optimizer = may_go("offload-optimizer", "offload-gradients"),
             gradients = may_go("offload-gradients", "offload-optimizer");
  if (optimizer && gradients) return;
  config.offload_optimizer = optimizer, config.offload_gradients = gradients;
  if (!optimizer && !gradients)
    problems.add(text("remote-device ", config.remote_device,
                      " with neither offload-optimizer nor offload-gradients offloads nothing; "
                      "give remote-device ",
                      kRemoteNone, ", or an offload flag, like offload-parameters"));
}

}  // namespace

RunConfig configure(const std::vector<Setting>& file, const std::vector<Setting>& flags,
                    Problems& problems, std::vector<std::string>& notices,
                    const OwnFamilies& families) {
  const std::vector<Meant> from_file = meant(file, "", problems),
                           from_flags = meant(flags, "--", problems);
  RunConfig config;
  config.families = families;
  const Meant* preset = find(from_flags, "preset");
  if (preset == nullptr) preset = find(from_file, "preset");
  if (preset != nullptr && !preset->values.at(0).empty()) {  // to_toml writes "" for none
    problems.gather([&] { find_preset(preset->values.at(0)).apply(config); });
    for (const Field& field : fields()) {  // a preset is a model and a recipe, and no data
      if (field.group == FieldGroup::Data) config.defaulted.emplace(field.name);
    }
  } else {
    const Meant* family = find(from_flags, "family");
    if (family == nullptr) family = find(from_file, "family");
    if (family != nullptr)
      problems.gather([&] {
        const std::int64_t open = config.model.vocabulary;
        config.model = published(find_model(family->values.at(0), families));
        config.model.vocabulary = open;
      });
    for (const Field& field : fields()) config.defaulted.emplace(field.name);
  }
  for (const std::vector<Meant>* settings : {&from_file, &from_flags}) {
    for (const Meant& setting : *settings) config.defaulted.erase(std::string(setting.field->name));
  }
  for (const Meant& setting : from_file) {
    const Meant* flag = find(from_flags, setting.field->name);
    if (flag == nullptr) {
      apply(setting, config, problems);
    } else if (flag->values != setting.values) {
      notices.push_back(text(as_written(*flag), " overrides ", setting.source, ", which is ",
                             written_values(setting)));
    }
  }
  for (const Meant& setting : from_flags) apply(setting, config, problems);
  settle_rivals(from_file, from_flags, config, problems);
  settle_dependents(from_file, from_flags, config);
  settle_remote_device(from_file, from_flags, config, problems);
  note_asked(from_file, from_flags, config);
  note_unread_packing(config, notices);
  note_gathered_keys(config, notices);
  forget_unread_fields(config);
  return config;
}

void note_idle_parallelism(const RunConfig& config, std::vector<std::string>& notices) {
  const auto idle = [&](std::string_view name, std::int64_t devices, std::string_view of) {
    const auto asked = config.given.find(name);
    if (devices == 1 && asked != config.given.end())
      notices.push_back(text(asked->second, " does nothing with ", of, " 1; raise that, or leave ",
                             name, " out"));
  };
  if (config.parallel.sequence)
    idle("sequence-parallel", config.parallel.tensor, "tensor-model-parallel-size");
  idle("cp-comm-type", config.parallel.context, "context-parallel-size");
}

}  // namespace tessera
