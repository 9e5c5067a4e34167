package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
)

// seconds is a flag that takes 30 as well as 30s.
type seconds struct{ value *int64 }

func (s *seconds) String() string {
	if s.value == nil {
		return ""
	}
	return strconv.FormatInt(*s.value, 10) + "s"
}

func (s *seconds) Type() string { return "duration" }

func (s *seconds) Set(text string) error {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		text = strconv.FormatInt(n, 10) + "s"
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d%time.Second != 0 || d > api.MaxGracePeriodSeconds*time.Second {
		return fmt.Errorf("want whole seconds up to a day, e.g. 30 or 5m")
	}
	n := int64(d / time.Second)
	s.value = &n
	return nil
}

// target is one object to be deleted.
type target struct {
	kind            kind
	namespace, name string
}

func (t target) String() string {
	if !t.kind.namespaced() {
		return fmt.Sprintf("%s %s", t.kind, t.name)
	}
	return fmt.Sprintf("%s %s/%s", t.kind, t.namespace, t.name)
}

func (a *app) deleteCommand() *cobra.Command {
	var files []string
	var grace seconds
	var wait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:     "delete KIND NAME… | -f FILE",
		Short:   "End allocations and jobs and remove them; remove quotas, and nodes that have left",
		Example: "  muster delete allocation cpu\n  muster delete job train --grace 5m --wait\n  muster delete -f examples/gang.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.checkDelete(args, files); err != nil {
				return err
			}
			if err := a.connect(); err != nil {
				return err
			}
			targets, err := a.targets(args, files)
			if err != nil {
				return err
			}
			return a.deleteAll(cmd.Context(), targets, api.DeleteOptions{GracePeriodSeconds: grace.value}, wait, timeout)
		},
		ValidArgsFunction: a.completeTargets,
	}
	cmd.Flags().StringArrayVarP(&files, "filename", "f", nil, "delete what this file submitted; may be repeated")
	cmd.Flags().Var(&grace, "grace", "time to stop in, e.g. 30s (default: the server's)")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until everything is gone")
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "how long --wait waits")
	return cmd
}

// checkDelete refuses arguments that make no sense before anything is read.
func (a *app) checkDelete(args, files []string) error {
	switch {
	case a.allNamespaces:
		return usagef("-A: deleting is done in one namespace")
	case len(files) > 0 && len(args) > 0:
		return usagef("-f and a name exclude each other")
	case len(files) > 0:
		return nil
	}
	k, names, err := parseTargets(args)
	switch {
	case err != nil:
		return err
	case len(names) == 0:
		return usagef("name the %s to delete", k)
	}
	return nil
}

// targets reads what is to be deleted from files, or from arguments that
// checkDelete has passed.
func (a *app) targets(args, files []string) ([]target, error) {
	var targets []target
	if len(files) > 0 {
		objects, err := a.read(files)
		quotas := false
		for _, o := range objects {
			targets = append(targets, target{o.kind(), o.meta().Namespace, o.meta().Name})
			quotas = quotas || o.kind().isQuota()
		}
		if quotas { // what names another stands behind it
			slices.Reverse(targets)
		}
		return targets, err
	}
	k, names, err := parseTargets(args)
	for _, name := range names {
		targets = append(targets, target{k, a.namespace, name})
	}
	return targets, err
}

// deleteAll deletes each, goes on after a failure, and reports all failures.
func (a *app) deleteAll(ctx context.Context, targets []target, options api.DeleteOptions, wait bool, timeout time.Duration) error {
	deadline := time.Now().Add(timeout)
	var failures []error
	var removed []object
	var going []target
	for _, t := range targets {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		o, err := a.remove(call, t.kind, t.namespace, t.name, options)
		cancel()
		if err != nil {
			failures = append(failures, fmt.Errorf("delete %s: %w", t, err))
			continue
		}
		removed, going = append(removed, o), append(going, t)
		if a.isTable() {
			a.printf("%s %q deleted\n", t.kind, t.name)
		}
	}
	if !a.isTable() && len(removed) > 0 {
		failures = append(failures, a.print(removed, listOf(removed)))
	}
	for _, t := range going {
		if wait {
			failures = append(failures, a.awaitGone(ctx, t, deadline))
		}
	}
	return errors.Join(failures...)
}

// awaitGone waits until an object is not found or has ended.
func (a *app) awaitGone(ctx context.Context, t target, deadline time.Time) error {
	const interval = 100 * time.Millisecond
	for {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		o, err := a.fetch(call, t.kind, t.namespace, t.name, sdk.GetOptions{})
		cancel()
		switch {
		case isNotFound(err):
			return nil
		case err != nil:
			return fmt.Errorf("wait for the end of %s: %w", t, err)
		}
		phase, _ := o.state()
		if phase.Ended() {
			return nil
		}
		if time.Until(deadline) < interval {
			return fmt.Errorf("%s is still %s when the time of --timeout is up; it goes on stopping", t, phase)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(interval):
		}
	}
}

func (a *app) cancelCommand() *cobra.Command {
	var grace seconds
	var reason string
	cmd := &cobra.Command{
		Use:     "cancel JOB…",
		Short:   "End jobs and keep their objects",
		Example: "  muster cancel train --reason 'superseded by v2'",
		Args:    arguments(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			names, err := jobNames(args)
			if err != nil {
				return err
			}
			if err := a.connect(); err != nil {
				return err
			}
			var failures []error
			for _, name := range names {
				failures = append(failures, a.cancel(cmd.Context(), name, api.DeleteOptions{GracePeriodSeconds: grace.value, Reason: reason}))
			}
			return errors.Join(failures...)
		},
		ValidArgsFunction: a.completeNames(jobKind),
	}
	cmd.Flags().Var(&grace, "grace", "time to stop in, e.g. 30s (default: the server's)")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the job's record")
	return cmd
}

// jobNames takes NAME as well as job/NAME.
func jobNames(args []string) ([]string, error) {
	if !strings.Contains(args[0], "/") {
		args = append([]string{string(jobKind)}, args...)
	}
	k, names, err := parseTargets(args)
	if err == nil && k != jobKind {
		err = usagef("%q: only jobs are cancelled; delete an allocation instead", args[0])
	}
	return names, err
}

func (a *app) cancel(ctx context.Context, name string, o api.DeleteOptions) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	status, err := a.client.Jobs(a.namespace).Cancel(ctx, name, o)
	if err != nil {
		return fmt.Errorf("cancel job %s/%s: %w", a.namespace, name, err)
	}
	switch a.output {
	case "json", "yaml":
		return a.encode(&api.Job{
			APIVersion: api.APIVersion, Kind: api.KindJob, Metadata: api.ObjectMeta{Name: name, Namespace: a.namespace}, Status: *status,
		})
	case "name":
		a.printf("job/%s\n", name)
	default:
		a.printf("job %q %s\n", name, join(strings.ToLower(string(status.Phase)), status.Message))
	}
	return nil
}

// sortMembers orders the members of a job by their number.
func sortMembers(objects []object) {
	slices.SortStableFunc(objects, func(x, y object) int { return x.allocation.Status.Member - y.allocation.Status.Member })
}
