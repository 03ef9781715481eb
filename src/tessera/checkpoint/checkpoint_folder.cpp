#include "tessera/checkpoint/checkpoint_folder.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/checkpoint/checkpoint.h"
#include "tessera/checkpoint/checkpoint_files.h"
#include "tessera/checkpoint/checkpoint_manifest.h"
#include "tessera/files/file.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

/// How checkpoints are called, in the order of CheckpointNames.
struct NameForm {
  std::string_view prefix;
  std::size_t digits;  // at least
};
constexpr NameForm kNameForms[] = {{"step-", 8}, {"iter_", 7}};

bool is_folder(const std::string& path);
/// Whether its manifest and files are there as they were saved, as far as opening them tells.
bool opens(const std::string& checkpoint);
/// Takes a checkpoint out of the list; what went wrong, or "".
std::string discard(const FileCalls& calls, const std::string& folder, const std::string& name);
[[noreturn]] void fail_to_find(const std::string& path);

}  // namespace

std::string to_text(const StepName& name) {
  const NameForm& form = kNameForms[static_cast<std::size_t>(name.names)];
  std::string digits = text(name.step);
  if (digits.size() < form.digits) digits.insert(0, form.digits - digits.size(), '0');
  return text(form.prefix, digits, name.branch == 0 ? "" : text(".", name.branch));
}

std::optional<StepName> parse_step_name(std::string_view name) {
  for (const CheckpointNames names : {CheckpointNames::Step, CheckpointNames::Iteration}) {
    const std::string_view prefix = kNameForms[static_cast<std::size_t>(names)].prefix;
    if (!name.starts_with(prefix)) continue;
    StepName out{.names = names};
    const char* end = name.data() + name.size();
    const auto step = std::from_chars(name.data() + prefix.size(), end, out.step);
    if (step.ec != std::errc()) return {};
    if (step.ptr != end) std::from_chars(step.ptr + 1, end, out.branch);
    if (out.step < 0 || out.branch < 0 || to_text(out) != name) return {};
    return out;
  }
  return {};
}

CheckpointFolder scan_checkpoints(const std::string& folder) {
  CheckpointFolder out;
  std::error_code error;
  for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (const auto step = parse_step_name(name)) out.committed.push_back(*step);
    if (name.starts_with(kUnfinished) || name.starts_with(kPruned)) out.leftover.push_back(name);
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    fail(Fault::Resource, "cannot list the checkpoints in '", folder, "': ", error.message(),
         "; check the permissions of the folder and the disk");
  }
  std::sort(out.committed.begin(), out.committed.end());
  std::sort(out.leftover.begin(), out.leftover.end());
  return out;
}

StepName next_name(const CheckpointFolder& present, std::int64_t step, CheckpointNames names) {
  if (present.committed.empty()) return {0, step, names};
  const StepName last = present.committed.back();
  return {last.step < step ? last.branch : last.branch + 1, step, names};
}

std::vector<std::string> tidy_checkpoints(const FileCalls& calls, const std::string& folder,
                                          const KeptCheckpoints& kept) {
  std::vector<std::string> problems;
  const auto remember = [&](std::string problem) {
    if (!problem.empty()) problems.push_back(std::move(problem));
  };
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::ranges::find(names, name) != names.end();
  };
  const std::vector<StepName> committed = scan_checkpoints(folder).committed;
  auto left = static_cast<std::ptrdiff_t>(committed.size());  // those that were not looked at
  int counted = 0;
  while (counted < kept.newest && left > kept.newest - counted) {
    const std::string name = to_text(committed[static_cast<std::size_t>(--left)]);
    if (!has(kept.damaged, name) && opens(text(folder, "/", name))) ++counted;
  }
  if (counted < kept.newest) left = 0;  // all that are left count
  for (std::ptrdiff_t i = 0; i < left; ++i) {
    const std::string name = to_text(committed[static_cast<std::size_t>(i)]);
    if (!has(kept.named, name)) remember(discard(calls, folder, name));
  }
  for (const std::string& name : scan_checkpoints(folder).leftover) {
    const std::string path = text(folder, "/", name);
    // Another process that saves here holds the lock of its folder.
    if (const auto lock = FolderLock::take(path)) remember(remove_folder(calls, path));
  }
  return problems;
}

std::string checkpoints_folder(const std::string& output, CheckpointNames names) {
  return names == CheckpointNames::Step ? (fs::path(output) / kCheckpointsFolder).string() : output;
}

std::vector<std::string> checkpoints_of_run(const std::string& output) {
  std::vector<std::string> out;
  for (const CheckpointNames names : {CheckpointNames::Iteration, CheckpointNames::Step}) {
    const std::string folder = checkpoints_folder(output, names);
    if (!is_folder(folder)) continue;
    for (std::string& path : list_checkpoints(folder)) out.push_back(std::move(path));
  }
  return out;
}

std::string find_checkpoint(const std::string& path) { return find_checkpoints(path).back(); }

std::vector<std::string> find_checkpoints(const std::string& path) {
  if (!is_folder(path)) fail_to_find(path);
  std::error_code failure;
  const fs::path itself = fs::canonical(path, failure);
  const bool named = !failure && parse_step_name(itself.filename().string());
  if (named || fs::exists(text(path, "/", kManifestName), failure))
    return {itself.empty() ? path : itself.string()};
  for (const CheckpointNames names : {CheckpointNames::Iteration, CheckpointNames::Step}) {
    const std::string folder = checkpoints_folder(path, names);
    std::vector<std::string> found = list_checkpoints(folder);
    if (!found.empty()) return found;
  }
  fail_to_find(path);
}

std::vector<std::string> list_checkpoints(const std::string& folder) {
  std::vector<std::string> out;
  for (const StepName& name : scan_checkpoints(folder).committed)
    out.push_back(text(folder, "/", to_text(name)));
  return out;
}

namespace {

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool opens(const std::string& checkpoint) {
  try {
    Checkpoint::open(checkpoint);
    return true;
  } catch (const Error&) {  // whoever wants to read it says why not
    return false;
  }
}

std::string discard(const FileCalls& calls, const std::string& folder, const std::string& name) {
  const std::string path = text(folder, "/", name);
  for (int attempt = 0;; ++attempt) {
    const std::string trash = text(folder, "/", kPruned, name, "-", ::getpid(), "-", attempt);
    if (calls.rename(path.c_str(), trash.c_str()) == 0 || errno == ENOENT) return "";
    if (errno != EEXIST && errno != ENOTEMPTY)
      return text("could not remove '", path, "': ", system_text(errno));
  }
}

void fail_to_find(const std::string& path) {
  std::error_code refused;
  if (!fs::exists(path, refused) && refused == std::errc::permission_denied)
    fail(Fault::Resource, "cannot access '", path, "': ", refused.message(),
         "; check its permissions and its folder's");
  if (!fs::exists(path, refused))
    fail(Fault::Checkpoint, "no checkpoint '", path, "'", near_files(path));
  if (!is_folder(path)) {
    fail(Fault::Checkpoint, "'", path,
         "' is a file where a checkpoint is expected; name its folder, step-NNNNNNNN, or the "
         "folder of the run");
  }
  std::size_t unfinished = 0;
  for (const CheckpointNames names : {CheckpointNames::Iteration, CheckpointNames::Step})
    unfinished += scan_checkpoints(checkpoints_folder(path, names)).leftover.size();
  fail(Fault::Checkpoint, "'", path, "' holds no checkpoint",
       unfinished == 0 ? "" : text(" (", unfinished, " unfinished)"),
       "; name a folder step-NNNNNNNN, a folder of them or the folder of a run that saved one");
}

}  // namespace

}  // namespace tessera
