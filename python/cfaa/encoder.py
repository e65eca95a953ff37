"""Texts to vectors, with the verb and the keyword names of sentence-transformers."""

import os
import pathlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from cfaa import _native
from cfaa._native import Error
from cfaa.configuration import Place, nested, to_json
from cfaa.listening import Listener, Progress


def _hugging_face_cache() -> pathlib.Path:
    if "HF_HUB_CACHE" in os.environ:
        return pathlib.Path(os.environ["HF_HUB_CACHE"])
    caches = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(os.environ.get("HF_HOME") or pathlib.Path(caches, "huggingface"), "hub")


def model_folder(name: Place) -> str:
    """A folder as it is, or the newest snapshot of that name in Hugging Face's cache."""
    name = os.fspath(name)
    if os.path.isdir(name):
        return name
    for full in (name, f"sentence-transformers/{name}"):
        place = _hugging_face_cache() / ("models--" + full.replace("/", "--"))
        reference = place / "refs/main"
        if reference.exists():
            snapshot = place / "snapshots" / reference.read_text().strip()
            if snapshot.is_dir():
                return os.fspath(snapshot)
    raise Error(f"{name}: is neither a folder nor a model in {_hugging_face_cache()}; download it "
                "first, such as by `hf download`, or give its folder")


class Encoder:
    """An encoder of the BERT or RoBERTa family that stays loaded.

    model      its folder, or its name in Hugging Face's cache (nothing is downloaded)
    options    keys of the configuration's `embed` section: layer="penultimate", pooling="mean",
               max_length=256, ... Without any, a folder of sentence-transformers (modules.json)
               gives what that library's encode() gives, and any other the mean over the tokens of
               the penultimate layer, averaged over a text's sentences.
    """

    def __init__(self, model: Place, *, device: str = "auto", threads: int = 0,
                 **options: Any) -> None:
        folder = model_folder(model)
        options = nested(options)
        if not options.keys() & {"as", "layer", "pooling"}:
            whole = pathlib.Path(folder, "modules.json").exists()
            options["as"] = "sentence-transformers" if whole else "encoder"
        config = to_json({"embed": {**options, "model": folder}})
        self._native = _native.Encoder(config, device, threads)

    @property
    def max_seq_length(self) -> int:
        """Tokens of a text that are read; what lies behind them is cut."""
        return self._native.max_length

    def get_sentence_embedding_dimension(self) -> int:
        """The width of a vector."""
        return self._native.width

    def encode(self, sentences: str | Iterable[str], *, batch_size: int | None = None,
               show_progress_bar: Progress = False, convert_to_numpy: bool = True,
               convert_to_tensor: bool = False, normalize_embeddings: bool = False) -> Any:
        """A vector for each text.

        sentences            a text, or a list (or any iterable) of N texts
        batch_size           is taken as sentence-transformers has it and changes nothing: batches
                             are made by tokens (the option batch_tokens of Encoder)
        convert_to_tensor    give PyTorch's tensor instead of NumPy's array

        Returns float32 of (width) for a text, of (N, width) for a list.
        """
        if not (convert_to_numpy or convert_to_tensor):
            raise Error("encode: lists of tensors are not made; give convert_to_tensor=True")
        texts: list[str] = [sentences] if isinstance(sentences, str) else list(sentences)
        for number, text in enumerate(texts):
            if not isinstance(text, str):
                raise Error(f"encode: text {number} is a {type(text).__name__}; give strings")
        with Listener(show_progress_bar) as listener:
            rows = self._native.encode(listener, texts)
        if normalize_embeddings:
            rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        if convert_to_tensor:
            import torch
            rows = torch.from_numpy(rows)
        return rows[0] if isinstance(sentences, str) else rows
