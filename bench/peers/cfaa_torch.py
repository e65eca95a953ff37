"""The same model in PyTorch, from the arrays of `cfaa_gpu train --trace`.

    cfaa_gpu train data --trace trace --trace-steps 3 --set train.precision=double ...
    python bench/peers/cfaa_torch.py trace                 # every array, loss and gradient compared
    python bench/peers/cfaa_torch.py trace --time           # a step, eager and compiled, in seconds

Automatic differentiation with the detached quantities of the method held fixed (Psi, plans, Phi,
alpha_q, epsilon_q); dropout's mask is read off the traced hidden units, since its random numbers are
Philox's. Exit code 1 where something differs by more than 1e-9 (double) or 1e-4 (float) of its norm.
"""

import argparse
import glob
import json
import math
import struct
import sys
import time

import numpy as np
import torch

DTYPES = {"F32": np.float32, "F64": np.float64, "I32": np.int32, "I64": np.int64}


def read_safetensors(path):
    """Without the library, so that the check needs NumPy and PyTorch only."""
    data = open(path, "rb").read()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    arrays = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        arrays[name] = np.frombuffer(data[begin:end], DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return arrays, header.get("__metadata__", {})


# ---- the alignment losses -----------------------------------------------------------------------

def typical_samples(z, alpha, k, iterations):
    n = z.shape[0]
    position = ((torch.arange(k, dtype=torch.float64) + 0.5) * n / k - 0.5).clamp(0, n - 1)
    low = position.floor().long()
    high = (low + 1).clamp(max=n - 1)
    weight = (position - low).to(z.dtype)[:, None]
    with torch.no_grad():
        ordered = z.sort(dim=0).values
        m = ordered[low] * (1 - weight) + ordered[high] * weight
        for _ in range(iterations):
            psi = torch.softmax(-(z[:, None, :] - m[None]) ** 2 / alpha, dim=1)
            total = psi.sum(0)
            m = torch.einsum("nkd,nd->kd", psi, z) / total
    return torch.einsum("nkd,nd->kd", psi, z) / total


def vertical(pairs, options):
    sources, targets = [], []
    for source, target in pairs:
        k = options["k"] or min(source.shape[0], target.shape[0]) // 2
        alpha = options["alpha"]
        if options["alpha_scale"] == "relative":
            alpha = alpha * (source.detach().var(0, unbiased=False)
                             + target.detach().var(0, unbiased=False)) / 2
        sources.append(typical_samples(source, alpha, k, options["typical_iterations"]).T)
        targets.append(typical_samples(target, alpha, k, options["typical_iterations"]).T)
    # The attributes of users and items, as one batch of problems
    m_source, m_target = torch.cat(sources), torch.cat(targets)
    cost = (m_source[:, :, None] - m_target[:, None, :]) ** 2
    with torch.no_grad():
        scaled = cost / (options["epsilon"] * cost.mean((1, 2), keepdim=True))
        log_weight = -math.log(k)
        f, g = torch.zeros_like(m_source), torch.zeros_like(m_target)
        for _ in range(options["sinkhorn_iterations"]):
            f = log_weight - torch.logsumexp(g[:, None, :] - scaled, dim=2)
            g = log_weight - torch.logsumexp(f[:, :, None] - scaled, dim=1)
        plan = torch.exp(f[:, :, None] + g[:, None, :] - scaled)
    return (plan * cost).sum() / sources[0].shape[0]


def slim(z, options):
    d = z.shape[1]
    z = z.double()
    identity = torch.eye(d, dtype=z.dtype)
    gram = z.T @ z
    nu = options["nu"]
    if options["nu_scale"] == "relative":
        nu = nu * gram.detach().diagonal().mean()
    phi = identity
    for i in range(options["slim_iterations"]):
        xi = phi + phi.T
        theta = torch.linalg.inv(gram + nu * xi)
        gamma = (1 - nu * (theta @ xi).diagonal()) / theta.diagonal()
        b = identity - nu * theta @ xi - theta * gamma
        if i + 1 < options["slim_iterations"]:
            with torch.no_grad():
                values, vectors = torch.linalg.eigh(b @ b.T + options["delta"] * identity)
                phi = (vectors * values.rsqrt()) @ vectors.T
    return b


def horizontal(pairs, options):
    loss = 0
    for source, target in pairs:
        factors, traces = [], 0
        for z in (source, target):
            b = slim(z, options).to(z.dtype)
            d = b.shape[0]
            a = (b.abs() + b.abs().T) / 2 + options["graph_floor"]
            a = a - torch.diag(a.diagonal())
            laplacian = torch.diag(a.sum(1)) - a
            sigma = torch.linalg.inv(laplacian + 1.0 / d)
            factors.append(torch.linalg.cholesky((sigma + sigma.T) / 2))
            traces = traces + sigma.trace()
        loss = loss + traces - 2 * torch.linalg.matrix_norm(factors[0].T @ factors[1], "nuc")
    return loss


# ---- the losses of ESAM, DARec and Rec-DAN --------------------------------------------------------

def coral(pairs):
    loss = 0
    for source, target in pairs:
        difference = torch.cov(source.T) - torch.cov(target.T)
        loss = loss + (difference ** 2).sum() / source.shape[1] ** 2
    return loss


def center(items, label, weight, n, options):
    """Row q < n and its negatives are a query; its items gather by label on the unit sphere."""
    x = torch.nn.functional.normalize(items, eps=0)
    queries = torch.arange(n)[:, None]
    negatives = items.shape[0] // n - 1
    rows = torch.cat([queries, n + queries * negatives + torch.arange(negatives)], 1)
    loss, centres, counts = 0, [], []
    for of_class in (label[rows] <= 0.5, label[rows] > 0.5):
        member = (of_class & (weight[rows] != 0)).to(x.dtype)
        count = member.sum(1, keepdim=True)
        centre = (member[..., None] * x[rows]).sum(1) / count.clamp(min=1)
        spread = ((x[rows] - centre[:, None]) ** 2).sum(2)
        loss = loss + (member * torch.relu(spread - options["inner"])).sum()
        centres.append(centre)
        counts.append(count[:, 0])
    both = (counts[0] > 0) & (counts[1] > 0)
    apart = ((centres[0] - centres[1]) ** 2).sum(1)
    return (loss + (both * torch.relu(options["outer"] - apart)).sum()) / n


def self_training(score, options):
    p = torch.sigmoid(score)
    sure = ((p < options["low"]) | (p > options["high"])).detach()
    return (sure * p * torch.nn.functional.softplus(-score)).sum() / sure.sum().clamp(min=1)


def adversary(pairs, parameters, options):
    """L of the discriminators, and what is added to the objective beside the embeddings' part: the
    layers descend L, the embeddings weight times its reverse, or L with the labels exchanged."""
    if options["input"] == "pair":
        inputs = {"pair": tuple(torch.cat(both, 1) for both in zip(*pairs))}
    else:
        inputs = dict(zip(("user", "item"), pairs))

    def entropy(which, x, detached, source_label):
        for i in range(len(options["layers"]) + 1):
            weight, bias = (parameters[f"adversary.{which}.layer{i}.{part}"]
                            for part in ("weight", "bias"))
            if detached:
                weight, bias = weight.detach(), bias.detach()
            x = x @ weight.T + bias
            x = torch.relu(x) if i < len(options["layers"]) else x
        n = x.shape[0] // 2
        label = torch.full_like(x[:, 0], 1 - source_label)
        label[:n] = source_label
        return torch.nn.functional.binary_cross_entropy_with_logits(x[:, 0], label)

    layers, embeddings = 0, 0
    for which, (source, target) in inputs.items():
        layers = layers + entropy(which, torch.cat([source, target]).detach(), False, 1)
        source = source.detach() if options["against"] == "target" else source
        both = torch.cat([source, target])
        if options["goal"] == "confuse":
            embeddings = embeddings + entropy(which, both, True, 0)
        else:
            embeddings = embeddings - entropy(which, both, True, 1)
    return layers, embeddings


# ---- the model ----------------------------------------------------------------------------------

TOWERS = ["source.user", "source.item", "target.user", "target.item"]


class Model:
    def __init__(self, arrays, metadata):
        self.arrays, self.config = arrays, json.loads(metadata["config"])
        # A loss that does not count in the step's phase leaves no value.
        self.weights = {name[len("weight."):]: float(value) for name, value in metadata.items()
                        if name.startswith("weight.") and "loss." + name[len("weight."):] in arrays}
        self.parameters = {
            name[len("before."):]: torch.tensor(value.copy(), requires_grad=True)
            for name, value in arrays.items()
            if name.startswith("before.") and not name.startswith("before.adam.")
        }
        self.dtype = next(iter(self.parameters.values())).dtype
        self.batch = {name: torch.tensor(value) for name, value in arrays.items()
                      if name.startswith(("batch.", "hidden", "words.", "x."))}
        for tower in TOWERS:
            name = f"batch.{tower}.review"
            if name in self.batch:
                self.batch[name] = self.batch[name].to(self.dtype)

    def layer(self, tower, index):
        prefix = tower
        if self.config["model"]["towers"] == "shared":
            prefix = tower.split(".")[1]
        return [self.parameters.get(f"{prefix}.layer{index}.{part}") for part in ("weight", "bias")]

    def bag(self, tower, part):
        name = f"batch.{tower}.{part}"
        if name + ".index" not in self.batch:
            return None
        return torch.nn.functional.embedding_bag(
            self.batch[name + ".index"], self.parameters[f"{tower}.{part}"],
            self.batch[name + ".offset"], mode="sum",
            per_sample_weights=self.batch[name + ".weight"], include_last_offset=True)

    def tower(self, name):
        encoder = self.config["model"].get("encoder")
        if encoder in ("convolution", "word_memory"):
            return self.convolution(name) if encoder == "convolution" else self.word_memory(name)
        parts = [self.bag(name, "id"), self.bag(name, "history")]
        if f"batch.{name}.review" in self.batch:
            parts.append(self.batch[f"batch.{name}.review"])
        skipped = {"none": 0, "id": 1, "id+history": 2}[self.config["model"]["residual"]]
        past, parts = parts[:skipped], parts[skipped:]
        parts = [part for part in parts if part is not None]
        if not parts:
            return sum(past)
        x = torch.cat(parts, 1)
        keep = 1 - self.config["model"]["dropout"]
        for i in range(len(self.config["model"]["layers"])):
            weight, bias = self.layer(name, i)
            x = torch.relu(x @ weight.T + bias)
            if keep < 1:  # a unit that is 0 was off, or dropped: either way no gradient passes
                x = x * (self.batch[f"hidden{i}.{name}"] != 0) / keep
        weight, bias = self.layer(name, len(self.config["model"]["layers"]))
        return x @ weight.T + bias + sum(past)

    def convolution(self, name):
        """Windows of words by torch's conv1d, review by review."""
        options = self.config["model"]["convolution"]
        prefix = name.split(".")[1] if self.config["model"]["towers"] == "shared" else name
        window, filters = options["window"], options["filters"]
        words = self.batch[f"words.{name}"]
        # (window F, width) as conv1d wants it: (F, width, window)
        kernel = self.parameters[f"{prefix}.filters.weight"].reshape(window, filters, -1)
        kernel, bias = kernel.permute(1, 2, 0), self.parameters[f"{prefix}.filters.bias"][0]
        offset, word = (self.batch[f"batch.{name}.text.{part}"] for part in ("offset", "word"))
        bags = self.batch[f"batch.{name}.reviews.offset"].tolist()
        index = self.batch[f"batch.{name}.reviews.index"].long()
        texts = []
        for e in range(int(index.max()) + 1 if len(index) else 0):
            x = words[word[offset[e]:offset[e + 1]].long()].T
            x = torch.nn.functional.pad(x, (0, max(window - x.shape[1], 0)))
            texts.append(torch.relu(torch.nn.functional.conv1d(x, kernel, bias)).amax(1))
        texts = torch.stack(texts)
        logit = None
        if options["pooling"] == "attention":
            q = torch.relu(self.bag(name, "counterpart")[:len(texts)])
            hidden = torch.cat([texts, q], 1) @ self.parameters[f"{prefix}.attention.weight"].T
            hidden = torch.relu(hidden + self.parameters[f"{prefix}.attention.bias"])
            logit = hidden @ self.parameters[f"{prefix}.logit.weight"][0]
        rows = []
        for begin, end in zip(bags, bags[1:]):
            own = index[begin:end]
            if len(own) == 0:
                rows.append(torch.zeros(filters, dtype=self.dtype))
            elif logit is None:
                rows.append(texts[own].amax(0))
            else:
                rows.append(torch.softmax(logit[own], 0) @ texts[own])
        x = torch.stack(rows)
        keep = 1 - self.config["model"]["dropout"]
        if keep < 1:
            x = x * (self.batch[f"x.{name}"] != 0) / keep
        weight, bias = self.layer(name, 0)
        z = x @ weight.T + bias
        if self.config["model"]["scorer"] == "gated_product":  # the bias of a user or an item
            z = torch.nn.functional.pad(z, (0, 1))
        own = self.bag(name, "id")
        return z if own is None else z + own

    def word_memory(self, name):
        """The id's own row, and its words weighed by how well their keys fit a second row of it."""
        keys, words = self.parameters[f"{name}.key"], self.batch[f"words.{name}"]
        bags = self.batch[f"batch.{name}.key.offset"].tolist()
        index = self.batch[f"batch.{name}.key.index"].long()
        ids = self.batch[f"batch.{name}.id.index"].long()
        query = self.parameters[f"{name}.query"][ids]
        rows = []
        for r, (begin, end) in enumerate(zip(bags, bags[1:])):
            own = index[begin:end]
            share = torch.softmax(keys[own] @ query[r], 0)
            rows.append(share @ words[own])  # zeros of no words
        return torch.cat([self.parameters[f"{name}.id"][ids], torch.stack(rows)], 1)

    def scores(self, z):
        d = z.shape[1] // 2
        kind = self.config["model"]["scorer"]
        score = torch.zeros(z.shape[0], dtype=self.dtype)
        if kind != "dot" and self.config["model"].get("scorer_dropout", 0) > 0:
            sys.exit("model.scorer_dropout must be 0: its random numbers are not in the trace")
        if kind == "fm":
            x, factors = torch.relu(z), self.parameters["scorer.factors.weight"]
            pairs = ((x @ factors.T) ** 2 - (x ** 2) @ (factors ** 2).T).sum(1) / 2
            linear = x @ self.parameters["scorer.linear.weight"][0]
            return self.parameters["scorer.bias"][0, 0] + linear + pairs
        if kind == "gated_product":
            product = torch.relu(z[:, :d - 1] * z[:, d:-1])
            score = product @ self.parameters["scorer.product.weight"][0]
            return score + self.parameters["scorer.bias"][0, 0] + z[:, d - 1] + z[:, -1]
        if "mlp" in kind:
            x, count = z, len(self.config["model"]["scorer_layers"])
            for i in range(count + 1):
                x = x @ self.parameters[f"scorer.layer{i}.weight"].T
                x = x + self.parameters[f"scorer.layer{i}.bias"]
                x = torch.relu(x) if i < count else x
            score = score + x[:, 0]
        if "dot" in kind:
            score = score + (z[:, :d] * z[:, d:]).sum(1)
        return score

    def losses(self, keep_gradient_of_z=False):
        towers = {name: self.tower(name) for name in TOWERS if self.trains(name.split(".")[0])}
        domains = [torch.cat([towers[f"{domain}.user"], towers[f"{domain}.item"]], 1)
                   for domain in ("source", "target") if self.trains(domain)]
        z = torch.cat(domains)
        if keep_gradient_of_z:
            z.retain_grad()
        d, n = z.shape[1] // 2, self.config["train"]["batch_size"]
        first = domains[0].shape[0] if len(domains) == 2 else 0
        score = self.scores(z)
        offsets = [self.batch[f"batch.{domain}.offset"] for domain in ("source", "target")
                   if f"batch.{domain}.offset" in self.batch]
        if offsets:
            score = score + torch.cat(offsets)
        result = {"z": z, "score": score, "loss.score": [], "objective": 0}
        for domain, part in (("source", score[:first]), ("target", score[first:])):
            if not self.trains(domain):
                result["loss.score"].append(torch.zeros((), dtype=self.dtype))
                continue
            label = self.batch[f"batch.{domain}.label"]
            weight = self.batch[f"batch.{domain}.weight"]
            if self.config["train"]["loss"] == "bce":
                value = torch.nn.functional.binary_cross_entropy_with_logits(
                    part, label, weight, reduction="sum")
            else:
                negatives = part[n:].reshape(n, -1)
                weights = weight[n:].reshape(n, -1)
                value = (weights * torch.nn.functional.softplus(negatives - part[:n, None])).sum()
            result["loss.score"].append(value)
        result["objective"] = sum(result["loss.score"])
        pairs = [(z[:n, s * d:(s + 1) * d], z[first:first + n, s * d:(s + 1) * d]) for s in (0, 1)]
        options = self.config.get("losses", {})
        for name, weight in self.weights.items():
            embeddings = None
            if name in ("vertical", "horizontal"):
                loss = {"vertical": vertical, "horizontal": horizontal}[name]
                value = loss(pairs, self.config["alignment"])
            elif name == "coral":
                value = coral(pairs)
            elif name == "center":
                value = center(z[:first, d:], self.batch["batch.source.label"],
                               self.batch["batch.source.weight"], n, options[name])
            elif name == "self_training":
                value = self_training(score[first:], options[name])
            else:
                value, embeddings = adversary(pairs, self.parameters, options[name])
            result["loss." + name] = value
            if embeddings is None:
                result["objective"] = result["objective"] + weight * value
            else:
                result["objective"] = result["objective"] + value + weight * embeddings
        return result

    def trains(self, domain):
        return self.config["train"].get("domains", "both") in ("both", domain)


def difference(ours, theirs):
    ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    scale = max(np.linalg.norm(ours), np.linalg.norm(theirs))
    return np.linalg.norm(ours - theirs.reshape(ours.shape)) / scale if scale > 0 else 0.0


def check(path):
    arrays, metadata = read_safetensors(path)
    model = Model(arrays, metadata)
    tolerance = 1e-9 if model.dtype == torch.float64 else 1e-4
    result = model.losses(keep_gradient_of_z=True)
    result["objective"].backward()

    found = {"z": result["z"].detach().numpy(), "score": result["score"].detach().numpy(),
             "gradient.z": result["z"].grad.numpy(),
             "loss.score": np.array([float(value.detach()) for value in result["loss.score"]])}
    for name in model.weights:
        found["loss." + name] = result["loss." + name].detach().numpy()
    for name, parameter in model.parameters.items():
        gradient = (torch.zeros_like(parameter) if parameter.grad is None
                    else parameter.grad).numpy()
        lists = name.replace(".query", ".id")  # both are the ids' own rows
        touched = arrays.get(f"batch.{lists}.touched")
        ours = arrays["gradient." + name]
        if touched is not None:
            gradient, arrays["gradient." + name] = gradient[touched], ours[:len(touched)]
        found["gradient." + name] = gradient
    worst = max((difference(arrays[name], value), name) for name, value in found.items())
    print(f"{path}: {len(found)} arrays, largest difference {worst[0]:.2e} ({worst[1]}), "
          f"allowed {tolerance:g}")
    return worst[0] <= tolerance


def seconds(work, at_least=3.0):
    work()
    times = []
    while sum(times) < at_least or len(times) < 3:
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2]


def time_step(path, compiled):
    """Seconds of a step: zero_grad, forward, backward, AdamW. The batch is a ready set of tensors: what
    ours costs to assemble is not counted here. Tables are those of the traced data set; where that is
    small their dense gradients and Adam cost next to nothing, as SparseAdam would on large ones."""
    arrays, metadata = read_safetensors(path)
    model = Model(arrays, metadata)
    tables = [p for name, p in model.parameters.items() if f"batch.{name}.index" in arrays]
    layers = [p for name, p in model.parameters.items() if f"batch.{name}.index" not in arrays]
    train = model.config["train"]
    optimiser = torch.optim.AdamW(layers + tables, train["learning_rate"],
                                  weight_decay=train["weight_decay"])

    def loss():
        return model.losses()["objective"]

    forward = torch.compile(loss) if compiled else loss

    def step():
        optimiser.zero_grad()
        forward().backward()
        optimiser.step()

    return seconds(step)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("trace", help="the folder of --trace")
    parser.add_argument("--time", action="store_true", help="time a step instead")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    paths = sorted(glob.glob(arguments.trace + "/step-*.safetensors"))
    if not paths:
        sys.exit(f"{arguments.trace}: holds no trace")
    if arguments.time:
        print(f"eager    {time_step(paths[-1], False):.3f} s a step")
        print(f"compiled {time_step(paths[-1], True):.3f} s a step")
        return
    if not all([check(path) for path in paths]):
        sys.exit(1)


if __name__ == "__main__":
    main()
