#include "tessera/apps/flags.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/config/hints.h"

namespace tessera {

namespace {

const Flag* find_flag(const std::vector<Flag>& flags, std::string_view name) {
  for (const Flag& flag : flags) {
    if (flag.name == name) return &flag;
    if (std::find(flag.also.begin(), flag.also.end(), name) != flag.also.end()) return &flag;
  }
  return nullptr;
}

std::string unknown(const std::string& name, const std::vector<Flag>& flags) {
  std::vector<std::string> names;
  for (const Flag& flag : flags) {
    names.push_back(flag.name);
    names.insert(names.end(), flag.also.begin(), flag.also.end());
  }
  const std::string given = hint(name, names, "--");
  return text("unknown flag --", name, "; ", given.empty() ? "--help lists them" : given);
}

}  // namespace

const std::string* ParsedFlags::find(std::string_view name) const {
  const std::string* out = nullptr;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    if (flags[i] == name && !settings[i].values.empty()) out = &settings[i].values.back();
  }
  return out;
}

bool ParsedFlags::take_switch(std::string_view name) { return take_value(name) == "true"; }

std::string ParsedFlags::take_value(std::string_view name) {
  const std::vector<std::string> values = take_values(name);
  return values.empty() ? "" : values.back();
}

std::vector<std::string> ParsedFlags::take_values(std::string_view name) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < settings.size();) {
    if (flags[i] != name) {
      ++i;
      continue;
    }
    const std::vector<std::string>& values = settings[i].values;
    out.insert(out.end(), values.begin(), values.end());
    settings.erase(settings.begin() + static_cast<std::ptrdiff_t>(i));
    flags.erase(flags.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return out;
}

ParsedFlags parse_flags(const Arguments& arguments, const std::vector<Flag>& flags,
                        Problems& problems) {
  ParsedFlags out;
  const auto is_flag = [](const std::string& word) { return starts_with(word, "--"); };
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const auto next_is_value = [&] {
      return i + 1 < arguments.size() && !is_flag(arguments[i + 1]);
    };
    if (word == "--") {
      out.words.insert(out.words.end(), arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                       arguments.end());
      break;
    }
    if (word == "--help" || word == "-h") {
      out.help = true;
      continue;
    }
    if (!is_flag(word)) {
      out.words.push_back(word);
      continue;
    }
    const std::size_t equals = word.find('=');
    std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    const Flag* flag = find_flag(flags, name);
    if (flag == nullptr) {  // other trainers write --micro_batch_size
      std::string dashed = name;
      std::ranges::replace(dashed, '_', '-');
      flag = find_flag(flags, dashed);
      if (flag != nullptr) name = dashed;
    }
    Setting setting{name, {}, "--" + name};
    if (equals != std::string::npos) setting.values.push_back(word.substr(equals + 1));
    if (flag == nullptr || !flag->elsewhere.empty()) {
      problems.add(flag == nullptr ? unknown(name, flags)
                                   : text("--", name, " is a flag of ", flag->elsewhere));
      if (flag != nullptr && flag->value.empty()) continue;
      while (setting.values.empty() && next_is_value()) ++i;  // what was meant for it
      continue;
    }
    if (setting.values.empty() && flag->value.empty()) {
      const bool given =
          next_is_value() && (arguments[i + 1] == "true" || arguments[i + 1] == "false");
      setting.values.push_back(given ? arguments[++i] : "true");
    }
    if (flag->value.empty() && setting.values[0] != "true" && setting.values[0] != "false") {
      problems.add(
          text("--", name, " is '", setting.values[0], "'; it is a switch: true or false"));
      continue;
    }
    while (next_is_value() && (setting.values.empty() || flag->many))
      setting.values.push_back(arguments[++i]);
    if (setting.values.empty()) {
      problems.add(text("--", name, " needs a value: --", name, " ", flag->value));
      continue;
    }
    if (!flag->may_be_empty && std::ranges::find(setting.values, "") != setting.values.end()) {
      problems.add(text("--", name, " has an empty value, perhaps an unset variable; give --", name,
                        " ", flag->value, ", or leave it out"));
      problems.refuse(flag->name);
      continue;
    }
    // Of fields of the configuration, configure() says so.
    const std::string* before = flag->group.empty() ? out.find(flag->name) : nullptr;
    if (before != nullptr && !flag->many && *before != setting.values[0])
      problems.add(text("--", name, " is given twice: '", *before, "' and '", setting.values[0],
                        "'; give one"));
    out.settings.push_back(std::move(setting));
    out.flags.push_back(flag->name);
  }
  return out;
}

void wrap(std::string& out, std::string_view help, std::size_t indent, std::size_t columns) {
  std::size_t at = out.size() - (out.rfind('\n') + 1);  // npos + 1 is 0
  if (at + 2 > indent) {
    out += "\n";
    at = 0;
  }
  out += std::string(indent - at, ' ');
  at = indent;
  for (const std::string& word : split(help, ' ')) {
    if (at > indent && at + word.size() + 1 > columns) {
      out += "\n" + std::string(indent, ' ');
      at = indent;
    }
    if (at > indent) out += " ";
    out += word;
    at += word.size() + 1;
  }
  out += "\n";
}

std::string flags_help(const std::vector<Flag>& flags, int columns) {
  constexpr std::size_t kIndent = 28;
  const auto width = static_cast<std::size_t>(std::clamp(columns, 60, 110));
  std::string out;
  std::vector<std::string> groups;
  for (const Flag& flag : flags) {
    if (std::find(groups.begin(), groups.end(), flag.group) == groups.end())
      groups.push_back(flag.group);
  }
  for (const std::string& group : groups) {
    if (!out.empty()) out += "\n";
    if (!group.empty()) out += group + "\n";
    for (const Flag& flag : flags) {
      if (flag.group != group || !flag.elsewhere.empty()) continue;
      out += text("  --", flag.name, flag.value.empty() ? "" : " ", flag.value);
      wrap(out, flag.help, kIndent, width);
    }
  }
  return out;
}

Flag secret_file_flag() {
  return {"secret-file",
          {},
          "FILE",
          "for ranks that join over TCP: file with their shared secret, the same on all ranks, "
          "readable only by this user"};
}

}  // namespace tessera
