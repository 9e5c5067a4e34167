package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/cmd/muster/alone"
	"github.com/musterd/muster/coordinator/capture"
)

// mostReplayed bounds the time that a replay lets pass.
const mostReplayed = 30 * 24 * time.Hour

// continued is the flags of muster simulate --snapshot.
type continued struct {
	snapshot string
	submit   []string
	wait     time.Duration
}

func (r *continued) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.snapshot, "snapshot", "", "go on from a cluster that muster snapshot has written, in place of lists; - is standard input")
	cmd.Flags().StringSliceVar(&r.submit, "submit", nil, "with --snapshot: files with allocations and jobs to submit, in order")
	cmd.Flags().DurationVar(&r.wait, "for", 0, "with --snapshot: how much time passes after the submissions, 0s to 720h")
}

// check refuses flags that contradict each other.
func (r *continued) check(cmd *cobra.Command, s *simulation) error {
	switch {
	case r.snapshot == "":
		if len(r.submit) > 0 {
			return usagef("--submit: %s: want --snapshot beside it", strings.Join(r.submit, ","))
		}
		if r.wait != 0 {
			return usagef("--for: %s: want --snapshot beside it", r.wait)
		}
		return nil
	case s.nodes != "" || len(s.pods) > 0 || s.html != "" || cmd.Flags().Changed("seeds") || cmd.Flags().Changed("inflate"):
		return usagef("--snapshot: leave out --nodes, --pods, --seeds, --inflate and --html")
	case r.wait < 0 || r.wait > mostReplayed:
		return usagef("--for: %s is outside 0s..%s", r.wait, mostReplayed)
	}
	if cmd.Flags().Changed("policy") {
		return s.checkPolicies()
	}
	return nil
}

// replaySnapshot goes on from a snapshot, under each policy.
func (a *app) replaySnapshot(r *continued, policies []string) error {
	name, source, err := a.recording(r.snapshot)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(source, api.MaxSnapshot+1))
	_ = source.Close() // only read
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	d, err := capture.Decode(text)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	work, err := a.submissions(r.submit)
	if err != nil {
		return err
	}
	outcomes := []*alone.Replayed{}
	for _, policy := range policies {
		o, err := alone.Replay(d, policy, work, r.wait)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		outcomes = append(outcomes, o)
	}
	if !a.isTable() {
		return a.encode(outcomes)
	}
	a.showReplay(d, outcomes)
	return nil
}

// submissions reads the work to submit.
func (a *app) submissions(files []string) ([]alone.Work, error) {
	if len(files) == 0 {
		return nil, nil
	}
	objects, err := a.read(files)
	if err != nil {
		return nil, err
	}
	var work []alone.Work
	for _, o := range objects {
		w := alone.Work{Namespace: o.meta().Namespace, Allocation: as[api.Allocation](o), Job: as[api.Job](o)}
		if w.Allocation == nil && w.Job == nil {
			return nil, fmt.Errorf("--submit: %s is neither an allocation nor a job", o)
		}
		if w.Document, err = json.Marshal(o.Value); err != nil {
			return nil, err
		}
		work = append(work, w)
	}
	return work, nil
}

// showReplay prints the outcomes side by side, and the decisions of each.
func (a *app) showReplay(d *capture.Document, outcomes []*alone.Replayed) {
	a.printf("The cluster at revision %d, %s: %d nodes\n\n", d.Revision, d.TakenAt.Format(time.RFC3339), len(d.Nodes))
	t := newTable("POLICY", "RUNNING", "WAITING", "GPUS USED", "EVICTED", "REFUSED")
	for _, o := range outcomes {
		t.add(policyName(o.Policy), fmt.Sprint(o.Running), fmt.Sprint(o.Waiting), fmt.Sprintf("%g of %g", float64(o.Used)/1000, float64(o.GPUs)/1000), fmt.Sprint(o.Evicted), fmt.Sprint(len(o.Refused)))
	}
	t.write(a.Stdout, "")
	for i, o := range outcomes {
		lines := linesOf(o)
		if i > 0 && slices.Equal(lines, linesOf(outcomes[i-1])) {
			a.printf("\n%s: the same decisions\n", policyName(o.Policy))
			continue
		}
		a.printf("\n%s:\n", policyName(o.Policy))
		for _, line := range lines {
			a.printf("  %s\n", line)
		}
		if len(lines) == 0 {
			a.printf("  no decisions\n")
		}
	}
}

func linesOf(o *alone.Replayed) (lines []string) {
	for _, one := range o.Decisions {
		lines = append(lines, one.String())
	}
	for _, text := range o.Refused {
		lines = append(lines, "refused: "+strings.TrimSpace(text))
	}
	return lines
}

func policyName(policy string) string {
	if policy == "" {
		return "as configured"
	}
	return policy
}
