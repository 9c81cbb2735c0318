"""Studies that repeat published ones."""
