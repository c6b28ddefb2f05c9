// Steps of an inference engine, which the recorder names with what it executed
// (recorder/agent/engine_steps.py): "vllm.step prefill=7 decode=2 requests=3", and in it
// "vllm.forward rows=4 graph=FULL".
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "meaning/engine_names.h"

namespace acltape::meaning {

namespace engine_step {

inline constexpr std::string_view kRangePrefix = "range:";

// The text after " KEY=" in a name, up to the next space; empty if there is none.
inline std::string_view TextOf(std::string_view name, std::string_view key) {
  size_t place = 0;
  while ((place = name.find(key, place)) != std::string_view::npos) {
    const size_t end = place + key.size();
    if (place > 0 && name[place - 1] == ' ' && end < name.size() && name[end] == '=') {
      const std::string_view rest = name.substr(end + 1);
      return rest.substr(0, rest.find(' '));
    }
    place = end;
  }
  return {};
}

inline int64_t NumberOf(std::string_view name, std::string_view key) {
  const std::string_view text = TextOf(name, key);
  int64_t number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 0 ? number : -1;
}

// True for the word itself and for the word with more words after it.
inline bool IsNamed(std::string_view name, std::string_view word) {
  return name.starts_with(word) && (name.size() == word.size() || name[word.size()] == ' ');
}

inline std::string Counted(int64_t count, std::string_view what) {
  std::string text = std::to_string(count) + " ";
  text += what;
  return count == 1 ? text : text + "s";
}

}  // namespace engine_step

// Numbers are -1 where the recorder could not tell them.
struct EngineStep {
  int64_t prefill_tokens = -1;
  int64_t decode_tokens = -1;
  int64_t requests = -1;

  bool known() const { return prefill_tokens >= 0 && decode_tokens >= 0; }
  int64_t tokens() const { return known() ? prefill_tokens + decode_tokens : -1; }
  // "prefill", "decode", "prefill and decode"; "step" where it is not known.
  std::string_view Kind() const;
};

// A forward of the engine's model.
struct EngineForward {
  int64_t rows = -1;  // with padding
  std::string graph;  // the engine's mode of graphs, "NONE"; empty: not known
};

inline std::string_view EngineStep::Kind() const {
  if (!known()) return "step";
  if (decode_tokens == 0) return "prefill";
  return prefill_tokens == 0 ? "decode" : "prefill and decode";
}

// The step that a range of this name is; nothing if it is none of an engine.
inline std::optional<EngineStep> EngineStepOf(std::string_view range) {
  if (!engine_step::IsNamed(range, kEngineStep)) return std::nullopt;
  return EngineStep{engine_step::NumberOf(range, "prefill"), engine_step::NumberOf(range, "decode"),
                    engine_step::NumberOf(range, "requests")};
}

// The same of a step's `found_by`.
inline std::optional<EngineStep> EngineStepFoundBy(std::string_view found_by) {
  if (!found_by.starts_with(engine_step::kRangePrefix)) return std::nullopt;
  return EngineStepOf(found_by.substr(engine_step::kRangePrefix.size()));
}

// "prefill of 22 tokens, 3 requests", "prefill of 7 tokens and decode of 2, 3 requests".
inline std::string EngineStepWords(const EngineStep& step) {
  if (!step.known()) return "step of unknown size";
  std::string words;
  if (step.prefill_tokens > 0)
    words = "prefill of " + engine_step::Counted(step.prefill_tokens, "token");
  if (step.decode_tokens > 0) {
    words += words.empty() ? "decode of " + engine_step::Counted(step.decode_tokens, "token")
                           : " and decode of " + std::to_string(step.decode_tokens);
  }
  if (step.requests < 0) return words;
  return words + ", " + engine_step::Counted(step.requests, "request");
}

inline std::optional<EngineForward> EngineForwardOf(std::string_view range) {
  if (!engine_step::IsNamed(range, kEngineForward)) return std::nullopt;
  return EngineForward{engine_step::NumberOf(range, "rows"),
                       std::string(engine_step::TextOf(range, "graph"))};
}

}  // namespace acltape::meaning
