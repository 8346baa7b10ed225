// What the host decides about a cast before a kernel is launched: whether it can be, the mode, the
// tiles, the cores and the UB of one pass. Plain C++17 without torch or CANN.
//
//     resolve       numbers of the op -> a pair of the matrix and a mode  (matrix.resolve)
//     plan_tiles    shape, tile -> tiles, cores, UB                       (tiling.plan)
//
// Both follow the Python functions named beside them, to the words of an error; a test compares
// them. Pairs, modes, chips and limits are not decided here: host_tables.h is generated.
#ifndef PYPTO_CAST_HOST_TILING_H
#define PYPTO_CAST_HOST_TILING_H

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "cast_instances.h"
#include "host_tables.h"

namespace pypto_cast::host {

// A pair that A2/A3 does not convert: Python's UnsupportedCastError, a TypeError.
class UnsupportedCast : public std::invalid_argument {
    using std::invalid_argument::invalid_argument;
};

// A tensor, a tile or a number that no cast takes: one of Python's ValueErrors.
class Refused : public std::invalid_argument {
    using std::invalid_argument::invalid_argument;
};

using Dims = std::vector<int64_t>;
using Warnings = std::vector<std::string>;

// A list as Python prints it.
inline std::string listed(const Dims& dims) {
    std::string text = "[";
    for (size_t i = 0; i < dims.size(); ++i) {
        text += (i ? ", " : "") + std::to_string(dims[i]);
    }
    return text + "]";
}

inline std::string entries(size_t count) {
    return count == 1 ? "1 entry" : std::to_string(count) + " entries";
}

inline int64_t product(const Dims& dims, size_t from, size_t to) {
    int64_t elems = 1;
    for (size_t i = from; i < to; ++i) elems *= dims[i];
    return elems;
}

inline int64_t ceildiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// --- The pair and its mode -----------------------------------------------------------------------

struct Resolved {
    const Rule* rule;
    int64_t mode;      // CAST_NONE where the default is taken
    bool keeps_low;    // SaturationMode.OFF acts
    int64_t tmp_bits;  // scratch per element
    Warnings warnings;

    // The place of the kernel in PYPTO_CAST_INSTANCES.
    int instance() const { return rule->instance[mode]; }
};

inline const Dtype& dtype_numbered(int64_t number) {
    for (const Dtype& dtype : kDtypes) {
        if (dtype.number == number) return dtype;
    }
    throw Refused(std::to_string(number) + " is not a valid DataType");
}

inline std::string rule_name(const Rule& rule) {
    return std::string(dtype_numbered(rule.src).name) + " -> " + dtype_numbered(rule.dst).name;
}

inline UnsupportedCast unsupported(const std::string& src, const std::string& dst) {
    const std::string what = "A2/A3 does not cast " + src + " -> " + dst + ": " + src;
    for (const SourceText& source : kSources) {
        if (src != source.src) continue;
        for (const DetourText& detour : kDetours) {
            if (src == detour.src && dst == detour.dst) {
                return UnsupportedCast(what + source.text + detour.text);
            }
        }
        return UnsupportedCast(what + source.text);
    }
    return UnsupportedCast(what + kNoSource);
}

// What an op is asked for, in pypto's numbers.
struct Request {
    int64_t src;
    int64_t dst;
    int64_t mode;
    int64_t satmode;
    Dims tile_shape;

    // A tensor that has the dtype already comes back, unless it is rounded to integral values.
    bool returns_input() const { return src == dst && (src != DT_FP32 || mode == kModeNone); }
};

// Refuses what no tensor could make right.
inline void check_request(const Request& request) {
    dtype_numbered(request.dst);
    if (request.mode < 0 || request.mode >= static_cast<int64_t>(std::size(kModes))) {
        throw Refused(std::to_string(request.mode) + " is not a valid CastMode");
    }
    if (request.satmode != kSaturate && request.satmode != kKeepLowBits) {
        throw Refused(std::to_string(request.satmode) + " is not a valid SaturationMode");
    }
    const Dims& tile = request.tile_shape;
    const bool positive = std::all_of(tile.begin(), tile.end(), [](int64_t t) { return t >= 1; });
    if (tile.size() > kMaxDims || !positive) {
        throw Refused("a tile shape is 1 to " + std::to_string(kMaxDims) + " positive ints; got " +
                      listed(tile));
    }
}

inline Resolved resolve(const Request& request) {
    const Rule* rule = std::find_if(std::begin(kRules), std::end(kRules), [&](const Rule& row) {
        return row.src == request.src && row.dst == request.dst;
    });
    if (rule == std::end(kRules)) {
        throw unsupported(dtype_numbered(request.src).name, dtype_numbered(request.dst).name);
    }

    const int64_t mode = request.mode;
    Resolved resolved{rule, mode, false, 0, {}};
    if (rule->instance[mode] < 0) {
        resolved.mode = kModeNone;
        std::string has;
        for (size_t known = kModeNone + 1; known < std::size(kModes); ++known) {
            if (rule->instance[known] >= 0) {
                has += (has.empty() ? "" : ", ") + std::string(kModes[known]);
            }
        }
        // A pair without modes rounds nothing, and any will do.
        if (!has.empty()) {
            resolved.warnings.push_back(rule_name(*rule) + " has no mode " + kModes[mode] +
                                        "; it has " + has + ". The default " +
                                        kModes[rule->default_mode] +
                                        " is taken, as upstream does without a word");
        }
    }
    if (request.satmode == kKeepLowBits) {
        resolved.keeps_low = rule->off_acts;
        resolved.tmp_bits = rule->off_tmp_bits;
        if (!rule->off_acts) {
            std::string pairs;
            for (const Rule& row : kRules) {
                if (row.off_acts) pairs += (pairs.empty() ? "" : ", ") + rule_name(row);
            }
            resolved.warnings.push_back(
                "SaturationMode.OFF does not act on " + rule_name(*rule) +
                ": values out of range are treated as with ON. It acts on " + pairs);
        }
    }
    return resolved;
}

// --- Tiles, cores and UB -------------------------------------------------------------------------

struct ElementBits {
    int64_t src;
    int64_t dst;
    int64_t tmp;
};

struct UbBytes {
    int64_t in;
    int64_t out;
    int64_t tmp;
};

struct TilePlan {
    Dims shape;
    Dims tile_shape;  // clipped to the tensor
    Dims counts;      // tiles along each axis
    Dims pass_shape;  // what one slot of UB holds: the tile, or a part of it
    int64_t tile_count;
    int64_t tile_bytes;  // what pypto's UB rule charges for a tile
    int64_t busy_cores;
    UbBytes slot;  // UB of one pass; scratch has one slot only
    Warnings warnings;
};

inline const Chip& chip_named(const std::string& name) {
    std::string known;
    for (const Chip& chip : kChips) {
        if (name == chip.name) return chip;
        known += (known.empty() ? "" : ", ") + std::string(chip.name);
    }
    throw Refused("unknown chip '" + name + "'; known: " + known);
}

inline int64_t padded_row_bytes(int64_t elems, int64_t bits, const Chip& chip) {
    return ceildiv(elems * bits, 8 * chip.block_bytes) * chip.block_bytes;
}

inline int64_t aligned_elems(const ElementBits& bits, const Chip& chip) {
    return 8 * chip.block_bytes / std::min(bits.src, bits.dst);
}

inline UbBytes buffer_bytes(const Dims& tile, const ElementBits& bits, const Chip& chip) {
    const int64_t rows = product(tile, 0, tile.size() - 1);
    const int64_t src_row = padded_row_bytes(tile.back(), bits.src, chip);
    return {rows * src_row, rows * padded_row_bytes(tile.back(), bits.dst, chip),
            rows * src_row * bits.tmp / bits.src};
}

// Shrinks a tile until it fits, outer axes first; the last shrinks to multiples of `unit`.
template <class Fits>
Dims nearest_fit(Dims tile, const Fits& fits, int64_t unit) {
    for (size_t axis = 0; axis < tile.size(); ++axis) {
        if (fits(tile)) break;
        const int64_t step = axis == tile.size() - 1 ? unit : 1;
        int64_t low = 0;
        int64_t high = tile[axis] / step;
        while (low < high) {
            const int64_t middle = (low + high + 1) / 2;
            tile[axis] = middle * step;
            if (fits(tile)) {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        tile[axis] = std::max<int64_t>(low, 1) * step;
    }
    return tile;
}

inline void check_shape(const Dims& shape, const ElementBits& bits) {
    if (shape.empty() || shape.size() > kMaxDims) {
        throw Refused("a cast takes tensors of 1 to " + std::to_string(kMaxDims) +
                      " dimensions; shape " + listed(shape) + " has " +
                      std::to_string(shape.size()));
    }
    const int64_t elems = product(shape, 0, shape.size());
    if (elems < 1) {
        throw Refused("a cast takes no empty tensor; shape " + listed(shape) + " has " +
                      std::to_string(elems) + " elements");
    }
    if (elems > kMaxElems) {
        throw Refused("a cast takes at most " + std::to_string(kMaxElems) + " elements; shape " +
                      listed(shape) + " has " + std::to_string(elems));
    }
    if (shape.back() * std::min(bits.src, bits.dst) % 8) {
        throw Refused(
            "two elements of 4 bits share a byte, so the last axis must be even; "
            "shape " +
            listed(shape) + " ends in " + std::to_string(shape.back()));
    }
}

inline std::string unaligned(const Dims& tile, const ElementBits& bits, const Chip& chip) {
    const int64_t unit = aligned_elems(bits, chip);
    char row_bytes[2][32];
    std::snprintf(row_bytes[0], sizeof row_bytes[0], "%g",
                  static_cast<double>(tile.back() * bits.src) / 8);
    std::snprintf(row_bytes[1], sizeof row_bytes[1], "%g",
                  static_cast<double>(tile.back() * bits.dst) / 8);
    return "tile shape " + listed(tile) + ": its last axis is " + row_bytes[0] +
           " B in the input and " + row_bytes[1] +
           " B in the output; upstream asks for multiples "
           "of " +
           std::to_string(chip.block_bytes) + " B, that is for a multiple of " +
           std::to_string(unit) + " elements here";
}

inline TilePlan plan_tiles(const Dims& shape, const Dims& tile_shape, const ElementBits& bits,
                           const Chip& chip) {
    check_shape(shape, bits);
    if (tile_shape.size() != shape.size()) {
        throw Refused("tile shape " + listed(tile_shape) + " has " + entries(tile_shape.size()) +
                      "; the output " + listed(shape) + " needs " + entries(shape.size()) +
                      ", one for each dimension");
    }
    TilePlan plan{};
    plan.shape = shape;
    plan.tile_count = 1;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
        plan.tile_shape.push_back(std::min(tile_shape[axis], shape[axis]));
        plan.counts.push_back(ceildiv(shape[axis], plan.tile_shape[axis]));
        plan.tile_count *= plan.counts[axis];
    }
    const Dims& tile = plan.tile_shape;
    if (tile.back() * std::min(bits.src, bits.dst) % 8) {
        throw Refused("tile shape " + listed(tile_shape) +
                      ": two elements of 4 bits share a byte, so the last axis of a tile must "
                      "be even; it is " +
                      std::to_string(tile.back()));
    }

    const auto charged = [&](const Dims& candidate) {
        const UbBytes sizes = buffer_bytes(candidate, bits, chip);
        return sizes.in + sizes.out;
    };
    const int64_t unit = aligned_elems(bits, chip);
    plan.tile_bytes = charged(tile);
    if (plan.tile_bytes > chip.ub_bytes) {
        const Dims nearest = nearest_fit(
            tile, [&](const Dims& candidate) { return charged(candidate) <= chip.ub_bytes; }, unit);
        throw Refused("tile shape " + listed(tile) + " needs " + std::to_string(plan.tile_bytes) +
                      " B of UB for input and output (rows padded to " +
                      std::to_string(chip.block_bytes) + " B); " + chip.name + " has " +
                      std::to_string(chip.ub_bytes) + " B. The nearest tile that fits is " +
                      listed(nearest) + " with " + std::to_string(charged(nearest)) + " B");
    }
    if (plan.tile_bytes > chip.ub_safe_bytes) {
        plan.warnings.push_back(
            "tile shape " + listed(tile) + " takes " + std::to_string(plan.tile_bytes) +
            " B of UB; " + chip.name + " has " + std::to_string(chip.ub_bytes) + " B, but only " +
            std::to_string(chip.ub_safe_bytes) + " B are documented as safe for user code");
    }
    if (tile_shape.back() % unit) plan.warnings.push_back(unaligned(tile_shape, bits, chip));
    if (plan.tile_count >= kManyTiles) {
        plan.warnings.push_back("tile shape " + listed(tile) + " makes " +
                                std::to_string(plan.tile_count) + " tiles of " + listed(shape) +
                                "; upstream advises fewer than " + std::to_string(kManyTiles));
    }

    const auto both_slots = [&](const Dims& part) {
        const UbBytes sizes = buffer_bytes(part, bits, chip);
        return kSlots * (sizes.in + sizes.out) + sizes.tmp;
    };
    plan.pass_shape = nearest_fit(
        tile, [&](const Dims& part) { return both_slots(part) <= chip.ub_safe_bytes; }, unit);
    plan.slot = buffer_bytes(plan.pass_shape, bits, chip);
    plan.busy_cores = std::min(chip.vector_cores, plan.tile_count);
    return plan;
}

// --- What the kernel is told ---------------------------------------------------------------------

inline CastTilingData tiling_data(const TilePlan& plan, const Resolved& resolved) {
    CastTilingData data{};
    const auto put = [](const Dims& dims, uint32_t(&words)[kMaxDims]) {
        std::fill(std::begin(words), std::end(words), 1);  // missing axes, in front
        std::copy_backward(dims.begin(), dims.end(), std::end(words));
    };
    put(plan.shape, data.shape);
    put(plan.tile_shape, data.tile_shape);
    put(plan.pass_shape, data.pass_shape);
    data.tile_count = static_cast<uint32_t>(plan.tile_count);
    data.in_bytes = static_cast<uint32_t>(plan.slot.in);
    data.out_bytes = static_cast<uint32_t>(plan.slot.out);
    data.tmp_bytes = static_cast<uint32_t>(plan.slot.tmp);
    data.inf_nan = 1;  // the runtime's default on A2/A3
    data.saturate = !resolved.keeps_low;
    return data;
}

}  // namespace pypto_cast::host

#endif  // PYPTO_CAST_HOST_TILING_H
