#!/usr/bin/env python3
"""GoogLeNet image classification in evaluation mode: four branches side by side in every block.

Random weights (no download) and synthetic images; prints the predicted classes of every batch.
"""
import argparse

import torch

import vision


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=4, help="number of batches (steps)")
    parser.add_argument("--batch-size", type=int, default=2, help="images per batch")
    parser.add_argument("--size", type=int, default=96, help="image height and width in pixels")
    args = parser.parse_args()

    torch.manual_seed(1)
    model = vision.models().googlenet(weights=None, aux_logits=False, init_weights=False).eval()
    images = torch.randn(args.batches, args.batch_size, 3, args.size, args.size)
    with torch.no_grad():
        for batch, image in enumerate(images):
            logits = model(image)
            classes = logits.argmax(dim=1)
            print(f"batch {batch}: classes {classes.tolist()} score {logits.max().item():.4f}")


if __name__ == "__main__":
    main()
