"""The pages of the site that are made of the project's own tables, and what builds them in."""
