#include "analyzer/metrics/standards_file.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "generated/analyzer/metrics/standards.h"
#include "storage/error.h"
#include "storage/payload.h"
#include "storage/plain_file.h"

namespace acltape::analyzer::metrics {

using nlohmann::json;

namespace {

constexpr int kStandardsVersion = 1;
constexpr const char* kKnownDtypes = "float16, bfloat16, float32, float64, integer, *";

bool KnownType(const std::string& type) {
  static const std::set<std::string> types{"float16", "bfloat16", "float32",
                                           "float64", "integer",  "*"};
  return types.count(type) != 0;
}

}  // namespace

// A parsed file. Every complaint names the file and the place in it.
class StandardsFile {
 public:
  StandardsFile(std::string path, const std::string& text) : path_(std::move(path)) {
    json file;
    try {
      file = json::parse(text);
    } catch (const json::parse_error& error) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("{} is no JSON: {}", path_, TrimmedMessage(error.what())));
    }
    if (!file.is_object()) Complain("", "is no object with \"version\" and \"standards\"");
    ExpectKeys(file, "", {"version", "small_values", "op_classes", "standards"});
    const json& version = Member(file, "", "version");
    if (!version.is_number_integer() || version.get<int64_t>() != kStandardsVersion) {
      Complain("version", fmt::format("is {}, but this program reads version {}", version.dump(),
                                      kStandardsVersion));
    }
    if (file.contains("small_values")) ReadSmallValues(file["small_values"]);
    if (file.contains("op_classes")) ReadClasses(file["op_classes"]);
    ReadStandards(Member(file, "", "standards"));
    const std::string digest = storage::DigestOf(text.data(), text.size());
    for (Standard& standard : standards_) standard.digest_ = digest;
  }

  // Takes the parts that this file leaves out from another one.
  void Complete(const StandardsFile& from) {
    if (classes_ == nullptr) classes_ = from.classes_;
    if (small_values_.empty()) small_values_ = from.small_values_;
    for (Standard& standard : standards_) {
      standard.classes_ = classes_;
      standard.small_values_ = small_values_;
      for (const Standard::Rule& rule : standard.rules_) CheckClass(standard, rule);
    }
  }

  const std::vector<Standard>& standards() const { return standards_; }

 private:
  // nlohmann's messages begin with "[json.exception.parse_error.101] ".
  static std::string TrimmedMessage(const std::string& message) {
    const size_t bracket = message.find("] ");
    return bracket == std::string::npos ? message : message.substr(bracket + 2);
  }

  [[noreturn]] void Complain(const std::string& place, const std::string& what) const {
    throw Error(ErrorKind::kUsage, place.empty() ? fmt::format("{} {}", path_, what)
                                                 : fmt::format("{}: {} {}", path_, place, what));
  }

  const json& Member(const json& object, const std::string& place, const char* key) const {
    if (!object.contains(key)) Complain(place, fmt::format("lacks \"{}\"", key));
    return object[key];
  }

  std::string Text(const json& object, const std::string& place, const char* key) const {
    const json& value = Member(object, place, key);
    if (!value.is_string() || value.get<std::string>().empty()) {
      Complain(place, fmt::format("has {} as \"{}\", which must be a text", value.dump(), key));
    }
    return value;
  }

  void ExpectKeys(const json& object, const std::string& place,
                  const std::set<std::string>& keys) const {
    for (const auto& item : object.items()) {
      if (keys.count(item.key()) == 0) {
        Complain(place, fmt::format("has \"{}\"; known are {}", item.key(), fmt::join(keys, ", ")));
      }
    }
  }

  void ReadSmallValues(const json& values) {
    if (!values.is_object()) Complain("small_values", "is no object of type and number");
    for (const auto& item : values.items()) {
      if (!KnownType(item.key()) || item.key() == "integer") {
        Complain("small_values", fmt::format("has \"{}\", which is no floating type", item.key()));
      }
      if (!item.value().is_number() || item.value().get<double>() < 0) {
        Complain("small_values", fmt::format("has {} for {}, which must be a number from 0 upwards",
                                             item.value().dump(), item.key()));
      }
      small_values_[item.key()] = item.value();
    }
  }

  void ReadClasses(const json& classes) {
    if (!classes.is_array()) Complain("op_classes", "is no array");
    auto read = std::make_shared<std::vector<std::pair<std::string, std::vector<std::string>>>>();
    for (size_t i = 0; i < classes.size(); ++i) {
      const std::string place = fmt::format("op_classes[{}]", i);
      if (!classes[i].is_object()) Complain(place, "is no object with \"class\" and \"ops\"");
      ExpectKeys(classes[i], place, {"class", "ops"});
      std::pair<std::string, std::vector<std::string>> row;
      row.first = Text(classes[i], place, "class");
      const json& ops = Member(classes[i], place, "ops");
      if (!ops.is_array()) Complain(place, "has \"ops\" that is no array of names");
      for (const json& op : ops) {
        if (!op.is_string()) {
          Complain(place, fmt::format("has {} among its \"ops\", which must be texts", op.dump()));
        }
        row.second.push_back(op);
      }
      read->push_back(std::move(row));
    }
    classes_ = std::move(read);
  }

  void ReadStandards(const json& standards) {
    if (!standards.is_array() || standards.empty()) {
      Complain("standards", "is no array of standards");
    }
    for (size_t i = 0; i < standards.size(); ++i) {
      const std::string place = fmt::format("standards[{}]", i);
      const json& object = standards[i];
      if (!object.is_object()) Complain(place, "is no object with \"name\" and \"rules\"");
      ExpectKeys(object, place, {"name", "about", "rules"});
      Standard standard;
      standard.bitwise_ = false;
      standard.name_ = Text(object, place, "name");
      if (object.contains("about")) standard.about_ = Text(object, place, "about");
      const json& rules = Member(object, place, "rules");
      if (!rules.is_array() || rules.empty()) {
        Complain(place, fmt::format("({}) has no rules", standard.name_));
      }
      for (size_t k = 0; k < rules.size(); ++k) {
        standard.rules_.push_back(
            ReadRule(rules[k], fmt::format("rule {} of \"{}\"", k + 1, standard.name_)));
      }
      for (const Standard& other : standards_) {
        if (other.name_ == standard.name_) {
          Complain(place, fmt::format("has the name \"{}\" of an earlier one", standard.name_));
        }
      }
      standards_.push_back(std::move(standard));
    }
  }

  Standard::Rule ReadRule(const json& object, const std::string& place) const {
    if (!object.is_object()) Complain(place, "is no object");
    ExpectKeys(object, place,
               {"op_class", "dtype", "metric", "at_most", "at_least", "group", "source"});
    Standard::Rule rule;
    rule.op_class = Text(object, place, "op_class");
    rule.dtype = Text(object, place, "dtype");
    if (!KnownType(rule.dtype)) {
      Complain(place, fmt::format("has the dtype \"{}\"; known are {}", rule.dtype, kKnownDtypes));
    }
    rule.metric = Text(object, place, "metric");
    if (!MetricValue(rule.metric, TensorMetrics()).has_value()) {
      std::vector<std::string> names;
      for (const auto& [name, about] : MetricNames()) names.push_back(name);
      Complain(place, fmt::format("has the metric \"{}\"; known are {}", rule.metric,
                                  fmt::join(names, ", ")));
    }
    rule.at_least = object.contains("at_least");
    if (rule.at_least == object.contains("at_most")) {
      Complain(place, "needs either \"at_most\" or \"at_least\"");
    }
    const json& threshold = object[rule.at_least ? "at_least" : "at_most"];
    if (!threshold.is_number()) {
      Complain(place, fmt::format("has the threshold {}, which is no number", threshold.dump()));
    }
    rule.threshold = threshold;
    if (object.contains("group")) rule.group = Text(object, place, "group");
    rule.source = Text(object, place, "source");
    return rule;
  }

  void CheckClass(const Standard& standard, const Standard::Rule& rule) const {
    if (rule.op_class == "*" || rule.op_class == "other") return;
    std::string names = "*, other";
    for (const auto& [name, patterns] : *classes_) {
      if (name == rule.op_class) return;
      names += ", " + name;
    }
    Complain(fmt::format("a rule of \"{}\"", standard.name_),
             fmt::format("is for the op_class \"{}\"; known are {}", rule.op_class, names));
  }

  std::string path_;
  std::shared_ptr<const std::vector<std::pair<std::string, std::vector<std::string>>>> classes_;
  std::map<std::string, double> small_values_;
  std::vector<Standard> standards_;
};

namespace {

const StandardsFile& BuiltInFile() {
  static const StandardsFile file = [] {
    StandardsFile read("standards.json", std::string(kStandardsFile));
    read.Complete(read);
    return read;
  }();
  return file;
}

const Standard* Find(const StandardsFile& file, const std::string& name) {
  for (const Standard& standard : file.standards()) {
    if (standard.name() == name) return &standard;
  }
  return nullptr;
}

std::string NamesOf(const StandardsFile& file) {
  std::string names;
  for (const Standard& standard : file.standards()) {
    names += (names.empty() ? "" : ", ") + standard.name();
  }
  return names;
}

}  // namespace

Standard LoadStandard(const std::string& name_or_path) {
  if (const Standard* standard = Find(BuiltInFile(), name_or_path)) return *standard;
  std::string path = name_or_path;
  std::string name;
  const size_t colon = path.rfind(':');
  if (!std::filesystem::exists(path) && colon != std::string::npos &&
      std::filesystem::exists(path.substr(0, colon))) {
    name = path.substr(colon + 1);
    path = path.substr(0, colon);
  }
  std::string why;
  const std::optional<std::string> text = storage::ReadPlainFile(path, &why);
  if (!text) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{} is neither a precision standard (bitwise, {}) nor a file of them: "
                            "it {}",
                            name_or_path, NamesOf(BuiltInFile()), why));
  }
  StandardsFile file(path, *text);
  file.Complete(BuiltInFile());
  if (name.empty()) {
    if (file.standards().size() == 1) return file.standards().front();
    throw Error(ErrorKind::kUsage,
                fmt::format("{} holds several standards ({}); pick one with {}:NAME", path,
                            NamesOf(file), path));
  }
  if (const Standard* standard = Find(file, name)) return *standard;
  throw Error(ErrorKind::kUsage,
              fmt::format("{} has no standard \"{}\"; it holds {}", path, name, NamesOf(file)));
}

std::vector<std::pair<std::string, std::string>> BuiltInStandards() {
  std::vector<std::pair<std::string, std::string>> names;
  for (const Standard& standard : BuiltInFile().standards()) {
    names.emplace_back(standard.name(), standard.about());
  }
  return names;
}

}  // namespace acltape::analyzer::metrics
