#pragma once
/// The room `checkpoint`: a folder of tensors, by blocks with hashes.
/// For: whole states that any mesh can load; nothing is lost where a process is killed.
/// Not for: when to save and what to keep (train), or the folders of others (pretrained).
/// Rejected: files of the shards as one mesh has them: the fastest save, which no other mesh can
/// read. One rank that gathers all: each writes the part that it holds, and a save takes the memory
/// of one share.
///
/// Checkpoints: the whole state of a run as logical tensors, written so that a crash at any moment
/// leaves the last one intact, and checked against hashes whenever bytes are read back.
///
/// A run keeps them in OUTPUT/checkpoints, one folder each; docs/internals/checkpoint-format.md has the
/// format, the order of writes and what each failure leaves behind.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/checkpoint/checkpoint_calls.h"
#include "tessera/checkpoint/checkpoint_names.h"
#include "tessera/files/file.h"
#include "tessera/ir/graph.h"
#include "tessera/ir/graph_words.h"
#include "tessera/tensor/sharding.h"
#include "tessera/tensor/type.h"

namespace tessera {

/// What checkpoints, reports and graphs in text form call a role.
constexpr std::string_view role_text(Role role) {
  return graph_words::kRoles[static_cast<std::size_t>(role)];
}

/// A logical tensor to save: whole, row-major, without padding. The bytes must not change before
/// save_checkpoint returns.
struct CheckpointTensor {
  std::string name;  // the state's path
  TensorType type;
  Role role = Role::Parameter;
  std::span<const std::byte> bytes;
};

/// What is saved beside the tensors.
struct CheckpointRecord {
  std::int64_t step = 0, samples = 0;
  std::map<std::string, std::string> texts;  // UTF-8, kept as they are: "config", "vocabulary", ...
  friend bool operator==(const CheckpointRecord&, const CheckpointRecord&) = default;
};

/// States of a run that are not saved, though others of their role are. Empty: none.
using LeftOut = std::function<bool(const State&)>;

struct SaveOptions {
  CheckpointNames names = CheckpointNames::Step;
  int keep_last = 3;                      // newest checkpoints that stay, the new one included
  std::vector<std::string> keep = {};     // names of others that stay
  std::vector<std::string> damaged = {};  // of those that do not count, beside what does not open
  std::int64_t file_bytes = 1 << 30;      // most tensor bytes per file; larger tensors are sliced
  LeftOut left_out = {};                  // of what the ranks of a run write
  FileCalls calls = {};                   // tests let them fail
  std::vector<std::string>* notices = nullptr;  // takes what went wrong after the commit
};

/// Saves one checkpoint in `folder` (OUTPUT/checkpoints; made where it is missing) and returns its
/// path, ".../step-00000020". When it returns, the checkpoint is on disk and older ones beyond
/// `keep_last` are gone, with what killed saves left behind. Damaged ones do not count: no intact
/// one goes for them. It never changes a committed checkpoint: one that repeats or goes back behind
/// a step that is there (a resume from an older one) is named ".../step-00000020.1" and counts as
/// newer than all without the ".1".
///
/// Errors: Fault::Resource, naming the path and what the system said; everything saved before is as
/// it was.
std::string save_checkpoint(const std::string& folder, const CheckpointRecord& record,
                            std::span<const CheckpointTensor> tensors,
                            const SaveOptions& options = {});

class Checkpoint;

/// Throws an Error where what a checkpoint says is not to be used.
using CheckpointJudge = std::function<void(const Checkpoint&)>;

/// The newest checkpoint of `folder` (OUTPUT/checkpoints) of which every byte is as it was saved,
/// and which `judge` accepts; none where there is none. Each one passed over, unfinished or
/// damaged, gives a notice with the reason. Deletes nothing.
///
/// Errors: Fault::Checkpoint: there are some, but all are damaged; starting anew is for the user to
/// decide. Fault::Resource: one newer than the last intact one may not be read, and may be intact.
std::optional<std::string> latest_checkpoint(const std::string& folder,
                                             std::vector<std::string>* notices = nullptr,
                                             const CheckpointJudge& judge = {});

/// The committed checkpoints of `folder`, oldest first, whatever their state.
std::vector<std::string> list_checkpoints(const std::string& folder);

/// What a checkpoint says of one tensor, or what a model wants.
struct TensorEntry {
  std::string name;
  TensorType type;
  Role role = Role::Parameter;
  friend bool operator==(const TensorEntry&, const TensorEntry&) = default;
};

struct Box;
struct Manifest;
struct ManifestTensor;

/// Weights that a checkpoint does not hold: those that its adapters are of. Several threads may
/// read at once.
class BaseTensors {
 public:
  virtual ~BaseTensors() = default;
  virtual const std::string& path() const = 0;  // where they lie
  virtual const std::vector<TensorEntry>& tensors() const = 0;
  /// As of Checkpoint.
  virtual void read(std::string_view name, std::span<std::byte> into) const = 0;
  virtual void read_shard(std::string_view name, const Sharding& sharding, const Mesh& mesh,
                          const Coordinates& at, std::span<std::byte> into) const = 0;
};

/// An open checkpoint. Its files stay open, so that pruning by the run that writes them does not
/// disturb a reader. Several threads may read at once.
class Checkpoint {
 public:
  /// `path` is a checkpoint, a folder of checkpoints or the OUTPUT of a run; of several the newest
  /// is taken, or refused: falling back is for latest_checkpoint. Checks the manifest and that all
  /// files are there with their sizes and headers.
  ///
  /// Errors: Fault::Checkpoint: no checkpoint; damage: one line per file.
  static Checkpoint open(const std::string& path);
  ~Checkpoint();
  Checkpoint(Checkpoint&&) noexcept;

  /// From here on it has the tensors of `base` too, but for names of its own.
  void stand_on(std::unique_ptr<const BaseTensors> base);
  /// Where those lie; empty: there are none.
  const std::string& base_path() const;

  const std::string& path() const { return path_; }
  const CheckpointRecord& record() const;
  const std::vector<TensorEntry>& tensors() const { return entries_; }  // in the order of names
  /// The tensor of that name, or nullptr.
  const TensorEntry* find(std::string_view name) const;

  /// Fills `into` with all bytes of a tensor and checks them against their hashes; after an error
  /// `into` holds anything.
  ///
  /// Errors: Fault::Checkpoint: no such tensor (names near ones); another number of bytes; damage,
  /// naming file and tensor.
  void read(std::string_view name, std::span<std::byte> into) const;
  /// The shard of it that a rank holds; zeros beyond the extents. Reads and checks only the blocks
  /// in which the shard lies.
  void read_shard(std::string_view name, const Sharding& sharding, const Mesh& mesh,
                  const Coordinates& at, std::span<std::byte> into) const;

 private:
  friend std::vector<std::string> verify(const Checkpoint& checkpoint);
  Checkpoint();
  const TensorEntry& entry(std::string_view name) const;
  /// What it holds of the tensor; nullptr: it is of the base.
  const ManifestTensor* held(std::string_view name) const;
  /// Fills the memory of a box, in elements of `strides`.
  void read_box(const ManifestTensor& tensor, const Box& box, const Shape& strides,
                std::span<std::byte> into) const;

  std::string path_;
  std::unique_ptr<const Manifest> manifest_;
  std::vector<InputFile> files_;  // in the order of the manifest
  std::unique_ptr<const BaseTensors> base_;
  std::vector<TensorEntry> entries_;  // of both
};

/// One XXH3-128 over (name, dtype, shape, bytes) of all tensors in the order of names, as 32
/// hexadecimal digits: the same however tensors are sliced into files. Every byte is verified.
std::string digest(const Checkpoint& checkpoint);

/// Reads every byte of every file. One line per problem, each naming its file; empty: intact.
std::vector<std::string> verify(const Checkpoint& checkpoint);

/// Errors: Fault::Checkpoint: what verify() finds.
void require_intact(const Checkpoint& checkpoint);

/// Where the checkpoint that `path` names is damaged: the path of the newest intact one beside it;
/// empty: it is not damaged, or there is none. Reads every byte. Errors: none.
std::string intact_instead(const std::string& path, const CheckpointJudge& judge = {});

/// Runs `body`, which uses the checkpoint that `path` names. A failure for its damage also says
/// what to type in place of it: `words`, and the path of the newest intact one.
template <typename Body>
auto naming_intact(const std::string& path, std::string_view words, const CheckpointJudge& judge,
                   const Body& body) {
  try {
    return body();
  } catch (const Error& error) {
    if (error.fault() != Fault::Checkpoint) throw;
    const std::string other = intact_instead(path, judge);
    if (other.empty()) throw;
    throw error.with(text("the newest intact one beside it: ", words, " ", other));
  }
}

/// As verify(), for each checkpoint at or below `path`, those included that do not open, and what
/// `judge` says of those that are intact. What goes meanwhile, as a run removes its older ones, is
/// not damaged: its paths are added to `gone`. Errors: Fault::Checkpoint: there is none, or all go.
std::vector<std::string> verify_checkpoints(const std::string& path,
                                            const CheckpointJudge& judge = {},
                                            std::vector<std::string>* gone = nullptr);

/// Whether a model that wants `expected` can take the tensors of a checkpoint: "" if it can, else
/// one message of up to three lists: missing, unexpected and mis-shaped tensors, the first 20 of
/// each. Order and roles do not matter.
std::string tensor_mismatch(std::span<const TensorEntry> expected,
                            std::span<const TensorEntry> found);

}  // namespace tessera
