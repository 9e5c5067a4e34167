package docs_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterd/muster/test/programs"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() { // no test runs a program
		os.Exit(m.Run())
	}
	code, err := programs.Run(m.Run)
	if err != nil {
		println(err.Error())
		code = 1
	}
	os.Exit(code)
}

// Each command of each document is run, in the order of the document, as a
// reader would run it. A block that no test runs says why (block).
func TestEveryCommandOfTheDocumentsRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("runs clusters")
	}
	muster, err := exec.LookPath("muster")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range documents(t) {
		blocks, err := commandBlocks(text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var toRun []block
		for _, b := range blocks {
			if b.mark.skip == "" && b.mark.by == "" {
				toRun = append(toRun, b)
			}
		}
		if len(toRun) == 0 {
			continue
		}
		title, _ := filepath.Rel(root, name)
		t.Run(title, func(t *testing.T) {
			for _, b := range toRun {
				if strings.Contains(b.text, "serf ") {
					if _, err := exec.LookPath("serf"); err != nil {
						t.Skip("the stock serf command is not on PATH: make test brings it")
					}
				}
			}
			s := newSession(t, filepath.Dir(muster))
			for _, b := range toRun {
				if b.mark.alone {
					s.end()
				}
				for _, p := range b.steps() {
					s.run(p)
				}
			}
		})
	}
}

func TestBlocksNameTestsThatExist(t *testing.T) {
	functions := testFunctions(t)
	for name, text := range documents(t) {
		blocks, err := commandBlocks(text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, b := range blocks {
			if b.mark.by != "" && !functions[b.mark.by] {
				t.Errorf("%s:%d: no test has the name %s", name, b.line, b.mark.by)
			}
		}
	}
}
