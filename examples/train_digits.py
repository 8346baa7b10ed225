"""Train a small classifier of handwritten digits and write examples/digits.safetensors.

    pip install scikit-learn safetensors
    python examples/train_digits.py

The checkpoint holds what real ones do, in several dtypes: weights and biases (FP32), class labels
(INT64), the means that the inputs are reduced by (FP64), a few test images (UINT8) and metadata.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import sklearn
from safetensors.numpy import save_file
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

SEED = 7
HIDDEN_UNITS = (128, 64)
TEST_IMAGES = 16
OUTPUT = Path(__file__).with_name("digits.safetensors")


def main() -> None:
    """Train, measure, save."""
    images, labels = load_digits(return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split(
        images, labels, test_size=0.25, random_state=SEED, stratify=labels
    )
    scaler = StandardScaler(with_std=False).fit(train_x)
    model = MLPClassifier(HIDDEN_UNITS, max_iter=200, random_state=SEED)
    model.fit(scaler.transform(train_x).astype(np.float32), train_y)
    accuracy = model.score(scaler.transform(test_x).astype(np.float32), test_y)

    tensors = {
        "classes": model.classes_.astype(np.int64),
        "input.mean": scaler.mean_.astype(np.float64),
        "test.images": test_x[:TEST_IMAGES].reshape(-1, 8, 8).astype(np.uint8),
        "test.labels": test_y[:TEST_IMAGES].astype(np.int64),
    }
    for number, (weight, bias) in enumerate(zip(model.coefs_, model.intercepts_, strict=True)):
        tensors[f"layer{number}.weight"] = np.ascontiguousarray(weight.T, dtype=np.float32)
        tensors[f"layer{number}.bias"] = bias.astype(np.float32)
    metadata = {
        "task": "handwritten digits, 8 x 8 pixels, 10 classes (scikit-learn's load_digits)",
        "model": f"multilayer perceptron 64-{'-'.join(map(str, HIDDEN_UNITS))}-10, ReLU",
        "training": f"scikit-learn {sklearn.__version__} MLPClassifier, random_state={SEED}",
        "test_accuracy": f"{accuracy:.4f} of {len(test_y)} images",
        "made_by": "examples/train_digits.py",
    }
    save_file(tensors, OUTPUT, metadata)
    print(f"{OUTPUT.name}: test accuracy {accuracy:.4f} after {model.n_iter_} epochs")


if __name__ == "__main__":
    main()
