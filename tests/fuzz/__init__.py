"""Random graphs against eager; see docs/reference/testing.md."""
