"""A row of attention whose keys are all masked gives zeros, not NaN."""

import torch
import torch.nn.functional as F


def inputs():
    mask = torch.ones(2, 1, 3, 8, dtype=torch.bool)
    mask[1, 0, 1] = False
    return torch.rand(2, 1, 3, 8), torch.rand(2, 1, 8, 8), mask


def run(q, k, mask):
    return F.scaled_dot_product_attention(q, k, k, attn_mask=mask)
