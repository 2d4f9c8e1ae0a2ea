"""Admission: plugins that change, validate or reject a write before it is stored."""
