"""Tables, figures and pages: how results are shown."""
