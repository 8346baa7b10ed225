"""A small sweep's config."""

CONFIG = """\
shapes = [[64, 96], [1000]]
pairs = [["DT_FP32", "DT_FP16"], ["fp16", "int8"]]
"""
