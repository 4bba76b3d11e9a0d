"""A SavedModel behind MLflow's scoring server. ``PORT NAME FOLDER``; MLflow knows no names."""

import os
import sys
from pathlib import Path

import mlflow.pyfunc

HERE = Path(__file__).parent


class Served(mlflow.pyfunc.PythonModel):
    """The model as MLflow wants it."""

    def load_context(self, context):
        """MLflow: load the model, in the server's process."""
        from saved_model import SavedModel

        self._model = SavedModel(context.artifacts["model"])

    def predict(self, context, model_input, params=None):
        """MLflow: one call; instances that are objects come as a column for each key."""
        if isinstance(model_input, dict):
            ((key, column),) = model_input.items()
            model_input = [{key: value} for value in column]
        return self._model(model_input)


if __name__ == "__main__":
    port, name, folder = sys.argv[1:]
    saved = Path.cwd() / f"mlflow-{name}"
    mlflow.pyfunc.save_model(
        saved,
        python_model=Served(),
        artifacts={"model": folder},
        code_paths=[str(HERE / "saved_model.py")],
        pip_requirements=str(HERE / "mlflow.txt"),
    )
    serve = ["models", "serve", "--model-uri", str(saved), "--host", "127.0.0.1", "--port", port]
    options = ["--env-manager", "local", "--workers", "1"]
    os.execv(sys.executable, [sys.executable, "-m", "mlflow", *serve, *options])
