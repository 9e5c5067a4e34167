package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var sample = filepath.Join("testdata", "sample")

// planted is what the sample does wrong, by the name of the thing, with the beginning
// of the sentence.
var planted = map[string]string{
	"file made/made.go":                "file made/made.go has 25 lines, and the limit is 24: ",
	"package long":                     "package long has 44 lines, and the limit is 40: move a part of the package into a package of its own.",
	"file filed/filed.go":              "file filed/filed.go has 25 lines, and the limit is 24: split the file by its ideas.",
	"type embeds.High":                 "type embeds.High has 3 methods, and the limit is 2: move a part of the type's state,",
	"type takes.Taken":                 "type takes.Taken has 3 methods, and the limit is 2: ",
	"type captures.Captured":           "type captures.Captured has 3 methods, and the limit is 2: ",
	"type writers.A":                   "type writers.A has 4 methods, and the limit is 2 (with B, as they write each other): ",
	"type grown.Grown":                 "type grown.Grown has 4 methods, and test/house/limits allows 3: move a part of the type's state,",
	"type shrunk.Shrunk":               "type shrunk.Shrunk fell to 4 methods, and test/house/limits says 5: write the lower figure down in the same commit, with make house-lower.",
	"type kept.Kept":                   "type kept.Kept keeps to the limit now: delete its row of test/house/limits in the same commit, with make house-lower.",
	"type gone.Gone":                   "type gone.Gone keeps to the limit now: delete its row",
	"circle through":                   "circle through has 3 functions, and the limit is 2 (through 3): let the lower functions return what happened,",
	"circle values":                    "circle values has 4 functions, and the limit is 2 (values 4): ",
	"steps phase.job.phase":            "steps phase.job.phase has 3 functions, and the limit is 2: change the phase in the step methods of the struct alone.",
	"setters set":                      "setters set has 3 setters, and the limit is 0 (the last is setDoor in set.go): write a method for the thing that happened,",
	"assigned coordinator/txn.Machine": "assigned coordinator/txn.Machine has 3 assignments from other packages, and the limit is 0 (the last by coordinator/user.change): change the struct by a method of its own package.",
	"reach coordinator/txn.Machine":    "reach coordinator/txn.Machine has 34 percent of the functions of the room that change a field, and the limit is 0 (1 of 3 functions a field, 2 fields): let fewer functions change the state:",
	"edits field startBy":              "edits field startBy has 1 files to open, and the limit is 0: ",
	"what words":                       "\"what\" and its like in the comments of words has 3 uses, and the limit is 2 (in 23 words of comment): name the subject, the object or the time instead.",
	"nobody words":                     "\"nobody\" and its like in the comments of words has 1 uses, and the limit is 0 (in 23 words of comment): ",
}

func TestEachPlantedFaultHasASentence(t *testing.T) {
	c, err := load(sample, map[string]string{"tested": "TestMadeIsFresh"})
	if err != nil {
		t.Fatal(err)
	}
	l := readList(t, sample)
	verdicts, err := judge(l, measured(c))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, v := range verdicts {
		found[v.figure.kind+" "+v.figure.of] = v.sentence()
	}
	for of, want := range planted {
		if !strings.HasPrefix(found[of], want) {
			t.Errorf("%s\n got %s\nwant %s", of, found[of], want)
		}
	}
	for of, sentence := range found {
		if planted[of] == "" {
			t.Errorf("no fault was planted for: %s", sentence)
		}
	}
	t.Run("lower figures are written, higher ones are not", func(t *testing.T) {
		rows := lower(l, verdicts).byKey()
		got := map[string]int{}
		for k, r := range rows {
			if k.kind == "type" && k.of != anyone {
				got[k.of] = r.value
			}
		}
		if d := cmp.Diff(map[string]int{"grown.Grown": 3, "shrunk.Shrunk": 4}, got); d != "" {
			t.Errorf("rows of types (-want +got)\n%s", d)
		}
	})
}

func TestGeneratedFilesNeedATestOfTheirBytes(t *testing.T) {
	_, err := load(sample, map[string]string{"made": "TestMadeIsFresh", "tested": "TestNothing"})
	if want := "the generated files of tested count as generated because of TestNothing, and no test has this name"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestTheTableHasEachFigure(t *testing.T) {
	var out strings.Builder
	if err := run(&out, sample, 1, map[string]string{"tested": "TestMadeIsFresh"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| package: lines | 44 | 40 | long |  |",
		"| circle: functions | 4 | 2 | values | values 4 |",
		"| packages, files, functions | 19, 20, 44 | | | |",
		"| lines of a function: median, p99, greatest | 1, 5, 6 | | | |",
		"| \"nobody\" in 1,000 words of comment: product, tests and test/ | 5.8, 0.0 | | | |",
	} {
		if !strings.Contains(out.String(), want+"\n") {
			t.Errorf("the table has no row\n%s\nin\n%s", want, &out)
		}
	}
}
