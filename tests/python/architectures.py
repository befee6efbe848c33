#!/usr/bin/python3
"""The architectures of the installed transformers, with softmax in place of their attention: docs/hugging-face.md lists them.

  tests/python/architectures.py BUILD_FOLDER            write the list into docs/hugging-face.md (half a minute)
  tests/python/architectures.py BUILD_FOLDER NAME ...   print the outcome of these, and why others are not tried

Every architecture that AutoModel knows is made with a small random configuration and called with tokens. Its outcome is
"equal" (to 1e-5 of the model's own output, by one of its implementations), "differs", or the reason of a refusal.
tests/python/hf_test.py holds the page to these outcomes. Architectures that need images, sounds or other packages are
left out, and so are those that are large with these sizes.
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
import warnings
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[2] / "docs/hugging-face.md"
BEGIN, END = "<!-- architectures -->\n", "<!-- end of architectures -->\n"
CLOSE = 1e-5
LARGEST = 5e6  # weights
SIZES = {
    96: "vocab_size",
    64: "max_position_embeddings n_positions max_2d_position_embeddings",
    48: "intermediate_size ffn_dim d_ff n_inner encoder_ffn_dim decoder_ffn_dim ffn_hidden_size moe_intermediate_size "
    "shared_expert_intermediate_size mlp_hidden_size d_inner dim_feedforward",
    32: "hidden_size d_model n_embd dim emb_dim embed_dim word_embed_proj_dim embedding_size hidden_dim",
    16: "q_lora_rank kv_lora_rank",
    8: "head_dim d_kv rotary_dim index_head_dim qk_nope_head_dim qk_rope_head_dim v_head_dim attention_head_size",
    4: "num_attention_heads n_head n_heads num_heads encoder_attention_heads decoder_attention_heads n_routed_experts "
    "num_experts num_local_experts index_topk index_n_heads",
    2: "num_hidden_layers n_layer num_layers n_layers encoder_layers decoder_layers num_decoder_layers "
    "num_encoder_layers num_key_value_heads n_head_kv num_experts_per_tok top_k_experts moe_topk n_group topk_group",
    1: "bos_token_id",
    0: "pad_token_id",
}
SIZE_OF = {name: size for size, names in SIZES.items() for name in names.split()}
# Latent attention has as many heads of keys as of queries, and every fourth layer or so of a hybrid attends.
VARIANTS: tuple[dict[str, int], ...] = (
    {},
    {"num_key_value_heads": 4},
    {"num_hidden_layers": 4},
    {"num_hidden_layers": 8},
)
# The words of a refusal, and how the page calls it.
REASONS = {
    "a bias by position": "a bias by position",
    "adds ALiBi": "a bias by position",
    "adds a bias": "a bias by position",
    "caps its logits": "capped logits",
    "sink beside": "a sink beside the keys",
    "chooses the": "keys that the model chooses",
    "neither causal nor": "a mask that is neither causal nor padding",
    "does not fit": "a mask that does not fit the keys",
    "no attention was found": "attention that calls neither function, or none",
}


def small(config_class: Any, variant: dict[str, int]) -> Any:
    """A configuration with all sizes small, also those of its parts."""
    import transformers

    sizes: dict[str, Any] = {}
    for name, value in vars(config_class()).items():
        if isinstance(value, transformers.PreTrainedConfig):
            sizes[name] = small(type(value), variant).to_dict()
        elif name in SIZE_OF and isinstance(value, (int, float)) and not isinstance(value, bool):
            sizes[name] = variant.get(name, SIZE_OF[name])
    return config_class(**sizes)


def made(kind: str, variant: dict[str, int]) -> tuple[Any, dict[str, Any]]:
    """A random model of an architecture, and what it is called with. Raises any error for one that cannot be made so."""
    import torch
    from transformers import CONFIG_MAPPING, AutoModel

    config = small(CONFIG_MAPPING[kind], variant)
    with torch.device("meta"):
        weights = sum(weight.numel() for weight in AutoModel.from_config(config).parameters())
    if weights > LARGEST:
        raise LookupError(f"{weights:.0f} weights")
    torch.manual_seed(0)
    model = AutoModel.from_config(config).eval()
    words = inspect.signature(model.forward).parameters
    if "input_ids" not in words:
        raise LookupError("it takes no tokens")
    for weight in model.parameters():
        if weight.dim() > 1:
            weight.normal_(0, 0.3)
    tokens = torch.randint(3, 90, (2, 24))
    return model, {
        "input_ids": tokens,
        **({"decoder_input_ids": tokens[:, :12]} if "decoder_input_ids" in words else {}),
    }


def output(model: Any, batch: dict[str, Any]) -> Any:
    """The first tensor that the model gives."""
    import torch

    return next(x for x in model(**batch).values() if isinstance(x, torch.Tensor))


def called(kind: str) -> tuple[Any, dict[str, Any], Any]:
    """A model, what it is called with, and what it gives. Raises any error if no variant can be made."""
    for variant in VARIANTS:
        try:
            model, batch = made(kind, variant)
            return model, batch, output(model, batch)
        except (ValueError, RuntimeError, KeyError) as error:
            last = error
    raise last


def outcome(kind: str) -> str | None:
    """equal, differs, or the reason of a refusal; None for an architecture that is not tried."""
    import torch

    import attnbench.hf

    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model, batch, exact = called(kind)
        except Exception as error:
            if len(sys.argv) > 2:
                print(f"{kind}: not tried: {type(error).__name__}: {error!s:.200}")
            return None
        try:
            with attnbench.hf.attention(model, "softmax"):
                swapped = output(model, batch)
        except attnbench.Misuse as error:
            if len(sys.argv) > 2:
                print(f"{kind}: {error}")
            return next((reason for words, reason in REASONS.items() if words in str(error)), str(error))
        if bool((swapped - exact).norm() > CLOSE * exact.norm()):
            model.set_attn_implementation(
                "eager"
            )  # PaliGemma without images: sdpa drops the causal mask, eager does not
            exact = output(model, batch)
        return "equal" if bool((swapped - exact).norm() <= CLOSE * exact.norm()) else "differs"


def outcomes(kinds: list[str] | None = None) -> dict[str, str]:
    """By architecture, those that are tried."""
    import transformers
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

    transformers.logging.set_verbosity_error()
    found = {kind: outcome(kind) for kind in kinds or sorted(MODEL_MAPPING_NAMES)}
    return {kind: said for kind, said in found.items() if said is not None}


def listed(found: dict[str, str]) -> str:
    """The part of the page."""
    import transformers

    refused = {reason: [kind for kind, said in found.items() if said == reason] for reason in REASONS.values()}
    equal = [kind for kind, said in found.items() if said == "equal"]
    lines = [
        f"Of transformers {transformers.__version__}, {len(equal)} architectures are equal to their own output, and "
        f"{len(found) - len(equal)} are refused:",
        "",
        "| outcome | architectures |",
        "|---|---|",
        f"| equal to 1e-5 | {', '.join(equal)} |",
        *(f"| refused: {reason} | {', '.join(kinds)} |" for reason, kinds in refused.items() if kinds),
    ]
    return "\n".join(lines) + "\n"


def on_page() -> str:
    """The list as the page has it."""
    return PAGE.read_text().partition(BEGIN)[2].partition(END)[0]


def main() -> None:
    """Writes the list, or prints some outcomes."""
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.path.insert(0, str(Path(sys.argv[1]).resolve() / "python"))
    if len(sys.argv) > 2:
        for kind, said in outcomes(sys.argv[2:]).items():
            print(f"{kind}: {said}")
        return
    found = outcomes()
    wrong = {kind: said for kind, said in found.items() if said != "equal" and said not in REASONS.values()}
    if wrong:
        sys.exit(f"architectures.py: neither equal nor refused for a known reason: {wrong}")
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(before + BEGIN + listed(found) + END + rest.partition(END)[2])


if __name__ == "__main__":
    main()
