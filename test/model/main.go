// Command model searches the Promela models of this folder with spin: every
// configuration of the protocol completely, then that its far end can be
// reached, then that each mutant breaks the invariant its rule is there for.
// With -full it searches larger configurations instead, which takes minutes
// and gigabytes. It prints a line per search and exits 1 if one is not as
// expected, 2 if spin or gcc is missing.
//
// It decides nothing about the code: that the models and the code speak of the
// same rules is held by this folder's tests.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"time"
)

func main() {
	full := flag.Bool("full", false, "search the larger configurations")
	folder := flag.String("models", "test/model", "folder of the models")
	jobs := flag.Int("jobs", runtime.NumCPU(), "searches at once")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Stdout, rows(*full), *folder, max(1, *jobs))
	stop()
	os.Exit(code)
}

// run does the searches and returns the exit code.
func run(ctx context.Context, out io.Writer, searches []search, folder string, jobs int) int {
	if err := tools(); err != nil {
		fmt.Fprintln(out, "model:", err)
		return 2
	}
	type answer struct {
		result
		err error
	}
	answers := make([]chan answer, len(searches))
	slots := make(chan struct{}, jobs)
	for i := range answers {
		answers[i] = make(chan answer, 1)
	}
	go func() {
		for i, s := range searches {
			slots <- struct{}{}
			go func() {
				r, err := s.isolated(ctx, folder)
				<-slots
				answers[i] <- answer{r, err}
			}()
		}
	}()
	began := time.Now()
	fmt.Fprintf(out, "%-9s %-4s %-27s %12s %8s  %-10s %-6s %-5s %s\n", "model", "conf", "mutant", "states", "seconds", "found", "want", "", "what")
	code := 0
	for i, s := range searches {
		a := <-answers[i]
		verdict := "ok"
		if a.err != nil || a.verdict != s.want {
			verdict, code = "FAIL", 1
		}
		fmt.Fprintf(out, "%-9s %-4s %-27s %12d %8.2f  %-10s %-6s %-5s %s\n", s.model, s.conf, s.mutant, a.states, a.took.Seconds(), a.verdict, s.want, verdict, s.what)
		if a.err != nil {
			fmt.Fprintln(out, a.err)
		}
	}
	fmt.Fprintf(out, "%d searches in %s\n", len(searches), time.Since(began).Round(100*time.Millisecond))
	return code
}

// isolated runs a search in a folder of its own.
func (s search) isolated(ctx context.Context, folder string) (r result, err error) {
	work, err := os.MkdirTemp("", "model-")
	if err != nil {
		return result{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	return s.run(ctx, folder, work)
}
