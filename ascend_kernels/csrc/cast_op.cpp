// torch.ops.pypto_cast.launch: the private op that starts a kernel on an NPU. Python decides the
// cast (ascend_kernels/npu.py calls the op); here is only checked what it cannot see, the memory of
// the tensor.
//
// Plain C++ of the host; `python -m ascend_kernels.build` or CMakeLists.txt links it with the
// kernels.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>

#include "cast_launchers.h"
#include "op_launch.h"
#include "torch_npu/csrc/core/npu/NPUFormat.h"

namespace {

// In the order of the table, which emit.instance_number counts by.
#define PYPTO_CAST_LAUNCHER(name, ...) pypto_cast::launch_##name,
constexpr pypto_cast::Launcher kLaunchers[] = {
    PYPTO_CAST_INSTANCES(PYPTO_CAST_LAUNCHER) PYPTO_CAST_INSTANCES_ROUTES(PYPTO_CAST_LAUNCHER)};
#undef PYPTO_CAST_LAUNCHER

void check_layout(const at::Tensor& x) {
    const int64_t format = at_npu::native::get_npu_format(x);
    TORCH_CHECK_VALUE(format != ACL_FORMAT_FRACTAL_NZ,
                      "a cast takes tensors in TILEOP_ND, not TILEOP_NZ");
    // torch_npu calls plain memory ND, or by the meaning of its axes.
    const bool plain = format == ACL_FORMAT_ND || format == ACL_FORMAT_NCHW;
    TORCH_CHECK_VALUE(plain, "a cast takes tensors in TILEOP_ND, not in ACL format ", format);
}

at::Tensor launch(const at::Tensor& x, at::ScalarType dtype, at::IntArrayRef shape,
                  int64_t instance, at::IntArrayRef tiling, int64_t cores) {
    const c10::DeviceGuard guard(x.device());
    check_layout(x);
    const int64_t instances = static_cast<int64_t>(std::size(kLaunchers));
    TORCH_CHECK_VALUE(0 <= instance && instance < instances, "launch knows the kernels 0 to ",
                      instances - 1, ", not ", instance);
    const CastTilingData data = pypto_cast::tiling_of<CastTilingData>(tiling);
    const at::Tensor source = x.contiguous();
    const at::Tensor result = at::empty(shape, x.options().dtype(dtype));
    pypto_cast::enqueue(kLaunchers[instance], instance, cores, source, result, data);
    return result;
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(pypto_cast, m) {
    m.def(
        "launch(Tensor x, ScalarType dtype, int[] shape, int instance, int[] tiling, int cores)"
        " -> Tensor");
}

TORCH_LIBRARY_IMPL(pypto_cast, PrivateUse1, m) { m.impl("launch", TORCH_FN(launch)); }
