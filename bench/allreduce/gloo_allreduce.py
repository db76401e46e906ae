#!/usr/bin/python3
"""All-reduce of float32, in place, by gloo (torch.distributed), measured like allreduce_bench does.

gloo_allreduce.py RANKS BUDGET_S BYTES...
mpirun -np RANKS gloo_allreduce.py RANKS BUDGET_S BYTES...    # ranks on several machines, that meet at $MASTER_ADDR:$MASTER_PORT
Needs a Python with torch: on Debian, /usr/bin/python3 with the package python3-torch.
"""
import json
import multiprocessing
import os
import sys
import tempfile
import time

BATCHES = 5


def pin(rank, ranks):
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) >= ranks:
        os.sched_setaffinity(0, {cpus[rank]})


def run_rank(rank, ranks, budget_s, sizes, meeting):
    pin(rank, ranks)
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=ranks)

    def slowest(mine):
        value = torch.tensor([mine], dtype=torch.float64)
        dist.all_reduce(value, op=dist.ReduceOp.MAX)
        return value.item()

    for size in sizes:
        count = size // 4
        base = (torch.arange(count) % 1021).to(torch.float32)
        data = base + rank
        dist.all_reduce(data)
        if not torch.equal(data, base * ranks + ranks * (ranks - 1) // 2):
            sys.exit(f"gloo_allreduce: wrong sum of {size} bytes")
        data.zero_()
        for _ in range(3):
            dist.all_reduce(data)
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(3):
            dist.all_reduce(data)
        one = slowest((time.perf_counter() - begin) / 3)
        times = int(min(max(budget_s / BATCHES / max(one, 1e-7), 3), 2000))
        samples = []
        for _ in range(BATCHES):
            dist.barrier()
            start = time.perf_counter()
            for _ in range(times):
                dist.all_reduce(data)
            samples.append(slowest((time.perf_counter() - start) / times))
        if rank == 0:
            print(json.dumps({"what": "gloo", "ranks": ranks, "bytes": size, "samples_s": samples}), flush=True)
    dist.barrier()


def main():
    ranks, budget_s, sizes = int(sys.argv[1]), float(sys.argv[2]), [int(a) for a in sys.argv[3:]]
    if "OMPI_COMM_WORLD_RANK" in os.environ:
        return run_rank(int(os.environ["OMPI_COMM_WORLD_RANK"]), ranks, budget_s, sizes, "env://")
    with tempfile.TemporaryDirectory() as folder:
        meeting = "file://" + os.path.join(folder, "meeting")
        processes = [multiprocessing.Process(target=run_rank, args=(r, ranks, budget_s, sizes, meeting))
                     for r in range(ranks)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        sys.exit(0 if all(process.exitcode == 0 for process in processes) else 1)


if __name__ == "__main__":
    main()
