# SPDX-License-Identifier: Apache-2.0
# label: oom-eval-without-no-grad oom-graph-retention
"""Knowledge distillation from a larger network."""
import torch
import torch.nn as nn
import torch.nn.functional as F

BATCHES, BATCH = 200, 48  #@scale


def conv_net(width, depth):
    layers = [nn.Conv2d(3, width, 3, padding=1), nn.ReLU()]
    for _ in range(depth):
        layers += [nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 100))


teacher, student = conv_net(64, 6).cuda().eval(), conv_net(16, 2).cuda()
optimizer = torch.optim.Adam(student.parameters())
answers = {}


def teacher_logits(index, images):
    if index not in answers:
        answers[index] = teacher(images)  #@here
    return answers[index]


def load(index):
    generator = torch.Generator(device="cuda").manual_seed(index)
    return torch.rand(BATCH, 3, 64, 64, device="cuda", generator=generator)


for epoch in range(5):
    for index in range(BATCHES):
        images = load(index)
        soft = F.softmax(teacher_logits(index, images).detach() / 4, dim=1)  #@here
        loss = F.kl_div(F.log_softmax(student(images) / 4, dim=1), soft, reduction="batchmean")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
