#include "core/graph/graph_json.h"

#include <algorithm>
#include <map>

#include "core/files/files.h"
#include "core/graph/attribute_json.h"
#include "core/graph/op.h"
#include "core/graph/registry.h"
#include "core/text/error.h"
#include "core/text/json.h"
#include "core/text/json_text.h"
#include "core/text/quote.h"
#include "core/text/suggest.h"

namespace miniqat {
namespace {

using Json = nlohmann::ordered_json;

Json node_to_json(const Node& node) {
  Json json = {{"name", node.name()}, {"op", node.type()}};
  if (!node.inputs().empty()) {
    json["inputs"] = Json::array();
    for (const Output& input : node.inputs()) json["inputs"].push_back(input.name());
  }
  Json attributes = attributes_to_json(node.op());
  if (!attributes.empty()) json["attrs"] = std::move(attributes);
  return json;
}

/// A node as the file has it, before its inputs are resolved.
struct FileNode {
  std::string name;
  std::shared_ptr<Op> op;
  std::vector<std::string> inputs;
};

const Json& member(const Json& object, const char* name, bool right_type(const Json&), const char* wanted) {
  const auto found = object.find(name);
  if (found == object.end()) fail(quote(name), " is missing");
  if (!right_type(*found)) fail(quote(name), " must be ", wanted);
  return *found;
}

bool is_string(const Json& json) { return json.is_string(); }
bool is_array(const Json& json) { return json.is_array(); }

std::vector<std::string> strings(const Json& list, const char* role) {
  std::vector<std::string> result;
  for (const Json& element : list) {
    if (!element.is_string()) fail(quote(role), " must be a list of names, got ", shown(element));
    result.push_back(element.get<std::string>());
  }
  return result;
}

/// The newest version; docs/graph-json.md says how the others differ.
constexpr int kVersion = 2;

FileNode read_node(const Json& json, int version) {
  if (!json.is_object()) fail("a node must be an object, got ", shown(json));
  static const std::vector<std::string> kKnown = {"name", "op", "inputs", "attrs"};
  for (const auto& item : json.items())
    if (std::ranges::find(kKnown, item.key()) == kKnown.end())
      fail("unknown key ", quote(item.key()), did_you_mean(item.key(), kKnown));
  FileNode node;
  node.name = member(json, "name", is_string, "a string").get<std::string>();
  node.op = make_op(member(json, "op", is_string, "a string").get<std::string>());
  node.op->take_defaults_of(version);
  if (json.contains("inputs")) node.inputs = strings(member(json, "inputs", is_array, "a list of names"), "inputs");
  if (json.contains("attrs")) {
    try {
      attributes_from_json(*node.op, json["attrs"]);
    } catch (const Error& error) {
      fail("[", node.op->type(), " ", quote(node.name), "] ", error.what());
    }
  }
  return node;
}

std::vector<FileNode> read_nodes(const Json& list, int version) {
  std::vector<FileNode> nodes;
  for (std::size_t i = 0; i < list.size(); ++i) {
    try {
      nodes.push_back(read_node(list[i], version));
    } catch (const Error& error) {
      const std::string text = error.what();
      const bool named = !text.empty() && text.front() == '[';
      if (named) throw;
      const auto name = list[i].is_object() ? list[i].find("name") : list[i].end();
      const bool has_name = list[i].is_object() && name != list[i].end() && name->is_string();
      fail("node ", i, has_name ? " " + quote(name->get<std::string>()) : std::string(), ": ", text);
    }
  }
  return nodes;
}

/// Adds the nodes producers first, whatever their order in the file, and gives the graph the file's order afterwards.
class Builder {
 public:
  explicit Builder(std::vector<FileNode> nodes) : nodes_(std::move(nodes)) {
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (!place_.emplace(nodes_[i].name, i).second) fail("there are two nodes named ", quote(nodes_[i].name));
  }

  Graph build() {
    std::vector<std::size_t> missing(nodes_.size());
    std::vector<std::vector<std::size_t>> consumers(nodes_.size());
    std::vector<std::size_t> ready;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      for (const std::string& input : nodes_[i].inputs) consumers[producer_of(nodes_[i], input)].push_back(i);
      missing[i] = nodes_[i].inputs.size();
      if (missing[i] == 0) ready.push_back(i);
    }
    std::vector<Node*> built(nodes_.size());
    for (std::size_t next = 0; next < ready.size(); ++next) {
      const std::size_t i = ready[next];
      built[i] = &add(nodes_[i]);
      for (const std::size_t consumer : consumers[i])
        if (--missing[consumer] == 0) ready.push_back(consumer);
    }
    const auto stuck = std::ranges::find(built, nullptr);
    if (stuck != built.end())
      fail("the graph has a cycle through ", quote(nodes_[on_cycle(stuck - built.begin(), built)].name));
    graph_.set_node_order(built);
    return std::move(graph_);
  }

 private:
  static std::string node_part(const std::string& input) { return input.substr(0, input.rfind(':')); }

  std::size_t producer_of(const FileNode& node, const std::string& input) const {
    const auto found = place_.find(node_part(input));
    if (found != place_.end()) return found->second;
    std::vector<std::string> names;
    for (const FileNode& other : nodes_) names.push_back(other.name);
    fail("[", node.op->type(), " ", quote(node.name), "] takes ", quote(input), ", and there is no such node",
         did_you_mean(node_part(input), names));
  }

  /// From a node that could not be built, walks to unbuilt producers until one comes again: that one is on a cycle.
  std::size_t on_cycle(std::size_t start, const std::vector<Node*>& built) const {
    std::vector<bool> seen(nodes_.size());
    std::size_t i = start;
    while (!seen[i]) {
      seen[i] = true;
      for (const std::string& input : nodes_[i].inputs) {
        const std::size_t producer = place_.at(node_part(input));
        if (built[producer] == nullptr) {
          i = producer;
          break;
        }
      }
    }
    return i;
  }

  Node& add(FileNode& node) {
    std::vector<Output> inputs;
    for (const std::string& input : node.inputs) {
      try {
        inputs.push_back(graph_.output_at(input));
      } catch (const Error& error) {
        fail("[", node.op->type(), " ", quote(node.name), "] takes ", quote(input), ": ", error.what());
      }
    }
    return graph_.add(node.name, std::move(node.op), std::move(inputs));
  }

  std::vector<FileNode> nodes_;
  std::map<std::string, std::size_t> place_;
  Graph graph_;
};

Graph build_graph(const Json& json) {
  if (!json.is_object()) fail("a graph must be a JSON object");
  static const std::vector<std::string> kKnown = {"format", "version", "nodes", "outputs"};
  for (const auto& item : json.items())
    if (std::ranges::find(kKnown, item.key()) == kKnown.end())
      fail("unknown key ", quote(item.key()), did_you_mean(item.key(), kKnown));
  if (member(json, "format", is_string, "a string") != "miniqat.graph")
    fail("\"format\" is ", shown(json["format"]), ", expected \"miniqat.graph\"");
  const Json version = json.value("version", Json());
  if (version != 1 && version != kVersion)
    fail("\"version\" is ", shown(version), ", this program reads versions 1 and ", kVersion);
  Graph graph = Builder(read_nodes(member(json, "nodes", is_array, "a list of nodes"), version.get<int>())).build();
  std::vector<Output> outputs;
  if (json.contains("outputs"))
    for (const std::string& name : strings(member(json, "outputs", is_array, "a list of names"), "outputs"))
      outputs.push_back(graph.output_at(name));
  graph.set_outputs(std::move(outputs));
  return graph;
}

}  // namespace

std::string graph_to_json(const Graph& graph) {
  std::string text = concat("{\"format\": \"miniqat.graph\", \"version\": ", kVersion, ",\n \"nodes\": [");
  const char* separator = "\n  ";
  for (const Node* node : graph.nodes()) {
    text += separator + dump_on_one_line(node_to_json(*node));
    separator = ",\n  ";
  }
  text += "],\n \"outputs\": [";
  separator = "";
  for (const Output& output : graph.outputs()) {
    text += separator + dump_on_one_line(output.name());
    separator = ", ";
  }
  return text + "]}\n";
}

Graph graph_from_json(std::string_view text, std::string_view source) {
  try {
    return build_graph(parse_json(text));
  } catch (const Error& error) {
    fail(source, ": ", error.what());
  }
}

Graph read_graph(const std::filesystem::path& path) { return graph_from_json(read_large_file(path), path.string()); }

void write_graph(const std::filesystem::path& path, const Graph& graph) {
  write_file_atomically(path, graph_to_json(graph));
}

}  // namespace miniqat
