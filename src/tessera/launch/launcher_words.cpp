#include "tessera/launch/launcher_words.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "tessera/base/text.h"

namespace tessera {

namespace {

bool is_rule(const std::string& line) {
  constexpr std::size_t kLeast = 20;
  return line.size() >= kLeast && line.find_first_not_of('-') == std::string::npos;
}

/// "[node3:4711] ..."
bool has_process_before(const std::string& line) {
  const std::size_t colon = line.find(':'), end = line.find(']');
  return starts_with(line, "[") && colon < end && end != std::string::npos &&
         std::all_of(line.begin() + static_cast<std::ptrdiff_t>(colon) + 1,
                     line.begin() + static_cast<std::ptrdiff_t>(end),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// The word behind `mark`; empty: there is none.
std::string word_after(const std::string& words, std::string_view mark) {
  const std::size_t at = words.find(mark);
  if (at == std::string::npos) return {};
  const std::size_t begin = at + mark.size();
  return words.substr(begin, words.find(' ', begin) - begin);
}

}  // namespace

std::string LauncherWords::pass(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    if (c != '\n') {
      line_ += c;
      continue;
    }
    if (!is_own(line_)) out += line_ + "\n";
    line_.clear();
  }
  return out;
}

bool LauncherWords::is_own(const std::string& line) {
  if (of_mpirun_ && is_rule(line)) {
    in_block_ = !in_block_;
    return true;
  }
  if (repeats_ && starts_with(line, "  ")) return true;
  const bool error = starts_with(line, "error: ");
  repeats_ = error && error_seen_;
  error_seen_ = error_seen_ || error;
  if (error || starts_with(line, "notice: ")) in_block_ = false;
  if (error || !of_mpirun_) return repeats_;
  constexpr std::array<std::string_view, 3> kNames = {"mpirun: ", "mpirun.openmpi: ", "orterun: "};
  const bool own = in_block_ || has_process_before(line) ||
                   std::any_of(kNames.begin(), kNames.end(),
                               [&](std::string_view name) { return starts_with(line, name); });
  if (own) own_ += text(own_.empty() ? "" : " ", trim(line));
  return own;
}

std::string LauncherWords::own() const {
  constexpr std::size_t kMost = 600;
  std::string out;
  for (const std::string& word : split(own_, ' ')) {
    if (!word.empty()) out += text(out.empty() ? "" : " ", word);
  }
  return out.size() > kMost ? out.substr(0, kMost) + " ..." : out;
}

std::string rank_that_died(const std::string& words) {
  const std::size_t at = words.find("noticed that process rank ");
  if (at == std::string::npos) return {};
  const std::string report = words.substr(at), rank = word_after(report, "process rank "),
                    node = word_after(report, " on node ");
  return rank.empty() || node.empty() ? "" : text("rank ", rank, ", on ", node, ",");
}

}  // namespace tessera
