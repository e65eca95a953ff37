"""The whole program from Python, to the same bytes."""

import datetime
import importlib
import json
import logging
import os
import pathlib
import signal
import subprocess
import tempfile
import threading
import unittest

import numpy as np

import cfaa
from golden import REPOSITORY

PROGRAM = os.environ.get("CFAA_PROGRAM", "")
MODEL = REPOSITORY / "build/models/minilm"
SMALL = {"model": {"inputs": ["id", "history"], "dim": 8, "layers": [8]},
         "train": {"epochs": 2, "log_every": 1}, "eval": {"bootstrap": 0}}

logging.getLogger("cfaa").addHandler(logging.NullHandler())


def program(*arguments):
    return subprocess.run([PROGRAM, *map(os.fspath, arguments)], check=True, capture_output=True,
                          text=True).stdout


def files_in(folder):
    return {os.fspath(path.relative_to(folder)): path.read_bytes()
            for path in sorted(pathlib.Path(folder).rglob("*")) if path.is_file()}


@unittest.skipUnless(PROGRAM, "set CFAA_PROGRAM to the program to run this")
class Whole(unittest.TestCase):
    """Two small synthetic domains, prepared once."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.source, cls.target = cls.folder / "raw/source.jsonl", cls.folder / "raw/target.jsonl"
        program("synthesize", "--users", "120", "--items", "100", "--interactions", "1200", "--out",
                cls.folder / "raw")
        cls.data = cfaa.prepare(cls.source, cls.target, cls.folder / "data")

    def place(self, name):
        return self.folder / f"{self._testMethodName}_{name}"


class Prepare(Whole):
    def test_the_directory_has_the_programs_bytes(self):
        out = self.place("program")

        program("prepare", "--source", self.source, "--target", self.target, "--out", out)

        self.assertEqual(files_in(out), files_in(self.data))

    def test_rows_of_a_table_are_prepared_as_the_file_of_them_is(self):
        rows = {side: [json.loads(line) for line in path.read_text().splitlines()]
                for side, path in (("source", self.source), ("target", self.target))}

        class Frame:  # as pandas has it
            def __init__(self, records):
                self.records = records

            def to_dict(self, form):
                assert form == "records"
                return self.records

        data = cfaa.prepare(rows["source"], Frame(rows["target"]), self.place("data"))

        for name in ("source", "target"):
            self.assertEqual(data.report["result"][name], self.data.report["result"][name])
            self.assertEqual(data.ids(name, "item"), self.data.ids(name, "item"))

    def test_times_and_missing_cells_of_tables_are_taken_as_they_are_meant(self):
        at = datetime.datetime(2020, 1, 2)
        elsewhere = datetime.timezone(datetime.timedelta(hours=2))
        rows = [{"user": f"u{u}", "item": f"i{i}", "rating": np.float32(5), "text": float("nan"),
                 "timestamp": time} for i in range(5) for u, time in
                enumerate([at, at.date(), at.replace(hour=2, tzinfo=elsewhere), 1577923200])]

        data = cfaa.prepare(rows, rows, self.place("data"), source_core="1,1", target_core="1,1",
                            overlap="separate")

        times = [line.split("\t")[4] for path in data.path.rglob("*.inter")
                 for line in path.read_text().splitlines()[1:]]
        self.assertEqual(set(map(float, times)), {1577923200.0})

    def test_tables_of_other_libraries_are_prepared_as_the_file_is(self):
        for name in ("pandas", "polars", "pyarrow"):
            with self.subTest(library=name):
                try:
                    library = importlib.import_module(name)
                except ImportError:
                    self.skipTest(f"{name} is not installed")
                rows = [json.loads(line) for line in self.target.read_text().splitlines()]
                tables = {"pandas": lambda: library.DataFrame(rows),
                          "polars": lambda: library.DataFrame(rows),
                          "pyarrow": lambda: library.Table.from_pylist(rows)}

                data = cfaa.prepare(self.source, tables[name](), self.place(name))

                self.assertEqual(data.report["result"], self.data.report["result"])

    def test_options_go_by_their_names_and_unknown_ones_are_refused_with_the_nearest(self):
        data = cfaa.prepare(self.source, self.target, self.place("data"), split="leave-one-out")

        self.assertNotEqual(data.report["result"], self.data.report["result"])
        with self.assertRaisesRegex(cfaa.Error, "did you mean 'split_ratio'"):
            cfaa.prepare(self.source, self.target, self.place("other"), split_ration="8:1:1")

    def test_a_directory_that_is_there_stays_unless_force(self):
        with self.assertRaises(cfaa.Error):
            cfaa.prepare(self.source, self.target, self.data)

        cfaa.prepare(self.source, self.target, self.data, force=True)

    def test_it_is_shown_as_a_table(self):
        self.assertIn("interactions", repr(self.data))
        self.assertIn("<th>users</th>", self.data._repr_html_())

    def test_rows_that_are_no_dicts_are_refused(self):
        with self.assertRaisesRegex(cfaa.Error, "row 0 of source is a tuple; give dicts"):
            cfaa.prepare([("u", "i", 5)], self.target, self.place("data"))


class Train(Whole):
    def test_a_run_of_cfaa_has_the_programs_bytes(self):
        config = self.folder / "small.json"
        config.write_text(json.dumps(SMALL))
        theirs = self.place("program")
        seen = []
        program("train", self.data, config, "--out", theirs)

        run = cfaa.train(self.data, SMALL, out=self.place("python"), callbacks=[seen.append],
                         progress=False)

        ours = files_in(run)
        for name, content in files_in(theirs).items():
            if name.startswith("best") or name in ("result.json", "target_users.tsv"):
                self.assertEqual(ours[name], content, name)
        self.assertEqual(seen, list(run.metrics))
        self.assertIn("loss", " ".join(run.metrics.columns()))
        self.assertEqual(run.config["train"]["epochs"], 2)
        self.assertEqual(json.loads(program("evaluate", run, "--json"))["NDCG@10"],
                         run.evaluate()["NDCG@10"])

    def test_signals_are_weighed_without_a_configuration_to_the_programs_bytes(self):
        theirs = self.place("program")
        program("train", self.data, "--out", theirs)

        run = cfaa.train(self.data, out=self.place("python"), progress=False)

        self.assertEqual((run.path / "signals.json").read_bytes(),
                         (theirs / "signals.json").read_bytes())
        self.assertEqual(run.result, json.loads((theirs / "result.json").read_text()))
        with self.assertRaisesRegex(cfaa.Error, "signals"):
            run.embeddings("target", "user")

    def test_a_list_is_the_programs(self):
        run = cfaa.train(self.data, out=self.place("python"), progress=False)
        user = run.ids("target", "user")[0]

        recommended = run.recommend(user, top=5)

        theirs = json.loads(program("recommend", run, "--user", user, "--top", "5", "--json"))
        self.assertEqual(list(recommended), theirs["items"])
        self.assertEqual(recommended.items, [row["item"] for row in theirs["items"]])
        self.assertIn(recommended.items[0], recommended._repr_html_())
        everybody = run.recommend_all(top=5)
        self.assertEqual(everybody[0].items, recommended.items)
        with self.assertRaisesRegex(cfaa.Error, "nobody"):
            run.recommend("nobody")

    def test_a_known_user_who_comes_as_new_has_the_same_list(self):
        run = cfaa.train(self.data, out=self.place("python"), progress=False)
        user = run.ids("target", "user")[3]
        raw = [json.loads(line) for line in self.target.read_text().splitlines()]
        train = [line.split("\t")[1] for line in
                 (self.data.path / "target/target.train.inter").read_text().splitlines()
                 if line.startswith(user + "\t")]
        reviews = [{"item": row["parent_asin"], "rating": row["rating"], "text": row["text"]}
                   for row in raw if row["user_id"] == user and row["parent_asin"] in train]

        new = run.recommend(reviews=reviews, top=200)

        known = {row["item"]: row["score"] for row in run.recommend(user, top=200)}
        scores = {row["item"]: row["score"] for row in new}
        self.assertEqual({item: scores[item] for item in known}, known)
        self.assertEqual(run.recommend_all(reviews=[{**row, "user": "ann"} for row in reviews],
                                           top=3)[0].items, new.items[:3])
        self.assertEqual(len(run.recommend(reviews="A violin with a warm tone.")), 10)
        with self.assertLogs("cfaa", logging.WARNING) as logs:
            run.recommend(reviews=[{"item": "absent", "text": "fine"}])
        self.assertIn("absent", logs.output[0])
        for words, arguments in (("give the id of a user, or", {}),
                                 ("review 0 is 3", {"reviews": [3]}),
                                 ("of 2 users", {"reviews": [{"user": "a", "text": "a"},
                                                             {"user": "b", "text": "b"}]})):
            with self.assertRaisesRegex(cfaa.Error, words):
                run.recommend(**arguments)

    def test_a_report_is_the_programs_page(self):
        run = cfaa.train(self.data, SMALL, out=self.place("run"), progress=False)
        theirs = self.place("theirs.html")
        program("report", run, "--users", "3", "--out", theirs)

        page = run.report(self.place("ours.html"), users=3, progress=False)

        self.assertEqual(page.read_bytes(), theirs.read_bytes())
        foreign = self.place("foreign.html")
        foreign.write_text("mine")
        with self.assertRaisesRegex(cfaa.Error, "foreign.html"):
            run.report(foreign, progress=False)
        with self.assertRaisesRegex(cfaa.Error, "top: is 0; give 1 to 100"):
            cfaa.report([run], page, top=0, progress=False)

    def test_embeddings_are_what_export_writes(self):
        run = cfaa.train(self.data, {**SMALL, "model.scorer": "dot"}, out=self.place("python"),
                         progress=False)
        program("export", run, "--out", self.place("export"))

        users, items = (run.embeddings("target", side) for side in ("user", "item"))

        np.testing.assert_array_equal(users, np.load(self.place("export") / "target_users.npy"))
        self.assertEqual(len(run.ids("target", "user")), len(users))
        self.assertEqual(cfaa.evaluate((users, items), self.data)["NDCG@10"],
                         run.evaluate()["NDCG@10"])

    def test_an_exception_of_a_callback_stops_and_the_same_call_resumes(self):
        class Enough(Exception):
            pass

        def stop(metrics):
            raise Enough

        config = {**SMALL, "train.epochs": 40, "train.log_every": 1}
        with self.assertRaises(Enough):
            cfaa.train(self.data, config, out=self.place("run"), callbacks=[stop], progress=False)
        self.assertFalse((self.place("run") / "result.json").exists())

        resumed = cfaa.train(self.data, config, out=self.place("run"), progress=False)
        whole = cfaa.train(self.data, config, out=self.place("whole"), progress=False)

        self.assertEqual(resumed.result, whole.result)

    def test_ctrl_c_stops_and_leaves_a_run_that_resumes(self):
        # A shell's background jobs are started with the signal ignored.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        begun = threading.Event()

        def interrupt():
            begun.wait()
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        config = {**SMALL, "train.epochs": 100000, "train.patience": 0}

        with self.assertRaises(KeyboardInterrupt):
            cfaa.train(self.data, config, out=self.place("run"), progress=False,
                       callbacks=[lambda metrics: begun.set()])

        thread.join()
        self.assertTrue(list((self.place("run") / "checkpoints").iterdir()))
        self.assertFalse((self.place("run") / "result.json").exists())

    def test_progress_is_told_by_the_protocol_of_tqdm(self):
        bars = []

        class Bar:
            def __init__(self, total, desc, unit, initial):
                self.total, self.n = total, initial
                bars.append(self)

            def update(self, count):
                self.n += count

            def set_postfix_str(self, text, refresh):
                self.note = text

            def close(self):
                self.closed = True

        cfaa.train(self.data, {**SMALL, "train.epochs": 60}, out=self.place("run"), progress=Bar)

        self.assertTrue(bars)
        self.assertTrue(all(bar.closed for bar in bars))
        self.assertEqual(bars[0].n, bars[0].total)

    def test_messages_go_to_logging_and_not_to_standard_error(self):
        with self.assertLogs("cfaa", logging.INFO) as logs:
            cfaa.train(self.data, {**SMALL, "train.epochs": 1}, out=self.place("run"),
                       progress=False)

        self.assertIn("epochs", " ".join(logs.output))

    def test_unknown_sections_and_options_are_refused_with_the_nearest(self):
        with self.assertRaisesRegex(cfaa.Error, "config: .*did you mean 'epochs'"):
            cfaa.train(self.data, {"train": {"epochz": 2}}, out=self.place("run"))
        with self.assertRaisesRegex(cfaa.Error, "config: 'tran' is not a section.*'train'"):
            cfaa.train(self.data, {"tran.epochs": 2}, out=self.place("run"))
        with self.assertRaisesRegex(cfaa.Error, "config: is a list"):
            cfaa.train(self.data, [], out=self.place("run"))

    def test_what_is_no_run_is_said_so(self):
        with self.assertRaisesRegex(cfaa.Error, "there is no such directory"):
            cfaa.Run(self.place("absent"))
        with self.assertRaises(cfaa.Error):
            cfaa.Run(self.data).recommend("TU00000000")


class Evaluate(Whole):
    def setUp(self):
        self.shape = tuple(len(self.data.ids("target", side)) for side in ("user", "item"))
        self.scores = np.random.default_rng(0).normal(size=self.shape)

    def test_scores_are_measured_as_the_program_does(self):
        file = self.place("scores.npy")
        np.save(file, self.scores)

        ours = cfaa.evaluate(self.scores, self.data, k=[5, 10], bootstrap=100)

        theirs = json.loads(program("evaluate", self.data, "--scores", file, "--k", "5,10",
                                    "--bootstrap", "100", "--json"))
        theirs.pop("seconds")
        ours.pop("seconds")
        self.assertEqual(ours, theirs)
        self.assertIn("<th>@5</th>", ours._repr_html_())
        self.assertEqual(set(ours.values_at()), {key for key in theirs if "@" in key})

    def test_what_does_not_fit_the_data_is_refused(self):
        for scores, words in ((self.scores[:-1], "rows where the data have"),
                              (self.scores[:, :-1].copy(), "columns where the data have"),
                              (self.scores[:, :-1], "padded"),
                              (self.scores * np.nan, "NaN"),
                              ((self.scores, self.scores.T.copy()), "same attributes")):
            with self.assertRaisesRegex(cfaa.Error, words):
                cfaa.evaluate(scores, self.data)
        with self.assertRaisesRegex(cfaa.Error, "did you mean 'bootstrap'"):
            cfaa.evaluate(self.scores, self.data, bootstrab=1)

    def test_baselines_and_runs_are_compared(self):
        first, second = self.place("popularity"), self.place("cease")
        popularity = cfaa.baselines.popularity(self.data, out=first)
        cease = cfaa.baselines.cease(self.data, out=second, cease_lambda=20)

        table = cfaa.compare([first, cfaa.Run(second)], metrics=["NDCG@10"])

        measured = {pathlib.Path(row["run"]): row["NDCG@10"] for row in table}
        self.assertEqual(measured, {first: popularity["NDCG@10"], second: cease["NDCG@10"]})
        self.assertIn("NDCG@10", table._repr_html_())
        self.assertEqual(cfaa.Run(second).evaluate()["NDCG@10"], cease["NDCG@10"])
        self.assertEqual(json.loads(program("baseline", self.data, "cease", "--cease-lambda", "20",
                                            "--json"))["NDCG@10"], cease["NDCG@10"])
        with self.assertRaisesRegex(cfaa.Error, "cease_lamda"):
            cfaa.baselines.cease(self.data, cease_lamda=20)


@unittest.skipUnless((MODEL / "model.safetensors").exists(), "tools/get_model minilm fetches it")
class Encode(Whole):
    TEXTS = ["A violin with a warm tone.", "", "Strings. And a bow!", "A violin with a warm tone."]

    def test_vectors_are_the_programs(self):
        corpus = self.place("corpus.txt")
        corpus.write_text("\n".join(self.TEXTS) + "\n")
        for form, options in (("sentence-transformers", {}), ("encoder", {"as": "encoder"})):
            out = self.place(f"{form}.npy")
            program("embed", corpus, "--model", MODEL, "--as", form, "--out", out)

            rows = cfaa.Encoder(MODEL, **options).encode(self.TEXTS)

            np.testing.assert_array_equal(rows, np.load(out))

    def test_one_text_is_one_vector(self):
        encoder = cfaa.Encoder(MODEL)
        rows = encoder.encode(self.TEXTS)

        self.assertEqual(rows.shape, (4, encoder.get_sentence_embedding_dimension()))
        np.testing.assert_array_equal(encoder.encode(self.TEXTS[0]), rows[0])
        self.assertEqual(encoder.encode([]).shape, (0, rows.shape[1]))
        lengths = np.linalg.norm(encoder.encode(self.TEXTS, normalize_embeddings=True), axis=1)
        np.testing.assert_allclose(lengths, 1, rtol=1e-6)
        np.testing.assert_array_equal(encoder.encode(self.TEXTS, batch_size=2), rows)
        with self.assertRaisesRegex(cfaa.Error, "text 1 is a int"):
            encoder.encode(["a", 2])

    def test_a_name_is_found_in_the_cache_of_hugging_face(self):
        cache = self.place("cache")
        place = cache / "models--sentence-transformers--small"
        (place / "refs").mkdir(parents=True)
        (place / "refs/main").write_text("abc")
        (place / "snapshots").mkdir()
        (place / "snapshots/abc").symlink_to(MODEL.resolve())
        before = os.environ.get("HF_HUB_CACHE")
        os.environ["HF_HUB_CACHE"] = os.fspath(cache)
        self.addCleanup(lambda: os.environ.pop("HF_HUB_CACHE") if before is None
                        else os.environ.update(HF_HUB_CACHE=before))

        self.assertEqual(cfaa.Encoder("small").max_seq_length, cfaa.Encoder(MODEL).max_seq_length)
        with self.assertRaisesRegex(cfaa.Error, "absent: is neither a folder nor a model in"):
            cfaa.Encoder("absent")

    def test_reviews_are_embedded_to_the_programs_bytes(self):
        few = self.place("few.jsonl")
        few.write_text("".join(self.source.read_text().splitlines(True)[:80]))
        options = {"source_core": "1,1", "target_core": "1,1", "overlap": "separate"}
        ours, theirs = self.place("python") / "data", self.place("program") / "data"
        for out in (ours, theirs):
            out.parent.mkdir()
            data = cfaa.prepare(few, few, out, **options)
        program("embed", theirs, "--model", MODEL)

        report = cfaa.embed(ours, MODEL, progress=False)

        self.assertEqual(report["target"]["width"], 384)
        found = files_in(ours)
        for name, content in files_in(theirs).items():
            if name.endswith(".npy"):
                self.assertEqual(found[name], content, name)
        self.assertTrue(data.embed(MODEL, progress=False)["source"]["was_there"])


if __name__ == "__main__":
    unittest.main()
