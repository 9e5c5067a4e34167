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
	d := deletion{dryRun: dryRun{hasServer: true}}
	var grace seconds
	var require api.Preconditions
	cmd := &cobra.Command{
		Use:   "delete KIND[,KIND…] NAME… | KIND/NAME… | KIND -l SELECTOR | KIND --all | -f FILE",
		Short: "End allocations and jobs and remove them; remove quotas, tenants, empty namespaces, and nodes that have left",
		Example: "  muster delete allocation cpu\n  muster delete job train --grace 5m --wait\n" +
			"  muster delete jobs -l team=ml\n  muster delete allocations -l app=web --dry-run server\n  muster delete -f examples/gang.yaml --ignore-not-found",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.checkDelete(args, d); err != nil {
				return err
			}
			flag := flagFor(require)
			if flag != "" && (d.all || d.selector != "" || len(d.files) > 0) {
				return usagef("%s is for one object: name its kind and its name", flag)
			}
			if err := a.connect(); err != nil {
				return err
			}
			d.options = api.DeleteOptions{GracePeriodSeconds: grace.value}
			if flag != "" {
				d.options.Preconditions = &require
			}
			if d.isBulk(args) {
				return a.deleteSelected(cmd.Context(), d)
			}
			targets, err := a.targets(cmd.Context(), args, d)
			if err != nil {
				return err
			}
			if flag != "" && len(targets) > 1 {
				return usagef("%s is for one object, %d are named", flag, len(targets))
			}
			return a.deleteAll(cmd.Context(), targets, d)
		},
		ValidArgsFunction: a.completeTargets,
	}
	a.fileFlags(cmd, &d.files, "delete the objects of")
	cmd.Flags().StringVarP(&d.selector, "selector", "l", "", "delete all of the kind whose labels match, e.g. app=x,tier!=y")
	cmd.Flags().BoolVar(&d.all, "all", false, "delete all of the kind in the namespace")
	cmd.Flags().BoolVar(&d.ignoreNotFound, "ignore-not-found", false, "an object that is not there counts as deleted")
	cmd.Flags().Var(&d.dryRun, "dry-run", "none; client: say what would be deleted, and delete nothing; server, for allocations by -l: the server counts them and what they hold")
	cmd.Flags().Var(&grace, "grace", "time to stop in, e.g. 30s (default: the server's)")
	requireFlags(cmd, &require, "delete the object", "the object")
	cmd.Flags().BoolVar(&d.wait, "wait", false, "wait until everything is gone")
	cmd.Flags().DurationVar(&d.timeout, "timeout", time.Minute, "how long --wait waits")
	return cmd
}

// requireFlags adds the flags of preconditions; act says the change, and of the object
// whose values are compared.
func requireFlags(cmd *cobra.Command, require *api.Preconditions, act, of string) {
	cmd.Flags().StringVar(&require.ResourceVersion, "resource-version", "", act+" only where "+of+" has this version")
	cmd.Flags().StringVar(&require.UID, "uid", "", act+" only where "+of+" has this uid: no later one of the same name")
}

// flagFor is a flag that has set preconditions, "" for none.
func flagFor(p api.Preconditions) string {
	switch {
	case p.ResourceVersion != "":
		return "--resource-version"
	case p.UID != "":
		return "--uid"
	}
	return ""
}

// deletion selects objects to delete, and the way.
type deletion struct {
	files          []string
	selector       string
	all            bool
	ignoreNotFound bool
	dryRun         dryRun
	wait           bool
	timeout        time.Duration
	options        api.DeleteOptions
}

// checkDelete refuses arguments that make no sense before a file is read.
func (a *app) checkDelete(args []string, d deletion) error {
	many := d.all || d.selector != ""
	if err := d.checkServerDryRun(args); err != nil {
		return err
	}
	switch {
	case a.allNamespaces:
		return usagef("-A: deleting is done in one namespace")
	case d.timeout < 0:
		return usagef("--timeout %s is negative", d.timeout)
	case d.all && d.selector != "":
		return usagef("--all and -l exclude each other")
	case len(d.files) > 0 && (len(args) > 0 || many):
		return usagef("-f and a name, -l or --all exclude each other")
	case len(d.files) > 0:
		return nil
	}
	groups, err := parseGroups(args)
	switch {
	case err != nil:
		return err
	case many && len(groups[0].names) > 0:
		return usagef("a name and -l or --all exclude each other")
	case !many && len(groups[0].names) == 0:
		return usagef("name the %s to delete, or give -l or --all", groups[0].kind)
	}
	return nil
}

// targets reads the objects to delete from files, or from arguments that
// checkDelete has passed.
func (a *app) targets(ctx context.Context, args []string, d deletion) ([]target, error) {
	if len(d.files) > 0 {
		return a.targetsOf(d.files)
	}
	groups, err := parseGroups(args)
	if err != nil {
		return nil, err
	}
	var targets []target
	for _, g := range groups {
		if d.all || d.selector != "" {
			l, err := a.list(ctx, g.kind, sdk.ListOptions{LabelSelector: d.selector})
			if err != nil {
				return nil, err
			}
			for _, o := range l.objects {
				g.names = append(g.names, o.meta().Name)
			}
		}
		for _, name := range g.names {
			targets = append(targets, target{g.kind, a.namespace, name})
		}
	}
	if len(targets) == 0 {
		a.notef("no %s found%s\n", plainList(groups), a.whereOf(groups))
	}
	return targets, nil
}

// targetsOf reads the objects to delete from files.
func (a *app) targetsOf(files []string) ([]target, error) {
	objects, err := a.read(files)
	var targets []target
	quotas := false
	for _, o := range objects {
		targets = append(targets, target{o.kind(), o.meta().Namespace, o.meta().Name})
		quotas = quotas || o.kind().isQuota()
	}
	if quotas { // an object that names another stands behind it
		slices.Reverse(targets)
	}
	return targets, err
}

// deleteAll deletes each, goes on after a failure, and reports all failures.
func (a *app) deleteAll(ctx context.Context, targets []target, d deletion) error {
	deadline := time.Now().Add(d.timeout)
	var failures []error
	var removed []object
	var going []target
	for _, t := range targets {
		o, err := a.deleteOne(ctx, t, d)
		switch {
		case err != nil && d.ignoreNotFound && isNotFound(err):
			continue
		case err != nil:
			failures = append(failures, fmt.Errorf("delete %s: %w", t, err))
			continue
		}
		removed, going = append(removed, o), append(going, t)
		if a.isTable() {
			a.printf("%s %q deleted%s\n", t.kind, t.name, map[bool]string{true: " (dry run)"}[d.dryRun.client()])
		}
	}
	if !a.isTable() && len(removed) > 0 {
		failures = append(failures, a.print(removed, listOf(removed)))
	}
	for _, t := range going {
		if d.wait && !d.dryRun.client() {
			failures = append(failures, a.awaitGone(ctx, t, deadline))
		}
	}
	return errors.Join(failures...)
}

// deleteOne deletes one object; a dry run only looks for it.
func (a *app) deleteOne(ctx context.Context, t target, d deletion) (object, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if d.dryRun.client() {
		return a.fetch(ctx, t.kind, t.namespace, t.name, sdk.GetOptions{})
	}
	return a.remove(ctx, t.kind, t.namespace, t.name, d.options)
}

// awaitGone waits until an object is not found or has ended. A coordinator that cannot
// answer for the moment (503) ends no wait before its deadline.
func (a *app) awaitGone(ctx context.Context, t target, deadline time.Time) error {
	const interval = 100 * time.Millisecond
	for {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		o, err := a.fetch(call, t.kind, t.namespace, t.name, sdk.GetOptions{})
		cancel()
		inTime := time.Until(deadline) >= interval
		switch {
		case isNotFound(err):
			return nil
		case err != nil && !(inTime && isUnavailable(err)):
			return fmt.Errorf("wait for the end of %s: %w", t, err)
		case err == nil:
			phase, _ := o.state()
			if phase.Ended() {
				return nil
			}
			if !inTime {
				return fmt.Errorf("%s is still %s when the time of --timeout is up; it goes on stopping", t, phase)
			}
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
			names, err := jobNames(args, "only jobs are cancelled; delete an allocation instead")
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

// jobNames takes NAME as well as job/NAME. onlyJobs says what to do with another kind.
func jobNames(args []string, onlyJobs string) ([]string, error) {
	if !strings.Contains(args[0], "/") {
		args = append([]string{string(jobKind)}, args...)
	}
	k, names, err := parseTargets(args)
	if err == nil && k != jobKind {
		err = usagef("%q: %s", args[0], onlyJobs)
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
	slices.SortStableFunc(objects, func(x, y object) int {
		return as[api.Allocation](x).Status.Member - as[api.Allocation](y).Status.Member
	})
}
