"""One fault from start to end: the run, the fault, the end, the resumed run, and what has to hold."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import time

import case as cases
import processes
from moment import Timings

GRACE_S = 10  # beyond the time-out
RESUMED_LIMIT_S = 240


class Trial:
    def __init__(self, storm, seed, transport, fault, case):
        self.storm, self.seed, self.transport, self.fault, self.case = storm, seed, transport, fault, case
        self.run_name = f"fault-{seed}"
        self.mark = f"{storm.mark}-{seed}"
        self.folder = os.path.join(storm.folder, f"{fault.kind}-{transport}-{seed}")
        shutil.rmtree(self.folder, ignore_errors=True)
        self.runs = os.path.join(self.folder, "runs")
        self.run_folder = os.path.join(self.runs, self.run_name)
        self.records_file = os.path.join(self.run_folder, "records.jsonl")
        self.shm = f"/dev/shm/{self.mark}" if os.geteuid() == 0 else os.path.join(self.folder, "shm")
        self.tmp = os.path.join(self.folder, "tmp")
        self.place = storm.places[transport]
        self.problems, self.notes = [], []
        self.struck = self.ended = self.named = self.equal = None
        self.left = []
        self.excused = None  # a process that nobody can expect to end by itself
        self.code = None
        self.output = ""

    # --- words for faults ---

    def note(self, text):
        self.notes.append(text)

    def expect_code(self, *codes):
        if self.code not in codes:
            self.problems.append(f"exit code {self.code} instead of {' or '.join(str(int(code)) for code in codes)}")

    def kill_all(self):
        """Everything of this run, until nothing is left."""
        for _ in range(200):
            found = processes.processes_of(self.mark)
            if not found:
                return
            for process in found:
                processes.send(process.pid, signal.SIGKILL)
            time.sleep(0.02)

    # --- the parts of a trial ---

    def run(self):
        os.makedirs(self.folder)
        self.timings, self.weights = self.storm.references.get(self.case)
        try:
            self.place.enter(self)
            self.fault.before(self)
            self._disturb()
            if self.struck:
                self._after()
        finally:
            self.kill_all()
            if self.struck:
                self._look_for_leftovers()
            self.fault.clean_up(self)
            self.place.leave(self)
            shutil.rmtree(self.shm, ignore_errors=True)
            if not self.problems:
                shutil.rmtree(self.folder, ignore_errors=True)

    def command(self, *more):
        words = [*self.case.words(), "--runs", self.runs, *more]
        if self.case.restarts and "--name" in more:  # what --max-restarts needs
            words += ["--max-restarts", str(self.case.restarts)]
        return self.place.command(self, words)

    def _start(self, words, output, environment):
        with open(os.path.join(self.folder, "commands"), "a") as file:
            file.write(" ".join(words) + "\n")
        return processes.start(words, self.mark, output, environment, self.shm, self.tmp)

    def _disturb(self):
        output = os.path.join(self.folder, "output")
        self.process = self._start(self.command("--name", self.run_name), output, self.fault.environment(self))
        try:
            self.struck = self.fault.strike(self)
            limit = cases.COMM_TIMEOUT_S + GRACE_S + self.timings.whole + self.place.extra_s
            if self.fault.survives or self.case.restarts or self.excused:
                limit += 3 * self.timings.whole + 5
            self._wait_for_all(limit)
        finally:
            self.kill_all()
            self.code = self.process.wait()
            self.output = processes.read(output).decode(errors="replace")

    def _wait_for_all(self, limit):
        start = time.monotonic()
        while time.monotonic() - start < limit:
            if not self.excused and self.process.poll() is None:
                time.sleep(0.05)  # looking for all others takes a while
                continue
            running = [process for process in processes.processes_of(self.mark) if process.pid != self.excused]
            if not running and self.excused:
                processes.send(self.excused, signal.SIGCONT)
                self.excused, start, limit = None, time.monotonic(), GRACE_S
            elif not running:
                self.ended = True
                return
            time.sleep(0.2)
        self.ended = False
        self.problems.append(f"{limit:.0f} s later there are still " +
                             ", ".join(str(process) for process in processes.processes_of(self.mark)))

    def _after(self):
        if self.ended:
            self.fault.judge(self)
        if self.named is False:
            self.problems.append("what happened, and to whom, is not said")
        if self.code == 0:
            self._compare()
            return
        self.fault.between(self)
        self._resume()
        if self.named is False and not self.problems:
            self.problems.append("the damage is not said")

    def _resume(self):
        ways = ["resume", "resume by name alone", "auto-resume"]
        way = self.fault.draw.pick("way", ways)
        if not cases.checkpoints(self.run_folder):
            way = "auto-resume"
        self.note(way)
        if way == "auto-resume":
            words = self.command("--name", self.run_name, "--auto-resume")
        elif way == "resume":
            words = self.command("--resume", self.run_name)
        else:
            words = self.place.command(self, ["--runs", self.runs, "--resume", self.run_name])
        output = os.path.join(self.folder, "output-resumed")
        process = self._start(words, output, {})
        try:
            code = process.wait(timeout=RESUMED_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.problems.append(f"the resumed run has not ended after {RESUMED_LIMIT_S} s")
            self.kill_all()
            code = process.wait()
        text = processes.read(output).decode(errors="replace")
        if self.fault.judge_resumed(self, code, text):
            return
        if code != 0:
            last = text.strip().splitlines()[-1:] or ["(nothing)"]
            self.problems.append(f"the run cannot be resumed ({way}), exit code {code}: {last[0]}")
            self.equal = False
            return
        self._compare()

    def _compare(self):
        records, _ = cases.read_records(self.records_file)
        summaries = [record for record in records if record["record"] == "summary"]
        said = summaries[-1]["weights_sha256"] if summaries else None
        file = processes.read(os.path.join(self.run_folder, "model.safetensors"))
        self.equal = (said, hashlib.sha256(file).hexdigest()) == self.weights
        if not self.equal:
            self.problems.append("the weights at the end are not those of the undisturbed run"
                                 if said else "there is no summary at the end")

    def _look_for_leftovers(self):
        odd = [name for name in processes.files_below(self.run_folder) if ".tmp" in name or "writing" in name]
        if self.equal == "refused":  # a run that is refused changes nothing
            odd = []
        self.left += [os.path.join(self.run_name, name) for name in odd]
        self.left += ["/dev/shm/" + name for name in processes.files_below(self.shm)]
        self.left += ["/tmp/" + name for name in processes.files_below(self.tmp)]
        self.left += self.place.left_behind(self)
        if self.fault.kills_launcher:  # with its mpirun: docs/reference/limits.md says that these stay
            self.left = [name for name in self.left if "/ompi." not in name and "/vader_segment." not in name]
        if self.left:
            self.problems.append("left behind: " + ", ".join(self.left[:6]))


class References:
    """Undisturbed runs: their weights and how long their parts take. Each is made once for a program."""

    def __init__(self, storm):
        self.storm = storm
        self.known, self.locks = {}, storm.locks

    def get(self, case):
        """Timings, and (hash of the weights, hash of the file)."""
        wanted = case.reference()
        with self.locks[wanted.key()]:
            if wanted.key() not in self.known:
                self.known[wanted.key()] = self._recall(wanted)
            return self.known[wanted.key()]

    def _recall(self, case):
        """A folder that is used again (--folder) has those of earlier storms with the same program."""
        program = os.stat(self.storm.tutti)
        name = f"reference-{case.key()}-{program.st_mtime_ns}-{program.st_size}.json"
        path = os.path.join(self.storm.folder, name)
        try:
            with open(path) as file:
                started, ended, records, weights = json.load(file)
        except (OSError, ValueError):
            started, ended, records, weights = self._make(case)
            with open(path + ".new", "w") as file:
                json.dump([started, ended, records, weights], file)
            os.rename(path + ".new", path)
        return Timings(started, ended, records), tuple(weights)

    def _make(self, case):
        folder = os.path.join(self.storm.folder, "reference-" + case.key())
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        mark = f"{self.storm.mark}-{case.key()}"
        shm = f"/dev/shm/{mark}"
        output = os.path.join(folder, "output")
        words = self.storm.places["shm"].command(None, [*case.words(), "--runs", folder, "--name", "run"])
        started = time.time()
        code = processes.start(words, mark, output, {}, shm, folder + "/tmp").wait()
        ended = time.time()
        shutil.rmtree(shm, ignore_errors=True)
        records, _ = cases.read_records(os.path.join(folder, "run", "records.jsonl"))
        if code != 0 or not records or records[-1]["record"] != "summary":
            raise RuntimeError(f"the undisturbed run failed with {code}: {' '.join(words)}\n" +
                               processes.read(output).decode(errors="replace")[-2000:])
        file = hashlib.sha256(processes.read(os.path.join(folder, "run", "model.safetensors"))).hexdigest()
        shutil.rmtree(folder)
        return started, ended, records, [records[-1]["weights_sha256"], file]
