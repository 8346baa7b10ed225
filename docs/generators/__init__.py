"""The pages of the site that are generated from the project's own tables, and their hooks."""
