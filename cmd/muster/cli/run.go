package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/sdk"
)

// runFlags are the wishes of muster run.
type runFlags struct {
	name, cpu, memory, queue string
	dir, rootfs, bundle      string
	mounts                   []string
	signal                   string
	array                    string
	gpus, nodes              int
	priority, retries        int32
	input, tty               bool
	env                      []string
	dependencies             []string
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [flags] -- [COMMAND…]",
		Short: "Run a command on granted devices, and show its output",
		Long: "run submits a job with a command, waits for its devices, shows the output of all members as it comes, and\n" +
			"ends with the job: with exit code 0 where every member has succeeded, else with the code of the first\n" +
			"member that has failed. With --nodes N the members start together, each on a node of its own, and each\n" +
			"line of output begins with the index of its member.\n\n" +
			"With -i the command gets standard input, and with -t a terminal: all keys go to the command then, Ctrl-C\n" +
			"and Ctrl-Z too, and ~. at the beginning of a line leaves the command, which goes on (~~ is ~).\n" +
			"muster attach comes back to it. The job has one member then.\n\n" +
			"Ctrl-C cancels the job, and its last output is shown; a second Ctrl-C leaves it to end by itself. The job\n" +
			"stays after its end, for muster logs and muster describe.",
		Example: "  muster run -- nproc\n  muster run -g 1 -- python3 train.py\n  muster run -it -g 1 -- bash\n  muster run --dependency afterok:prepare -g 1 -- python3 train.py\n  muster run --array 0-39%4 -g 1 -- sh -c 'python3 sweep.py --trial $MUSTER_INDEX'\n  muster run -g 8 --nodes 4 -- sh -c 'torchrun --nnodes $MUSTER_WORLD_SIZE --node-rank $MUSTER_RANK train.py'",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && f.bundle == "" { // a bundle has a command of its own
				return usagef("want a command after --, or --bundle")
			}
			if a.allNamespaces {
				return usagef("-A: a job is in one namespace")
			}
			if cmd.Flags().Changed("array") && f.array == "" { // of a variable that is not set
				return usagef("--array \"\": want 0-LAST or 0-LAST%%MOST, or leave the flag out")
			}
			if cmd.Flags().Changed("signal") && f.signal == "" {
				return usagef("--signal \"\": want SIGNAL or SIGNAL@SECONDS, or leave the flag out")
			}
			j, err := f.job(args)
			if err != nil {
				return err
			}
			if err := a.connect(); err != nil {
				return err
			}
			j.Metadata.Namespace = a.namespace
			c, err := a.consoleOf(&f, j)
			if err != nil {
				return err
			}
			return a.runJob(cmd.Context(), j, c)
		},
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false) // the flags of the command are its own
	flags.IntVarP(&f.gpus, "gpus", "g", 0, "GPUs of each member")
	flags.StringVarP(&f.array, "array", "a", "", "members with indices of their own, 0-LAST or 0-LAST%MOST, of which MOST run at a time")
	flags.IntVar(&f.nodes, "nodes", 1, "members, each on a node of its own")
	flags.StringVarP(&f.cpu, "cpu", "c", "1", "CPUs of each member")
	flags.StringVarP(&f.memory, "memory", "m", "1Gi", "memory of each member")
	flags.StringVar(&f.name, "name", "", "name of the job (default: run- and five characters)")
	flags.StringVar(&f.queue, "queue", "", "queue of the job")
	flags.Int32Var(&f.priority, "priority", 0, "priority of the job")
	flags.StringArrayVarP(&f.dependencies, "dependency", "d", nil, "jobs that the job waits for, TYPE:JOB[:JOB…][,TYPE:JOB…], where TYPE is after, afterok, afternotok or afterany")
	flags.Int32Var(&f.retries, "retries", 0, "times that the command is started again after a failure")
	flags.BoolVarP(&f.input, "stdin", "i", false, "pass standard input to the command")
	flags.BoolVarP(&f.tty, "tty", "t", false, "give the command a terminal")
	flags.StringArrayVarP(&f.env, "env", "e", nil, "a variable of the command's environment, NAME=VALUE")
	flags.StringVar(&f.signal, "signal", "", "signal that the command gets before a known end, SIGNAL or SIGNAL@SECONDS (default of SECONDS: 60)")
	flags.StringVar(&f.rootfs, "rootfs", "", "folder of a root file system on the nodes that the command runs in, in a container")
	flags.StringVar(&f.bundle, "bundle", "", "folder of an OCI bundle on the nodes, in place of --rootfs; without COMMAND that of its config.json runs")
	flags.StringArrayVar(&f.mounts, "mount", nil, "a folder or file of the node in the root file system, SOURCE[:TARGET][:ro] (default of TARGET: SOURCE)")
	flags.StringVarP(&f.dir, "chdir", "D", "", "folder that the command begins in, on its node")
	return cmd
}

// consoleOf is the program's part in a command with an input or a terminal, nil for any
// other. A job whose environment names no kind of terminal gets that of the person.
func (a *app) consoleOf(f *runFlags, j *api.Job) (*console, error) {
	c := &console{input: f.input}
	switch {
	case !f.input && !f.tty:
		return nil, nil
	case !f.tty:
		return c, nil
	}
	var err error
	if c.screen, err = a.openTerminal(); err != nil {
		return nil, err
	}
	s := &j.Spec.Template.Spec
	named := slices.ContainsFunc(s.Env, func(v api.EnvVar) bool { return v.Name == "TERM" })
	if kind := a.Env("TERM"); kind != "" && !named {
		s.Env = append(s.Env, api.EnvVar{Name: "TERM", Value: kind})
	}
	return c, nil
}

// job is the job that the flags ask for. The server checks the rest.
func (f *runFlags) job(command []string) (*api.Job, error) {
	switch {
	case f.gpus < 0:
		return nil, usagef("--gpus %d is negative", f.gpus)
	case f.retries < 0:
		return nil, usagef("--retries %d is negative", f.retries)
	case f.nodes < 1:
		return nil, usagef("--nodes %d: want 1 or more", f.nodes)
	case f.name == "":
		f.name = "run-" + strings.ToLower(rand.Text()[:5])
	}
	if err := jobKind.checkName(f.name); err != nil {
		return nil, usagef("--name: %v", err)
	}
	members, retries := int32(f.nodes), f.retries
	var completions *int32
	if f.array != "" {
		all, most, err := arrayOf(f.array)
		switch {
		case err != nil:
			return nil, usagef("--array %q: %v", f.array, err)
		case f.nodes > 1:
			return nil, usagef("--array and --nodes %d: the members of an array start each by itself; leave out one of the flags", f.nodes)
		}
		completions, members = &all, most
	}
	j := &api.Job{APIVersion: api.APIVersion, Kind: api.KindJob, Metadata: api.ObjectMeta{Name: f.name}}
	j.Spec.Completions = completions
	j.Spec.Parallelism, j.Spec.BackoffLimit, j.Spec.Priority, j.Spec.Queue = &members, &retries, &f.priority, f.queue
	s := &j.Spec.Template.Spec
	s.Resources.Requests = map[resource.Name]string{resource.CPU: f.cpu, resource.Memory: f.memory}
	if f.gpus > 0 {
		s.Resources.Requests[resource.GPU] = strconv.Itoa(f.gpus)
	}
	if members > 1 && completions == nil {
		s.GangScheduling = &api.GangScheduling{MinMembers: &members}
		apart := []api.PodAffinityTerm{{TopologyKey: "kubernetes.io/hostname"}} // of the members of the job
		s.Scheduling.Affinity = &api.Affinity{PodAntiAffinity: &api.PodAffinity{Required: apart}}
	}
	s.Command, s.WorkingDir, s.Rootfs, s.Bundle, s.Stdin, s.TTY = command, f.dir, f.rootfs, f.bundle, f.input, f.tty
	for _, text := range f.mounts {
		m, err := mountOf(text)
		if err != nil {
			return nil, usagef("--mount %q: %v", text, err)
		}
		s.Mounts = append(s.Mounts, m)
	}
	if of := j.Members(); (f.input || f.tty) && of > 1 {
		return nil, usagef("-i and -t: the job has %d members: a command with an input or a terminal has one", of)
	}
	if f.signal != "" {
		var err error
		if s.Signal, s.SignalBefore, err = signalOf(f.signal); err != nil {
			return nil, usagef("--signal %q: %v", f.signal, err)
		}
	}
	for _, text := range f.dependencies {
		list, err := dependenciesOf(text)
		if err != nil {
			return nil, usagef("--dependency %q: %v", text, err)
		}
		j.Spec.Dependencies = append(j.Spec.Dependencies, list...)
	}
	for _, v := range f.env {
		name, value, both := strings.Cut(v, "=")
		if !both || name == "" {
			return nil, usagef("--env %q: want NAME=VALUE", v)
		}
		s.Env = append(s.Env, api.EnvVar{Name: name, Value: value})
	}
	return j, nil
}

// mountOf reads the value of --mount. The server checks the paths.
func mountOf(text string) (api.Mount, error) {
	rest, readOnly := strings.CutSuffix(text, ":ro")
	source, target, both := strings.Cut(rest, ":")
	if source == "" || both && target == "" || strings.Contains(target, ":") {
		return api.Mount{}, errors.New("want SOURCE, SOURCE:TARGET, or either with :ro; the paths of a job's document may have colons")
	}
	return api.Mount{Source: source, Target: target, ReadOnly: readOnly}, nil
}

// arrayOf reads the value of --array as Slurm has it, but that the indices begin with 0 and
// have no gaps: the number of members, and how many of them run at a time.
func arrayOf(text string) (members, atOnce int32, err error) {
	span, most, throttled := strings.Cut(text, "%")
	last, from0 := strings.CutPrefix(span, "0-")
	if span == "0" {
		last, from0 = "0", true
	}
	n, err := strconv.ParseInt(last, 10, 32)
	switch {
	case !from0 || err != nil || n < 0:
		return 0, 0, errors.New("want 0-LAST or 0-LAST%MOST: the indices begin with 0, without gaps")
	case n >= api.MaxParallelism:
		return 0, 0, fmt.Errorf("%d members: the limit is %d", n+1, api.MaxParallelism)
	}
	members = int32(n) + 1
	if !throttled {
		return members, members, nil
	}
	m, err := strconv.ParseInt(most, 10, 32)
	if err != nil || m < 1 {
		return 0, 0, fmt.Errorf("%%%s: want the number of members that run at a time, from 1", most)
	}
	return members, int32(min(m, n+1)), nil
}

// dependenciesOf reads the value of --dependency as Slurm has it: TYPE:JOB[:JOB…], several
// with commas, all of which have to come true.
func dependenciesOf(text string) ([]api.JobDependency, error) {
	if strings.Contains(text, "?") {
		return nil, errors.New("? is not known here: all conditions have to come true; separate them with commas")
	}
	var list []api.JobDependency
	for one := range strings.SplitSeq(text, ",") {
		kind, names, named := strings.Cut(one, ":")
		switch kind {
		case api.DependAfter, api.DependAfterOK, api.DependAfterNotOK, api.DependAfterAny:
		default:
			return nil, fmt.Errorf("%q: want after, afterok, afternotok or afterany", kind)
		}
		if !named {
			return nil, fmt.Errorf("%s names no job: want %s:JOB", kind, kind)
		}
		for name := range strings.SplitSeq(names, ":") {
			if err := jobKind.checkName(name); err != nil {
				return nil, err
			}
			list = append(list, api.JobDependency{Type: kind, Job: name})
		}
	}
	return list, nil
}

// exitError ends the program with the exit code of a job.
type exitError struct{ code int }

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// exitInterrupted is the exit code after Ctrl-C, as of a shell.
const exitInterrupted = 130

// runJob submits a job and follows it to its end. The end of ctx, which is Ctrl-C,
// cancels the job.
// With c the program is connected with the command.
func (a *app) runJob(interrupted context.Context, j *api.Job, c *console) error {
	made, err := a.create(interrupted, objectOf(api.KindJob, j), 0)
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	job := as[api.Job](made)
	a.notef("%s is submitted\n", made)
	ctx, leave := context.WithCancelCause(context.WithoutCancel(interrupted))
	defer leave(nil)
	defer context.AfterFunc(interrupted, func() { a.cancelRun(ctx, leave, job) })()
	started := make(chan struct{})
	go func() { defer close(started); a.tellProgress(ctx, made) }()
	again := "logs -f"
	if c != nil {
		<-started // after that nothing is said while the terminal is the command's
		again = "attach"
		err = a.attachRun(ctx, made, job, c)
	} else {
		err = a.followRun(ctx, made, job)
	}
	if errors.Is(err, errDetached) {
		a.notef("\ndetached; %s goes on: muster attach %s%s\n", made, job.Metadata.Name, a.inNamespace(job.Metadata.Namespace))
		return nil
	}
	if errors.Is(context.Cause(ctx), errLeft) {
		<-started
		return exitError{exitInterrupted}
	}
	if err != nil {
		return fmt.Errorf("%w; the job goes on: muster %s %s%s", err, again, job.Metadata.Name, a.inNamespace(job.Metadata.Namespace))
	}
	end, err := a.poll(ctx, made, 0)
	leave(nil)
	<-started
	if err != nil {
		return fmt.Errorf("%s: %w", made, err)
	}
	return a.endOfRun(as[api.Job](end), interrupted.Err() != nil)
}

// followRun shows the output of a job until its end. Of more members than one request
// follows it shows none, and waits.
func (a *app) followRun(ctx context.Context, o object, j *api.Job) error {
	if j.Members() <= api.MaxFollowedMembers {
		return a.showLogs(ctx, j.Metadata.Name, sdk.LogOptions{Follow: true}, a.newLogPrinter(j.Members()))
	}
	a.notef("the output of %d members is not shown, of %d at most it is: muster logs %s --member INDEX shows one%s\n", j.Members(), api.MaxFollowedMembers, j.Metadata.Name, a.inNamespace(j.Metadata.Namespace))
	for {
		now, err := a.poll(ctx, o, 0)
		if err != nil {
			return err
		}
		if phase, _ := now.state(); phase.Ended() {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// errLeft is why a run is over after a second Ctrl-C.
var errLeft = errors.New("left")

// cancelRun cancels a job after Ctrl-C, and leaves it after another one.
func (a *app) cancelRun(ctx context.Context, leave context.CancelCauseFunc, j *api.Job) {
	again := make(chan os.Signal, 1)
	signal.Notify(again, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(again)
	a.notef("cancelling job %s/%s; Ctrl-C again leaves it\n", j.Metadata.Namespace, j.Metadata.Name)
	calling, cancel := context.WithTimeout(ctx, callTimeout)
	_, err := a.client.Jobs(j.Metadata.Namespace).Cancel(calling, j.Metadata.Name, api.DeleteOptions{})
	cancel()
	if err != nil && ctx.Err() == nil {
		a.notef("muster: cancel job %s/%s: %v\n", j.Metadata.Namespace, j.Metadata.Name, err)
	}
	select {
	case <-again:
		leave(errLeft)
	case <-ctx.Done():
	}
}

// tellProgress says on standard error why a job waits, until it runs or has ended.
func (a *app) tellProgress(ctx context.Context, o object) {
	begun, said := time.Now(), ""
	for {
		phase, _ := o.state()
		if phase != api.Pending && phase != api.Queued {
			if said != "" && phase == api.Running { // a cancelled job may be Terminating
				a.notef("%s runs\n", o)
			}
			return
		}
		wait := patience
		if time.Since(begun) >= patience {
			wait = slice
			if line := waiting(o); line != said {
				a.notef("%s\n", line)
				said = line
			}
		}
		next, err := a.poll(ctx, o, wait)
		if err != nil {
			return // the output is followed beside this, and says why
		}
		o = next
	}
}

// endOfRun is the end of the program for the end of its job.
func (a *app) endOfRun(j *api.Job, interrupted bool) error {
	of := "job " + j.Metadata.Namespace + "/" + j.Metadata.Name
	switch {
	case j.Status.Phase == api.Succeeded:
		return nil
	case interrupted:
		a.notef("%s is %s\n", of, j.Status.Phase)
		return exitError{exitInterrupted}
	}
	a.notef("%s\n", join(of+" is "+string(j.Status.Phase), j.Status.Message))
	return exitError{exitCodeOf(j)}
}

// exitCodeOf is the exit code of a job that has not succeeded: that of the first member
// whose command has ended with another code than 0 by itself; the others were ended
// because of it.
func exitCodeOf(j *api.Job) int {
	first := 0
	for _, m := range j.Status.Allocations {
		if m.ExitCode == nil || *m.ExitCode == 0 {
			continue
		}
		if m.ExitReason == "Completed" {
			return int(*m.ExitCode)
		}
		first = cmp.Or(first, int(*m.ExitCode))
	}
	return cmp.Or(first, ExitFailed)
}

// indexValue is the value of --member: nil is not given.
type indexValue struct{ index *int }

func (v *indexValue) String() string {
	if v.index == nil {
		return ""
	}
	return strconv.Itoa(*v.index)
}

// Type implements pflag.Value.
func (v *indexValue) Type() string { return "INDEX" }

// Set implements pflag.Value.
func (v *indexValue) Set(text string) error {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return errors.New("want the index of a member, from 0")
	}
	index := int(n)
	v.index = &index
	return nil
}
