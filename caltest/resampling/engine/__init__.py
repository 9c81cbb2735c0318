"""From observed data and draws to p-values."""
