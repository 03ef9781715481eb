#include "tessera/plan/work_section.h"

#include <algorithm>
#include <numeric>

#include "tessera/base/index.h"
#include "tessera/base/size.h"

namespace tessera {

WorkSection::WorkSection(Memory memory, const ProgramValues& values, std::int64_t guard_bytes)
    : memory_(memory), values_(values), guard_(guard_bytes) {
  constexpr std::string_view kRing =
      "bytes of a value in as many micro-batches as hold it at a time";
  for (int b = 0; b < static_cast<int>(values_.buffers().size()); ++b) {
    const Buffer& of = buffer(b);
    if (of.home != Buffer::Home::Work || of.memory != memory_) continue;
    index_.emplace(b, lifetimes_.size());
    const std::int64_t others = size_product({stride(of), of.depth - 1}, kRing);
    lifetimes_.push_back({size_sum(others, of.bytes + 2 * guard_, kRing), of.first, of.last});
  }
}

std::size_t WorkSection::add_workspace(std::int64_t bytes, std::int32_t time) {
  lifetimes_.push_back({bytes + 2 * guard_, time, time, false});
  return lifetimes_.size() - 1;
}

void WorkSection::add_copy(const CopyPlace& copy) {
  copies_.push_back(
      {copy.place.offset - guard_, aligned(copy.bytes + 2 * guard_), values_.idle(copy.path)});
  copy_paths_.push_back(copy.path);
}

void WorkSection::lay_out(bool exact) {
  const bool any_idle =
      std::ranges::any_of(copies_, [](const KeptBuffer& b) { return b.idle.has_value(); });
  layout_ = plan_memory(
      lifetimes_, kAlignment,
      any_idle ? std::span<const KeptBuffer>(copies_) : std::span<const KeptBuffer>{}, exact);
}

Place WorkSection::place(int b) const {
  Place out = at_offset(index_.at(b));
  if (buffer(b).depth > 1) out.stride = stride(buffer(b)), out.depth = buffer(b).depth;
  return out;
}

WorkUse WorkSection::use() const {
  WorkUse out{layout_.bytes, layout_.lower_bound, 0};
  for (const Lifetime& each : lifetimes_)
    out.unshared_bytes =
        size_sum(out.unshared_bytes, aligned(each.bytes), "bytes of all buffers of a program");
  return out;
}

std::vector<GuardedBuffer> WorkSection::guarded() const {
  std::vector<GuardedBuffer> out;
  if (guard_ == 0) return out;
  const auto add = [&](Place place, std::int64_t bytes, const Lifetime& life) {
    out.push_back({place, bytes, life.first, life.last});
  };
  for (const auto& [b, index] : index_) {
    Place place = at_offset(index);
    for (std::int64_t k = 0; k < buffer(b).depth; ++k, place.offset += stride(buffer(b)))
      add(place, buffer(b).bytes, lifetimes_[index]);
  }
  for (std::size_t w = index_.size(); w < lifetimes_.size(); ++w)
    add(workspace(w), lifetimes_[w].bytes - 2 * guard_, lifetimes_[w]);
  for (std::size_t c = 0; c < copies_.size(); ++c) {
    const KeptBuffer& b = copies_[c];
    const Place place{memory_, Place::Section::Work, b.offset + guard_};
    const std::int64_t bytes = b.bytes - 2 * guard_;
    if (b.idle) out.push_back({place, bytes, 0, b.idle->first - 1, copy_paths_[c]});
    out.push_back(
        {place, bytes, b.idle ? b.idle->last + 1 : 0, GuardedBuffer::kEver, copy_paths_[c]});
  }
  return out;
}

std::int32_t WorkSection::fullest_moment() const {
  std::int32_t end = 0;
  for (const Lifetime& b : lifetimes_) end = std::max(end, b.last);
  for (const KeptBuffer& b : copies_) end = std::max(end, b.idle ? b.idle->last : 0);
  std::vector<std::int64_t> alive(at(end + 2), 0);
  for (const Lifetime& b : lifetimes_) {
    alive[at(b.first)] += b.bytes;
    alive[at(b.last + 1)] -= b.bytes;
  }
  for (const KeptBuffer& b : copies_) {
    if (!b.idle) continue;
    alive[at(b.idle->first)] -= b.bytes;
    alive[at(b.idle->last + 1)] += b.bytes;
  }
  std::int64_t now =
      std::accumulate(copies_.begin(), copies_.end(), std::int64_t{0},
                      [](std::int64_t sum, const KeptBuffer& b) { return sum + b.bytes; });
  std::int64_t most = -1;
  std::int32_t peak = 0;
  for (std::size_t t = 0; t < alive.size(); ++t) {
    now += alive[t];
    if (now > most) most = now, peak = static_cast<std::int32_t>(t);
  }
  return peak;
}

MemoryUse WorkSection::content(const std::vector<Region>& regions) const {
  MemoryUse out;
  const std::int32_t peak = fullest_moment();
  const auto alive = [&](const Lifetime& b) { return b.first <= peak && b.last >= peak; };
  for (const auto& [b, index] : index_) {
    if (alive(lifetimes_[index])) use_of(buffer(b), regions, out) += lifetimes_[index].bytes;
  }
  for (std::size_t w = index_.size(); w < lifetimes_.size(); ++w) {
    if (alive(lifetimes_[w])) out.temporaries += lifetimes_[w].bytes;
  }
  for (const KeptBuffer& b : copies_) {
    const bool idle = b.idle && b.idle->first <= peak && b.idle->last >= peak;
    if (!idle) out.parameters += b.bytes;
  }
  return out;
}

std::int64_t& WorkSection::use_of(const Buffer& buffer, const std::vector<Region>& regions,
                                  MemoryUse& use) const {
  const auto any = [&](auto&& holds) {
    return std::any_of(buffer.values.begin(), buffer.values.end(),
                       [&](int v) { return holds(values_.values()[at(v)]); });
  };
  const auto kind = [&](int region) { return regions[at(region)].kind; };
  const auto feeds = [&](const StoredValue& v, auto&& region) {
    return std::any_of(v.uses.begin(), v.uses.end(),
                       [&](const ValueUse& reader) { return region(kind(reader.region)); });
  };
  if (any([](const StoredValue& v) { return !v.result->type.layout.plain(); })) return use.packed;
  if (any([](const StoredValue& v) { return v.kind == StoredValue::Kind::Batch; }))
    return use.inputs;
  if (any([&](const StoredValue& v) {
        return v.kind == StoredValue::Kind::Accumulator ||
               (kind(v.region) == RegionKind::Backward &&
                feeds(v, [](RegionKind k) { return k == RegionKind::Update; }));
      })) {
    return use.gradients;
  }
  if (any([&](const StoredValue& v) {
        return kind(v.region) < RegionKind::Backward &&
               feeds(v, [](RegionKind k) { return k >= RegionKind::Backward; });
      })) {
    return use.activations;
  }
  return use.temporaries;
}

}  // namespace tessera
