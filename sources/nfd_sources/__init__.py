"""The sources that come with node feature discovery, one module or package each."""
