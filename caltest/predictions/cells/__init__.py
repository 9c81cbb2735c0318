"""Partitions of predictions into cells (bins), and sums over cells."""
