package cli

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
)

func (a *app) metricsCommand() *cobra.Command {
	return parent(&cobra.Command{
		Use:   "metrics",
		Short: "Show the cluster, its queues and a tenant's usage in numbers",
		Long: "metrics shows numbers of the present leader; peaks, averages and waits of the time before its term\n" +
			"are those of the history, where one is kept. A tenant sees the cluster as a whole, the queues of\n" +
			"its own work, and its own usage.",
	}, a.metricsClusterCommand(), a.metricsQueuesCommand(), a.metricsTenantCommand())
}

// measure asks for numbers and prints them: as a document, or by draw.
func measure[T any](ctx context.Context, a *app, ask func(context.Context) (*T, error), draw func(*T)) error {
	if a.output == "name" {
		return usagef("-o name: numbers have no names; want table, wide, json or yaml")
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	got, err := ask(ctx)
	if err != nil {
		return err
	}
	if !a.isTable() {
		return a.encode(got)
	}
	draw(got)
	return nil
}

func (a *app) metricsClusterCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "cluster",
		Short:   "Show the hardware, its use, and the work of the leader",
		Example: "  muster metrics cluster\n  muster metrics cluster -o json",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.connect(); err != nil {
				return err
			}
			return measure(cmd.Context(), a, a.client.Metrics().Cluster, a.drawCluster)
		},
	}
}

func (a *app) drawCluster(u *api.ClusterUtilization) {
	t := newTable("RESOURCE", "CAPACITY", "ALLOCATABLE", "REQUESTED", "USED", "UTILIZATION")
	for _, row := range []struct {
		name string
		n    api.AmountNumbers
	}{{"cpu", u.Cluster.CPU}, {"memory", u.Cluster.Memory}} {
		t.add(row.name, row.n.Capacity, row.n.Allocatable, row.n.Requested, row.n.Used, percent(row.n.Utilization))
	}
	g := u.Cluster.GPU
	t.add("gpu", decimal(g.Capacity), decimal(g.Allocatable), decimal(g.Requested), decimal(g.Used), percent(g.Utilization))
	t.write(a.Stdout, "")
	n, s := u.Cluster.Nodes, u.Scheduling
	a.printf("\nnodes: %d, %d ready, %d not ready, %d cordoned\n", n.Total, n.Ready, n.NotReady, n.Cordoned)
	a.printf("pending allocations: %d; begun in the last minute: %s; preemptions in the last hour: %d\n", s.PendingAllocations, s.SchedulingRate, s.PreemptionsLast1h)
	a.printf("scheduling latency since %s: %d ms on average, %d ms for 99 of 100\n", s.Since, s.AvgSchedulingLatencyMs, s.P99SchedulingLatencyMs)
}

func (a *app) metricsQueuesCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "queues",
		Short:   "Show the queues with their depths and waits",
		Example: "  muster metrics queues",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.connect(); err != nil {
				return err
			}
			return measure(cmd.Context(), a, a.client.Metrics().Queues, func(u *api.QueueUsage) {
				t := newTable("QUEUE", "DEPTH", "OLDEST", "AVG-WAIT", "P99-WAIT")
				for _, q := range u.Queues {
					t.add(q.Name, strconv.Itoa(q.Depth), q.OldestItem, q.AvgWaitTime, q.P99WaitTime)
				}
				t.write(a.Stdout, "")
			})
		},
	}
}

func (a *app) metricsTenantCommand() *cobra.Command {
	var period time.Duration
	cmd := &cobra.Command{
		Use:     "tenant NAME",
		Short:   "Show a tenant's usage beside its quota",
		Example: "  muster metrics tenant ml-team --period 1h",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if period < api.LeastUsagePeriod || period > api.GreatestPeriod {
				return usagef("--period %s is outside 1m..8784h (366 days)", period)
			}
			if !api.IsSubdomain(args[0]) {
				return usagef("%q is not the name of a tenant", args[0])
			}
			if err := a.connect(); err != nil {
				return err
			}
			ask := func(ctx context.Context) (*api.TenantUsage, error) {
				return a.client.Metrics().Tenant(ctx, args[0], period)
			}
			return measure(cmd.Context(), a, ask, func(u *api.TenantUsage) {
				t := newTable("RESOURCE", "QUOTA", "CURRENT", "PEAK", "AVERAGE", "OF-QUOTA")
				for _, name := range slices.Sorted(maps.Keys(u.Resources)) {
					r, part := u.Resources[name], ""
					if r.UtilizationOfQuota != nil {
						part = percent(*r.UtilizationOfQuota)
					}
					t.add(string(name), r.Quota, r.CurrentUsage, r.PeakUsage, r.AvgUsage, part)
				}
				t.write(a.Stdout, "")
			})
		},
	}
	cmd.Flags().DurationVar(&period, "period", api.DefaultUsagePeriod, "time that peak and average are about, 1m to 8784h (366 days)")
	return cmd
}

// percent is a part of 1 in whole percent.
func percent(part float64) string { return strconv.FormatFloat(part*100, 'f', 0, 64) + "%" }

func decimal(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
