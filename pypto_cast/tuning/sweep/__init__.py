"""Many tile searches at once, over the cores of one machine or the workers of a Dask cluster."""
