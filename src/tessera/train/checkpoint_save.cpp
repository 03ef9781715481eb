#include <algorithm>
#include <cstring>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/hash.h"
#include "tessera/base/text.h"
#include "tessera/data/safetensors.h"
#include "tessera/train/checkpoint.h"
#include "tessera/train/checkpoint_files.h"
#include "tessera/train/checkpoint_folder.h"
#include "tessera/train/checkpoint_manifest.h"

namespace tessera {

namespace {

/// Where a slice of a tensor goes.
struct Piece {
  std::size_t tensor = 0, slice = 0;
};
using FilePieces = std::vector<Piece>;

std::vector<CheckpointTensor> sorted(std::span<const CheckpointTensor> tensors);
std::vector<FilePieces> lay_out(std::span<const CheckpointTensor> tensors, std::int64_t file_bytes,
                                Manifest& manifest);
ManifestFile write_pieces(const FileCalls& calls, const std::string& folder,
                          const std::string& name, const FilePieces& pieces,
                          std::span<const CheckpointTensor> tensors, Manifest& manifest);
std::string commit(const FileCalls& calls, const std::string& folder, UnfinishedFolder& aside,
                   std::int64_t step);
std::vector<std::string> block_hashes(std::span<const std::byte> bytes);

}  // namespace

std::string save_checkpoint(const std::string& folder, const CheckpointRecord& record,
                            std::span<const CheckpointTensor> tensors, const SaveOptions& options) {
  check(options.keep_last >= 1, "keep_last ", options.keep_last);
  const std::vector<CheckpointTensor> ordered = sorted(tensors);
  Manifest manifest;
  manifest.record = record;
  const std::vector<FilePieces> files = lay_out(ordered, options.file_bytes, manifest);
  std::int64_t bytes = 1 << 20;  // and a little for headers and the manifest
  for (const CheckpointTensor& tensor : ordered) bytes += tensor.type.bytes();

  const FileCalls& calls = options.calls;
  make_folders(calls, folder);
  require_space(folder, bytes);
  UnfinishedFolder aside(calls, folder, text(kUnfinished, to_text(StepName{0, record.step})));
  for (const FilePieces& pieces : files) {
    std::string number = text(manifest.files.size());
    if (number.size() < 5) number.insert(0, 5 - number.size(), '0');
    manifest.files.push_back(write_pieces(
        calls, aside.path(), text("data-", number, ".safetensors"), pieces, ordered, manifest));
  }
  HashedFile file(calls, text(aside.path(), "/", kManifestName));
  file.write(to_text(manifest));
  file.finish();
  flush_folder(calls, aside.path());
  std::string path = commit(calls, folder, aside, record.step);

  const std::vector<std::string> problems = tidy_checkpoints(calls, folder, options.keep_last);
  if (options.notices != nullptr)
    options.notices->insert(options.notices->end(), problems.begin(), problems.end());
  return path;
}

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

/// A tensor that fits into a file stays whole, under its own name and shape.
std::vector<FilePieces> lay_out(std::span<const CheckpointTensor> tensors, std::int64_t file_bytes,
                                Manifest& manifest) {
  constexpr std::int64_t kWidest = 8;  // bytes of an element
  const std::int64_t limit = std::max(file_bytes / kWidest * kWidest, kWidest);
  std::vector<FilePieces> files(1);
  std::int64_t used = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const CheckpointTensor& tensor = tensors[i];
    manifest.tensors.push_back({{tensor.name, tensor.type, tensor.role}, {}});
    std::vector<ManifestSlice>& slices = manifest.tensors.back().slices;
    std::int64_t first = 0;
    do {
      const std::int64_t bytes = std::min(tensor.type.bytes() - first, limit);
      if (used + bytes > limit) {
        files.emplace_back();
        used = 0;
      }
      files.back().push_back({i, slices.size()});
      slices.push_back({files.size() - 1, first, bytes, 0, {}});
      used += bytes;
      first += bytes;
    } while (first < tensor.type.bytes());
  }
  return files;
}

ManifestFile write_pieces(const FileCalls& calls, const std::string& folder,
                          const std::string& name, const FilePieces& pieces,
                          std::span<const CheckpointTensor> tensors, Manifest& manifest) {
  ManifestFile out{name, 0, 0, "", ""};
  HashedFile file(calls, text(folder, "/", name));
  const auto end_header = [&] {
    if (out.header_bytes != 0) return;
    out.header_bytes = file.bytes();
    out.header_hash = file.hash();
  };
  std::vector<TensorSource> sources;
  for (const Piece& piece : pieces) {
    const CheckpointTensor& tensor = tensors[piece.tensor];
    ManifestTensor& entry = manifest.tensors[piece.tensor];
    ManifestSlice& slice = entry.slices[piece.slice];
    const auto bytes = tensor.bytes.subspan(static_cast<std::size_t>(slice.first),
                                            static_cast<std::size_t>(slice.bytes));
    slice.blocks = block_hashes(bytes);
    std::string label = tensor.name;
    TensorType type = tensor.type;
    if (entry.slices.size() > 1) {
      const std::int64_t width = size_of(type.dtype);
      label = text(tensor.name, "[", slice.first / width, ":", (slice.first + slice.bytes) / width,
                   "]");
      type.shape = {slice.bytes / width};
    }
    // The first byte that is asked for ends the header.
    sources.push_back(
        {label, type, [&, bytes, at = &slice.at](std::int64_t first, std::span<std::byte> to) {
           end_header();
           if (first == 0) *at = file.bytes();
           std::memcpy(to.data(), bytes.data() + first, to.size());
         }});
  }
  write_safetensors([&](std::span<const std::byte> bytes) { file.write(bytes); },
                    std::move(sources), {});
  end_header();
  file.finish();
  out.bytes = file.bytes();
  out.hash = file.hash();
  return out;
}

std::string commit(const FileCalls& calls, const std::string& folder, UnfinishedFolder& aside,
                   std::int64_t step) {
  constexpr int kAttempts = 100;  // another saver may take the name after the scan
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const StepName name = next_name(scan_checkpoints(folder), step);
    std::string path = text(folder, "/", to_text(name));
    if (!aside.rename_to(path)) continue;
    flush_folder(calls, folder);
    return path;
  }
  fail(Fault::Resource, "cannot save a checkpoint: each new name in '", folder,
       "' is taken; let only one run save there");
}

std::vector<std::string> block_hashes(std::span<const std::byte> bytes) {
  std::vector<std::string> out;
  constexpr auto kBlock = static_cast<std::size_t>(kBlockBytes);
  for (std::size_t at = 0; at < bytes.size(); at += kBlock)
    out.push_back(hash128_text(bytes.subspan(at, std::min(kBlock, bytes.size() - at))));
  return out;
}

}  // namespace

}  // namespace tessera
