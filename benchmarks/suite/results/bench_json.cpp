#include "benchmarks/suite/results/bench_json.h"

#include "core/text/json.h"

namespace miniqat::benchmarks {

namespace {

nlohmann::ordered_json quartiles_json(const Spread& spread) { return {spread.low, spread.high}; }

}  // namespace

nlohmann::ordered_json kernel_json(const KernelTime& row) {
  const OperationTraits& traits = traits_of(row.what.operation);
  const Spread seconds = spread_of(row.rounds);
  nlohmann::ordered_json json = {{"kernel", traits.name},
                                 {"by", row.by},
                                 {"layout", row.what.layout()},
                                 {"bits", row.what.bits},
                                 {"channels", row.what.channels},
                                 {"elements", row.what.elements},
                                 {"threads", row.threads},
                                 {"threads_used", row.threads_used},
                                 {"seconds", seconds.median},
                                 {"seconds_quartiles", quartiles_json(seconds)},
                                 {"rounds", row.rounds},
                                 {"quiet", row.quiet},
                                 {"gigabytes_per_second", row.bytes() / seconds.median / 1e9},
                                 {"elements_per_nanosecond", row.elements_per_nanosecond()},
                                 {"nanoseconds_an_element", row.nanoseconds_an_element()},
                                 {"of_memcpy", row.of_memcpy.median},
                                 {"of_memcpy_quartiles", quartiles_json(row.of_memcpy)},
                                 {"bytes_an_element", traits.cost.bytes()},
                                 {"operations_an_element", traits.cost.operations},
                                 {"of_roof", row.of_roof}};
  if (!traits.has_grid) json.erase("bits");
  if (!row.plugin.empty()) json["plugin"] = row.plugin;
  if (row.of_ours) {
    json["of_miniqat"] = row.of_ours->median;
    json["of_miniqat_quartiles"] = quartiles_json(*row.of_ours);
    if (row.of_ours_interval) json["of_miniqat_interval"] = {row.of_ours_interval->low, row.of_ours_interval->high};
  }
  if (row.counts) {
    json["instructions_an_element"] = row.counts->instructions;
    json["cache_misses_an_element"] = row.counts->cache_misses;
  }
  return json;
}

nlohmann::ordered_json step_json(const StepTime& row, const Disturbance& disturbance) {
  const Spread seconds = spread_of(row.rounds);
  return {{"model", row.model},
          {"what", row.what},
          {"batch", row.batch},
          {"threads", row.threads},
          {"seconds", seconds.median},
          {"seconds_quartiles", quartiles_json(seconds)},
          {"rounds", row.rounds},
          {"quiet", is_steady(row.rounds) && disturbance.reasons().empty()},
          {"images_per_second", row.images_per_second()},
          {"over_float", row.over_float.median},
          {"over_float_quartiles", quartiles_json(row.over_float)},
          {"arena_bytes", row.arena}};
}

nlohmann::ordered_json loaded_json(const LoadedSpeed& row) {
  const Spread all = spread_of(row.all_threads), one = spread_of(row.one_thread);
  nlohmann::ordered_json json = {{"model", row.model},
                                 {"neighbours", row.neighbours},
                                 {"batch", row.batch},
                                 {"threads", row.threads},
                                 {"images_per_second", all.median},
                                 {"images_per_second_quartiles", quartiles_json(all)},
                                 {"images_per_second_rounds", row.all_threads},
                                 {"one_thread", one.median},
                                 {"one_thread_quartiles", quartiles_json(one)},
                                 {"one_thread_rounds", row.one_thread},
                                 {"quiet", row.disturbance.reasons().empty()}};
  if (row.of_bar.empty()) return json;
  const Spread of_bar = spread_of(row.of_bar);
  json["of_bar"] = of_bar.median;
  json["of_bar_quartiles"] = quartiles_json(of_bar);
  return json;
}

}  // namespace miniqat::benchmarks
