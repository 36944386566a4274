"""Drawing and documenting the tables: development tools, not shipped."""
