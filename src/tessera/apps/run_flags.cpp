/// Flags and files that tell a run's configuration.

#include <algorithm>

#include "tessera/apps/data_names.h"
#include "tessera/apps/flags.h"
#include "tessera/apps/model_names.h"
#include "tessera/base/text.h"
#include "tessera/base/toml/parse_toml.h"
#include "tessera/config/family_fields.h"
#include "tessera/config/fields.h"
#include "tessera/config/presets.h"
#include "tessera/files/file.h"

namespace tessera {

namespace {

std::string help_of(const Field& field, const OwnFamilies& families) {
  const RunConfig defaults;
  const std::string standard = get_text(field, defaults);
  std::string out(field.help);
  if (!field.when.empty()) out += text(", ", field.when);
  out += families_text(field, families);
  if (field.name == "preset") {
    std::vector<std::string> names;
    for (const Preset& preset : presets()) names.emplace_back(preset.name);
    out += text(": ", join(names));
  }
  if (!standard.empty()) out += text(" [", standard, "]");
  if (!field.aliases.empty()) {
    std::vector<std::string> names;
    for (const std::string& alias : split(field.aliases, ' '))
      names.push_back(text("--", alias[0] == '!' ? std::string_view(alias).substr(1) : alias,
                           alias[0] == '!' ? " (the opposite)" : ""));
    out += text(" (also ", join(names), ")");
  }
  return out;
}

/// A TOML value as the text that a flag would have; arrays have several.
bool value_texts(const toml::node& node, std::vector<std::string>& out) {
  if (const auto* array = node.as_array()) {
    for (const toml::node& entry : *array) {
      if (entry.is_array() || !value_texts(entry, out)) return false;
    }
    return true;
  }
  if (const auto* value = node.as_string()) {
    out.push_back(value->get());
  } else if (const auto* whole = node.as_integer()) {
    out.push_back(number_text(whole->get()));
  } else if (const auto* real = node.as_floating_point()) {
    out.push_back(number_text(real->get()));
  } else if (const auto* boolean = node.as_boolean()) {
    out.push_back(boolean->get() ? "true" : "false");
  } else {
    return false;
  }
  return true;
}

std::string_view type_text(const toml::node& node) {
  return node.is_array()            ? "a list"
         : node.is_string()         ? "text in quotes"
         : node.is_integer()        ? "a whole number"
         : node.is_floating_point() ? "a number with a fraction or an exponent"
                                    : "true or false";
}

/// What a field takes, where the value is of another type; empty where it is of this one.
std::string other_type_wanted(const toml::node& node, const Field& field) {
  const RunConfig config;
  const Slot slot = read_slot(field, config);
  if (std::holds_alternative<std::vector<std::string>*>(slot)) {
    const toml::array* list = node.as_array();
    const bool texts =
        list == nullptr ? node.is_string() : list->empty() || list->is_homogeneous<std::string>();
    return texts ? "" : "a list of texts in quotes";
  }
  if (std::holds_alternative<std::int64_t*>(slot))
    return node.is_integer() ? "" : "a whole number, like 100";
  if (std::holds_alternative<double*>(slot)) return node.is_number() ? "" : "a number, like 0.1";
  if (std::holds_alternative<bool*>(slot)) return node.is_boolean() ? "" : "true or false";
  return node.is_string() ? "" : "text in quotes";
}

void read_table(const toml::table& table, const std::string& path, std::string_view group,
                std::vector<Setting>& out, Problems& problems) {
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    const std::string source =
        text(name, " in ", path, ":", static_cast<std::int64_t>(node.source().begin.line));
    if (const toml::table* inner = node.as_table()) {
      std::vector<std::string> groups;
      for (const FieldGroup known : kFieldGroups) groups.emplace_back(to_text(known));
      const bool known = std::find(groups.begin(), groups.end(), name) != groups.end();
      if (known && group.empty()) {
        read_table(*inner, path, name, out, problems);
      } else {
        problems.add(text("unknown table ", source, "; known are ", join(groups)));
      }
      continue;
    }
    Setting setting{name, {}, source};
    if (!value_texts(node, setting.values)) {
      problems.add(text(source, " is not a string, number, boolean or list of these"));
      continue;
    }
    const Field* field = find_field(name).field;
    const std::string wanted = field == nullptr ? "" : other_type_wanted(node, *field);
    if (!wanted.empty()) {
      problems.add(text(source, " is ", type_text(node), "; it must be ", wanted));
      continue;
    }
    if (field != nullptr && !group.empty() && to_text(field->group) != group) {
      problems.add(text(source, " is in table ", group, "; it belongs to ", to_text(field->group)));
      continue;
    }
    out.push_back(std::move(setting));
  }
}

}  // namespace

std::vector<Flag> field_flags(const OwnFamilies& families) {
  std::vector<Flag> out;
  for (const Field& field : fields()) {
    Flag flag{std::string(field.name),
              field_names(field),
              kind_text(field),
              help_of(field, families),
              std::string(to_text(field.group)),
              is_list(field)};
    flag.also.erase(flag.also.begin());
    out.push_back(std::move(flag));
  }
  out.insert(out.begin(), Flag{"config",
                               {},
                               "FILE.toml",
                               "TOML file whose keys are flag names; flags override it",
                               "run",
                               false});
  return out;
}

std::vector<Setting> read_config_file(const std::string& path, Problems& problems) {
  std::vector<Setting> out;
  std::string toml;
  if (problems.gather_first([&] { toml = read_file(path, Fault::Usage); }))
    problems.gather([&] { out = parse_config(toml, path, problems); });
  return out;
}

std::vector<Setting> parse_config(std::string_view toml, const std::string& path,
                                  Problems& problems) {
  std::vector<Setting> out;
  read_table(parse_toml(toml, path), path, "", out, problems);
  return out;
}

RunConfig configure(const ParsedFlags& parsed, Problems& problems,
                    std::vector<std::string>& notices, const OwnFamilies& families,
                    std::vector<Setting> file) {
  std::vector<Setting> flags;
  for (const Setting& setting : parsed.settings) {
    if (setting.key != "config") {
      flags.push_back(setting);
      continue;
    }
    for (Setting& given : read_config_file(setting.values.back(), problems))
      file.push_back(std::move(given));
  }
  for (const Setting& setting : flags) {
    const Field* field = find_field(setting.key).field;
    if (field != nullptr && field->name == "init-from" && setting.values.back().empty())
      problems.add(
          text(setting.source,
               " is empty; name a checkpoint, a run or a Hugging Face folder, or leave it out"));
  }
  RunConfig out = configure(file, flags, problems, notices, families);
  problems.gather([&] { out.init_from = model_folder(out.init_from); });
  for (auto* const words : {&out.data, &out.valid_data, &out.test_data})
    problems.gather([&] { *words = data_paths(*words); });
  return out;
}

}  // namespace tessera
