"""A SavedModel behind LitServe. ``PORT NAME FOLDER``; LitServe knows no names."""

import sys

import litserve
from saved_model import SavedModel


class Served(litserve.LitAPI):
    """The model as LitServe wants it."""

    def __init__(self, folder):
        super().__init__()
        self._folder = folder

    def setup(self, device):
        """LitServe: load the model, in the worker's process."""
        self._model = SavedModel(self._folder)

    def decode_request(self, request):
        """LitServe: from a request's JSON to the model's input."""
        return request["instances"]

    def predict(self, instances):
        """LitServe: call the model."""
        return self._model(instances)

    def encode_response(self, predictions):
        """LitServe: from the model's output to the answer's JSON."""
        return {"predictions": predictions}


if __name__ == "__main__":
    port, _, folder = sys.argv[1:]
    server = litserve.LitServer(Served(folder), accelerator="cpu", workers_per_device=1)
    server.run(
        host="127.0.0.1",
        port=int(port),
        num_api_servers=1,
        log_level="warning",
        access_log=False,
        generate_client_file=False,
    )
