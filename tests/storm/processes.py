"""Finding the processes of a run, and starting it where it leaves nothing outside its own folder."""

import os
import subprocess

MARK = "TUTTI_STORM"  # in the environment of everything a run starts
RANK_VARIABLES = (b"TUTTI_RANK", b"OMPI_COMM_WORLD_RANK", b"SLURM_PROCID")

# A /dev/shm of its own, so that what a run leaves there is known to be its own.
PRIVATE = ["unshare", "--mount", "--ipc", "sh", "-c", 'mount --bind "$0" /dev/shm && exec "$@"']


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


class Process:
    """One process of a run. `state` is as /proc has it: T is stopped."""

    def __init__(self, pid, environment):
        self.pid = pid
        self.name = read(f"/proc/{pid}/comm").decode(errors="replace").strip()
        stat = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
        self.state = stat[0].decode() if stat else "X"
        self.start = stat[19] if stat else b""  # with the pid, tells a process from a later one of the same number
        self.rank = None
        if self.name.startswith("tutti") or self.name == "exe":
            if self.name.startswith("tutti:"):  # a copy of its launcher, with the launcher's environment
                self.rank = int(self.name.partition(":")[2])
            for variable in () if self.rank is not None else RANK_VARIABLES:
                if variable in environment:
                    self.rank = int(environment[variable])
                    break

    def is_there(self):
        return self.state not in ("Z", "X")

    def __str__(self):
        who = f"rank {self.rank}" if self.rank is not None else self.name
        return f"{who} (pid {self.pid}, {self.state})"


def processes_of(mark, is_prefix=False):
    """All living ones that inherited this mark, or one that begins with it."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        variables = read(f"/proc/{name}/environ").split(b"\0")
        if not any(variable.startswith(wanted + b"-") if is_prefix else variable == wanted for variable in variables):
            continue
        process = Process(int(name), dict(entry.split(b"=", 1) for entry in variables if b"=" in entry))
        if process.is_there():
            found.append(process)
    return found


def send(pid, signal):
    try:
        os.kill(pid, signal)
        return True
    except ProcessLookupError:
        return False


def start(words, mark, output, environment, shm_folder, tmp_folder):
    """Starts a run in a process group of its own; what it says goes to the file `output`."""
    for folder in (shm_folder, tmp_folder):
        os.makedirs(folder, exist_ok=True)
    variables = {**os.environ, **environment, MARK: mark, "TMPDIR": tmp_folder}
    if os.geteuid() == 0:
        words = [*PRIVATE, shm_folder, *words]
    with open(output, "ab") as file:
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, env=variables,
                                start_new_session=True)


def files_below(folder):
    found = []
    for place, _, names in os.walk(folder):
        found += [os.path.relpath(os.path.join(place, name), folder) for name in names]
    return sorted(found)
