"""The router of a mixture of experts: the experts of each token, their weights, the certainty.

    python examples/topk_router.py

Each group of experts is judged by its best one; experts of the best groups compete for the token.
What a device may give for the sigmoid decides between experts that are nearly equal: their indices
would stay open, and with them the weights. BF16 settles nearly all of the weights.
"""

import numpy as np

import pypto_cast as pypto

TOKENS, EXPERTS, GROUPS, BEST_GROUPS, CHOSEN = 64, 128, 8, 4, 8
WIDTH = EXPERTS // GROUPS


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def route(
    logits: pypto.Tensor[[pypto.DYNAMIC, EXPERTS], pypto.DT_BF16],
    bias: pypto.Tensor[[1, EXPERTS], pypto.DT_FP32],
    weights: pypto.Tensor[[pypto.DYNAMIC, CHOSEN], pypto.DT_BF16],
    experts: pypto.Tensor[[pypto.DYNAMIC, CHOSEN], pypto.DT_INT32],
):
    """Choose experts for each token, and weights that add up to 1."""
    tile = 16
    for index in pypto.loop(TOKENS // tile):
        first = index * tile
        pypto.set_vec_tile_shapes(tile, EXPERTS)
        wide = pypto.cast(pypto.view(logits, [tile, EXPERTS], [first, 0]), pypto.DT_FP32)
        scores = pypto.sigmoid(wide)
        biased = scores + bias

        pypto.set_vec_tile_shapes(tile, GROUPS, WIDTH)
        best = pypto.amax(biased.reshape([tile, GROUPS, WIDTH]), -1)
        pypto.set_vec_tile_shapes(tile, GROUPS)
        _, groups = pypto.topk(best, BEST_GROUPS)
        none = pypto.full([tile, GROUPS], 0.0, pypto.DT_FP32)
        mask = pypto.unsqueeze(pypto.scatter(none, 1, groups, 1.0), -1)
        pypto.set_vec_tile_shapes(tile, GROUPS, WIDTH)
        members = pypto.expand_clone(mask, [tile, GROUPS, WIDTH])

        pypto.set_vec_tile_shapes(tile, EXPERTS)
        outside = pypto.logical_not(members.reshape([tile, EXPERTS]))
        _, chosen = pypto.topk(pypto.where(outside, 0.0, biased), CHOSEN)
        taken = pypto.gather(scores, 1, chosen)
        pypto.set_vec_tile_shapes(tile, 2 * CHOSEN)
        shares = taken / pypto.sum(taken, -1, True)
        weights[first : first + tile] = pypto.cast(shares, pypto.DT_BF16)
        experts[first : first + tile] = chosen


def main() -> None:
    """Random logits, of which some are equal in BF16."""
    random = np.random.default_rng(0)
    logits = random.standard_normal((TOKENS, EXPERTS)).astype(np.float32)
    bias = (random.standard_normal((1, EXPERTS)) / 16).astype(np.float32)
    with pypto.options(vec_tile_shapes=(16, EXPERTS)):
        x = pypto.cast(pypto.from_numpy(logits), pypto.DT_BF16).numpy()
    weights = np.zeros((TOKENS, CHOSEN), x.dtype)
    experts = np.zeros((TOKENS, CHOSEN), np.int32)
    print(route.certainty(x, bias, weights, experts))
    route(x, bias, weights, experts)
    print("token 0:", experts[0], weights[0].astype(np.float32).round(3))


if __name__ == "__main__":
    main()
