// torch.ops.pypto_cast.check: the private op that starts a kernel of a device check on an NPU.
// Tensors are bytes; Python decides everything else (ascend_kernels/checks).
#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>

#include "../op_launch.h"
#include "check_launchers.h"

namespace {

// In the order of the table in ascend_kernels/checks.
#define PYPTO_CHECK_LAUNCHER(name, ...) pypto_check::launch_##name,
constexpr pypto_check::Launcher kLaunchers[] = {PYPTO_CHECK_INSTANCES(PYPTO_CHECK_LAUNCHER)};
#undef PYPTO_CHECK_LAUNCHER

at::Tensor check(const at::Tensor& x, int64_t size_bytes, int64_t instance, at::IntArrayRef tiling,
                 int64_t cores) {
    const c10::DeviceGuard guard(x.device());
    const int64_t instances = static_cast<int64_t>(std::size(kLaunchers));
    TORCH_CHECK_VALUE(0 <= instance && instance < instances, "check knows the kernels 0 to ",
                      instances - 1, ", not ", instance);
    const auto data = pypto_cast::tiling_of<CheckTilingData>(tiling);
    const at::Tensor source = x.contiguous();
    const at::Tensor result = at::zeros({size_bytes}, x.options());
    pypto_cast::enqueue(kLaunchers[instance], instance, cores, source, result, data);
    return result;
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(pypto_cast, m) {
    m.def("check(Tensor x, int size_bytes, int instance, int[] tiling, int cores) -> Tensor");
}

TORCH_LIBRARY_IMPL(pypto_cast, PrivateUse1, m) { m.impl("check", TORCH_FN(check)); }
