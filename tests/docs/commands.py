#!/usr/bin/env python3
"""The commands of README.md and docs/: each is run in a small form, or checked, so that documentation cannot rot.

    commands.py TUTTI [ROOT]       TUTTI is the program, ROOT the tree whose pages are read
    commands.py --list TUTTI       prints what becomes of each command, and runs none
    commands.py --costs TUTTI      also prints which took longest

A command is a line of an indented or fenced block that starts with tutti, ./tutti or build/…/tutti, or that gives one of
these to a launcher (mpirun, srun, torchrun, `tutti slurm --`, `tutti cluster run --`, sbatch --wrap). The first line of
RULES that fits a command says what becomes of it:

    Run(more)       run as it stands, with these words after it: `tutti` takes the last value of an option
    Check(why)      not run; its command, its options, and the names it gives to some of them must be there
    Form()          a form to fill in (RUN, [OPTIONS], …): its options must be there
    Script(why)     a word of the ./tutti script, which must know it

A command that no line fits is a mistake: say here how it is run, or why not.
"""
import glob
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile

TINY = "--train-size 96 --test-size 32 --batch 4 --epochs 1 --threads 1 --log-every 4"


class Run:
    def __init__(self, more="", codes=(0,)):
        self.more, self.codes = more.split(), codes


class Check:
    def __init__(self, why):
        self.why = why


class Form(Check):
    def __init__(self):
        super().__init__("a form")


class Script:
    def __init__(self, why):
        self.why = why


# The first that fits. What is run goes through the pages in their order, so a run that a command reports on is made by one
# before it; SETUP makes those that no page makes.
RULES = [
    (r"^(test|build|lint|coverage|doxygen|python|clean|install|package)\b", Script("builds, tests or installs")),
    (r"[A-Z]{4,}|\bRUN\b|\[|\bNAME\b|\bM --cluster|FILE|--strategy S\b|--compare A B|RUN…", Form()),
    (r"^cluster\b", Check("needs root; tests/netbox and tests/cli do it")),
    (r"--hosts\b", Check("needs other machines")),
    (r"--transport (nccl|mpi)|--device cuda|--precision bf16", Check("needs GPUs or mpirun")),
    (r"^train .*--plugin", Check("needs a plug-in; tests/examples does it")),
    (r"^train .*--recipe list", Run()),
    (r"^train .*(--data (image-|csv|text-)|…|--weights|--freeze|--keep-best)", Check("needs files or runs of one's own; tests/cli/train_data_test and trained_models_test have them")),
    (r"^train --(verbose|quiet|tensorboard)\b", Check("like others that are run")),
    (r"^(eval|predict|export)\b", Check("needs a trained model; tests/cli and tests/inference have one")),
    (r"^watch\b", Check("serves until Ctrl-C; tests/watch does it")),
    (r"^runs rm\b", Check("would remove what the next commands need; tests/runs does it")),
    (r"^runs compare first again", Check("a run that no page makes")),
    (r"^runs\b", Run()),
    (r"^completion\b", Run()),
    (r"^train .*(--recipe|--data (mnist|text|folder-)|--config)", Check("needs data that has to be fetched")),
    (r"^train .*--resume long --(epochs|ranks)", Run("--test-size 32 --threads 1 --epochs 3")),
    (r"^train .*--resume", Check("goes on where another command was killed; tests/cli/resume_test does it")),
    (r"^train .*(--checkpoint-minutes|--max-restarts)", Check("the same again, with restarts")),
    (r"^train .*--name long", Run(TINY + " --checkpoint-steps 4")),
    (r"^train .*--strategy auto", Check("searches for seconds: SETUP has its runs")),
    (r"^train .*--name (one|bsp|dear)-\$i", Run(TINY)),
    (r"^train .*--name (digits|one|two)\b", Run(TINY)),
    (r"^train .*--strategy \S+-ps", Run(TINY + " --steps 4 --no-eval")),
    (r"^train .*--trace", Run(TINY + " --steps 24 --no-eval")),
    (r"^train( --(model|strategy|ranks|batch|steps|link-\S+|threads|name|no-eval|data synthetic)\b.*)?$", Check("like others that are run")),
    (r"^models\b", Run()),
    (r"^data( verify| get)", Check("needs data that has to be fetched")),
    (r"^data$", Run()),
    (r"^plan .*--gpus (8,64,512,4096|8,32 --batch)", Check("seconds, and another is run")),
    (r"^plan .*links\.json", Check("needs the links of four machines; tests/cli/plan_command_test has them")),
    (r"^plan .*--cluster", Run()),
    (r"^plan (look|first|mine)", Run()),
    (r"^status$", Run(codes=(1,))),  # nothing is going on
    (r"^(explain|status)\b", Run()),
    (r"^report --compare before", Check("needs runs of two commits")),
    (r"^report .*(my-runs|my-sweep|…|box$)", Check("needs runs of one's own")),
    (r"^report --compare", Run(codes=(0, 1))),  # which of two is faster is chance
    (r"^report\b", Run()),
    (r"^calibrate published", Check("seconds; tests/sim does it")),
    (r"^calibrate\b", Check("needs runs of a sweep")),
    (r"^bench --list", Run()),
    (r"^bench (my\.yaml|--resume)", Check("needs a file of one's own; tests/cli/bench_command_test has one")),
    (r"^bench\b", Run("--dry-run")),
    (r"^slurm\b", Run()),
    (r"^check --ranks 2", Run()),
    (r"^probe --ranks 2", Run("--max-mb 0.01 --seconds 0.02")),
    (r"^(check|probe)\b", Check("needs more ranks or machines")),
    (r"^run -n 2 -- build/", Check("needs the examples; tests/examples does it")),
    (r"^run\b", Check("needs a program of one's own")),
    (r"^help$", Run()),
]

# Runs that pages take for granted.
SETUP = [
    f"train --name first --ranks 2 --strategy mgwfbp {TINY} --steps 30 --no-eval",
    f"train --name second --ranks 2 --strategy bsp {TINY} --steps 30 --no-eval",
    f"train --name look --ranks 2 --strategy mgwfbp {TINY} --steps 30 --no-eval",
    f"train --name pair --ranks 1 {TINY} --steps 24 --no-eval",
]

# Options whose values are names, and the command whose output has them all.
NAMES = {"--strategy": "train --help", "--transport": "train --help", "--optimizer": "train --help", "--model": "models",
         "--recipe": "train --recipe list", "--cluster": "plan --cluster list", "--network": "cluster up --help"}
PROGRAM = re.compile(r"^(\./tutti|tutti|(\./)?build/\S*/tutti|\S*/bin/tutti)$")
LAUNCHERS = ("mpirun", "srun", "torchrun", "sudo", "env", "time", "taskset", "nsys", "perf")


def blocks(page):
    """The indented and fenced blocks of a page: lists of (line number, text)."""
    fence, block = False, []
    with open(page, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            is_fence = line.lstrip().startswith("```")
            fence = fence != is_fence
            if not is_fence and (fence or line.startswith("    ") or (block and not line.strip())):
                block.append((number, line.rstrip("\n")))
            elif block:
                yield block
                block = []
    if block:
        yield block


def shell_lines(block):
    """The lines of a block that a person types, continued ones joined. Where some have a prompt, only these are."""
    has_prompt = any(line.lstrip().startswith("$ ") for _, line in block)
    lines = iter(block)
    for number, line in lines:
        text = line.strip()
        if has_prompt and not text.startswith("$ "):
            continue
        text = text[2:] if text.startswith("$ ") else text
        while text.endswith("\\"):
            text = text[:-1] + next(lines, (0, ""))[1].strip()
        yield number, re.sub(r"(^|\s)#(\s.*|$)", "", text)


def words_of(text):
    """The words of a shell's command line, its operators words of their own; none where a person could not type it."""
    try:
        lexer = shlex.shlex(text, posix=True, punctuation_chars=";&|<>")
        lexer.whitespace_split = True
        return list(lexer)
    except ValueError:
        return []


def simple_commands(words):
    command = []
    words = iter(words)
    for word in words:
        if word and set(word) <= set(";&|"):
            yield command
            command = []
        elif word and set(word) <= set("<>&"):
            next(words, None)  # the file
        elif word not in ("do", "then", "done"):
            command.append(word)
    yield command


def commands_in(words):
    """Every command of tutti's in one command of the shell, as its words: a launcher's, and those behind `--`."""
    while words and re.match(r"^[A-Za-z_][A-Za-z0-9_]*=", words[0]):
        words = words[1:]
    if not words:
        return
    if words[0] == "sbatch" and "--wrap" in words:
        yield from commands_in(words_of(words[words.index("--wrap") + 1]))
        return
    if words[0] in LAUNCHERS:
        at = [i for i, word in enumerate(words) if PROGRAM.match(word)]
        words = words[at[0]:] if at else []
    if not words or not PROGRAM.match(words[0]):
        return
    words = words[1:]
    yield words
    if "--" in words and words[0] in ("cluster", "slurm"):
        behind = words[words.index("--") + 1:]
        if words[0] == "cluster" or (behind and behind[0].islower()):
            yield from commands_in(["tutti"] + behind if words[0] == "slurm" else behind)


def commands_of(root):
    """(place, words) of every command in the pages."""
    pages = [os.path.join(root, "README.md")] + sorted(glob.glob(os.path.join(root, "docs", "**", "*.md"), recursive=True))
    for page in pages:
        for block in blocks(page):
            for number, line in shell_lines(block):
                for simple in simple_commands(words_of(line)):
                    for words in commands_in(simple):
                        yield f"{os.path.relpath(page, root)}:{number}", words


class Tutti:
    def __init__(self, program):
        self.program = os.path.abspath(program)
        self.helps, self.outputs, self.costs = {}, {}, []

    def run(self, words, folder=None):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([self.program] + words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                              timeout=120, check=False, env=dict(os.environ, OMP_NUM_THREADS="1"))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.costs.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, " ".join(words)))
        return done.returncode, done.stdout.decode("utf-8", "replace")

    def help_of(self, command):
        key = " ".join(command)
        if key not in self.helps:
            code, text = self.run(command + ["--help"])
            self.helps[key] = text if code == 0 else None
        return self.helps[key]

    def output_of(self, line):
        if line not in self.outputs:
            self.outputs[line] = self.run(line.split())
        return self.outputs[line][1]

    def subcommands(self):
        return re.findall(r"^  ([a-z]+) ", self.help_of([]).split("SUBCOMMANDS:" if "SUBCOMMANDS:" in self.help_of([]) else "Subcommands:")[-1], re.M)

    def complaint(self, words):
        """What is wrong with a command, by the help of its command; None where nothing is."""
        if not words or words[0].startswith("-"):
            return None if not words or words[0] in ("--help", "--version") else f"unknown option {words[0]}"
        if words[0] == "help":
            return None
        if words[0] not in self.subcommands():
            return f"there is no command '{words[0]}'"
        for option, value in zip(words, words[1:] + [""]):
            if option in NAMES and re.fullmatch(r"[a-z][a-z0-9-]*", value) and value not in ("list", "mine", "my"):
                if value not in re.split(r"[^\w-]+", self.output_of(NAMES[option])):
                    return f"{option} {value}: there is no such name"
        command, text = words[:1], self.help_of(words[:1])
        known = set(re.findall(r"(?<![\w-])(--?[a-z][a-z0-9-]*)", text))
        nested = words[1] if len(words) > 1 else ""
        if re.search(rf"^  {re.escape(nested)} ", text, re.M) and re.match(r"^[a-z]+$", nested):
            known |= set(re.findall(r"(?<![\w-])(--?[a-z][a-z0-9-]*)", self.help_of(command + [nested]) or ""))
        for word in words[1:]:
            if word == "--":
                break
            name = word.strip("[]").split("=")[0].split(",")[0]
            if re.match(r"^--?[a-z]", name) and name not in known:
                return f"`tutti {words[0]}` has no option {name}"
        return None


def rule_for(text):
    return next((rule for pattern, rule in RULES if re.search(pattern, text)), None)


def script_words(root):
    with open(os.path.join(root, "tutti"), encoding="utf-8") as file:
        return set(re.findall(r"^ *([a-z]+)\)", file.read(), re.M))


def run_small(tutti, words, rule, folder):
    """Runs a command in its small form, once; returns what is wrong with it, or None."""
    typed = [word.replace("$i", "1") for word in words]
    text = " ".join(typed)
    if text not in tutti.outputs:
        at = typed.index("--") if "--" in typed else len(typed)
        name = os.path.join(folder, "runs", typed[typed.index("--name") + 1]) if typed[0] == "train" and "--name" in typed else ""
        if name:  # pages use names more than once
            shutil.rmtree(name, ignore_errors=True)
        tutti.outputs[text] = tutti.run(typed[:at] + rule.more + typed[at:], folder)
        if "$i" in " ".join(words) and os.path.isdir(name):  # of a loop the first run stands for all
            for i in "23":
                shutil.copytree(name, name[:-1] + i)
    code, output = tutti.outputs[text]
    return None if code in rule.codes else f"ended with {code}: {output[-600:]}"


def mistake_in(tutti, root, words, folder):
    """What is wrong with a command, or None."""
    rule = rule_for(" ".join(words))
    if rule is None:
        return "it is neither run nor excused: tests/docs/commands.py needs a line for it"
    if isinstance(rule, Script):
        return None if words[0] in script_words(root) else f"./tutti does not know '{words[0]}'"
    wrong = tutti.complaint(words)
    if not wrong and isinstance(rule, Run):
        wrong = run_small(tutti, words, rule, folder)
    return wrong


def check(tutti, root, setup):
    """Goes through a tree's commands; returns how many there are of each kind, and the mistakes."""
    counts, mistakes = {}, []
    with tempfile.TemporaryDirectory(prefix="tutti docs ") as folder:
        for name in ("published", "clusters", "recipes", "sweeps"):
            os.symlink(os.path.join(root, name), os.path.join(folder, name))
        for line in setup:
            code, output = tutti.run(line.split(), folder)
            if code != 0:
                sys.exit(f"tutti {line} ended with {code}:\n{output}")
        for place, words in commands_of(root):
            kind = type(rule_for(" ".join(words))).__name__
            counts[kind] = counts.get(kind, 0) + 1
            wrong = mistake_in(tutti, root, words, folder)
            if wrong:
                mistakes.append(f"{place}: tutti {' '.join(words)}\n  {wrong}")
    return counts, mistakes


def try_itself(tutti):
    """Each kind of mistake is found, in a page that has them all."""
    wrong = {"    ./tutti models --no-such-option 3\n": "has no option --no-such-option",
             "    $ tutti train --model no-such-model --strategy dear\n": "--model no-such-model: there is no such name",
             "```\ntutti cluster run -- mpirun -np 2 tutti frobnicate\n```\n": "neither run nor excused",
             "    tutti report no-such-run\n": "ended with 1",
             "    sbatch --wrap 'tutti bench --nosuch'\n": "has no option --nosuch"}
    for page, complaint in wrong.items():
        with tempfile.TemporaryDirectory(prefix="tutti docs ") as root:
            with open(os.path.join(root, "README.md"), "w", encoding="utf-8") as file:
                file.write("# A page\n\n" + page + "\nThe end, without `tutti nothing`.\n")
            _, mistakes = check(tutti, root, [])
            if len(mistakes) != 1 or complaint not in mistakes[0]:
                sys.exit(f"does not say '{complaint}' of\n{page}but: {mistakes}")


def main():
    lists_only, shows_costs = "--list" in sys.argv, "--costs" in sys.argv
    arguments = [word for word in sys.argv[1:] if not word.startswith("--")]
    if not arguments:
        sys.exit(__doc__)
    root = os.path.realpath(arguments[1] if len(arguments) > 1 else os.path.join(os.path.dirname(__file__), "../.."))
    if lists_only:
        for place, words in commands_of(root):
            print(f"{type(rule_for(' '.join(words))).__name__:8} {place}: tutti {' '.join(words)}")
        return
    tutti = Tutti(arguments[0])
    try_itself(tutti)
    counts, mistakes = check(tutti, root, SETUP)
    print(f"{sum(counts.values())} commands: " + ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())) +
          f"; {len(tutti.costs)} calls took {sum(cost for cost, _ in tutti.costs):.0f} s of processor time; {len(mistakes)} mistakes")
    if shows_costs:
        for cost, line in sorted(tutti.costs, reverse=True)[:25]:
            print(f"{cost:6.2f} s  {line}")
    for mistake in mistakes:
        print(mistake)
    sys.exit(1 if mistakes else 0)


if __name__ == "__main__":
    main()
