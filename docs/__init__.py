"""The pages of the site, and in `docs.generators` those that are made of the project's tables."""
