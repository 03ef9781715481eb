#include <algorithm>
#include <array>

#include "tessera/base/printable.h"
#include "tessera/pjrt/c/call.h"

namespace tessera::pjrt::c {

namespace {

/// What a code means for the user of Tessera.
struct Meaning {
  Code code;
  std::string_view name;
  Fault fault;
  std::string_view advice;  // what to do, where the message does not say it
};
constexpr std::array kMeanings = {
    Meaning{Code::Cancelled, "CANCELLED", Fault::Peer, "look for the first error of another rank"},
    Meaning{Code::InvalidArgument, "INVALID_ARGUMENT", Fault::Usage, ""},
    Meaning{Code::DeadlineExceeded, "DEADLINE_EXCEEDED", Fault::Peer,
            "another process did not come in time: look at its output"},
    Meaning{Code::NotFound, "NOT_FOUND", Fault::Usage,
            "the plugin lacks something: take a newer one, or another device"},
    Meaning{Code::AlreadyExists, "ALREADY_EXISTS", Fault::Usage, ""},
    Meaning{Code::PermissionDenied, "PERMISSION_DENIED", Fault::Resource,
            "ask for access to the device"},
    Meaning{Code::ResourceExhausted, "RESOURCE_EXHAUSTED", Fault::Resource,
            "out of memory: take smaller micro-batches, recompute, offload or more devices"},
    Meaning{Code::FailedPrecondition, "FAILED_PRECONDITION", Fault::Resource, ""},
    Meaning{Code::Aborted, "ABORTED", Fault::Peer, "look for the first error of another rank"},
    Meaning{Code::OutOfRange, "OUT_OF_RANGE", Fault::Usage, ""},
    Meaning{Code::Unimplemented, "UNIMPLEMENTED", Fault::Usage,
            "the plugin cannot do that: take a newer one, or another device"},
    Meaning{Code::Internal, "INTERNAL", Fault::Resource,
            "the plugin or its device failed: see what its driver says, then resume from the last "
            "checkpoint"},
    Meaning{Code::Unavailable, "UNAVAILABLE", Fault::Peer,
            "a device or another process was lost: resume from the last checkpoint"},
    Meaning{Code::DataLoss, "DATA_LOSS", Fault::Resource, "resume from the last checkpoint"},
    Meaning{Code::Unauthenticated, "UNAUTHENTICATED", Fault::Resource,
            "ask for access to the device"},
};
constexpr Meaning kUnknown = {Code::Unknown, "UNKNOWN", Fault::Resource,
                              "the plugin or its device failed"};

const Meaning& meaning_of(Code code) {
  for (const Meaning& meaning : kMeanings) {
    if (meaning.code == code) return meaning;
  }
  return kUnknown;
}

/// Where it fails, there is another way: compiled programs are kept to save time alone.
bool can_be_done_without(Call call) {
  return call == Call::ExecutableDeserializeAndLoad || call == Call::ExecutableSerialize;
}

bool is_compile(Call call) { return call == Call::ClientCompile || call == Call::Compile; }

/// What a call that failed is most likely for: where a plugin's own words are about its insides.
std::string_view advice_for(Call call, const Meaning& meaning) {
  const bool refused = meaning.fault == Fault::Usage;
  switch (call) {
    case Call::ClientCreate:
      if (meaning.code == Code::ResourceExhausted) break;
      return refused
                 ? "see which options this plugin takes"
                 : "no device of this plugin can be used: is there one, is its driver loaded, and "
                   "is it new enough?";
    case Call::PluginInitialize: return "take another version of the plugin";
    case Call::ExecutableDeserializeAndLoad:
      return "it was written by another version, or for another device: compile the program again";
    default: break;
  }
  if (is_compile(call) && meaning.code == Code::Unknown) {
    return "the compiler cannot read the module: take a newer version of the plugin";
  }
  return meaning.advice;
}

std::string message_of(const Plugin& plugin, Error* error) {
  constexpr std::size_t kMost = 4000;  // a stack of calls may be behind it
  auto message = arguments<ErrorMessage>();
  message.of = error;
  void (*const there)() = entry(plugin.api(), Call::ErrorMessage);
  if (there != nullptr) reinterpret_cast<void (*)(ErrorMessage*)>(there)(&message);
  const Text said = message.answer;
  if (said.data == nullptr || said.size == 0) return "no message";
  const std::string_view shown(said.data, std::min(said.size, kMost));
  return printable(trim(shown)) + (said.size > kMost ? "..." : "");
}

}  // namespace

void (*entry(const Api& api, Call call))() {
  const std::size_t place = static_cast<std::size_t>(call);
  const std::size_t end = offsetof(Api, calls) + (place + 1) * sizeof(api.calls[0]);
  return api.head.size < end ? nullptr : api.calls[place];
}

Code code_of(const Plugin& plugin, Error* error) {
  if (entry(plugin.api(), Call::ErrorGetCode) == nullptr) return Code::Unknown;
  auto code = arguments<ErrorGetCode>();
  code.of = error;
  Error* const other = function<ErrorGetCode>(plugin)(&code);
  if (other == nullptr) return code.answer;
  destroy_error(plugin, other);
  return Code::Unknown;
}

void destroy_error(const Plugin& plugin, Error* error) {
  auto destroy = arguments<ErrorDestroy>();
  destroy.of = error;
  void (*const there)() = entry(plugin.api(), Call::ErrorDestroy);
  if (there != nullptr) reinterpret_cast<void (*)(ErrorDestroy*)>(there)(&destroy);
}

void fail_call(const Plugin& plugin, Call call, Error* error) {
  const Meaning& meaning = meaning_of(code_of(plugin, error));
  const std::string message = message_of(plugin, error);
  destroy_error(plugin, error);
  const std::string_view advice = advice_for(call, meaning);
  const bool unreadable = is_compile(call) && meaning.code == Code::Unknown;
  if (meaning.fault != Fault::Usage && !unreadable && !can_be_done_without(call))
    plugin.note_failure();
  const tessera::Error failure(unreadable ? Fault::Usage : meaning.fault,
                               text(plugin.file(), ": ", name_of(call), ": ", meaning.name, ": ",
                                    message, advice.empty() ? "" : "; ", advice));
  if (meaning.code == Code::ResourceExhausted) throw OutOfMemory(failure);
  throw failure;
}

void fail_missing(const Plugin& plugin, Call call) {
  fail(Fault::Resource, plugin.file(), ": its interface ", plugin.version(), " has no ",
       name_of(call), "; take a newer version of the plugin");
}

void fail_answer(const Plugin& plugin, Call call, std::string_view what) {
  fail(Fault::Resource, plugin.file(), ": ", name_of(call), " answers ", what,
       ", which cannot be; take another version of the plugin");
}

}  // namespace tessera::pjrt::c
