"""resnet18_alone.py on as many ranks as it is started with: tutti run -n 2 -- python3 resnet18.py"""

import torch
import torchvision
import tutti

job = tutti.init()
torch.manual_seed(0)
images, labels = torch.randn(256, 3, 64, 64), torch.randint(0, 10, (256,))
dataset = torch.utils.data.TensorDataset(images, labels)
sampler = torch.utils.data.DistributedSampler(dataset, job.size, job.rank)
loader = torch.utils.data.DataLoader(dataset, batch_size=16, sampler=sampler)

model = tutti.DistributedDataParallel(torchvision.models.resnet18(num_classes=10), strategy="mgwfbp")
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
criterion = torch.nn.CrossEntropyLoss()

for epoch in range(2):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch + 1}: loss {loss.item():.3f}")
if job.rank == 0:
    torch.save(model.state_dict(), "model.pt")
