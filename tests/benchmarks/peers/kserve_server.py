"""A SavedModel behind KServe's Python server, V1 protocol. ``PORT NAME FOLDER``."""

import sys

from kserve import Model, ModelServer
from saved_model import SavedModel


class Served(Model):
    """The model as KServe wants it."""

    def __init__(self, name, folder):
        super().__init__(name)
        self._model = SavedModel(folder)
        self.ready = True

    def predict(self, payload, headers=None, response_headers=None):
        """KServe: one request of the V1 protocol."""
        return {"predictions": self._model(payload["instances"])}


if __name__ == "__main__":
    port, name, folder = sys.argv[1:]
    server = ModelServer(
        http_port=int(port), workers=1, enable_grpc=False, enable_latency_logging=False
    )
    server.start([Served(name, folder)])
