package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/simulate"
)

// The bounds of muster simulate.
const (
	mostSeeds   = 1000
	mostInflate = 1000 // percent
)

// simulation is the flags of muster simulate.
type simulation struct {
	nodes, seeds, html string
	pods, policies     []string
	inflate            int
}

func (a *app) simulateCommand() *cobra.Command {
	var s simulation
	var r continued
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Compare placement policies on lists of nodes and pods, or on a snapshot of a cluster",
		Long: "simulate lets the pods of a list arrive on the empty nodes, one after the other, by the code that\n" +
			"places in production, and reports which part of the GPUs each policy allocates. The list is\n" +
			"inflated by pods drawn from it, or cut, to --inflate percent of the GPUs, and its order is drawn,\n" +
			"once for each seed. A pod without a place is dropped, and none leaves. The lists are CSV files in\n" +
			"the format of Alibaba's cluster-trace-gpu-v2023. With --snapshot it goes on from a cluster that\n" +
			"muster snapshot has written: it submits the work of --submit and shows each decision, as that\n" +
			"cluster would make it, or under each of the policies. It talks to no server.",
		Example: "  muster simulate --nodes nodes.csv --pods pods.csv\n" +
			"  muster simulate --nodes nodes.csv --pods a.csv,b.csv --policy fragmentation,packed --html report.html\n" +
			"  muster simulate --snapshot cluster.json --submit train.yaml --policy packed,spread",
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := r.check(cmd, &s); err != nil {
				return err
			}
			if r.snapshot == "" {
				return a.simulate(cmd.Context(), &s)
			}
			if !cmd.Flags().Changed("policy") {
				return a.replaySnapshot(&r, []string{""})
			}
			return a.replaySnapshot(&r, s.policies)
		},
	}
	r.flags(cmd)
	cmd.Flags().StringVar(&s.nodes, "nodes", "", "list of nodes: columns sn, cpu_milli, memory_mib, gpu, model")
	cmd.Flags().StringSliceVar(&s.pods, "pods", nil, "lists of pods: columns name, cpu_milli, memory_mib, num_gpu, gpu_milli and, if it is there, gpu_spec")
	cmd.Flags().StringSliceVar(&s.policies, "policy", place.Policies(), "policies to compare: "+strings.Join(place.Policies(), ", "))
	cmd.Flags().StringVar(&s.seeds, "seeds", "42-51", "seeds of the arrivals: numbers, and ranges FIRST-LAST, with commas in between")
	cmd.Flags().IntVar(&s.inflate, "inflate", 130, fmt.Sprintf("percent of the nodes' GPUs that the pods ask for, 1 to %d", mostInflate))
	cmd.Flags().StringVar(&s.html, "html", "", "write a page with plots to this file")
	_ = cmd.RegisterFlagCompletionFunc("policy", cobra.FixedCompletions(place.Policies(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// check reads the flags that are no files.
func (s *simulation) check() (seeds []int64, err error) {
	switch {
	case s.nodes == "":
		return nil, usagef("--nodes: not set; it is a CSV file with the columns sn, cpu_milli, memory_mib, gpu, model")
	case len(s.pods) == 0 || slices.Contains(s.pods, ""):
		return nil, usagef("--pods: not set; it is a CSV file with the columns name, cpu_milli, memory_mib, num_gpu, gpu_milli")
	case s.inflate < 1 || s.inflate > mostInflate:
		return nil, usagef("--inflate: %d is outside 1..%d", s.inflate, mostInflate)
	}
	if err := s.checkPolicies(); err != nil {
		return nil, err
	}
	return readSeeds(s.seeds)
}

// checkPolicies refuses policies that do not exist, or that are named twice.
func (s *simulation) checkPolicies() error {
	if len(s.policies) == 0 {
		return usagef("--policy: none is named; want %s", strings.Join(place.Policies(), ", "))
	}
	for i, p := range s.policies {
		if !slices.Contains(place.Policies(), p) || slices.Contains(s.policies[:i], p) {
			return usagef("--policy: %q: want each of %s at most once", p, strings.Join(place.Policies(), ", "))
		}
	}
	return nil
}

// readSeeds reads "42-51" or "1,2,7-9".
func readSeeds(text string) ([]int64, error) {
	var seeds []int64
	for part := range strings.SplitSeq(text, ",") {
		first, last, ranged := strings.Cut(part, "-")
		if !ranged {
			last = first
		}
		from, err := strconv.ParseInt(first, 10, 32)
		to, err2 := strconv.ParseInt(last, 10, 32)
		if err = errors.Join(err, err2); err != nil || from > to || from < 0 {
			return nil, usagef("--seeds: %q: want numbers from 0 and ranges FIRST-LAST with commas in between, such as 42-51", text)
		}
		if to-from >= mostSeeds || len(seeds)+int(to-from) >= mostSeeds {
			return nil, usagef("--seeds: %q: more than %d seeds", text, mostSeeds)
		}
		for ; from <= to; from++ {
			seeds = append(seeds, from)
		}
	}
	return seeds, nil
}

// readList reads a file by a function of package simulate.
func readList[T any](name string, read func(io.Reader) ([]T, error)) ([]T, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	list, err := read(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return list, nil
}

func (a *app) simulate(ctx context.Context, s *simulation) error {
	seeds, err := s.check()
	if err != nil {
		return err
	}
	nodes, err := readList(s.nodes, simulate.ReadNodes)
	if err != nil {
		return err
	}
	cluster, err := simulate.NewCluster(nodes)
	if err != nil {
		return fmt.Errorf("%s: %w", s.nodes, err)
	}
	report := simulate.Report{Nodes: cluster.Nodes(), GPUs: cluster.GPUs(), Inflate: s.inflate, Seeds: seeds}
	var lists [][]simulate.Pod
	for _, name := range s.pods {
		pods, err := readList(name, simulate.ReadPods)
		if err != nil {
			return err
		}
		lists = append(lists, pods)
	}
	progress := a.newProgress()
	for i, pods := range lists {
		list := simulate.List{Name: strings.TrimSuffix(filepath.Base(s.pods[i]), ".csv"), Pods: len(pods)}
		for _, policy := range s.policies {
			runs, err := play(ctx, cluster, nodes, pods, s.inflate, seeds, policy, func(done int) {
				progress.show(func() string { return fmt.Sprintf("%s, %s: %d pods have arrived", list.Name, policy, done) })
			})
			if err != nil {
				progress.clear()
				return fmt.Errorf("%s: %w", s.pods[i], err)
			}
			list.Policies = append(list.Policies, simulate.Summarize(policy, s.inflate, seeds, runs))
		}
		report.Lists = append(report.Lists, list)
	}
	progress.clear()
	if s.html != "" {
		if err := writePage(s.html, &report); err != nil {
			return err
		}
	}
	if !a.isTable() {
		return a.encode(report)
	}
	a.showReport(&report)
	return nil
}

// play runs one policy with all seeds, as many at once as there are processors.
func play(ctx context.Context, c *simulate.Cluster, nodes []simulate.Node, pods []simulate.Pod, inflate int, seeds []int64, policy string, progress func(done int)) ([]simulate.Run, error) {
	runs, failures := make([]simulate.Run, len(seeds)), make([]error, len(seeds))
	var next, done atomic.Int64
	var mu sync.Mutex // of progress
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(seeds)) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(seeds); i = int(next.Add(1)) - 1 {
				arrivals, err := simulate.Arrivals(nodes, pods, inflate, seeds[i])
				if err != nil {
					failures[i] = err
					continue
				}
				before := 0
				runs[i] = c.Play(arrivals, policy, func(n int) bool {
					all := done.Add(int64(n - before))
					before = n
					mu.Lock()
					defer mu.Unlock()
					progress(int(all))
					return ctx.Err() == nil
				})
			}
		})
	}
	workers.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for _, err := range failures { // the seeds do not matter for it
		if err != nil {
			return nil, err
		}
	}
	return runs, nil
}

// writePage writes the page of a report to a file.
func writePage(name string, r *simulate.Report) error {
	var page bytes.Buffer
	if err := simulate.WritePage(&page, r); err != nil {
		return fmt.Errorf("--html: %w", err)
	}
	if err := os.WriteFile(name, page.Bytes(), 0o644); err != nil {
		return fmt.Errorf("--html: %w", err)
	}
	return nil
}

// showReport prints the levels of each policy, for people.
func (a *app) showReport(r *simulate.Report) {
	t := &table{}
	heads := []string{"LIST", "POLICY"}
	for _, l := range r.Lists[0].Policies[0].Levels {
		heads = append(heads, fmt.Sprintf("AT %d%%", l.Arrived), "SD")
	}
	t.rows = append(t.rows, append(heads, "PLACED"))
	for _, l := range r.Lists {
		for _, o := range l.Policies {
			cells := []string{l.Name, o.Policy}
			for _, level := range o.Levels {
				cells = append(cells, fmt.Sprintf("%.2f%%", level.Mean), fmt.Sprintf("%.2f", level.Sd))
			}
			placed, arrived := 0, 0
			for _, run := range o.Runs {
				placed, arrived = placed+run.Placed, arrived+run.Arrived
			}
			t.add(append(cells, fmt.Sprintf("%d of %d", placed, arrived))...)
		}
	}
	t.write(a.Stdout, "")
	a.printf("\n%d nodes with %d GPUs; the percentages are of GPUs, means of %d orders of arrival\n", r.Nodes, r.GPUs, len(r.Seeds))
}
