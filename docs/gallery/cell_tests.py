"""
Which cells are wrong
=====================

Orange cells (bins) are rejected when all cells are tested together (Holm).
"""

import caltest

y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
curve = caltest.reliability_curve(y_true, y_prob, lens=caltest.Confidence())
caltest.plotting.plot_reliability(curve, style="deviation", tests=curve.cell_tests())
