"""The model config file, read with TensorFlow Serving's own protos."""

import subprocess
import sys

import pytest

from jupyter_tfserve.config import All, Latest, ModelConfig, ModelServerConfig, Specific
from jupyter_tfserve.errors import Code, ServingError
from jupyter_tfserve.pool.config_text import load_config_file, parse_config, to_text


@pytest.fixture
def load(tmp_path):
    def load(text):
        path = tmp_path / "models.config"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return load_config_file(str(path))

    return load


def refused(load, text):
    with pytest.raises(ServingError) as caught:
        load(text)
    return caught.value


def one(fields):
    return 'model_config_list { config { name: "m" base_path: "/m" ' + fields + " } }"


def test_reads_every_spelling_of_the_text_format(load):
    config = load(
        """
        # models
        model_config_list: {
          config {
            name: "a", base_path: '/models/a';
            model_platform: "tensorflow"
            model_version_policy: { specific: { versions: 2, versions: 1 } }
            version_labels { key: "stable" value: 1 }
            version_labels { key: "canary" value: 2 }
          }
          config { name: "b" base_path: "gs://bucket/b" model_platform: "tensorflow"
                   model_version_policy { all {} } }
          config { name: "c" base_path: "/c" model_type: TENSORFLOW
                   model_version_policy { latest { num_versions: 3 } } }
          config { name: "d" base_path: "/d" model_type: 1
                   model_version_policy { latest { num_versions: 0 } } }
        }
        """
    )
    assert config == ModelServerConfig(
        (
            ModelConfig(
                "a",
                "/models/a",
                policy=Specific(frozenset({1, 2})),
                labels={"stable": 1, "canary": 2},
            ),
            ModelConfig("b", "gs://bucket/b", policy=All()),
            ModelConfig("c", "/c", policy=Latest(3)),
            ModelConfig("d", "/d", policy=Latest(1)),
        )
    )


def test_an_empty_list_unloads_everything(load):
    assert load("model_config_list {}") == ModelServerConfig()


@pytest.mark.parametrize("text", ["", "# nothing\n"])
def test_a_file_that_sets_nothing_is_no_empty_list(load, text):
    error = refused(load, text)
    assert error.code is Code.FAILED_PRECONDITION
    assert error.message.startswith("Taking no action for empty config.")


@pytest.mark.parametrize(
    ("text", "place", "field"),
    [
        ('model_config_list {\n config {\n  nam: "m" } }', "3:", '"nam"'),
        ('model_config_list {\n config { name: "m" base_path: 3 } }', "2:", "base_path: 3"),
        (one("model_type: CAFFE"), "1:", "model_type"),
        (one('version_labels { key: "a" value: "b" }'), "1:", "version_labels"),
        ("model_config_list {\n config {", "2:9", 'Expected "}"'),
        ("\n\nmodels {}", "3:", '"models"'),
        (b'model_config_list { config { name: "\xff" } }', "position", "0xff"),
    ],
)
def test_a_malformed_file_is_refused_with_place_and_field(load, tmp_path, text, place, field):
    error = refused(load, text)
    assert error.code is Code.INVALID_ARGUMENT
    lead = f"Invalid protobuf file: '{tmp_path}/models.config': "
    assert error.message.startswith(lead)
    assert place in error.message[len(lead) :]
    assert field in error.message[len(lead) :]


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        (
            one('model_type: TENSORFLOW model_platform: "tensorflow"'),
            Code.INVALID_ARGUMENT,
            "Illegal setting both ModelServerConfig::model_type (deprecated) and "
            "ModelServerConfig::model_platform, model name is m",
        ),
        (
            one(""),
            Code.INVALID_ARGUMENT,
            "Illegal setting neither ModelServerConfig::model_type (deprecated) nor "
            "ModelServerConfig::model_platform, model name is m",
        ),
        (
            one('model_platform: "caffe"'),
            Code.INVALID_ARGUMENT,
            "Model m requests unsupported platform caffe",
        ),
        (
            one("model_type: OTHER"),
            Code.INVALID_ARGUMENT,
            "Model m requests unsupported platform other",
        ),
        (
            one('model_platform: "tensorflow" logging_config {}'),
            Code.INVALID_ARGUMENT,
            "No request-logger-creator provided.",
        ),
        (
            'model_config_list { config { name: "m" base_path: "m" '
            'model_platform: "tensorflow" } }',
            Code.INVALID_ARGUMENT,
            "Expected model m to have an absolute path or URI; got base_path()=m",
        ),
        (
            "custom_model_config {}",
            Code.FAILED_PRECONDITION,
            "Cannot transition to requested config. It is only legal to transition from one "
            "ModelConfigList to another.",
        ),
    ],
)
def test_refusals_are_tf_servings(load, text, code, message):
    error = refused(load, text)
    assert (error.code, error.message) == (code, message)


def test_a_name_listed_twice_is_refused(load):
    model = 'config { name: "m" base_path: "/m" model_platform: "tensorflow" }'
    error = refused(load, f"model_config_list {{ {model} {model} }}")
    assert error.message == "Illegal to list model m multiple times in config list"


def test_a_missing_file_is_not_found(tmp_path):
    path = str(tmp_path / "gone")
    with pytest.raises(ServingError) as caught:
        load_config_file(path)
    assert caught.value.code is Code.NOT_FOUND
    assert caught.value.message == f"{path}; No such file or directory"


@pytest.mark.parametrize(
    "config",
    [
        ModelServerConfig(),
        ModelServerConfig(
            (
                ModelConfig("a", "/a", labels={"stable": 2**40, 'qu"ote': 1}),
                ModelConfig("\u00e4/b", "/b b", policy=All()),
                ModelConfig("c", "/c", policy=Specific(frozenset({3, 1}))),
                ModelConfig("d", "/d", policy=Specific()),
                ModelConfig("e", "/e", policy=Latest(4)),
            )
        ),
    ],
)
def test_what_is_written_reads_back(load, config):
    assert load(to_text(config)) == config


def test_what_the_format_has_no_field_for_is_told_in_a_comment(load):
    model = ModelConfig("a\nb", "/a", batching="greedy")
    text = to_text(ModelServerConfig((model, ModelConfig("c", "/c"))))
    comment, rest = text.split("\n", 1)
    assert comment.startswith("# Not in this file")
    assert comment.endswith(r"'a\nb' has batching greedy")
    assert "batching" not in rest
    assert load(text) == ModelServerConfig((ModelConfig("a\nb", "/a"), ModelConfig("c", "/c")))


def test_text_is_laid_out_as_people_write_it():
    text = to_text(ModelServerConfig((ModelConfig("m", "/m", labels={"stable": 1}),)))
    assert text == (
        "model_config_list {\n"
        "  config {\n"
        '    name: "m"\n'
        '    base_path: "/m"\n'
        '    model_platform: "tensorflow"\n'
        "    model_version_policy {\n"
        "      latest {\n"
        "        num_versions: 1\n"
        "      }\n"
        "    }\n"
        "    version_labels {\n"
        '      key: "stable"\n'
        "      value: 1\n"
        "    }\n"
        "  }\n"
        "}\n"
    )


def test_neither_this_nor_the_core_loads_tensorflow():
    code = (
        "import sys, jupyter_tfserve.pool.config_text, jupyter_tfserve.pool.core.server_core\n"
        "print({'tensorflow', 'numpy'} & sys.modules.keys())"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout == "set()\n"


def test_a_text_is_read_as_the_file_that_holds_it():
    text = one('model_platform: "tensorflow"')
    assert to_text(parse_config(text)) == to_text(parse_config(to_text(parse_config(text))))
    assert [model.name for model in parse_config(text).models] == ["m"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('model_config_list {\n  config { nmae: "m" }\n}', ["2:12", "ModelConfig", '"nmae"']),
        ("", ["The text sets no model_config_list"]),
        (one('model_platform: "torch"'), ["unsupported platform torch"]),
    ],
)
def test_a_text_that_is_refused_names_line_and_field(text, words):
    with pytest.raises(ServingError) as caught:
        parse_config(text)
    for word in words:
        assert word in caught.value.message
