"""What is simulated: labels, resampled observations and signs of groups."""
