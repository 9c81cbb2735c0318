"""How predictions of an event are wrong on average, and as differences between low and high ones."""
