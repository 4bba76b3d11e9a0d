"""JSON to tensors and back, exactly as TensorFlow Serving converts them; NumPy only."""
