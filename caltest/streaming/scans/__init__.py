"""Files that do not fit into memory."""
