#include <algorithm>
#include <filesystem>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/hash.h"
#include "tessera/base/text.h"
#include "tessera/checkpoint/checkpoint.h"
#include "tessera/checkpoint/checkpoint_folder.h"
#include "tessera/checkpoint/checkpoint_manifest.h"

namespace tessera {

namespace {

constexpr std::size_t kMaxProblems = 20;  // of one checkpoint, in an error
constexpr const char* kAdvice = "restore it from a copy or use another checkpoint";

Manifest load_manifest(const std::string& folder);
/// A file that is there, with its size and its header; a problem otherwise.
std::optional<InputFile> open_file(const std::string& folder, const ManifestFile& saved,
                                   std::vector<std::string>& problems);
/// Reads the block of a slice into `out`, which has its size.
void read_block(const InputFile& file, const Manifest& manifest, const ManifestTensor& tensor,
                const ManifestSlice& slice, std::int64_t index, std::span<std::byte> out);
void verify_file(const InputFile& file, std::size_t index, const Manifest& manifest,
                 std::vector<std::string>& problems);
void verify_names(const std::string& folder, const Manifest& manifest,
                  std::vector<std::string>& problems);
std::vector<std::string> verify_folder(const std::string& folder, const CheckpointJudge& judge);

/// Reads runs of a tensor's cells. Each block is read and checked once where runs come in order.
class CellReader {
 public:
  CellReader(const std::vector<InputFile>& files, const Manifest& manifest,
             const ManifestTensor& tensor)
      : files_(files), manifest_(manifest), tensor_(tensor) {}
  /// Bytes of a cell, from its byte `from` on.
  void read(std::int64_t cell, std::int64_t from, std::span<std::byte> into);

 private:
  const std::vector<InputFile>& files_;
  const Manifest& manifest_;
  const ManifestTensor& tensor_;
  std::int64_t cell_ = -1, index_ = -1;  // of the block at hand
  std::vector<std::byte> block_;
};

}  // namespace

Checkpoint::Checkpoint() = default;
Checkpoint::~Checkpoint() = default;
Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;

Checkpoint Checkpoint::open(const std::string& path) {
  Checkpoint out;
  out.path_ = find_checkpoint(path);
  out.manifest_ = std::make_unique<const Manifest>(load_manifest(out.path_));
  std::vector<std::string> problems;
  for (const ManifestFile& saved : out.manifest_->files) {
    if (auto file = open_file(out.path_, saved, problems)) out.files_.push_back(std::move(*file));
  }
  if (problems.size() > kMaxProblems) {
    const std::size_t more = problems.size() - kMaxProblems;
    problems.resize(kMaxProblems);
    problems.push_back(text("and ", more, " more"));
  }
  if (!problems.empty()) fail(Fault::Checkpoint, join(problems, "\n"));
  for (const ManifestTensor& tensor : out.manifest_->tensors) out.entries_.push_back(tensor.entry);
  return out;
}

const CheckpointRecord& Checkpoint::record() const { return manifest_->record; }

const TensorEntry* Checkpoint::find(std::string_view name) const {
  const auto at =
      std::lower_bound(entries_.begin(), entries_.end(), name,
                       [](const TensorEntry& e, std::string_view n) { return e.name < n; });
  return at != entries_.end() && at->name == name ? &*at : nullptr;
}

const TensorEntry& Checkpoint::entry(std::string_view name) const {
  const TensorEntry* entry = find(name);
  if (entry != nullptr) return *entry;
  std::vector<std::string> names;
  for (const TensorEntry& e : entries_) names.push_back(e.name);
  const std::vector<std::string> close = nearest(name, names);
  fail(Fault::Checkpoint, "checkpoint '", path_, "' has no tensor '", name, "' among its ",
       names.size(),
       close.empty() ? "; it may belong to another model" : text("; near names: ", join(close)));
}

void Checkpoint::read(std::string_view name, std::span<std::byte> into) const {
  const TensorEntry& entry = this->entry(name);
  if (static_cast<std::int64_t>(into.size()) != entry.type.bytes()) {
    fail(Fault::Checkpoint, "checkpoint '", path_, "': tensor '", name, "' is ", entry.type, " of ",
         entry.type.bytes(), " bytes but ", into.size(),
         " are expected; it belongs to another model");
  }
  const ManifestTensor* const mine = held(name);
  if (mine == nullptr) return base_->read(name, into);
  read_box(*mine, Box::whole(entry.type.shape), entry.type.shape.strides(), into);
}

void Checkpoint::read_shard(std::string_view name, const Sharding& sharding, const Mesh& mesh,
                            const Coordinates& at, std::span<std::byte> into) const {
  const TensorEntry& entry = this->entry(name);
  const Shape& shape = entry.type.shape;
  const std::int64_t size = size_of(entry.type.dtype);
  const std::int64_t wanted =
      sharding.ndim() == shape.ndim() ? local_shape(shape, sharding, mesh).numel() * size : -1;
  if (static_cast<std::int64_t>(into.size()) != wanted) {
    fail(Fault::Checkpoint, "checkpoint '", path_, "': a shard of tensor '", name, "', ",
         entry.type, ", has ", wanted, " bytes but ", into.size(),
         " are expected; it belongs to another model");
  }
  const ManifestTensor* const mine = held(name);
  if (mine == nullptr) return base_->read_shard(name, sharding, mesh, at, into);
  std::fill(into.begin(), into.end(), std::byte{0});
  read_box(*mine, shard_box(shape, sharding, mesh, at),
           local_shape(shape, sharding, mesh).strides(), into);
}

void CellReader::read(std::int64_t cell, std::int64_t from, std::span<std::byte> into) {
  const ManifestSlice& slice = tensor_.slices[static_cast<std::size_t>(cell)];
  const InputFile& file = files_[slice.file];
  while (!into.empty()) {
    const std::int64_t index = from / manifest_.block_bytes, inside = from % manifest_.block_bytes;
    const std::int64_t bytes = size_of_block(manifest_, slice, index);
    const std::int64_t count = std::min(static_cast<std::int64_t>(into.size()), bytes - inside);
    const auto part = into.first(static_cast<std::size_t>(count));
    if (count == bytes) {
      read_block(file, manifest_, tensor_, slice, index, part);
    } else {
      if (cell != cell_ || index != index_) {
        block_.resize(static_cast<std::size_t>(bytes));
        read_block(file, manifest_, tensor_, slice, index, block_);
        cell_ = cell, index_ = index;
      }
      std::copy_n(block_.begin() + inside, count, part.begin());
    }
    into = into.subspan(part.size());
    from += count;
  }
}

void Checkpoint::read_box(const ManifestTensor& tensor, const Box& box, const Shape& strides,
                          std::span<std::byte> into) const {
  const TensorEntry& entry = tensor.entry;
  if (tensor.slices.empty()) return;
  const std::int64_t width = size_of(entry.type.dtype);
  CellReader cells(files_, *manifest_, tensor);
  const auto read = [&](const CellRun& run) {
    cells.read(run.cell, run.from * width,
               into.subspan(static_cast<std::size_t>(run.at * width),
                            static_cast<std::size_t>(run.count * width)));
  };
  if (tensor.grid.shape == entry.type.shape) return each_cell_run(tensor.grid, box, strides, read);
  // Cut as one row of elements: each run of the box is a box of that row.
  each_cell_run(TensorGrid::whole(entry.type.shape), box, strides, [&](const CellRun& run) {
    each_cell_run(tensor.grid, {{run.from}, {run.count}}, {1}, [&](const CellRun& part) {
      read({part.cell, part.from, run.at + part.at, part.count});
    });
  });
}

std::optional<std::string> latest_checkpoint(const std::string& folder,
                                             std::vector<std::string>* notices,
                                             const CheckpointJudge& judge) {
  const auto note = [&](const std::string& line) {
    if (notices != nullptr) notices->push_back(line);
  };
  for (const std::string& name : scan_checkpoints(folder).leftover) {
    note(text("'", folder, "/", name, "' is an unfinished checkpoint: skipped, ",
              "and removed by the next save"));
  }
  const std::vector<std::string> committed = list_checkpoints(folder);
  std::string newest_problem;
  for (auto path = committed.rbegin(); path != committed.rend(); ++path) {
    const std::vector<std::string> problems = verify_folder(*path, judge);
    if (problems.empty()) return *path;
    note(text("checkpoint '", *path, "' is skipped: ", problems.front()));
    if (newest_problem.empty()) newest_problem = problems.front();
  }
  if (committed.empty()) return {};
  fail(Fault::Checkpoint, "none of the ", committed.size(), " checkpoints in '", folder,
       "' can be used; the newest: ", newest_problem);
}

std::string digest(const Checkpoint& checkpoint) {
  StreamHash hash;
  const auto add = [&](const std::string& line) {
    const std::uint64_t size = line.size();
    hash.update(&size, sizeof size);
    hash.update(line);
  };
  std::vector<std::byte> bytes;
  for (const TensorEntry& tensor : checkpoint.tensors()) {
    add(tensor.name);
    add(to_text(tensor.type));
    bytes.resize(static_cast<std::size_t>(tensor.type.bytes()));
    checkpoint.read(tensor.name, bytes);
    hash.update(bytes.data(), bytes.size());
  }
  return hash.text();
}

std::vector<std::string> verify(const Checkpoint& checkpoint) {
  std::vector<std::string> problems;
  for (std::size_t i = 0; i < checkpoint.files_.size(); ++i)
    verify_file(checkpoint.files_[i], i, *checkpoint.manifest_, problems);
  verify_names(checkpoint.path_, *checkpoint.manifest_, problems);
  return problems;
}

std::string intact_instead(const std::string& path, const CheckpointJudge& judge) {
  try {
    const std::string damaged = find_checkpoint(path);
    if (verify_folder(damaged, judge).empty()) return "";
    const std::vector<std::string> all =
        list_checkpoints(std::filesystem::path(damaged).parent_path().string());
    for (auto other = all.rbegin(); other != all.rend(); ++other) {
      if (*other != damaged && verify_folder(*other, judge).empty()) return *other;
    }
  } catch (const Error&) {  // the first error is the one to tell
  }
  return "";
}

void require_intact(const Checkpoint& checkpoint) {
  const std::vector<std::string> problems = verify(checkpoint);
  if (!problems.empty()) fail(Fault::Checkpoint, join(problems, "\n"));
}

std::vector<std::string> verify_checkpoints(const std::string& path, const CheckpointJudge& judge,
                                            std::vector<std::string>* gone) {
  std::vector<std::string> out, went;
  const std::vector<std::string> all = find_checkpoints(path);
  for (const std::string& folder : all) {
    const std::vector<std::string> problems = verify_folder(folder, judge);
    std::error_code ignored;
    const auto at = std::filesystem::status(folder, ignored).type();
    if (!problems.empty() && at == std::filesystem::file_type::not_found)
      went.push_back(folder);
    else
      out.insert(out.end(), problems.begin(), problems.end());
  }
  if (went.size() == all.size())
    fail(Fault::Checkpoint, "all checkpoints of '", path,
         "' were removed while they were read: ", join(went),
         "; give another one, or the folder of a run");
  if (gone != nullptr) *gone = std::move(went);
  return out;
}

namespace {

Manifest load_manifest(const std::string& folder) {
  namespace fs = std::filesystem;
  const std::string path = text(folder, "/", kManifestName);
  std::error_code ignored;
  const fs::file_status at = fs::status(folder, ignored);
  if (at.type() == fs::file_type::not_found)
    fail(Fault::Checkpoint, "no checkpoint '", folder, "'", near_files(folder));
  if (at.type() == fs::file_type::regular)
    fail(Fault::Checkpoint, "checkpoint '", folder, "' is a file, not a folder; ", kAdvice);
  if (fs::status(path, ignored).type() == fs::file_type::not_found)
    fail(Fault::Checkpoint, "checkpoint '", folder, "' has no ", kManifestName, "; ", kAdvice);
  const InputFile file(path, Fault::Checkpoint);
  if (file.size() > kMaxManifest) {
    fail(Fault::Checkpoint, "checkpoint file '", path, "': it has ", file.size(),
         " bytes but at most ", kMaxManifest, " are allowed; ", kAdvice);
  }
  std::string bytes(static_cast<std::size_t>(file.size()), '\0');
  file.read(0, std::as_writable_bytes(std::span(bytes)));
  return parse_manifest(bytes, path);
}

std::optional<InputFile> open_file(const std::string& folder, const ManifestFile& saved,
                                   std::vector<std::string>& problems) {
  const std::string path = text(folder, "/", saved.name);
  try {
    InputFile file(path, Fault::Checkpoint);
    if (file.size() != saved.bytes) {
      fail(Fault::Checkpoint, "checkpoint file '", path, "': it has ", file.size(), " bytes but ",
           saved.bytes, " were saved; ", kAdvice);
    }
    std::vector<std::byte> header(static_cast<std::size_t>(saved.header_bytes));
    file.read(0, header);
    if (const std::string hash = hash128_text(header); hash != saved.header_hash) {
      fail(Fault::Checkpoint, "checkpoint file '", path, "': damaged: its header (bytes 0 to ",
           saved.header_bytes, ") has the hash ", hash, " but ", saved.header_hash, " was saved; ",
           kAdvice);
    }
    return file;
  } catch (const Error& error) {
    if (error.fault() != Fault::Checkpoint) throw;
    problems.push_back(error.what());
    return {};
  }
}

void read_block(const InputFile& file, const Manifest& manifest, const ManifestTensor& tensor,
                const ManifestSlice& slice, std::int64_t index, std::span<std::byte> out) {
  const std::int64_t at = slice.at + index * manifest.block_bytes;
  file.read(at, out);
  const std::string hash = hash128_text(out);
  const std::string& saved = slice.blocks[static_cast<std::size_t>(index)];
  if (hash == saved) return;
  fail(Fault::Checkpoint, "checkpoint file '", file.path(), "': damaged: bytes ", at, " to ",
       at + static_cast<std::int64_t>(out.size()), ", of tensor '", tensor.entry.name,
       "', have the hash ", hash, " but ", saved, " was saved; ", kAdvice);
}

/// One pass in the order of the file, which its header and slices tile: each block by its own hash,
/// which says the place of damage, and all bytes by the file's.
void verify_file(const InputFile& file, std::size_t index, const Manifest& manifest,
                 std::vector<std::string>& problems) {
  const ManifestFile& saved = manifest.files[index];
  std::vector<std::pair<const ManifestTensor*, const ManifestSlice*>> slices;
  for (const ManifestTensor& tensor : manifest.tensors) {
    for (const ManifestSlice& slice : tensor.slices) {
      if (slice.file == index) slices.emplace_back(&tensor, &slice);
    }
  }
  std::sort(slices.begin(), slices.end(),
            [](const auto& a, const auto& b) { return a.second->at < b.second->at; });
  const std::size_t before = problems.size();
  StreamHash all;
  std::vector<std::byte> block(static_cast<std::size_t>(saved.header_bytes));
  try {
    file.read(0, block);
    all.update(block.data(), block.size());
  } catch (const Error& error) {
    if (error.fault() != Fault::Checkpoint) throw;
    problems.push_back(error.what());
  }
  for (const auto& [tensor, slice] : slices) {
    for (std::int64_t i = 0; i < count_blocks(manifest, slice->bytes); ++i) {
      block.resize(static_cast<std::size_t>(size_of_block(manifest, *slice, i)));
      try {
        read_block(file, manifest, *tensor, *slice, i, block);
        all.update(block.data(), block.size());
      } catch (const Error& error) {
        if (error.fault() != Fault::Checkpoint) throw;
        problems.push_back(error.what());
      }
    }
  }
  if (problems.size() != before) return;
  if (const std::string hash = all.text(); hash != saved.hash)
    problems.push_back(text("checkpoint file '", file.path(), "': damaged: it has the hash ", hash,
                            " but ", saved.hash, " was saved; ", kAdvice));
}

/// A file that the manifest does not name is covered by no hash.
void verify_names(const std::string& folder, const Manifest& manifest,
                  std::vector<std::string>& problems) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    const auto known = [&](const ManifestFile& file) { return file.name == name; };
    if (name != kManifestName &&
        std::none_of(manifest.files.begin(), manifest.files.end(), known)) {
      problems.push_back(
          text("'", folder, "/", name, "' does not belong to the checkpoint; move it elsewhere"));
    }
  }
}

std::vector<std::string> verify_folder(const std::string& folder, const CheckpointJudge& judge) {
  std::vector<std::string> problems;
  try {
    const Manifest manifest = load_manifest(folder);
    for (std::size_t i = 0; i < manifest.files.size(); ++i) {
      if (const auto file = open_file(folder, manifest.files[i], problems))
        verify_file(*file, i, manifest, problems);
    }
    verify_names(folder, manifest, problems);
    if (judge && problems.empty()) judge(Checkpoint::open(folder));
  } catch (const Error& error) {
    if (error.fault() != Fault::Checkpoint) throw;  // its bytes may be intact
    problems.push_back(error.what());
  }
  return problems;
}

}  // namespace

}  // namespace tessera
