"""Random graphs against eager; see docs/testing.md."""
