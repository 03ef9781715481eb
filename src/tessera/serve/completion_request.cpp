#include "tessera/serve/completion_request.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "tessera/base/text.h"
#include "tessera/serve/api_error.h"

namespace tessera {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kMostDepth = 32;
constexpr std::size_t kMostStops = 16, kMostStopBytes = 1024;
/// Objects of nlohmann's look for a key among all others, and templates copy what they have written
/// for each message: without limits a body of some MiB would take minutes.
constexpr std::size_t kMostKeys = 256, kMostMessages = 4096;

[[noreturn]] void refuse_value(const std::string& name, const std::string& what) {
  throw ApiError(400, text(name, " ", what), name, "invalid_value");
}

std::string text_of(const Json& value, const std::string& name) {
  if (!value.is_string()) refuse_value(name, "is no text");
  return value.get<std::string>();
}

bool switch_of(const Json& value, const std::string& name) {
  if (!value.is_boolean()) refuse_value(name, "is neither true nor false");
  return value.get<bool>();
}

double number_of(const Json& value, const std::string& name, double least, double most) {
  if (!value.is_number()) refuse_value(name, "is no number");
  const auto out = value.get<double>();
  if (!(out >= least && out <= most))
    refuse_value(name, text("is ", out, "; it must be from ", least, " to ", most));
  return out;
}

std::int64_t whole_of(const Json& value, const std::string& name, std::int64_t least,
                      std::int64_t most) {
  const bool large = value.is_number_unsigned() &&
                     value.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max();
  if (!value.is_number_integer() || large) refuse_value(name, "is no whole number, or too large");
  const auto out = value.get<std::int64_t>();
  if (out < least || out > most)
    refuse_value(name, text("is ", out, "; it must be from ", least, " to ", most));
  return out;
}

void read_prompt(const Json& value, CompletionRequest& out) {
  const Json& one =
      value.is_array() && value.size() == 1 && !value[0].is_number() ? value[0] : value;
  if (one.is_string()) {
    out.prompt = one.get<std::string>();
  } else if (one.is_array() && !one.empty() && one[0].is_number()) {
    for (const Json& id : one)
      out.prompt_ids.push_back(static_cast<std::int32_t>(
          whole_of(id, "prompt", 0, std::numeric_limits<std::int32_t>::max())));
  } else {
    refuse_value("prompt", "is neither one text nor one list of tokens");
  }
}

/// A text, or [{"type": "text", "text": "..."}], whose texts are joined.
std::string content_of(const Json& value, const std::string& name) {
  if (!value.is_array()) return text_of(value, name);
  std::string out;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const std::string part = text(name, "[", i, "]");
    if (!value[i].is_object()) refuse_value(part, "is no object");
    if (value[i].value("type", Json()) != "text")
      refuse_value(part, "is no part of type text, which alone this server reads");
    out += text_of(value[i].value("text", Json()), part + ".text");
  }
  return out;
}

void read_messages(const Json& value, CompletionRequest& out) {
  if (!value.is_array() || value.empty()) refuse_value("messages", "is no list of messages");
  if (value.size() > kMostMessages)
    refuse_value("messages", text("has ", value.size(), " messages; give at most ", kMostMessages));
  out.messages = Json::array();
  for (std::size_t i = 0; i < value.size(); ++i) {
    const std::string name = text("messages[", i, "]");
    if (!value[i].is_object()) refuse_value(name, "is no object");
    Json message = Json::object();
    for (const auto& [key, part] : value[i].items()) {
      const std::string inner = text(name, ".", key);
      if (part.is_null()) continue;
      if (key == "content")
        message[key] = content_of(part, inner);
      else if (key == "role" || key == "name" || key == "reasoning_content")
        message[key] = text_of(part, inner);
      else
        throw ApiError(400, text(inner, " is not supported"), inner, "unsupported_parameter");
    }
    for (const char* needed : {"role", "content"}) {
      if (!message.contains(needed)) refuse_value(text(name, ".", needed), "is missing");
    }
    out.messages.push_back(std::move(message));
  }
}

void read_stops(const Json& value, CompletionRequest& out) {
  const Json all = value.is_array() ? value : Json::array({value});
  if (all.size() > kMostStops)
    refuse_value("stop", text("has ", all.size(), " texts; give at most ", kMostStops));
  for (const Json& one : all) {
    out.stops.push_back(text_of(one, "stop"));
    if (out.stops.back().empty() || out.stops.back().size() > kMostStopBytes)
      refuse_value("stop", text("has a text that is empty or longer than ", kMostStopBytes));
  }
}

void read_stream_options(const Json& value, CompletionRequest& out) {
  if (!value.is_object()) refuse_value("stream_options", "is no object");
  for (const auto& [key, part] : value.items()) {
    const std::string name = "stream_options." + key;
    if (part.is_null()) continue;
    if (key == "include_usage")
      out.include_usage = switch_of(part, name);
    else if (key != "include_obfuscation" || switch_of(part, name))
      throw ApiError(400, text(name, " is not supported"), name, "unsupported_parameter");
  }
}

constexpr std::int64_t kMostWhole = std::numeric_limits<std::int32_t>::max();

void read_max_tokens(const Json& value, const char* name, CompletionRequest& out) {
  const std::int64_t tokens = whole_of(value, name, 1, kMostWhole);
  if (out.max_tokens && *out.max_tokens != tokens)
    refuse_value(name, "differs from the other limit of tokens; give one");
  out.max_tokens = tokens;
}

/// A field that changes what is answered. `of`: 'c' of completions, 'm' of messages, 'b' of both.
struct ReadField {
  const char* name;
  char of;
  void (*read)(const Json& value, CompletionRequest& out);
};
constexpr ReadField kRead[] = {
    {"model", 'b', [](const Json& v, CompletionRequest& o) { o.model = text_of(v, "model"); }},
    {"prompt", 'c', read_prompt},
    {"messages", 'm', read_messages},
    {"max_tokens", 'b',
     [](const Json& v, CompletionRequest& o) { read_max_tokens(v, "max_tokens", o); }},
    {"max_completion_tokens", 'm',
     [](const Json& v, CompletionRequest& o) { read_max_tokens(v, "max_completion_tokens", o); }},
    {"temperature", 'b',
     [](const Json& v, CompletionRequest& o) {
       o.temperature = number_of(v, "temperature", 0, 100);
     }},
    {"top_p", 'b',
     [](const Json& v, CompletionRequest& o) {
       o.top_p = number_of(v, "top_p", std::numeric_limits<double>::min(), 1);
     }},
    {"top_k", 'b',
     [](const Json& v, CompletionRequest& o) {
       o.top_k = std::max<std::int64_t>(0, whole_of(v, "top_k", -1, kMostWhole));
     }},
    {"seed", 'b',
     [](const Json& v, CompletionRequest& o) {
       o.seed = static_cast<std::uint64_t>(
           whole_of(v, "seed", 0, std::numeric_limits<std::int64_t>::max()));
     }},
    {"stop", 'b', read_stops},
    {"stream", 'b', [](const Json& v, CompletionRequest& o) { o.stream = switch_of(v, "stream"); }},
    {"stream_options", 'b', read_stream_options},
};

/// A field that changes nothing, as long as it has this value; "any": whatever it has.
struct IdleField {
  const char *name, *value;
};
constexpr IdleField kIdle[] = {
    {"user", "any"},
    {"safety_identifier", "any"},
    {"prompt_cache_key", "any"},
    {"metadata", "any"},
    {"store", "false"},
    {"service_tier", "\"auto\""},
    {"n", "1"},
    {"best_of", "1"},
    {"echo", "false"},
    {"logprobs", "false"},
    {"top_logprobs", "0"},
    {"presence_penalty", "0"},
    {"frequency_penalty", "0"},
    {"repetition_penalty", "1"},
    {"min_p", "0"},
    {"logit_bias", "{}"},
    {"suffix", "\"\""},
    {"tools", "[]"},
    {"tool_choice", "\"none\""},
    {"functions", "[]"},
    {"response_format", "{\"type\": \"text\"}"},
    {"modalities", "[\"text\"]"},
};

void read_field(const std::string& name, const Json& value, bool chat, CompletionRequest& out) {
  for (const ReadField& field : kRead) {
    if (name == field.name && field.of != (chat ? 'c' : 'm')) return field.read(value, out);
  }
  for (const IdleField& field : kIdle) {
    if (name != field.name) continue;
    if (std::string_view(field.value) == "any" || Json::parse(field.value) == value) return;
    throw ApiError(400, text(name, " is not supported; leave it out, or give ", field.value), name,
                   "unsupported_parameter");
  }
  throw ApiError(400, text("unknown field ", dump(Json(name))), name, "unknown_parameter");
}

/// Refuses, while JSON is parsed, what would be costly or mean two things.
class BodyLimits {
 public:
  void see(int depth, Json::parse_event_t event, const Json& value) {
    if (depth > kMostDepth) throw ApiError(400, text("the body is JSON deeper than ", kMostDepth));
    std::set<std::string>& keys = keys_[static_cast<std::size_t>(depth)];
    if (event == Json::parse_event_t::object_start) {
      keys_[static_cast<std::size_t>(depth) + 1].clear();
    } else if (event == Json::parse_event_t::key) {
      const auto [key, is_new] = keys.insert(value.get<std::string>());
      if (!is_new) throw ApiError(400, text("the body has ", dump(Json(*key)), " twice"));
      if (keys.size() > kMostKeys)
        throw ApiError(400, text("the body has an object of more than ", kMostKeys, " keys"));
    }
  }

 private:
  std::array<std::set<std::string>, kMostDepth + 2> keys_;  // of the open object of each depth
};

Json object_of(const std::string& body) {
  try {
    BodyLimits limits;
    Json out = Json::parse(body, [&](int depth, Json::parse_event_t event, Json& value) -> bool {
      limits.see(depth, event, value);
      return true;
    });
    if (!out.is_object()) throw ApiError(400, "the body is no JSON object");
    return out;
  } catch (const Json::exception& error) {
    throw ApiError(400, text("the body is no JSON: ", error.what()));
  }
}

}  // namespace

CompletionRequest read_completion_request(const std::string& body, bool chat) {
  CompletionRequest out;
  const Json object = object_of(body);
  for (const auto& [name, value] : object.items()) {
    if (!value.is_null()) read_field(name, value, chat, out);
  }
  const char* const needed = chat ? "messages" : "prompt";
  if (!object.contains(needed) || object[needed].is_null())
    throw ApiError(400, text(needed, " is missing"), needed, "missing_required_parameter");
  if (object.contains("stream_options") && !object["stream_options"].is_null() && !out.stream)
    refuse_value("stream_options", "is for \"stream\": true alone");
  return out;
}

}  // namespace tessera
