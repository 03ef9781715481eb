/// Manifests of checkpoints, and reading what they describe: the files that fit an accepted
/// manifest are made, and every tensor is read from them, whole and as shards of meshes.

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "fuzz/target.h"
#include "tessera/base/hash.h"
#include "tessera/checkpoint/checkpoint.h"
#include "tessera/checkpoint/checkpoint_manifest.h"
#include "tessera/tensor/shard_copy.h"

namespace tessera::fuzz {

namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

constexpr std::int64_t kMostBytes = 1 << 14;  // of the files that are made for one input
constexpr std::size_t kMostFiles = 16;

/// A damaged manifest hardly ever has the right hash: it is given one, so that what reads behind
/// the seal is reached.
std::string sealed(std::string_view input) {
  const std::string_view object = trim(input);
  const bool can_be = object.size() > 2 && object.back() == '}';
  return can_be ? seal_manifest(object) : std::string(input);
}

/// A folder of this process, in memory where the system has a folder for that.
class Folder {
 public:
  Folder() {
    std::string name = (fs::exists("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path()) /
                       "tessera-fuzz-XXXXXX";
    check(mkdtemp(name.data()) != nullptr, "cannot make ", name);
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void put(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  check(out.good(), "cannot write ", path);
}

/// Files of the sizes that the manifest says; no two bytes nearby are equal.
std::vector<Bytes> files_of(const Manifest& manifest) {
  std::vector<Bytes> out;
  std::uint64_t state = 1;
  for (const ManifestFile& file : manifest.files) {
    Bytes bytes(static_cast<std::size_t>(file.bytes));
    for (std::byte& b : bytes)
      b = static_cast<std::byte>((state = state * 6364136223846793005U + 1442695040888963407U) >>
                                 56);
    out.push_back(std::move(bytes));
  }
  return out;
}

Bytes part(const Bytes& bytes, std::int64_t at, std::int64_t size) {
  return {bytes.begin() + at, bytes.begin() + at + size};
}

/// The manifest with the hashes of those files.
Manifest fitted(Manifest manifest, const std::vector<Bytes>& files) {
  for (std::size_t i = 0; i < files.size(); ++i) {
    manifest.files[i].hash = hash128_text(files[i]);
    manifest.files[i].header_hash = hash128_text(part(files[i], 0, manifest.files[i].header_bytes));
  }
  for (ManifestTensor& tensor : manifest.tensors) {
    for (ManifestSlice& slice : tensor.slices) {
      for (std::size_t i = 0; i < slice.blocks.size(); ++i) {
        const std::int64_t first = static_cast<std::int64_t>(i) * manifest.block_bytes;
        slice.blocks[i] = hash128_text(part(files[slice.file], slice.at + first,
                                            std::min(manifest.block_bytes, slice.bytes - first)));
      }
    }
  }
  return manifest;
}

/// The bytes of a tensor, put together without the code under test: element by element.
Bytes whole_of(const ManifestTensor& tensor, const std::vector<Bytes>& files) {
  const std::int64_t width = size_of(tensor.entry.type.dtype);
  const Shape& shape = tensor.grid.shape;
  Bytes out;
  for (std::int64_t element = 0; element < tensor.entry.type.numel(); ++element) {
    std::int64_t cell = 0, inside = 0, rest = element, below = tensor.entry.type.numel();
    for (int d = 0; d < shape.ndim(); ++d) {
      below /= shape[d];
      const std::int64_t index = rest / below;
      rest %= below;
      std::int64_t part = 0, begin = 0, end = shape[d];
      for (const std::int64_t cut : tensor.grid.cuts[static_cast<std::size_t>(d)]) {
        if (cut <= index) ++part, begin = cut;
        if (cut > index) end = std::min(end, cut);
      }
      const auto parts =
          static_cast<std::int64_t>(tensor.grid.cuts[static_cast<std::size_t>(d)].size()) + 1;
      cell = cell * parts + part;
      inside = inside * (end - begin) + index - begin;
    }
    const ManifestSlice& slice = tensor.slices.at(static_cast<std::size_t>(cell));
    const Bytes bytes = part(files[slice.file], slice.at + inside * width, width);
    out.insert(out.end(), bytes.begin(), bytes.end());
  }
  return out;
}

/// Every rank reads its shard; together they are the tensor.
void read_shards(const Checkpoint& checkpoint, const TensorEntry& entry, const Bytes& whole) {
  const Mesh mesh({{"a", 2}, {"b", 3}});
  const Shape& shape = entry.type.shape;
  const int ndim = shape.ndim();
  if (ndim == 0) return;
  const Sharding none = Sharding::replicated(ndim);
  for (const Sharding& sharding :
       {none, none.with("a", 0), none.with("b", ndim - 1).with("a", ndim - 1),
        ndim > 1 ? none.with("b", 0).with("a", ndim - 1) : none.with("b", 0)}) {
    Bytes together(whole.size());
    const std::int64_t numel = local_shape(shape, sharding, mesh).numel();
    Bytes shard(static_cast<std::size_t>(numel * size_of(entry.type.dtype)));
    for (std::int64_t r = 0; r < mesh.ranks(); ++r) {
      const Coordinates at = coordinates_of(mesh, r);
      checkpoint.read_shard(entry.name, sharding, mesh, at, shard);
      paste_shard(shard, shape, entry.type.dtype, sharding, mesh, at, together);
    }
    check(together == whole, "the shards of ", to_text(entry.type), " in ", to_text(sharding),
          " are not the tensor");
  }
}

void read_all(const std::string& folder, const Manifest& manifest,
              const std::vector<Bytes>& files) {
  const Checkpoint checkpoint = Checkpoint::open(folder);
  const std::vector<std::string> problems = verify(checkpoint);
  check(problems.empty(), "hashes fit, yet: ", join(problems));
  for (const ManifestTensor& tensor : manifest.tensors) {
    const Bytes whole = whole_of(tensor, files);
    Bytes read(whole.size());
    checkpoint.read(tensor.entry.name, read);
    check(read == whole, "'", tensor.entry.name, "' is read as other bytes");
    read_shards(checkpoint, tensor.entry, whole);
  }
  check(digest(checkpoint).size() == 32, "no digest");
}

/// As it came, with hashes that fit nothing: refused, or, without files, intact.
void refuse_damage(const std::string& folder, const Manifest& manifest) {
  std::int64_t blocks = 0;
  for (const ManifestTensor& tensor : manifest.tensors) {
    for (const ManifestSlice& slice : tensor.slices)
      blocks += static_cast<std::int64_t>(slice.blocks.size());
  }
  const bool damaged = !verify_checkpoints(folder).empty();
  check(damaged || blocks == 0, "bytes of other hashes are called intact");
}

void read_files(const Manifest& manifest) {
  static const Folder folder;
  const std::vector<Bytes> files = files_of(manifest);
  for (std::size_t i = 0; i < files.size(); ++i)
    put(folder.path() + "/" + manifest.files[i].name, files[i]);
  const std::string path = folder.path() + "/" + kManifestName;
  const auto put_manifest = [&](const Manifest& m) {
    const std::string bytes = to_text(m);
    put(path, std::as_bytes(std::span(bytes)));
  };
  put_manifest(manifest);
  refuse_damage(folder.path(), manifest);
  const Manifest fits = fitted(manifest, files);
  put_manifest(fits);
  read_all(folder.path(), fits, files);
  for (const ManifestFile& file : manifest.files) fs::remove(folder.path() + "/" + file.name);
}

bool is_small(const Manifest& manifest) {
  std::int64_t bytes = 0;
  for (const ManifestFile& file : manifest.files) {
    if (file.bytes > kMostBytes) return false;
    bytes += file.bytes;
  }
  return bytes <= kMostBytes && manifest.files.size() <= kMostFiles;
}

void run(std::string_view input) {
  try {
    parse_manifest(input, "unsealed");
  } catch (const Error& error) {
    if (error.fault() == Fault::Internal) throw;
  }
  const Manifest manifest = parse_manifest(sealed(input), "input");
  then([&] {
    const std::string printed = to_text(manifest);
    check(parse_manifest(printed, "printed") == manifest, "reads back unequal: ", printed);
    if (is_small(manifest)) read_files(manifest);
  });
}

}  // namespace

const Target kTarget = {2 << 20, 512, run};

}  // namespace tessera::fuzz
