// The C interface: runs a program over blocks of rows whose temporaries stay in the cache.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#include <xmmintrin.h>
#endif

#include "environment.h"
#include "program.h"

#ifndef PYPTO_CAST_DIGEST
#error "PYPTO_CAST_DIGEST: the digest of the sources, as CMakeLists.txt computes it"
#endif

namespace {

constexpr int64_t BLOCK_ELEMS = 2048;
constexpr int64_t LONG_BLOCK_ELEMS = 1 << 16;  // where nothing lives inside a block
constexpr int64_t LINE_BYTES = 64;
// More is not in the caches when it is read next: it is written past them, which spares the reading
// of what was there.
constexpr int64_t STREAMED_BYTES = 2 << 20;
// By pieces so short that the processor computes the next one while it writes this one.
constexpr int64_t PIECE_ELEMS = 256;
constexpr int64_t PIECE_BYTES = PIECE_ELEMS * sizeof(uint64_t);
constexpr int64_t SLACK_ELEMS = 64;
constexpr int MAX_STEPS = 512, MAX_BUFFERS = 1024;

struct Shape {
    int operands;
    int bytes[1 + MAX_OPERANDS];
};
constexpr Shape SHAPES[OPCODES] = {
#define OP(name, operands, ...) {operands, {__VA_ARGS__}},
    ELEMENTWISE(OP) INTERVALS(OP)
#undef OP
#define OP(name) {1, {4, 4}},
        REDUCTIONS(OP)
#undef OP
#define OP(name, operands, ...) {operands, {__VA_ARGS__}},
            FOLDS(OP) CHECKS(OP) GUARDS(OP)
#undef OP
};

bool guards(int opcode) { return opcode >= OP_unless_closed; }
bool checks(int opcode) { return opcode >= OP_check_ends && !guards(opcode); }
bool reduces(int opcode) { return opcode >= OP_amax && opcode < OP_check_ends; }
bool folds(int opcode) { return opcode >= OP_sum_ends && opcode < OP_check_ends; }
// The last operand is no operand of elements: a table, a `Widening`, a `Nearness` or a `SumRule`.
bool has_table(int opcode) {
    return opcode == OP_lookup16 || (opcode >= OP_lower && opcode <= OP_higher_unless) ||
           opcode == OP_may_round_apart || opcode == OP_sum_ends;
}

// A block: rows from `row` on, columns from `column` on.
struct Block {
    int64_t row, rows, column, columns;
};

// A part of a buffer inside a block.
struct Part {
    char* data;
    int64_t row_bytes;
    bool is_wide;
    // One element stands for all of a block, or all lie side by side.
    bool is_one(const Block&) const { return !is_wide && row_bytes == 0; }
    bool is_dense(int64_t bytes, const Block& block) const {
        return is_wide && (block.rows == 1 || row_bytes == block.columns * bytes);
    }
};

class Program {
  public:
    Program(const Step* steps, int64_t steps_count, const Join* joins, const Buffer* buffers,
            int64_t buffers_count, const Loops& loops, uint8_t* findings, uint8_t* marks)
        : steps(steps), steps_count(steps_count), joins(joins), buffers(buffers),
          buffers_count(buffers_count), loops(loops), findings(findings), marks(marks) {}
    ~Program() { std::free(own_memory); }

    bool is_valid() const {
        if (steps_count < 1 || steps_count > MAX_STEPS || buffers_count > MAX_BUFFERS) return false;
        for (const Step* step = steps; step < steps + steps_count; ++step) {
            if (step->opcode < 0 || step->opcode >= OPCODES) return false;
            const Shape& shape = SHAPES[step->opcode];
            for (int k = checks(step->opcode) ? 1 : 0; k <= shape.operands; ++k) {
                const int64_t index = k == 0 ? step->out : step->in[k - 1];
                if (index < 0 || index >= buffers_count) return false;
                if (buffers[index].elem_bytes != shape.bytes[k]) return false;
            }
            if (guards(step->opcode) &&
                (step->extent < 0 || step->extent >= steps + steps_count - step))
                return false;
            if (checks(step->opcode)) continue;
            const bool is_wide = buffers[step->out].is_wide;
            if (reduces(step->opcode)) {
                // Choices may be one element for a row; ends may not.
                const int first = step->opcode == OP_choices_along;
                const int last = folds(step->opcode) ? first + 1 : first;
                for (int k = first; k <= last; ++k)
                    if (is_wide || !buffers[step->in[k]].is_wide) return false;
            } else {
                for (int k = 0; k < shape.operands - has_table(step->opcode); ++k)
                    if (!is_wide && buffers[step->in[k]].is_wide) return false;
            }
        }
        return true;
    }
    bool has_rows() const {
        return std::any_of(steps, steps + steps_count,
                           [](const Step& step) { return reduces(step.opcode); });
    }

    // Enough for a call over any rows, and over so many columns or fewer.
    int64_t scratch_bytes(int64_t columns) {
        const int64_t wide = has_rows() ? std::max(BLOCK_ELEMS, columns) : BLOCK_ELEMS;
        int64_t total = 2 * LINE_BYTES + PIECE_BYTES;
        for (int64_t k = 0; k < buffers_count; ++k)
            if (buffers[k].data == nullptr || writes(k))
                total += (wide * buffers[k].elem_bytes / LINE_BYTES + 1) * LINE_BYTES;
        return total + (has_rows() ? rows_bytes(columns) : 0);
    }

    Status run(int64_t row, int64_t row_end, int64_t column, int64_t column_end, char* scratch) {
        memory = scratch;
        const int64_t width = column_end - column;
        find_streamed((row_end - row) * width);
        bool is_long = true;
        for (int64_t k = 0; k < buffers_count; ++k) is_long = is_long && !is_inside(k);
        const int64_t elems = is_long ? LONG_BLOCK_ELEMS : BLOCK_ELEMS;
        const int64_t columns = has_rows() ? width : std::min(width, elems);
        const int64_t rows = std::max<int64_t>(1, elems / std::max<int64_t>(1, columns));
        if (!allocate(rows, columns)) return NO_MEMORY;
        for (int64_t r = row; r < row_end; r += rows)
            for (int64_t c = column; c < column_end; c += columns)
                run_block({r, std::min(rows, row_end - r), c, std::min(columns, column_end - c)});
#if defined(__x86_64__)
        if (is_streamed) _mm_sfence();  // for readers in other threads
#endif
        return OK;
    }

  private:
    bool writes(int64_t k) const {
        if (!buffers[k].is_wide || loops.stream == nullptr) return false;
        return std::any_of(steps, steps + steps_count, [k](const Step& step) {
            return !checks(step.opcode) && step.out == k;
        });
    }
    // Results of so many elements that are written past the caches. Those of one step that no other
    // reads leave by pieces while they are computed; others are, inside a block, as what lives there
    // alone, and leave at its end.
    void find_streamed(int64_t elems) {
        for (int64_t k = 0; k < buffers_count; ++k) {
            const Buffer& buffer = buffers[k];
            if (buffer.data == nullptr || elems * buffer.elem_bytes < STREAMED_BYTES || !writes(k))
                continue;
            is_streamed = true;
            if (touches(k) == 1) {
                by_pieces[k] = true;
            } else {
                streams[k] = true;
                streamed[streamed_count++] = static_cast<int>(k);
            }
        }
    }
    bool is_inside(int64_t k) const { return buffers[k].data == nullptr || streams[k]; }
    int64_t touches(int64_t k) const {
        int64_t found = 0;
        for (const Step* step = steps; step < steps + steps_count; ++step) {
            found += !checks(step->opcode) && step->out == k;
            found += std::count(step->in, step->in + SHAPES[step->opcode].operands, k);
        }
        return found;
    }

    bool allocate(int64_t rows, int64_t columns) {
        int64_t total = LINE_BYTES + PIECE_BYTES;
        for (int64_t k = 0; k < buffers_count; ++k) {
            offsets[k] = total;
            if (!is_inside(k)) continue;
            const int64_t elems = buffers[k].is_wide ? rows * columns : rows;
            total += (elems * buffers[k].elem_bytes / LINE_BYTES + 1) * LINE_BYTES;
        }
        scratch_at = total;
        if (has_rows()) total += rows_bytes(columns);
        if (memory == nullptr)
            memory = own_memory = static_cast<char*>(std::malloc(total + LINE_BYTES));
        aligned = memory + (-reinterpret_cast<uintptr_t>(memory) % LINE_BYTES);
        return memory != nullptr;
    }

    static int64_t rows_bytes(int64_t columns) {
        return (3 * columns + 8 * SLACK_ELEMS) * static_cast<int64_t>(sizeof(float));
    }

    Part part(int index, const Block& block) const {
        const Buffer& buffer = buffers[index];
        const int64_t bytes = buffer.elem_bytes;
        if (is_inside(index)) {
            const int64_t row_bytes = buffer.is_wide ? block.columns * bytes : bytes;
            return {aligned + offsets[index], row_bytes, buffer.is_wide != 0};
        }
        char* data = buffer.data + block.row * buffer.row_bytes;
        return {buffer.is_wide ? data + block.column * bytes : data, buffer.row_bytes,
                buffer.is_wide != 0};
    }

    void run_block(const Block& block) const {
        for (const Step* step = steps; step < steps + steps_count; ++step) {
            if (guards(step->opcode)) {
                if (is_closed(*step, block)) step += step->extent;
            } else {
                reduces(step->opcode) ? run_rows(*step, block) : run_step(*step, block);
            }
        }
        for (const int* k = streamed; k < streamed + streamed_count; ++k) {
            const Buffer& to = buffers[*k];
            const Part from = part(*k, block);
            char* data = to.data + block.row * to.row_bytes + block.column * to.elem_bytes;
            const bool is_dense = to.row_bytes == from.row_bytes;
            const int64_t bytes = from.row_bytes * (is_dense ? block.rows : 1);
            for (int64_t row = 0; row < (is_dense ? 1 : block.rows); ++row)
                loops.stream(data + row * to.row_bytes, from.data + row * from.row_bytes, bytes);
        }
    }

    // Where no element is open, the result is zeros.
    bool is_closed(const Step& step, const Block& block) const {
        const Part out = part(step.out, block);
        const Part low = part(step.in[0], block), high = part(step.in[1], block);
        const int64_t bytes = SHAPES[step.opcode].bytes[1];
        for (int64_t row = 0; row < block.rows; ++row) {
            const char *a = low.data + row * low.row_bytes, *b = high.data + row * high.row_bytes;
            if (low.is_wide == high.is_wide) {
                if (std::memcmp(a, b, bytes * (low.is_wide ? block.columns : 1)) != 0) return false;
            } else {
                const int64_t one = low.is_wide ? bytes : 0, other = bytes - one;
                for (int64_t k = 0; k < block.columns; ++k)
                    if (std::memcmp(a + k * one, b + k * other, bytes) != 0) return false;
            }
        }
        const int64_t filled = SHAPES[step.opcode].bytes[0] * (out.is_wide ? block.columns : 1);
        for (int64_t row = 0; row < block.rows; ++row)
            std::memset(out.data + row * out.row_bytes, 0, filled);
        return true;
    }

    void run_rows(const Step& step, const Block& block) const {
        if (folds(step.opcode)) return run_fold(step, block);
        const Part out = part(step.out, block), in = part(step.in[0], block);
        const Tiles tiles = {step.extent, joins + step.joins, step.joins_end - step.joins,
                             reinterpret_cast<float*>(aligned + scratch_at)};
        const RowLoop loop = loops.rows[step.opcode];
        for (int64_t row = 0; row < block.rows; ++row)
            loop(reinterpret_cast<float*>(out.data + row * out.row_bytes),
                 reinterpret_cast<const float*>(in.data + row * in.row_bytes), block.columns, tiles);
    }

    void run_fold(const Step& step, const Block& block) const {
        const Part out = part(step.out, block);
        const int all = SHAPES[step.opcode].operands, operands = all - has_table(step.opcode);
        Part in[MAX_OPERANDS];
        const char* data[MAX_OPERANDS];
        unsigned repeated = 0;
        for (int k = 0; k < all; ++k) {
            in[k] = part(step.in[k], block);
            data[k] = k < operands ? in[k].data : buffers[step.in[k]].data;
            if (k < operands && !in[k].is_wide) repeated |= 1u << k;
        }
        const Fold fold = loops.folds[step.opcode];
        for (int64_t row = 0; row < block.rows; ++row) {
            for (int k = 0; k < operands; ++k) data[k] = in[k].data + row * in[k].row_bytes;
            fold(out.data + row * out.row_bytes, data, repeated, block.columns,
                 reinterpret_cast<float*>(aligned + scratch_at));
        }
    }

    void run_step(const Step& step, const Block& block) const {
        const Shape& shape = SHAPES[step.opcode];
        const Part out = checks(step.opcode) ? widest(step) : part(step.out, block);
        Part in[MAX_OPERANDS];
        const char* data[MAX_OPERANDS];
        unsigned repeated = 0;
        // A table is no operand of elements.
        const int operands = shape.operands - has_table(step.opcode);
        bool together = checks(step.opcode) ||
                        (out.is_wide ? out.is_dense(shape.bytes[0], block)
                                     : block.rows == 1 || out.row_bytes == shape.bytes[0]);
        for (int k = 0; k < shape.operands; ++k) {
            in[k] = part(step.in[k], block);
            data[k] = in[k].data;
            if (k >= operands) {
                data[k] = buffers[step.in[k]].data;
            } else if (in[k].is_one(block)) {
                repeated |= 1u << k;
            } else if (out.is_wide) {
                if (!in[k].is_wide) repeated |= 1u << k;
                together = together && (in[k].is_wide ? in[k].is_dense(shape.bytes[k + 1], block)
                                                      : block.rows == 1);
            } else {
                together = together && (block.rows == 1 || in[k].row_bytes == shape.bytes[k + 1]);
            }
        }
        const int64_t columns = out.is_wide ? block.columns : 1;
        if (checks(step.opcode)) {
            const Check check = loops.checks[step.opcode];
            uint8_t found = 0;
            const int64_t rows = together ? 1 : block.rows;
            for (int64_t row = 0; row < rows; ++row) {
                for (int k = 0; k < operands; ++k) data[k] = in[k].data + row * in[k].row_bytes;
                found |= check(data, repeated, together ? block.rows * columns : columns);
            }
            findings[&step - steps] |= found;
            if (marks != nullptr && &step == steps + steps_count - 1)
                for (int64_t row = 0; row < block.rows; ++row) marks[block.row + row] |= found;
            return;
        }
        const auto over = by_pieces[step.out] ? &Program::loop_by_pieces : &Program::loop_over;
        if (together) return (this->*over)(step, out.data, data, repeated, block.rows * columns);
        for (int64_t row = 0; row < block.rows; ++row) {
            for (int k = 0; k < operands; ++k) data[k] = in[k].data + row * in[k].row_bytes;
            (this->*over)(step, out.data + row * out.row_bytes, data, repeated, columns);
        }
    }

    // The shape of all operands of a check together.
    Part widest(const Step& step) const {
        bool is_wide = false;
        for (int k = 0; k < SHAPES[step.opcode].operands; ++k)
            is_wide = is_wide || buffers[step.in[k]].is_wide;
        return {nullptr, 0, is_wide};
    }

    // A loop of one operand has no way for a repeated one: its result is repeated.
    void loop_over(const Step& step, char* out, const char** in, unsigned repeated,
                   int64_t elems) const {
        const Loop loop = loops.elementwise[step.opcode];
        const int operands = SHAPES[step.opcode].operands - has_table(step.opcode);
        if (operands > 1 || repeated == 0) return loop(out, in, repeated, elems);
        loop(out, in, 0, 1);
    }
    // The first piece ends where a line does; the others are whole lines. `in` is moved along.
    void loop_by_pieces(const Step& step, char* out, const char** in, unsigned repeated,
                        int64_t elems) const {
        const Shape& shape = SHAPES[step.opcode];
        const int operands = shape.operands - has_table(step.opcode);
        const int64_t before = -reinterpret_cast<uintptr_t>(out) % LINE_BYTES / shape.bytes[0];
        for (int64_t count, done = 0; done < elems; done += count) {
            count = std::min(elems - done, done == 0 && before > 0 ? before : PIECE_ELEMS);
            loop_over(step, aligned, in, repeated, count);
            loops.stream(out + done * shape.bytes[0], aligned, count * shape.bytes[0]);
            for (int k = 0; k < operands; ++k)
                if (!(repeated >> k & 1)) in[k] += count * shape.bytes[k + 1];
        }
    }

    const Step* steps;
    int64_t steps_count;
    const Join* joins;
    const Buffer* buffers;
    int64_t buffers_count;
    const Loops& loops;
    uint8_t *findings, *marks;
    int64_t offsets[MAX_BUFFERS];
    bool streams[MAX_BUFFERS] = {}, by_pieces[MAX_BUFFERS] = {}, is_streamed = false;
    int streamed[MAX_BUFFERS], streamed_count = 0;
    int64_t scratch_at = 0;
    char *memory = nullptr, *own_memory = nullptr, *aligned = nullptr;
};

Level best_level() {
#if defined(__x86_64__)
    static const Level best = [] {
        if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return BASELINE;
        const bool has_all =
            __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
        return has_all ? AVX512 : AVX2;
    }();
    return best;
#else
    return BASELINE;
#endif
}

const Loops& loops_of(int level) {
#if defined(__x86_64__)
    if (level == AVX512) return loops_avx512();
    if (level == AVX2) return loops_avx2();
#else
    (void)level;
#endif
    return loops_baseline();
}

// Ways to multiply INT8 matrices; each belongs to a level.
enum Way { PLAIN, PLAIN_AVX2, PLAIN_AVX512, VNNI_AVX2, VNNI_AVX512, WAYS };
constexpr const char* WAY_NAMES[WAYS] = {"baseline", "avx2", "avx512", "avx2_vnni", "avx512_vnni"};

Multiply multiply_of(int way) {
    const Level best = best_level();
    if (way == PLAIN) return loops_of(BASELINE).multiply;
    if (way == PLAIN_AVX2 && best >= AVX2) return loops_of(AVX2).multiply;
    if (way == PLAIN_AVX512 && best >= AVX512) return loops_of(AVX512).multiply;
#if defined(__x86_64__)
    [[maybe_unused]] unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
#if defined(HAS_AVX2_VNNI)
    // AVX-VNNI: leaf 7, part 1, bit 4 of EAX.
    if (way == VNNI_AVX2 && best >= AVX2 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) &&
        (eax >> 4 & 1))
        return multiply_avx2_vnni;
#endif
#if defined(HAS_AVX512_VNNI)
    // AVX512-VNNI: leaf 7, part 0, bit 11 of ECX.
    if (way == VNNI_AVX512 && best >= AVX512 &&
        __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (ecx >> 11 & 1))
        return multiply_avx512_vnni;
#endif
#endif
    return nullptr;
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT const char* pypto_cast_arithmetic_digest() { return PYPTO_CAST_DIGEST; }

// The levels that this machine runs, by number, named as those of the casts; the last one is the
// fastest. The first two are the same loops.
EXPORT const char* pypto_cast_arithmetic_levels() {
    constexpr const char* levels[] = {"scalar", "scalar baseline", "scalar baseline avx2",
                                      "scalar baseline avx2 avx512"};
    return levels[best_level()];
}

// The operations, by number.
EXPORT const char* pypto_cast_arithmetic_operations() {
    return ""
#define OP(name, ...) #name " "
        ELEMENTWISE(OP) INTERVALS(OP) REDUCTIONS(OP) FOLDS(OP) CHECKS(OP) GUARDS(OP)
#undef OP
        ;
}

// The bytes of scratch memory that calls over all rows and columns, or some of them, take.
EXPORT int64_t pypto_cast_arithmetic_scratch(const Step* steps, int64_t steps_count,
                                             const Buffer* buffers, int64_t buffers_count,
                                             int64_t columns) {
    const Loops& loops = loops_of(best_level());  // others need no more
    return Program(steps, steps_count, nullptr, buffers, buffers_count, loops, nullptr, nullptr)
        .scratch_bytes(columns);
}

// Runs a program over some rows and columns; one that reduces rows takes all columns. Buffers that
// it writes do not overlap with any other. What checks find is added to their steps' `findings`, and
// what the last step finds in a block of rows to the `marks` of these rows, where they are not null.
// Without `scratch` memory a call takes some, which may fail.
EXPORT int pypto_cast_arithmetic_run(int level, const Step* steps, int64_t steps_count,
                                     const Join* joins, const Buffer* buffers,
                                     int64_t buffers_count, int64_t row, int64_t row_end,
                                     int64_t column, int64_t column_end, uint8_t* findings,
                                     uint8_t* marks, char* scratch) {
    if (level < SCALAR || level > best_level()) return BAD_LEVEL;
    Program program(steps, steps_count, joins, buffers, buffers_count, loops_of(level), findings,
                    marks);
    if (!program.is_valid()) return BAD_PROGRAM;
    const Environment environment;
    Environment::round(NEAREST);
    return program.run(row, row_end, column, column_end, scratch);
}

// The ways to multiply INT8 matrices that this machine has, as NUMBER:NAME; a name starts with the
// level that a way belongs to, the fastest of a level is the last.
EXPORT const char* pypto_cast_arithmetic_ways() {
    static const std::string ways = [] {
        std::string found;
        for (int way = 0; way < WAYS; ++way)
            if (multiply_of(way) != nullptr)
                found += std::to_string(way) + ":" + WAY_NAMES[way] + " ";
        return found;
    }();
    return ways.c_str();
}

// Multiplies INT8 matrices, some columns of the second one. INT32 sums wrap.
EXPORT int pypto_cast_arithmetic_multiply(int way, const int8_t* a, const int8_t* b, int32_t* out,
                                          int64_t rows, int64_t terms, int64_t columns,
                                          int64_t column, int64_t column_end) {
    const Multiply multiply = multiply_of(way);
    if (multiply == nullptr) return BAD_LEVEL;
    return multiply({a, b, out, rows, terms, columns}, column, column_end);
}

// Sums or products of all elements up to each, along some rows. `scratch` has room for two tiles.
EXPORT int pypto_cast_arithmetic_scan(int level, const float* in, float* out, int64_t columns,
                                      int64_t extent, int multiplies, int keeps_signs,
                                      float* scratch, int64_t row, int64_t row_end) {
    if (level < SCALAR || level > best_level()) return BAD_LEVEL;
    if (columns < 1 || extent < 1) return BAD_PROGRAM;
    const Environment environment;
    Environment::round(NEAREST);
    loops_of(level).scan({in, out, columns, extent, multiplies != 0, keeps_signs != 0, scratch},
                         row, row_end);
    return OK;
}

// The ends of a block of a product; gives what is found there.
EXPORT int pypto_cast_arithmetic_bound_products(int level, const ProductBounds* given) {
    if (level < SCALAR || level > best_level()) return -BAD_LEVEL;
    const Environment environment;
    Environment::round(NEAREST);
    return loops_of(level).bound_products(*given);
}

// Rows of an operand of such a product; gives what is found there.
EXPORT int pypto_cast_arithmetic_prepare_factors(int level, const ProductFactors* given) {
    if (level < SCALAR || level > best_level()) return -BAD_LEVEL;
    const Environment environment;
    Environment::round(NEAREST);
    return loops_of(level).prepare_factors(*given);
}
