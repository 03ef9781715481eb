/// What compilers of accelerators are told: whatever is written is read back as it was.

#include "tessera/pjrt/compile_options.h"

#include <bit>

#include "fuzz/bytes.h"
#include "fuzz/target.h"
#include "pjrt/plugin/wire.h"
#include "tessera/base/text.h"

namespace tessera::fuzz {

namespace {

using namespace pjrt;

std::vector<WireField> read(std::string_view bytes) {
  const auto fields = read_message(bytes);
  check(fields.has_value(), "what is written is no message");
  return *fields;
}

CompileOptions options_of(Bytes& in) {
  CompileOptions out;
  out.num_replicas = in.below(5);
  out.num_partitions = in.below(4);
  const int replicas = in.below(3) == 0 ? in.below(5) : in.below(2) * out.num_replicas;
  for (int replica = 0; replica < replicas; ++replica) {
    std::vector<std::int64_t>& devices = out.device_assignment.emplace_back();
    const int count = in.below(8) == 0 ? in.below(4) : out.num_partitions;
    for (int i = 0; i < count; ++i) devices.push_back(in.take<std::int64_t>());
  }
  for (int flags = in.below(6); flags > 0 && !in.empty(); --flags) {
    NamedValue flag{std::string(in.text()), {}};
    switch (in.below(5)) {
      case 0: flag.value = std::string(in.text()); break;
      case 1: flag.value = in.below(2) == 1; break;
      case 2: flag.value = in.take<std::int64_t>(); break;
      case 3: flag.value = in.take<float>(); break;
      default: flag.value = std::vector<std::int64_t>(static_cast<std::size_t>(in.below(3)));
    }
    out.flags.push_back(std::move(flag));
  }
  return out;
}

/// DeviceAssignmentProto, as [replica][partition].
std::vector<std::vector<std::int64_t>> read_assignment(std::string_view bytes) {
  const std::vector<WireField> fields = read(bytes);
  std::vector<std::vector<std::int64_t>> out(fields.at(0).value);
  for (std::size_t i = 2; i < fields.size(); ++i) {
    std::string_view devices = read(fields[i].bytes).at(0).bytes;
    for (auto& of_replica : out)
      of_replica.push_back(static_cast<std::int64_t>(read_varint(devices).value()));
    check(devices.empty(), "more devices than replicas");
  }
  return out;
}

NamedValue read_flag(std::string_view bytes) {
  const std::vector<WireField> fields = read(bytes);
  const WireField value = read(fields.at(1).bytes).at(0);
  NamedValue out{std::string(fields[0].bytes), {}};
  switch (value.number) {
    case 1: out.value = std::string(value.bytes); break;
    case 2: out.value = value.value == 1; break;
    case 3: out.value = static_cast<std::int64_t>(value.value); break;
    default: out.value = static_cast<float>(std::bit_cast<double>(value.value));
  }
  return out;
}

CompileOptions read_options(std::string_view bytes) {
  CompileOptions out;
  for (const WireField& field : read(bytes)) {
    if (field.number == 7) out.flags.push_back(read_flag(field.bytes));
    if (field.number != 3) continue;
    for (const WireField& build : read(field.bytes)) {
      if (build.number == 4) out.num_replicas = static_cast<int>(build.value);
      if (build.number == 5) out.num_partitions = static_cast<int>(build.value);
      if (build.number == 9) out.device_assignment = read_assignment(build.bytes);
    }
  }
  return out;
}

/// What callers must not give is told as a broken promise; nothing else may be.
bool can_be_written(const CompileOptions& options) {
  if (options.num_replicas < 1 || options.num_partitions < 1) return false;
  for (const auto& devices : options.device_assignment) {
    if (static_cast<int>(devices.size()) != options.num_partitions) return false;
  }
  const auto rows = static_cast<int>(options.device_assignment.size());
  if (rows != 0 && rows != options.num_replicas) return false;
  for (const NamedValue& flag : options.flags) {
    if (std::holds_alternative<std::vector<std::int64_t>>(flag.value)) return false;
  }
  return true;
}

std::string shown(const CompileOptions& options) {
  std::string out = text(options.num_replicas, " x ", options.num_partitions);
  for (const auto& devices : options.device_assignment) out += text(" [", join(devices), "]");
  for (const NamedValue& flag : options.flags) out += "; " + to_text(flag);
  return out;
}

void run(std::string_view input) {
  Bytes in(input);
  const CompileOptions options = options_of(in);
  if (!can_be_written(options)) {
    bool refused = false;
    try {
      to_bytes(options);
    } catch (const Error&) {
      refused = true;
    }
    check(refused, "written, though nobody could read it: ", shown(options));
    fail(Fault::Usage, "it cannot be written");
  }
  const std::string bytes = to_bytes(options);
  then([&] {
    const CompileOptions back = read_options(bytes);
    check(shown(back) == shown(options), "read back otherwise: ", shown(back));
    check(to_bytes(back) == bytes, "other bytes when written again: ", shown(options));
  });
}

}  // namespace

const Target kTarget = {1 << 20, 512, run};

}  // namespace tessera::fuzz
