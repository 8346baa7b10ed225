"""Pages of HTML that need no network: the parts they share, and the picture of a certainty."""
