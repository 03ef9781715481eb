#include "tessera/launch/agreement.h"

#include <array>
#include <fstream>
#include <set>

#include "tessera/base/hash.h"
#include "tessera/base/text.h"
#include "tessera/base/version.h"
#include "tessera/comm/processes.h"
#include "tessera/comm/share_text.h"
#include "tessera/comm/work_alone.h"
#include "tessera/device/device.h"

namespace tessera {

namespace {

// Names among what is compared that are no flags.
constexpr const char *kCommand = "command", *kProgram = "program", *kProblems = "problems",
                     *kLibrary = "oneDNN";
constexpr const char* kNotGiven = "not given";

std::string packed(const Asked& values) {
  std::string out;
  for (const auto& [name, value] : values) out += name + '\0' + value + '\0';
  return out;
}

Asked unpacked(const std::string& text) {
  const std::vector<std::string> parts = split(text, '\0');
  Asked out;
  for (std::size_t i = 0; i + 1 < parts.size(); i += 2) out[parts[i]] = parts[i + 1];
  return out;
}

std::string all_of(const Problems& problems) {
  std::vector<std::string> out;
  for (const Error& problem : problems.list()) out.emplace_back(problem.what());
  return join(out, "; ");
}

/// "rank 1", "ranks 0, 2 to 5 and 7"
std::string ranks_text(const std::vector<std::size_t>& ranks) {
  std::vector<std::string> runs;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    const std::string first = text(ranks[i]), last = text(ranks[end - 1]);
    runs.push_back(end - i == 1   ? first
                   : end - i == 2 ? text(first, ", ", last)
                                  : text(first, " to ", last));
    i = end;
  }
  return text(ranks.size() == 1 ? "rank " : "ranks ", join(runs));
}

/// "--lr is 0.001 on rank 0 and 0.01 on rank 1"; empty where all have the same.
std::string difference(const std::string& name, std::span<const Asked> ranks) {
  std::vector<std::string> values;  // in the order of the ranks
  std::map<std::string, std::vector<std::size_t>> who;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const auto found = ranks[r].find(name);
    const bool known = found != ranks[r].end() && !found->second.empty();
    const std::string value = known ? found->second : kNotGiven;
    if (who[value].empty()) values.push_back(value);
    who[value].push_back(r);
  }
  if (values.size() == 1) return {};
  std::vector<std::string> parts;
  for (const std::string& value : values) {
    if (name != kProblems) {
      parts.push_back(text(value, " on ", ranks_text(who[value])));
    } else if (value != kNotGiven) {
      parts.push_back(text(value, " (", ranks_text(who[value]), ")"));
    }
  }
  return name == kProblems ? join(parts, "; ") : text(name, " is ", join(parts, " and "));
}

}  // namespace

Asked asked_of(const std::string& command, const RunConfig& config, const Asked& own) {
  Asked out = own;
  for (auto& [name, value] : record_of(config)) out["--" + name] = value;
  out[kCommand] = command;
  return out;
}

std::string program_text() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  require(file.good(), "cannot read the program's own file, /proc/self/exe; mount /proc");
  StreamHash hash;
  std::array<char, 1 << 16> bytes;
  while (file.read(bytes.data(), bytes.size()), file.gcount() > 0)
    hash.update(bytes.data(), static_cast<std::size_t>(file.gcount()));
  return text(kVersion, " (", hash.text().substr(0, 8), ")");
}

std::string differences(std::span<const Asked> ranks) {
  std::set<std::string> names;
  for (const Asked& asked : ranks) {
    for (const auto& [name, value] : asked) names.insert(name);
  }
  std::vector<std::string> out;
  for (const std::string& name : names) {
    const std::string line = difference(name, ranks);
    if (!line.empty()) out.push_back(line);
  }
  return join(out, "; ");
}

Asked with_program(Asked asked, const Problems& problems) {
  asked[kProgram] = program_text();
  asked[kLibrary] = product_library();
  asked[kProblems] = all_of(problems);
  return asked;
}

void require_same(Communicator& world, const Asked& asked, const Problems& problems) {
  const std::string words = packed(with_program(asked, problems));
  const std::string hash = hash128_text(std::as_bytes(std::span(words)));
  const std::vector<std::string> hashes = gather_texts(world, hash, "the hash of what is asked");
  if (std::set(hashes.begin(), hashes.end()).size() == 1) return;
  std::vector<Asked> ranks;
  for (const std::string& text : gather_texts(world, words, "what is asked"))
    ranks.push_back(unpacked(text));
  throw CommonError(Fault::Usage,
                    text("the ranks of one run were started differently: ", differences(ranks),
                         "; start the same program with the same flags on all"));
}

std::map<std::string, std::string> from_leader(
    Communicator* launched, const std::function<std::map<std::string, std::string>()>& work) {
  if (launched == nullptr) return work();
  constexpr const char *kFault = "fault", *kMessage = "message";
  Asked found;
  if (launched->rank() == 0) {
    work_alone(launched, [&] {
      try {
        found = work();
      } catch (const Error& error) {
        found = {{kFault, text(static_cast<int>(error.fault()))}, {kMessage, error.what()}};
      }
    });
  }
  found = unpacked(share_text(*launched, packed(found), "what rank 0 found"));
  if (!found.contains(kFault)) return found;
  throw CommonError(static_cast<Fault>(std::stoi(found.at(kFault))), found.at(kMessage));
}

}  // namespace tessera
