"""Where runs take place: on this machine through shared memory or MPI, in a cluster in a box, under Slurm."""

import os
import queue
import shutil
import subprocess
import threading

import processes

NODES = 5
SLURM_BOX = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../slurm/slurm_box.sh")


class Machine:
    """Ranks on this machine."""

    extra_s = 0  # beyond what other places take to end

    def __init__(self, storm, transport):
        self.storm, self.transport = storm, transport

    def enter(self, trial):
        """Before everything else of a trial."""

    def command(self, trial, words):
        return [self.storm.tutti, "train", "--transport", self.transport, *words]

    def left_behind(self, trial):
        return []

    def leave(self, trial):
        """After everything else."""

    def close(self):
        pass


def run(words, check=True):
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: exit code {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


class Box(Machine):
    """Nodes of a cluster in a box, a rank each, over TCP. As many boxes as there are trials at a time."""

    def __init__(self, storm):
        super().__init__(storm, "box")
        self.free, self.names, self.lock = queue.SimpleQueue(), [], threading.Lock()

    def cluster(self, trial, *words, check=True):
        return run([self.storm.cluster_tool, words[0], "--name", trial.box, *words[1:]], check)

    def enter(self, trial):
        with self.lock:
            if self.free.empty():
                name = f"st{os.getpid()}x{len(self.names)}"
                run([self.storm.cluster_tool, "up", "--name", name, "--nodes", str(NODES), "--rate", "unlimited"])
                self.names.append(name)
                self.free.put(name)
            trial.box = self.free.get()

    def command(self, trial, words):
        hosts = ",".join(f"n{node}" for node in range(trial.case.processes))
        return [self.storm.cluster_tool, "run", "--name", trial.box, "--", self.storm.tutti, "train", "--hosts", hosts,
                *words]

    def namespace(self, trial, node):
        return f"tutti-{trial.box}-n{node}"

    def left_behind(self, trial):
        left = self.cluster(trial, "run", "--all", "--", "find", "/dev/shm", "-type", "f", check=False)
        # On other nodes mpirun's daemon stands in the place of its ssh, which the launcher kills. A real one tidies up.
        return [line for line in left.splitlines() if line.startswith("[n0]") or "/ompi." not in line]

    def leave(self, trial):
        if not hasattr(trial, "box"):
            return
        for words in (("heal", "--all"), ("resume", "--all"), ("kill", "--all"), ("shape", "--all", "--rate", "unlimited"),
                      ("run", "--all", "--", "sh", "-c", "rm -rf /dev/shm/*")):
            self.cluster(trial, *words, check=False)
        self.free.put(trial.box)

    def close(self):
        for name in self.names:
            run([self.storm.cluster_tool, "down", "--name", name], check=False)


class Slurm(Machine):
    """Ranks that srun starts, two to a node, in a Slurm of its own. One at a time: it has few places."""

    extra_s = 35  # what Slurm gives processes to end in, before it kills them

    def __init__(self, storm):
        super().__init__(storm, "slurm")
        self.lock, self.folder = threading.Lock(), None

    def enter(self, trial):
        self.lock.acquire()
        trial.has_slurm = True
        if self.folder is None:
            self.folder = os.path.join(self.storm.folder, "slurm")
            environment = {**os.environ, "CLUSTER_TOOL": self.storm.cluster_tool, "OWNER": str(os.getpid())}
            subprocess.run([SLURM_BOX, "up", self.folder, "3", "3"], env=environment, check=True,
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            with open(os.path.join(self.folder, "name")) as file:
                self.name = file.read().strip()

    def _in_slurm(self, *words):
        return [self.storm.cluster_tool, "run", "--name", self.name, "--node", "n0", "--", "env",
                f"SLURM_CONF={self.folder}/slurm.conf", *words]

    def command(self, trial, words):
        return self._in_slurm("srun", "--mpi=pmix", "--wait=5", "--kill-on-bad-exit=1",
                              f"--ntasks={trial.case.processes}", self.storm.tutti, "train", *words)

    def leave(self, trial):
        if not getattr(trial, "has_slurm", False):
            return
        run(self._in_slurm("scancel", "--user=root", "--full", "--signal=KILL"), check=False)
        for _ in range(100):
            if not run(self._in_slurm("squeue", "--noheader"), check=False).strip():
                break
            run(["sleep", "0.2"])
        self.lock.release()

    def close(self):
        if self.folder:
            environment = {**os.environ, "CLUSTER_TOOL": self.storm.cluster_tool}
            subprocess.run([SLURM_BOX, "down", self.folder], env=environment, check=False)


def find_places(storm):
    """Those that can be used on this machine, and why the others cannot."""
    places, missing = {"shm": Machine(storm, "shm")}, {}
    if shutil.which("mpirun"):
        places["mpi"] = Machine(storm, "mpi")
    else:
        missing["mpi"] = "there is no mpirun"
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    lacks = [name for name in ("ip", "tc", "mpirun") if not shutil.which(name, path=path)]
    if os.geteuid() != 0 or lacks or not os.path.exists(storm.cluster_tool):
        missing["box"] = missing["slurm"] = "needs root, iproute2, openmpi-bin and the target cluster_tool"
        return places, missing
    places["box"] = Box(storm)
    if all(shutil.which(name, path=path) for name in ("munged", "slurmctld", "slurmd", "srun")):
        places["slurm"] = Slurm(storm)
    else:
        missing["slurm"] = "needs munge and slurm-wlm"
    return places, missing
