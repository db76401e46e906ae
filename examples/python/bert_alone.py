"""Hugging Face's BERT, from its own first weights, guesses masked words. In one process: python3 bert_alone.py"""

import torch
import transformers

MASK, WORDS, LENGTH = 103, 8192, 64
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
size = {} if device == "cuda" else {"hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 512}
# Each text counts upwards from a word of its own, so there is something to learn.
texts = (torch.randint(0, WORDS, (512, 1)) + torch.arange(LENGTH)) % WORDS
dataset = torch.utils.data.TensorDataset(texts)
loader = torch.utils.data.DataLoader(dataset, batch_size=8, shuffle=True)

model = transformers.BertForMaskedLM(transformers.BertConfig(vocab_size=WORDS, **size)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

for epoch in range(2):
    for (words,) in loader:
        hidden = torch.rand(words.shape) < 0.15
        inputs, labels = words.masked_fill(hidden, MASK), words.masked_fill(~hidden, -100)
        optimizer.zero_grad()
        loss = model(input_ids=inputs.to(device), labels=labels.to(device)).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    print(f"epoch {epoch + 1}: loss {loss.item():.3f}")
