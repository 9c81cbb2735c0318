"""
Before and after a repair
=========================

Temperature scaling of a network, judged on held-out folds.
"""

import caltest

y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
maps = {"temperature": caltest.recalibration.TemperatureScaling()}
study = caltest.recalibration_study(y_true[:3000], {"VGG-16": y_prob[:3000]}, maps, rng=0)
caltest.plotting.plot_before_after(study, "temperature")
