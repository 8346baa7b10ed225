"""A tuning result as one HTML file that needs no network: figures, tables, sources."""
