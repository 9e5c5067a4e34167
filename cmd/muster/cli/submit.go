package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
)

// patience is how long a wait is silent before it names the reason, and
// slice how long one request then waits at the server.
const (
	patience = time.Second
	slice    = 5 * time.Second
)

func (a *app) submitCommand() *cobra.Command {
	var files []string
	var wait, replace bool
	var timeout time.Duration
	dryRun := dryRun{hasServer: true}
	cmd := &cobra.Command{
		Use:     "submit -f FILE",
		Aliases: []string{"create"},
		Short:   "Submit allocations and jobs; create quotas",
		Long: "submit reads documents, YAML or JSON, several to a file if need be, and creates the objects in\n" +
			"order once all documents are found to be well formed. A document without a kind is a Job if it\n" +
			"has a spec.template, else an Allocation. A folder stands for the .yaml, .yml and .json files in\n" +
			"it. The status and all else that only the server sets is ignored, so that what muster get -o\n" +
			"yaml prints can be submitted. muster apply also changes objects that exist.",
		Example: "  muster submit -f examples/cpu.yaml --wait\n  muster submit -f examples/cpu.yaml --replace\n  muster submit -f examples/gang.yaml --dry-run=server\n  generate | muster submit -f - -o name",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case len(files) == 0:
				return usagef("name a file with -f, or -f - for standard input")
			case timeout <= 0:
				return usagef("--timeout %s is not positive", timeout)
			case replace && (dryRun.client() || dryRun.server()):
				return usagef("--replace and --dry-run exclude each other: a dry run removes nothing")
			case a.allNamespaces:
				return usagef("-A: work is submitted to one namespace")
			}
			if err := a.connect(); err != nil {
				return err
			}
			objects, err := a.read(files)
			if err != nil {
				return err
			}
			for _, o := range objects {
				if !o.Kind.Created {
					return fmt.Errorf("submit %s: %w", o, errNotCreated)
				}
			}
			if dryRun.client() {
				return a.showDryRun(objects, "created")
			}
			if dryRun.server() {
				return a.tryAll(cmd.Context(), objects)
			}
			create := a.create
			if replace {
				create = a.replace
			}
			return a.submit(cmd.Context(), objects, create, wait, timeout)
		},
	}
	a.fileFlags(cmd, &files, "submit")
	cmd.Flags().Var(&dryRun, "dry-run", "none; client: check the documents and send nothing; server: show where the work would run, or why it would wait")
	cmd.Flags().BoolVar(&replace, "replace", false, "remove an allocation or a job of the same name first, if it has ended")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until everything runs")
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "how long --wait waits")
	return cmd
}

// creator creates an object, and may wait at the server until it runs.
type creator func(ctx context.Context, o object, wait time.Duration) (object, error)

// submit creates all objects, waits for them where asked to, and shows them.
// Objects that were created before a failure stay and are shown.
func (a *app) submit(ctx context.Context, objects []object, create creator, wait bool, timeout time.Duration) error {
	started := time.Now()
	deadline := started.Add(timeout)
	var first time.Duration
	if wait && len(objects) == 1 {
		first = min(patience, timeout)
	}
	var created []object
	var failure error
	for _, o := range objects {
		got, err := create(ctx, o, first)
		if err != nil {
			failure = fmt.Errorf("submit %s: %w", o, err)
			break
		}
		a.warn(ctx, got)
		created = append(created, got)
	}
	if wait && failure == nil {
		for i := range created {
			var err error
			if created[i], err = a.await(ctx, created[i], started, deadline); err != nil {
				failure = errors.Join(failure, err)
			}
		}
	}
	if len(created) == 0 {
		return failure
	}
	shown := created
	if a.isTable() && ctx.Err() == nil {
		shown = a.withMembers(ctx, created)
	}
	return errors.Join(failure, a.print(shown, listOf(created)))
}

func (a *app) create(ctx context.Context, o object, wait time.Duration) (object, error) {
	ctx, cancel := context.WithTimeout(ctx, wait+callTimeout)
	defer cancel()
	o.meta().ResourceVersion = ""
	if n := as[api.Node](o); n != nil {
		o.Value = n.Creation()
	}
	got, err := a.at(o.kind(), o.meta().Namespace).Create(ctx, o.Object, sdk.CreateOptions{Wait: wait})
	return object{Object: got}, err
}

// errNotCreated refuses a document of a kind whose objects come by themselves.
var errNotCreated = errors.New("objects of this kind come into being by themselves and cannot be created")

// warn names the parts of an object that have no effect.
func (a *app) warn(ctx context.Context, o object) {
	warnings := o.kind().entry().warn
	if warnings == nil {
		return
	}
	for _, w := range warnings(a, ctx, o) {
		a.notef("warning: %s: %s\n", o, w)
	}
}

// await waits until the object runs or ends. It names on standard error the state that it
// waits for, once its patience since started is over and whenever that changes.
func (a *app) await(ctx context.Context, o object, started, deadline time.Time) (object, error) {
	said := ""
	for {
		phase, message := o.state()
		if phase.Ended() && phase != api.Succeeded {
			return o, fmt.Errorf("%s has ended: %s", o, join(string(phase), message))
		}
		if phase != api.Pending && phase != api.Queued {
			return o, nil
		}
		left := time.Until(deadline)
		if left <= 0 {
			return o, fmt.Errorf("%s is still %s when the time of --timeout is up; muster why %s%s says why, and it stays submitted",
				o, phase, o.meta().Name, a.inNamespace(o.meta().Namespace))
		}
		wait := slice
		if quiet := patience - time.Since(started); quiet > 0 {
			wait = quiet
		} else if line := waiting(o); line != said {
			a.notef("%s\n", line)
			said = line
		}
		next, err := a.poll(ctx, o, min(left, wait))
		if err != nil {
			return o, fmt.Errorf("wait for %s: %w", o, err)
		}
		o = next
	}
}

func (a *app) poll(ctx context.Context, o object, wait time.Duration) (object, error) {
	ctx, cancel := context.WithTimeout(ctx, wait+callTimeout)
	defer cancel()
	return a.fetch(ctx, o.kind(), o.meta().Namespace, o.meta().Name, sdk.GetOptions{Wait: wait})
}

// waiting words the state of an object that waits.
func waiting(o object) string {
	phase, message := o.state()
	line := fmt.Sprintf("waiting for %s: %s", o, phase)
	if p := o.queuePosition(); p > 0 {
		line += fmt.Sprintf(", position %d", p)
	}
	return join(line, message)
}

func join(head, tail string) string {
	if tail == "" {
		return head
	}
	return head + ": " + tail
}

// withMembers adds the allocations of jobs, so that their exact devices show.
// A table without them is better than none, so a failure only leaves them out.
func (a *app) withMembers(ctx context.Context, objects []object) []object {
	shown := objects
	for _, o := range objects {
		job := as[api.Job](o)
		if job == nil {
			continue
		}
		members, err := a.members(ctx, job)
		if err != nil {
			a.notef("warning: the members of %s are not shown: %v\n", o, err)
		}
		shown = append(shown[:len(shown):len(shown)], members...)
	}
	return shown
}

// members gets the allocations of a job.
func (a *app) members(ctx context.Context, j *api.Job) ([]object, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	list, err := a.client.Allocations(j.Metadata.Namespace).List(ctx, sdk.ListOptions{FieldSelector: "status.job=" + j.Metadata.Name})
	if err != nil {
		return nil, err
	}
	// By number, not by name: member 10 follows member 9.
	objects := make([]object, 0, len(list.Items))
	for i := range list.Items {
		objects = append(objects, objectOf(api.KindAllocation, &list.Items[i]))
	}
	sortMembers(objects)
	return objects, nil
}
