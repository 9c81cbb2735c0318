from ._loaders import ModelPredictions as ModelPredictions
from ._loaders import Predictions as Predictions
from ._loaders import load_cifar10_vgg16 as load_cifar10_vgg16
from ._loaders import load_digits_predictions as load_digits_predictions
