#include "tessera/runtime/trace.h"

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tessera/base/text.h"

namespace tessera {

namespace {

using Json = nlohmann::ordered_json;

/// A complete event on the one thread that calls kernels. Times are microseconds since the first
/// step began.
std::string event(const std::string& name_and_args, const char* category, std::int64_t begin_ns,
                  std::int64_t end_ns, std::int64_t first_ns) {
  std::array<char, 120> head;
  std::snprintf(head.data(), head.size(),
                R"({"ph":"X","pid":1,"tid":1,"cat":"%s","ts":%.3f,"dur":%.3f,)", category,
                static_cast<double>(begin_ns - first_ns) * 1e-3,
                static_cast<double>(end_ns - begin_ns) * 1e-3);
  return head.data() + name_and_args + "}";
}

/// The members of an object, without its braces.
std::string members(const Json& object) {
  const std::string out = object.dump();
  return out.substr(1, out.size() - 2);
}

std::string described(const Call& call, const Action& action) {
  const char* part = call.kernel ? "" : call.is_start() ? "start " : "wait ";
  return members({{"name", part + op_text(call)},
                  {"args",
                   {{"op", call.op->name},
                    {"kernel", kernel_name(call)},
                    {"block", call.block.str()},
                    {"shapes", types_text(call)},
                    {"GFLOP", call.flops * 1e-9},
                    {"bytes", call.bytes},
                    {"region", to_text(action.region)},
                    {"microbatch", action.microbatch}}}});
}

Json table_json(const Profile& profile) {
  Json out;
  out["device"] = profile.device;
  out["flops_per_s"] = profile.rates.flops_per_s;
  for (const StreamRate& stream : profile.rates.streams)
    out["streams"].push_back({{"bytes", stream.bytes}, {"bytes_per_s", stream.bytes_per_s}});
  out["steps"] = profile.steps.size();
  out["step_seconds"] = profile.step_seconds();
  double in_kernels = 0;
  out["kernels"] = Json::array();
  for (const KernelRow& row : kernel_rows(profile)) {
    in_kernels += row.seconds;
    out["kernels"].push_back({{"kernel", row.kernel},
                              {"op", row.op},
                              {"types", row.types},
                              {"block", row.where},
                              {"calls", row.calls},
                              {"seconds", row.seconds},
                              {"flops", row.flops},
                              {"bytes", row.bytes},
                              {"floor_seconds", row.floor_seconds},
                              {"slow", is_slow(row, profile)}});
  }
  out["seconds_in_no_kernel"] = profile.step_seconds() - in_kernels;
  return out;
}

}  // namespace

std::string trace_json(const Profile& profile) {
  const std::int64_t first = profile.steps.front().begin_ns;
  std::string out = R"({"displayTimeUnit":"ms","traceEvents":[)"
                    R"({"ph":"M","pid":1,"tid":1,"name":"process_name","args":{"name":"tessera"}})";
  for (const StepTime& step : profile.steps) {
    out += ",\n" + event(members({{"name", text("step ", step.step)}}), "step", step.begin_ns,
                         step.end_ns, first);
  }
  for (const CallTime& time : profile.calls) {
    out += ",\n" +
           event(described(*time.call, time.action), "kernel", time.begin_ns, time.end_ns, first);
  }
  return out + "],\n\"profile\":" + table_json(profile).dump(1) + "}\n";
}

}  // namespace tessera
