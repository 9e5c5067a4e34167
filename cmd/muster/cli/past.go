package cli

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
)

// mostPast bounds the rows that the server gives at a time.
const mostPast = 1000

// pastCommands are the lists of the past.
func (a *app) pastCommands() []*cobra.Command {
	return []*cobra.Command{
		a.pastCommand("allocations", "Show allocations of the past, also those whose objects are gone", "the last phase, e.g. Failed", func(ctx context.Context, o sdk.PastOptions) error {
			got, err := everyPage(o, func(o sdk.PastOptions) ([]api.PastAllocation, string, error) {
				list, err := a.client.PastAllocations(ctx, o)
				if err != nil {
					return nil, "", err
				}
				return list.Items, list.Metadata.Continue, nil
			})
			if err != nil || !a.isTable() {
				return encoded(a, err, &api.PastAllocationList{Kind: api.KindPastAllocation + "List", Items: got})
			}
			t := newTable("CREATED", "NAMESPACE", "NAME", "USER", "QUEUE", "STARTED", "ENDED", "PHASE", "REASON")
			for _, p := range got {
				t.add(p.CreationTimestamp, p.Namespace, unitName(&p), p.User, p.Queue, p.StartTime, p.CompletionTime, p.Phase, p.Reason)
			}
			t.write(a.Stdout, "")
			return nil
		}),
		a.pastCommand("preemptions", "Show preemptions of the past", "the outcome, e.g. Rescheduled", func(ctx context.Context, o sdk.PastOptions) error {
			got, err := everyPage(o, func(o sdk.PastOptions) ([]api.PastPreemption, string, error) {
				list, err := a.client.PastPreemptions(ctx, o)
				if err != nil {
					return nil, "", err
				}
				return list.Items, list.Metadata.Continue, nil
			})
			if err != nil || !a.isTable() {
				return encoded(a, err, &api.PastPreemptionList{Kind: api.KindPastPreemption + "List", Items: got})
			}
			t := newTable("NOTICE", "NAMESPACE", "ALLOCATION", "PRIORITY", "BY-PRIORITY", "EVICTED", "OUTCOME", "REASON")
			for _, p := range got {
				t.add(p.InitiatedTime, p.Namespace, p.Allocation, strconv.Itoa(int(p.Priority)), strconv.Itoa(int(p.PreemptorPriority)), p.EvictedTime, p.Outcome, p.Reason)
			}
			t.write(a.Stdout, "")
			return nil
		}),
		a.pastCommand("events", "Show events of allocations of the past", "the type, e.g. Waiting", func(ctx context.Context, o sdk.PastOptions) error {
			got, err := everyPage(o, func(o sdk.PastOptions) ([]api.PastEvent, string, error) {
				list, err := a.client.PastEvents(ctx, o)
				if err != nil {
					return nil, "", err
				}
				return list.Items, list.Metadata.Continue, nil
			})
			if err != nil || !a.isTable() {
				return encoded(a, err, &api.PastEventList{Kind: api.KindPastEvent + "List", Items: got})
			}
			t := newTable("TIME", "NAMESPACE", "ALLOCATION", "TYPE", "REASON", "MESSAGE")
			for _, p := range got {
				t.add(p.Time, p.Namespace, p.Allocation, p.Type, p.Reason, p.Message)
			}
			t.write(a.Stdout, "")
			return nil
		}),
	}
}

// unitName is the name of an allocation, or job/NUMBER for a unit of a job.
func unitName(p *api.PastAllocation) string {
	if p.Unit == nil {
		return p.Name
	}
	return p.Name + "/" + strconv.Itoa(*p.Unit)
}

// encoded prints a document, unless there is an error.
func encoded(a *app, err error, document any) error {
	if err != nil {
		return err
	}
	return a.encode(document)
}

// everyPage reads pages until the limit is reached.
func everyPage[T any](o sdk.PastOptions, read func(sdk.PastOptions) ([]T, string, error)) ([]T, error) {
	all := []T{}
	for limit := o.Limit; ; {
		o.Limit = min(limit-len(all), mostPast)
		items, next, err := read(o)
		if err != nil {
			return nil, err
		}
		all = append(all, items...)
		if o.Continue = next; next == "" || len(all) >= limit {
			return all, nil
		}
	}
}

// pastCommand is one list.
func (a *app) pastCommand(name, short, state string, list func(context.Context, sdk.PastOptions) error) *cobra.Command {
	var o sdk.PastOptions
	var since time.Duration
	cmd := &cobra.Command{
		Use: name, Short: short,
		Long: short + ", the newest first. The rows come from the history's database: of the\n" +
			"namespace that -n names, else of all that you may see.",
		Example: "  muster history " + name + " --since 24h\n  muster history " + name + " -n vision --name train-0 -o json",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			flags := cmd.Flags()
			switch {
			case a.output == "name":
				return usagef("-o name: rows of the past have no names; want table, wide, json or yaml")
			case flags.Changed("since") && since <= 0:
				return usagef("--since: %s: want a duration such as 1h", since)
			case o.Limit < 1 || o.Limit > 100_000:
				return usagef("--limit: %d is outside 1..100000", o.Limit)
			case len(o.Name) > 253:
				return usagef("--name: %q: more than 253 characters", o.Name)
			case len(o.State) > 64:
				return usagef("--state: %q: more than 64 characters", o.State)
			}
			if since > 0 {
				o.Since = time.Now().Add(-since)
			}
			if err := a.connect(); err != nil {
				return err
			}
			if flags.Changed("namespace") {
				o.Namespace = a.namespace
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), listTimeout)
			defer cancel()
			return list(ctx, o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Name, "name", "", "show those of the allocation with this name")
	flags.StringVar(&o.State, "state", "", "show those in this state: "+state)
	flags.DurationVar(&since, "since", 0, "show those of this last time, e.g. 24h")
	flags.IntVar(&o.Limit, "limit", 100, "how many to show, 1 to 100000")
	return cmd
}
