#include <algorithm>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/checkpoint/checkpoint.h"
#include "tessera/checkpoint/checkpoint_folder.h"
#include "tessera/checkpoint/checkpoint_write.h"

namespace tessera {

namespace {

std::vector<CheckpointTensor> sorted(std::span<const CheckpointTensor> tensors) {
  std::vector<CheckpointTensor> out(tensors.begin(), tensors.end());
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  for (std::size_t i = 0; i < out.size(); ++i) {
    const CheckpointTensor& t = out[i];
    check(i == 0 || out[i - 1].name != t.name, "two tensors of a checkpoint are named ", t.name);
    check(t.type.layout.plain(), "tensor ", t.name, " of type ", t.type, " is saved as it is");
    check(static_cast<std::int64_t>(t.bytes.size()) == t.type.bytes(), t.bytes.size(),
          " bytes for ", t.name, " of type ", t.type);
  }
  return out;
}

}  // namespace

/// A tensor that fits into a file stays whole, under its own name and shape.
std::string save_checkpoint(const std::string& folder, const CheckpointRecord& record,
                            std::span<const CheckpointTensor> tensors, const SaveOptions& options) {
  check(options.keep_last >= 1, "keep_last ", options.keep_last);
  std::vector<ManifestTensor> entries;
  std::vector<CheckpointPiece> pieces;
  std::int64_t bytes = 0;  // of tensors
  for (const CheckpointTensor& t : sorted(tensors)) {
    const std::int64_t width = size_of(t.type.dtype);
    TensorGrid grid = TensorGrid::whole(t.type.shape)
                          .refined(std::max<std::int64_t>(options.file_bytes / width, 1));
    const Shape strides = t.type.shape.strides();
    // One without elements too, so that the file names it.
    for (std::int64_t cell = 0; cell < std::max<std::int64_t>(grid.cells(), 1); ++cell) {
      std::int64_t first = 0;
      for (int d = 0; d < strides.ndim(); ++d) first += grid.cell(cell).start[d] * strides[d];
      pieces.push_back({entries.size(), cell, t.bytes.data() + first * width, strides});
    }
    entries.push_back({{t.name, t.type, t.role}, std::move(grid), {}});
    bytes += t.type.bytes();
  }
  const FileCalls& calls = options.calls;
  make_folders(calls, folder);
  require_space(folder, bytes);  // of a huge model, before its many files are counted
  require_space(folder,
                save_bytes(record, entries,
                           {planned_part(kDataPrefix, entries, pieces, options.file_bytes)}));
  UnfinishedFolder aside(calls, folder, text(kUnfinished, to_text(StepName{0, record.step})));
  const WrittenPart part =
      write_part(calls, aside.path(), kDataPrefix, entries, pieces, options.file_bytes);
  return commit_parts(folder, aside, record, std::move(entries), {part}, options);
}

}  // namespace tessera
