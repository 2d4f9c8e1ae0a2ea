"""The chains of facts, one module for each subject. Pure."""
