// What the ops of both libraries share: tiling data from words, and a launch in its turn on
// torch_npu's queue.
#ifndef PYPTO_CAST_OP_LAUNCH_H
#define PYPTO_CAST_OP_LAUNCH_H

#include <acl/acl.h>
#include <torch/library.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "torch_npu/csrc/core/npu/NPUStream.h"
#include "torch_npu/csrc/framework/OpCommand.h"

namespace pypto_cast {

// The words are those of the struct, in its order.
template <class Tiling>
Tiling tiling_of(at::IntArrayRef words) {
    Tiling tiling{};
    uint32_t fields[sizeof tiling / sizeof(uint32_t)];
    TORCH_CHECK_VALUE(words.size() == std::size(fields), "launch takes ", std::size(fields),
                      " tiling words, not ", words.size(),
                      ": build the library anew with python -m ascend_kernels.build");
    std::transform(words.begin(), words.end(), fields,
                   [](int64_t word) { return static_cast<uint32_t>(word); });
    std::memcpy(&tiling, fields, sizeof tiling);
    return tiling;
}

// `launcher` runs in its turn on torch_npu's queue, which holds the tensors until then.
template <class Launcher, class Tiling>
void enqueue(Launcher launcher, int64_t instance, int64_t cores, const at::Tensor& source,
             const at::Tensor& result, const Tiling& tiling) {
    const aclrtStream stream = c10_npu::getCurrentNPUStream().stream(false);
    at_npu::native::OpCommand::RunOpApiV2("pypto_cast", [=]() -> int {
        aclrtGetLastError(ACL_RT_THREAD_LEVEL);  // an older error is not this launch's
        launcher(static_cast<uint32_t>(cores), stream, static_cast<uint8_t*>(source.data_ptr()),
                 static_cast<uint8_t*>(result.data_ptr()), tiling);
        const aclError error = aclrtGetLastError(ACL_RT_THREAD_LEVEL);
        const char* text = error == ACL_SUCCESS ? nullptr : aclGetRecentErrMsg();
        TORCH_CHECK(error == ACL_SUCCESS, "pypto_cast: the launch of kernel ", instance, " on ",
                    cores, " cores failed with ACL error ", error, ": ",
                    text == nullptr ? "no more is known" : text);
        return error;
    });
}

}  // namespace pypto_cast

#endif  // PYPTO_CAST_OP_LAUNCH_H
