"""What users pass: validated, matched by name and cut into parts."""
