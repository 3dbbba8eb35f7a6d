"""What keeps a store well: `backup` and restoring, the `doctor`, and `care`, what they ask of a truth."""
