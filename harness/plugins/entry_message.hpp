// Sends the plain data of entries from a worker that has loaded plugins to a runner that has not.
#pragma once

#include <nlohmann/json.hpp>

#include "harness/core/approximation.hpp"
#include "harness/core/feature_map.hpp"
#include "harness/experiment/experiment.hpp"
#include "harness/experiment/message.hpp"
#include "harness/inputs/input.hpp"

namespace attnbench {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Description, name, summary, formula, reference, cost, family, departure, aliases,
                                   printed)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Need, name, rows, columns, values, meaning)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Work, flops, exps)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(InputLimits, queries, keys, d, dv, replicates, heads, causal)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Metric, name, unit, text, better, label, scale)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Headline, metric, label, theory)

void to_json(Message& message, const Parameter& parameter);
void from_json(const Message& message, Parameter& parameter);
void to_json(Message& message, const Claims& claims);
void from_json(const Message& message, Claims& claims);

}  // namespace attnbench
