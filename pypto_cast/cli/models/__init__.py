"""Commands on whole models, and what they print."""
