// How a codebook is learnt, for every method that has one. methods.md D.
//   kmeans   k-means++ and Lloyd's sweeps, or moving averages, over the calibration head's keys (kmeans.hpp)
//   random   calibration keys drawn without replacement; a smaller codebook is a prefix of a larger one
//   lattice  a regular grid over the bounding box of the calibration keys: the axis with the widest spacing gets one
//            more part, as long as the product of the parts stays within `codes`; codes are the centres of the cells
//   keys     all calibration keys: if the head is its own calibration head, quantisation is exact
#pragma once

#include "harness/core/approximation.hpp"

namespace attnbench {

// codes, codebook, sweeps, update, decay.
std::vector<Parameter> codebook_parameters();

// The codebook of these parameters, c x d: the injected tensor "codebook", or one learnt from the calibration head's
// keys with its own random stream, so that methods with the same number of codes share it.
Matrix<double> learn_codebook(const Draw& draw);
bool codes_are_learnt(const Params& params);  // of a calibration head

// The largest number of codes, for cost and memory, which are computed before any draw. A calibration head has the
// same length as the head.
Index expected_codes(const Params& params, const Shape& shape);
std::optional<Index> rank_bound(const Params& params);
std::vector<std::string> codebook_caveats(const Params& params, const Shape& shape);

}  // namespace attnbench
