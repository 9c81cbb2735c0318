"""How uncertain predictions are."""
