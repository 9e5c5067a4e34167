package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/musterd/muster/test/report"
)

// mostAlone bounds the time in which suspects run again alone. More of them speak
// of a slow machine rather than of slow tests; the others are only named.
const mostAlone = time.Minute

// judge fails the run for packages that use more CPU than test/report/costs.txt
// allows, and for tests that take more time. The time of a test beside others is
// no measure, and neither is its time on a busy machine: a test that took too long
// runs once more, alone, and counts only if the cores are idle before and after.
func (r *runner) judge(ctx context.Context) {
	tests, packages := r.report.Costs()
	before := probe()
	for _, complaint := range r.costs.Expensive(packages, before.speed) {
		r.report.Fail("%s", complaint)
	}
	for _, line := range r.costs.Spare(packages, before.speed) {
		r.report.Print("%s", line)
	}
	suspects := r.costs.Suspects(tests, packages)
	began := time.Now()
	for _, t := range suspects {
		if time.Since(began) > mostAlone || ctx.Err() != nil {
			r.report.Print("not judged, for want of time: the test %s of %s took %.1f s beside others", t.Name, t.Package, t.Seconds)
			continue
		}
		r.judgeAlone(ctx, t)
	}
	if len(suspects) > 0 {
		r.note(phase{name: "slow tests once more, alone", wall: time.Since(began)})
	}
}

func (r *runner) judgeAlone(ctx context.Context, t report.Test) {
	before := probe()
	alone, err := r.alone(ctx, t)
	after := probe()
	quiet := before.quiet() && after.quiet()
	complaint := r.costs.Slow(alone)
	switch {
	case err != nil:
		r.report.Fail("run %s of %s once more, since it took %.1f s: %v", t.Name, t.Package, t.Seconds, err)
	case complaint != "" && quiet:
		r.report.Fail("%s", complaint)
	case complaint != "":
		r.report.Print("not judged, since other programs use the machine: %s", complaint)
	}
}

// alone runs one test and returns its time.
func (r *runner) alone(ctx context.Context, t report.Test) (report.Test, error) {
	var printed bytes.Buffer
	one := report.New(&printed, false)
	c := exec.CommandContext(ctx, goCommand(), "test", "-json", "-vet=off", "-count=1", fmt.Sprintf("-timeout=%s", r.timeout), "-exec="+r.measure, "-run=^"+t.Name+"$", t.Package)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		return t, err
	}
	if err := c.Start(); err != nil {
		return t, err
	}
	(&runner{report: one}).read(out)
	if err := c.Wait(); err != nil {
		return t, fmt.Errorf("%w\n%s", err, printed.Bytes())
	}
	tests, _ := one.Costs()
	for _, again := range tests {
		if again.Package == t.Package && again.Name == t.Name {
			return again, nil
		}
	}
	return t, fmt.Errorf("the test did not run")
}
