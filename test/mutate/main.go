// Command mutate plants mistakes in the code, one at a time, and looks whether
// a test notices. The mistakes are lists in this folder's lists/, one for each
// package; `make mutate` plants all of them, `make mutate ONLY=journal` those
// with the word in their name, file or list. A mutation without a failing test is a
// survivor: the program names it and exits 1. `make mutate DRAW=coordinator/sched N=60
// SEED=3` draws mistakes over a package instead (draw.go), and exits 0 with survivors:
// some are no mistakes.
//
// The tree is never changed: the compiler reads the mutated files through
// -overlay, many mutations in a binary where possible (batch.go). A list that no
// longer fits the code is an error, in `make test` already.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

func main() {
	root := flag.String("root", ".", "the module's folder")
	only := flag.String("only", "", "plant only mutations whose name, file or list contains this")
	of := flag.String("draw", "", "plant mistakes drawn by chance over this package, such as coordinator/sched, in place of the lists")
	n := flag.Int("n", 60, "how many mistakes are drawn")
	seed := flag.Uint64("seed", 1, "the seed of the draw")
	jobs := flag.Int("jobs", 1, "mutations planted at the same time; tests with a time limit of their own need some room")
	limit := flag.Duration("limit", 5*time.Minute, "time for the tests of one mutation; tests that run longer count as failed")
	flag.Parse()
	all, err := readLists(filepath.Join(*root, "test", "mutate", "lists"))
	if *of != "" {
		all, err = draw(*root, *of, *n, *seed)
	}
	survivors := 0
	if err == nil {
		survivors, err = run(os.Stdout, *root, chosen(all, *only), *jobs, *limit)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(2)
	}
	if survivors > 0 && *of == "" {
		os.Exit(1)
	}
}

// chosen are the mutations with a word in their name, file or list, ordered by their tests.
func chosen(all []mutation, only string) []mutation {
	all = slices.DeleteFunc(all, func(m mutation) bool { return !strings.Contains(m.name+" "+m.file+" "+m.at, only) })
	slices.SortStableFunc(all, func(a, b mutation) int { return slices.Compare(a.tests, b.tests) })
	return all
}

// outcome is the result of one planted mutation.
type outcome string

const (
	killed   outcome = "killed"
	survived outcome = "SURVIVED"
	hung     outcome = "killed by time" // its tests did not end
	invalid  outcome = "INVALID"        // the mutated code does not compile

	explained outcome = "equivalent" // it survived, and its list says why no test can notice
)

// run plants the chosen mutations, jobs at a time, and counts the survivors that
// are not explained as equivalent. Mutations that do not compile count as
// survivors. The lines of out are in the order of the packages of tests.
func run(out io.Writer, root string, all []mutation, jobs int, limit time.Duration) (survivors int, err error) {
	if jobs < 1 {
		return 0, fmt.Errorf("-jobs is %d, and has to be at least 1", jobs)
	}
	results := make([]chan planted, len(all))
	for i := range results {
		results[i] = make(chan planted, 1)
	}
	go plantAll(root, all, results, jobs, limit)
	counts := map[outcome]int{}
	for i, m := range all {
		p := <-results[i]
		if p.err != nil {
			return 0, p.err
		}
		if p.outcome == survived && m.equivalent != "" {
			p.outcome = explained
		}
		p.print(out, m)
		counts[p.outcome]++
	}
	noticed := counts[killed] + counts[hung]
	fmt.Fprintf(out, "%d killed, %d killed by time, %d survived, %d equivalent, %d do not compile: %d %% noticed\n",
		counts[killed], counts[hung], counts[survived], counts[explained], counts[invalid], 100*noticed/max(1, noticed+counts[survived]))
	return counts[survived] + counts[invalid], nil
}

// plantAll plants the mutations, those with the same package of tests together, and
// sends each result on its channel.
func plantAll(root string, all []mutation, results []chan planted, jobs int, limit time.Duration) {
	for from, to := 0, 0; from < len(all); from = to {
		members := map[int]mutation{}
		for ; to < len(all) && slices.Equal(all[to].tests, all[from].tests); to++ {
			members[to] = all[to]
		}
		if err := plantTogether(root, members, results, jobs, limit); err != nil {
			for i := range members {
				results[i] <- planted{err: err}
			}
			return
		}
	}
}

// plantTogether plants mutations with the same packages of tests.
func plantTogether(root string, members map[int]mutation, results []chan planted, jobs int, limit time.Duration) error {
	tmp, err := os.MkdirTemp("", "mutate-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	numbers := slices.Sorted(maps.Keys(members))
	var b batch
	if tests := members[numbers[0]].tests; len(tests) == 1 && len(members) >= worthwhile {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		if b, err = newBatch(ctx, root, tests[0], tmp, members); err != nil {
			return err
		}
	}
	var group errgroup.Group
	group.SetLimit(jobs)
	for _, i := range numbers {
		group.Go(func() error {
			p, done := b.plant(i, members[i], limit)
			if !done {
				p = plant(root, members[i], limit)
			}
			results[i] <- p
			return nil
		})
	}
	return group.Wait()
}

// planted is the result of one mutation. text is what the compiler printed of
// code that is invalid.
type planted struct {
	outcome outcome
	text    string
	took    time.Duration
	err     error
}

func (p planted) print(out io.Writer, m mutation) {
	fmt.Fprintf(out, "%-14s %5.1fs  %s: %s\n", p.outcome, p.took.Seconds(), m.file, m.name)
	switch {
	case p.outcome == invalid:
		fmt.Fprintln(out, p.text)
	case p.outcome == explained:
		fmt.Fprintf(out, "               equivalent: %s\n", m.equivalent)
	}
}

// plant runs the tests of one mutation.
func plant(root string, m mutation, limit time.Duration) planted {
	began := time.Now()
	outcome, text, err := test(root, m, limit)
	return planted{outcome: outcome, text: text, took: time.Since(began), err: err}
}

// test compiles one mutation with its tests, and runs these.
func test(root string, m mutation, limit time.Duration) (result outcome, text string, err error) {
	path, err := filepath.Abs(filepath.Join(root, filepath.FromSlash(m.file)))
	if err != nil {
		return "", "", err
	}
	before, err := os.ReadFile(path)
	if err != nil {
		return "", "", err
	}
	mutated, err := m.apply(string(before))
	if err != nil {
		return "", "", err
	}
	dir, err := os.MkdirTemp("", "mutate-*")
	if err != nil {
		return "", "", err
	}
	defer os.RemoveAll(dir)
	file, overlay := filepath.Join(dir, "mutated.go"), filepath.Join(dir, "overlay.json")
	list, err := json.Marshal(map[string]map[string]string{"Replace": {path: file}})
	if err != nil {
		return "", "", err
	}
	for name, content := range map[string][]byte{file: []byte(mutated), overlay: list} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			return "", "", err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	args := []string{"test", "-overlay", overlay, "-count=1", "-failfast", "-timeout", limit.String()}
	if m.run != "" {
		args = append(args, "-run", m.run)
	}
	out, err := goCommand(ctx, root, append(args, m.tests...)...)
	switch {
	case err == nil:
		return survived, "", nil
	case bytes.Contains(out, []byte("[build failed]")) || bytes.Contains(out, []byte("[setup failed]")):
		return invalid, string(out), nil
	}
	return failure(ctx, out), "", nil
}

// failure distinguishes failed tests from tests without an end.
func failure(ctx context.Context, out []byte) outcome {
	if ctx.Err() != nil || bytes.Contains(out, []byte("panic: test timed out")) {
		return hung
	}
	return killed
}

// goCommand runs the go command in the module. The process and its children
// end with ctx.
func goCommand(ctx context.Context, root string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	cmd.WaitDelay = 5 * time.Second
	return cmd.CombinedOutput()
}
