"""The doors of the Jupyter server: they admit, forward and relay; tensors never enter here."""
