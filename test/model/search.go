package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// depth is how long a path of a search may get, in steps; a longer one makes
// the search incomplete, which is found.
const depth = 1_000_000

// result is what a search found.
type result struct {
	states  int64
	verdict string // holds, reach, an invariant, or incomplete
	took    time.Duration
}

// tools names what is missing here for a search, or nil.
func tools() error {
	var missing []error
	for _, tool := range []string{"spin", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			missing = append(missing, fmt.Errorf("%s is missing (apt-get install %s)", tool, tool))
		}
	}
	return errors.Join(missing...)
}

// flags are the macros of a search.
func (s search) flags() []string {
	var flags []string
	if s.conf != "" {
		flags = append(flags, "-DCONF="+s.conf)
	}
	for _, d := range s.defines {
		flags = append(flags, "-D"+d)
	}
	if s.mutant != "" {
		flags = append(flags, "-DMUTANT="+s.mutant)
	}
	if s.reach {
		flags = append(flags, "-DWITNESS")
	}
	return flags
}

// run searches in the folder work, which it may fill; folder has the models.
func (s search) run(ctx context.Context, folder, work string) (result, error) {
	source, err := os.ReadFile(filepath.Join(folder, s.model+".pml"))
	if err != nil {
		return result{}, err
	}
	if err := os.WriteFile(filepath.Join(work, "model.pml"), source, 0o600); err != nil {
		return result{}, err
	}
	optimize := "-O1"
	switch {
	case s.short: // the compiler would take longer than the search
		optimize = "-O0"
	case s.want == holds:
		optimize = "-O2"
	}
	for _, command := range [][]string{
		append(append([]string{"spin"}, s.flags()...), "-a", "model.pml"),
		{"gcc", optimize, "-w", "-DSAFETY", "-DNOREDUCE", "-o", "pan", "pan.c"},
	} {
		if out, err := output(ctx, work, command...); err != nil {
			return result{}, fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, out)
		}
	}
	bits := s.bits
	if bits == 0 {
		bits = 22
	}
	began := time.Now()
	out, err := output(ctx, work, "./pan", fmt.Sprintf("-m%d", depth), fmt.Sprintf("-w%d", bits))
	if err != nil {
		return result{}, fmt.Errorf("search: %w: %s", err, out)
	}
	r, err := parse(out)
	r.took = time.Since(began)
	return r, err
}

// output runs a command in a folder.
func output(ctx context.Context, folder string, command ...string) (string, error) {
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Dir = folder
	out, err := c.CombinedOutput()
	return string(out), err
}

var (
	statesLine    = regexp.MustCompile(`(?m)^ *([0-9.e+]+) states, stored`)
	errorsLine    = regexp.MustCompile(`errors: ([0-9]+)`)
	violatedLine  = regexp.MustCompile(`assertion violated .*\(1000\+([0-9]+)\)==0\)`)
	incompleteOut = regexp.MustCompile(`max search depth too small|out of memory|Search not completed`)
)

// parse reads a verifier's report.
func parse(out string) (result, error) {
	states, errs := statesLine.FindStringSubmatch(out), errorsLine.FindStringSubmatch(out)
	if states == nil || errs == nil {
		return result{}, fmt.Errorf("the verifier's report has no count of states and errors: %s", out)
	}
	n, err := strconv.ParseFloat(states[1], 64) // large counts come as 1.2e+08
	if err != nil {
		return result{}, fmt.Errorf("states: %w", err)
	}
	r := result{states: int64(n), verdict: holds}
	broken := violatedLine.FindStringSubmatch(out)
	switch {
	case broken != nil && broken[1] == "99":
		r.verdict = reached
	case broken != nil:
		r.verdict = "I" + broken[1]
	case errs[1] != "0":
		r.verdict = "errors: " + errs[1]
	case incompleteOut.MatchString(out):
		r.verdict = "incomplete"
	}
	return r, nil
}
