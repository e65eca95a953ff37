"""Domain adaptation in PyTorch: an adversary as in DANN, or the alignment losses in its place.

    python adversary.py            # trains the same encoder three ways, prints the target's accuracy

Two domains of points with ten attributes and the same two classes; the target's attributes are
shifted and scaled, and it has no labels. The encoder learns classes from the source. DANN adds a
network that tells the domains apart and an encoder that fools it (gradients reversed); the
alignment losses ask the same of the encoder without a second network.
"""

import argparse

import torch
from torch import nn

import cfaa.torch


class ReverseGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z):
        return z.view_as(z)

    @staticmethod
    def backward(ctx, grad):
        return -grad


def two_domains(rows, generator):
    """Points (rows, 10) and classes (rows) of the source, then of the target."""
    domains = []
    shift = 0.8 * torch.rand(10, generator=generator)
    for moved in (False, True):
        classes = torch.randint(0, 2, (rows,), generator=generator)
        points = torch.randn(rows, 10, generator=generator) + 0.7 * (2 * classes[:, None] - 1)
        domains.append((1.5 * points + shift if moved else points, classes))
    return domains


def train(method, steps, seed=0):
    """The accuracy on the target of an encoder that was trained by `method`."""
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    (source, labels), (target, hidden) = two_domains(512, generator)
    encoder = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 8))
    classifier, adversary = nn.Linear(8, 2), nn.Sequential(nn.Linear(8, 32), nn.ReLU(),
                                                           nn.Linear(32, 1))
    parameters = [*encoder.parameters(), *classifier.parameters(), *adversary.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=3e-3)
    for _ in range(steps):
        at = torch.randint(0, len(source), (2, 128), generator=generator)
        zs, zt = encoder(source[at[0]]), encoder(target[at[1]])
        loss = nn.functional.cross_entropy(classifier(zs), labels[at[0]])
        if method == "adversary":
            scores = adversary(ReverseGradient.apply(torch.cat([zs, zt]))).squeeze(1)
            domain = torch.cat([torch.zeros(len(zs)), torch.ones(len(zt))])
            loss = loss + nn.functional.binary_cross_entropy_with_logits(scores, domain)
        elif method == "alignment":
            loss = loss + cfaa.torch.vertical_loss(zs, zt, k=32)
            loss = loss + 0.001 * cfaa.torch.horizontal_loss(zs, zt)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        return (classifier(encoder(target)).argmax(1) == hidden).float().mean().item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="an adversary, or the alignment losses")
    parser.add_argument("--steps", type=int, default=200)
    steps = parser.parse_args().steps
    for method in ("source alone", "adversary", "alignment"):
        print(f"{method:<13} {train(method, steps):.3f} of the target's classes found")
