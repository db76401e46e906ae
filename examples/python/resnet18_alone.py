"""torchvision's ResNet-18 on pictures that it makes up, in one process: no word of Tutti. The guide changes it."""

import torch
import torchvision

torch.manual_seed(0)
images, labels = torch.randn(256, 3, 64, 64), torch.randint(0, 10, (256,))
dataset = torch.utils.data.TensorDataset(images, labels)
loader = torch.utils.data.DataLoader(dataset, batch_size=16, shuffle=True)

model = torchvision.models.resnet18(num_classes=10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
criterion = torch.nn.CrossEntropyLoss()

for epoch in range(2):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch + 1}: loss {loss.item():.3f}")
torch.save(model.state_dict(), "model.pt")
