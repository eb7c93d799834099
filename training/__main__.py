"""Command line: full, smoke, train, export, calibrate, evaluate."""
from __future__ import annotations

import argparse
import json
import pickle
import sys
import time
from pathlib import Path

DEFAULT_CFG = {"temperature": 1.0, "window_bias": 0.2, "thresholds": {"stop": 0.5}, "span": {"threshold": 0.5, "gap": 4, "min_tokens": 2}}


def do_export(out: Path, checkpoint: Path) -> None:
    from . import export, package
    from .model import base_folder

    state = export.load_state(checkpoint)
    export.export(state, out / "model.onnx", True)
    export.export(state, out / "model.float.onnx", False)
    package.tokenizer_file(base_folder(), out / "tokenizer.json")


def do_calibrate(out: Path, data: Path, threads: int, golden: Path | None, extra: dict | None = None) -> dict:
    from . import calibrate, evaluate, infer, package
    from .mix import read

    (out / "model.json").unlink(missing_ok=True)
    recs = read(data / "dev.jsonl.gz")
    model = infer.Model(out, threads)
    raws = evaluate.run_all(model, recs, False, "dev")
    with (out / "dev_raw.pkl").open("wb") as f:
        pickle.dump(raws, f)
    cfg = calibrate.fit(recs, raws)
    if (out / "stage1.bin").exists():
        from .stage1 import Stage1

        first = Stage1.load(out / "stage1.bin")
        cfg["dev"]["stage1"] = calibrate.stage1_threshold(model, first, recs, raws, cfg)
        first.save(out / "stage1.bin")
    package.write(out, cfg, golden, extra)
    print(json.dumps(cfg, indent=1))
    return cfg


def main(argv: list[str] | None = None) -> int:
    ap = argparse.ArgumentParser(prog="python -m training", description=__doc__)
    sub = ap.add_subparsers(dest="cmd", required=True)

    def cmd(name: str, text: str):
        p = sub.add_parser(name, help=text, description=text)
        p.add_argument("--threads", type=int, default=2)
        return p

    p = cmd("full", "read the data, train, calibrate, export, evaluate")
    p.add_argument("--data", type=Path, required=True)
    p.add_argument("--out", type=Path, required=True)
    p.add_argument("--minutes", type=float, default=65.0, help="wall-clock budget of the training loop")
    p.add_argument("--scale", type=float, default=1.0, help="size of the mixture")
    p.add_argument("--seed", type=int, default=7)
    p.add_argument("--lr", type=float, default=1.5e-4)
    p.add_argument("--tokens", type=int, default=2560, help="tokens in a batch")
    p.add_argument("--scenes", type=int, help="number of whole texts in it, by default 24000 times the scale")
    p.add_argument("--work", type=int, help="number of tasks, mails and guides in it, by default 16000 times the scale")
    p.add_argument("--init", type=Path, help="start from the weights of this model.pt or model.onnx")
    p.add_argument("--freeze", type=int, default=0, help="leave the lowest N layers as they are")
    p.add_argument("--fresh", action="store_true", help="ignore a checkpoint in --out")
    p.add_argument("--no-eval", action="store_true")
    p = cmd("smoke", "one minute: generated records, a short training, export, golden scores")
    p.add_argument("--out", type=Path, default=Path("build/smoke"))
    p.add_argument("--steps", type=int, default=12)
    p = cmd("export", "export a checkpoint to ONNX")
    p.add_argument("--checkpoint", type=Path, required=True)
    p.add_argument("--out", type=Path, required=True)
    p = cmd("calibrate", "fit calibration on dev and write model.json and the golden vectors")
    p.add_argument("--model", type=Path, required=True)
    p.add_argument("--data", type=Path, required=True)
    p.add_argument("--golden", type=Path)
    p = cmd("evaluate", "figures per source with 95 % intervals")
    p.add_argument("--model", type=Path, required=True)
    p.add_argument("--data", type=Path, nargs="+", required=True)
    p.add_argument("--by-source", action="store_true")
    p.add_argument("--neutral-only", action="store_true")
    p.add_argument("--limit", type=int, default=0)
    p.add_argument("--json", type=Path, help="also write the figures here")
    a = ap.parse_args(argv)
    t0 = time.time()

    if a.cmd == "full":
        from . import mix, stage1, train
        from .model import base_folder
        from .record import Tokenizer

        a.out.mkdir(parents=True, exist_ok=True)
        cache = a.out / "mixture.pkl"
        if cache.exists() and not a.fresh:
            mixture = pickle.loads(cache.read_bytes())
        else:
            mixture = mix.build(a.data, Tokenizer(base_folder() / "tokenizer.json"), a.seed, a.scale, a.scenes, a.work)
            cache.write_bytes(pickle.dumps(mixture))
        print(f"{len(mixture['ids'])} windows, {sum(map(len, mixture['ids'])) / 1e6:.1f} M payload tokens")
        train.train(mixture, a.out, a.minutes, lr=a.lr, tokens=a.tokens, seed=a.seed, init=a.init, freeze=a.freeze, threads=a.threads, resume=not a.fresh)
        do_export(a.out, a.out / "model.pt")
        first = stage1.data(mixture, a.data, Tokenizer(base_folder() / "tokenizer.json"), a.seed)
        stage1.train(first, threads=a.threads).save(a.out / "stage1.bin")
        do_calibrate(a.out, a.data, a.threads, a.out / "golden.json")
        if not a.no_eval:
            from .evaluate import evaluate

            files = [a.data / "dev.jsonl.gz", *sorted((a.data / "eval").glob("*.jsonl.gz"))]
            res = evaluate(a.out, [f for f in files if "secret" not in f.name], a.threads)
            (a.out / "figures.json").write_text(json.dumps(res, indent=1))
    elif a.cmd == "smoke":
        import torch

        from . import infer, mix, package, train
        from .model import base_folder
        from .record import Tokenizer

        mixture = mix.build(None, Tokenizer(base_folder() / "tokenizer.json"), 7, 0.012, progress=False)
        print(f"{len(mixture['ids'])} generated windows")
        train.train(mixture, a.out, 1.0, tokens=1024, threads=a.threads, resume=False, max_steps=a.steps)
        do_export(a.out, a.out / "model.pt")
        package.write(a.out, DEFAULT_CFG, a.out / "golden.json")
        # float and int8 must agree
        f, q = infer.Model(a.out, a.threads, "model.float.onnx"), infer.Model(a.out, a.threads)
        worst = 0.0
        for data, meta, _ in package.golden_inputs():
            x, y = f.run(data, meta), q.run(data, meta)
            worst = max(worst, float(abs(x.scores - y.scores).max()))
        print(f"float and int8 differ by at most {worst:.4f} in the scores; torch {torch.__version__}; {time.time() - t0:.0f} s")
        if worst > 0.1:
            return 1
    elif a.cmd == "export":
        a.out.mkdir(parents=True, exist_ok=True)
        do_export(a.out, a.checkpoint)
    elif a.cmd == "calibrate":
        do_calibrate(a.model, a.data, a.threads, a.golden)
    elif a.cmd == "evaluate":
        from .evaluate import evaluate

        res = evaluate(a.model, a.data, a.threads, a.by_source, not a.neutral_only, a.limit)
        if a.json:
            a.json.write_text(json.dumps(res, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
