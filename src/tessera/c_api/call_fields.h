#pragma once
/// JSON objects whose members are read by name, each with the type that is wanted.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/ir/builder.h"
#include "tessera/nn/init.h"
#include "tessera/tensor/splits.h"

namespace tessera {

using CallJson = nlohmann::ordered_json;

/// On one line, whatever it holds, cut where it is long.
std::string shown_json(const CallJson& json);

/// "; nearest are trans_a and trans_b", or all that there are where none is near.
std::string near_names(std::string_view name, const std::vector<std::string>& known);

class CallFields {
 public:
  /// `what` begins messages: "matmul". `builder`: whose values it can name; null: it names none.
  /// Errors: no object.
  CallFields(const CallJson& object, std::string what, Builder* builder = nullptr);

  /// Null: it is not there, or null.
  const CallJson* find(const char* name);
  /// Sets `into` where the member is there. Errors: of another type; the message says which member,
  /// what it is, and what to give. Values are "%12", as graphs show them.
  template <typename T>
  void get(const char* name, T& into) {
    if (const CallJson* json = find(name)) read(*json, member(name), into);
  }
  template <typename T>
  void get(const char* name, std::optional<T>& into) {
    if (const CallJson* json = find(name)) read(*json, member(name), into.emplace());
  }
  /// An enumerator by its word, of words in the order of the enumerators.
  template <typename Enum, std::size_t N>
  void get_word(const char* name, const std::array<std::string_view, N>& words, Enum& into) {
    std::string word;
    get(name, word);
    if (!word.empty())
      into = static_cast<Enum>(index_of(member(name), word, {words.begin(), words.end()}));
  }
  /// One that must be there. Errors: it is not.
  template <typename T>
  T need(const char* name) {
    T out{};
    get(name, out);
    if (find(name) == nullptr) fail_missing(name);
    return out;
  }
  /// A part that is an object itself.
  CallFields part(const char* name);
  /// Errors: members that nobody asked for.
  void finish() const;

  const std::string& what() const { return what_; }
  Builder* builder() const { return builder_; }

 private:
  std::string member(const char* name) const { return what_ + ": " + name; }
  [[noreturn]] void fail_missing(const char* name) const;
  static std::size_t index_of(const std::string& what, const std::string& word,
                              const std::vector<std::string>& words);
  void read(const CallJson& json, const std::string& what, bool& into) const;
  void read(const CallJson& json, const std::string& what, std::int64_t& into) const;
  void read(const CallJson& json, const std::string& what, int& into) const;
  /// Also "inf", "-inf" and "nan", which JSON has no numbers for.
  void read(const CallJson& json, const std::string& what, double& into) const;
  void read(const CallJson& json, const std::string& what, std::string& into) const;
  void read(const CallJson& json, const std::string& what, DType& into) const;
  void read(const CallJson& json, const std::string& what, Shape& into) const;
  void read(const CallJson& json, const std::string& what, WeightInit& into) const;
  void read(const CallJson& json, const std::string& what, Value& into) const;
  template <typename T>
  void read(const CallJson& json, const std::string& what, std::vector<T>& into) const {
    require_list(json, what);
    for (const CallJson& each : json) read(each, what, into.emplace_back());
  }
  static void require_list(const CallJson& json, const std::string& what);

  const CallJson& object_;
  std::string what_;
  Builder* builder_;
  std::vector<std::string> asked_;
};

}  // namespace tessera
